"""Files with several animations: each can be named, and whatever takes clips takes them all."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.cli.main import main
from poise.formats import each_animation
from poise.library import Library, build
from poise.motion.motion import Origin
from poise.performer import act


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A character with two animations: run|fast, then walk."""
    folder = tmp_path_factory.mktemp("several")
    walk, run = (act(action, seconds=0.5, fps=30) for action in ("walk", "run"))
    replace(walk, name="walk").save(folder / "one.glb")
    origin = Origin(character=str(folder / "one.glb"))
    replace(run, name="run|fast", origin=origin).save(folder / "two.glb")
    return folder / "two.glb"


def test_each_animation_is_a_part_of_the_file(several: Path) -> None:
    parts = each_animation(several)
    assert [part.name for part in parts] == ["two.glb#run|fast", "two.glb#walk"]
    first, second = (poise.read(part) for part in parts)
    assert np.abs(first.positions - second.positions).max() > 0.05
    assert each_animation(parts[1]) == [parts[1]]


def test_learning_takes_every_animation(several: Path) -> None:
    whole, first = poise.learn(several), poise.learn(f"{several}#walk")
    assert len(whole.clips) == 2
    assert len(first.clips) == 1


def test_a_library_takes_every_animation_once(several: Path, tmp_path: Path) -> None:
    folder = tmp_path / "library"
    assert build(folder, [several]).added == ["two_run_fast", "two_walk"]
    again = build(folder, [several])
    assert (again.added, again.kept) == ([], 2)
    walk = Library.open(folder).motion("two_walk")
    recorded = poise.read(f"{several}#walk")
    np.testing.assert_allclose(np.asarray(walk.positions), np.asarray(recorded.positions), atol=1e-5)


def test_convert_writes_one_and_says_so_or_all(
    several: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(several), str(tmp_path / "clip.bvh")]) == 0
    assert "2 animations and this is the first" in " ".join(capsys.readouterr().err.split())
    assert main(["convert", str(several), str(tmp_path / "clip.bvh"), "--all"]) == 0
    assert sorted(file.name for file in tmp_path.glob("*.bvh")) == [
        "clip.bvh",
        "clip_run_fast.bvh",
        "clip_walk.bvh",
    ]
