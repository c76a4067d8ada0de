"""`poise learn --kind dynamics`, `poise simulate` and `poise animate`: from clips to motions nobody recorded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poise import performer
from poise.cli.main import main
from poise.formats import read, write

Program = Callable[..., Any]


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("gaits")
    gaits = {"walk": ("walk", 1.3), "run": ("run", 3.0)}
    for number, (name, (action, speed)) in enumerate(gaits.items()):
        write(performer.act(action, speed=speed, seconds=2.0, fps=30, seed=number), folder / f"{name}.bvh")
    return [folder / f"{name}.bvh" for name in gaits]


@pytest.fixture(scope="module")
def gaits(clips: list[Path]) -> Path:
    path = clips[0].with_name("gaits.poise")
    assert main(["learn", str(path), *map(str, clips), "--kind", "dynamics", "--topology", "cylinder"]) == 0
    return path


def test_learning_says_what_was_learned_and_draws_it(gaits: Path, poise: Program, clips: list[Path]) -> None:
    assert gaits.with_suffix(".png").exists()
    run = poise(
        "learn", gaits.with_name("b.poise"), *clips, "--kind", "dynamics", "--topology", "sphere(phase)"
    )
    assert run.code != 0
    assert "'sphere' is not a shape" in run.err
    run = poise("learn", gaits.with_name("b.poise"), *clips, "--kind", "dynamics", "--transitions", "often")
    assert "often" in run.err
    run = poise("learn", gaits.with_name("b.poise"), *clips, "--kind", "dynamics", "--activities", "walk")
    assert "2 clips need as many activities" in run.err


def test_a_walk_leads_over_into_a_run(gaits: Path, tmp_path: Path, poise: Program) -> None:
    path, picture = tmp_path / "there.bvh", tmp_path / "way.png"
    run = poise(
        "simulate", gaits, "--from", "walk", "--to", "run", "--seconds", 2, "-o", path, "--picture", picture
    )
    assert run.code == 0, run.err
    assert len(read(path)) == 121
    assert picture.exists()
    run = poise("simulate", gaits, "--from", "swim", "-o", path)
    assert run.code != 0
    assert "swim" in run.err
    assert "walk" in run.err


def test_contacts_are_written_and_animated(
    gaits: Path, clips: list[Path], tmp_path: Path, poise: Program
) -> None:
    script, out = tmp_path / "steps.toml", tmp_path / "again.glb"
    run = poise("animate", gaits, script, "--contacts-from", clips[0], "--wider", 0.05)
    assert run.code == 0, run.err
    assert "foot contacts" in run.out
    run = poise("animate", gaits, script, "-o", out)
    assert run.code == 0, run.err
    assert "60 frames at 30 Hz" in run.out
    assert out.stat().st_size > 1000
    run = poise("animate", gaits, script)
    assert "say where to write" in run.err
