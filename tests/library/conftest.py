"""Clips of the performer as files, and a library built from them."""

import shutil
from pathlib import Path

import pytest

from poise import performer, write
from poise.library import Library, build
from poise.motion import Motion


@pytest.fixture(scope="session")
def motions() -> dict[str, Motion]:
    """Three short clips of one performer."""
    return {
        "walk_slow": performer.act("walk", speed=1.0, seconds=1.0, fps=30, seed=1),
        "walk_fast": performer.act("walk", speed=1.6, seconds=1.0, fps=30, seed=2),
        "reach": performer.act("reach", fps=30, seed=3),
    }


@pytest.fixture(scope="session")
def clips(motions: dict[str, Motion], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as BVH files in one folder."""
    folder = tmp_path_factory.mktemp("clips")
    for name, motion in motions.items():
        write(motion, folder / f"{name}.bvh")
    return folder


@pytest.fixture(scope="session")
def built(clips: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of them."""
    folder = tmp_path_factory.mktemp("built") / "library"
    build(folder, [clips])
    return folder


@pytest.fixture
def library(built: Path, tmp_path: Path) -> Library:
    """A copy of it that a test may change."""
    return Library.open(shutil.copytree(built, tmp_path / "library"))
