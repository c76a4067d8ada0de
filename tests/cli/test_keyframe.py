"""`poise keyframe`: from a script to a file, again when it is saved, and mistakes in one line."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from poise.apps import keyframing
from poise.formats import read
from poise.motion.motion import Motion
from poise.priors import model_file
from poise.priors.gaussian import GaussianPrior

Program = Callable[..., Any]


@pytest.fixture(scope="module")
def model(walk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    clip = read(walk)
    assert isinstance(clip, Motion)
    path = tmp_path_factory.mktemp("models") / "walk.poise"
    model_file.save(GaussianPrior.learn([clip], clusters=10), path)
    return path


def test_keys_are_taken_changed_and_solved(poise: Program, model: Path, walk: Path, tmp_path: Path) -> None:
    script = tmp_path / "walk.toml"
    taken = poise(
        "keyframe", model, script, "--keys-from", walk, "--handle", "left_foot", "--handle", "right_foot"
    )
    assert taken.code == 0
    assert "keys" in taken.out
    solved = poise("keyframe", model, script, "-o", tmp_path / "walk.glb")
    assert solved.code == 0, solved.err
    assert "handles within" in solved.out
    assert (tmp_path / "walk.glb").stat().st_size > 1000
    again = poise("keyframe", model, script, "--keys-from", walk, "--handle", "left_foot")
    assert again.code == 2
    assert "replaces none" in again.err


def test_live_solves_again_and_lives_through_mistakes(
    poise: Program, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "s.toml"
    good = 'duration = 0.1\n[[pins]]\nhandle = "left_foot"\nat = [0.1, 0.1, 0.0]\n'
    script.write_text("duration = ")

    def rounds(path: Path) -> Iterator[None]:
        yield
        path.write_text(good)
        yield

    monkeypatch.setattr(keyframing, "watched", rounds)
    run = poise("keyframe", model, script, "-o", tmp_path / "s.bvh", "--live")
    assert run.code == 0
    assert "not TOML" in run.err
    assert "4 frames" in run.out


def test_a_script_needs_no_model(poise: Program, tmp_path: Path) -> None:
    script = tmp_path / "wave.toml"
    script.write_text(
        'duration = 0.2\nfloor = true\n[[pins]]\nhandle = "left_foot"\nat = [0.1, 0.1, 0.0]\n'
        "[handles.right_hand]\n"
        "keys = [ { time = 0.0, at = [-0.3, 1.0, 0.2] }, { time = 0.2, at = [-0.4, 1.4, 0.2] } ]\n"
    )
    run = poise("keyframe", script, "-o", tmp_path / "wave.bvh")
    assert run.code == 0, run.err
    assert "7 frames" in run.out
    assert "give a script" in poise("keyframe", "-o", tmp_path / "wave.bvh").err


def test_what_cannot_be_reached_is_a_warning(poise: Program, model: Path, tmp_path: Path) -> None:
    script = tmp_path / "far.toml"
    script.write_text(
        'duration = 0.1\n[[pins]]\nhandle = "left_hand"\nat = [0, 9, 0]\n'
        '[[pins]]\nhandle = "left_foot"\nat = [0, 0, 0]\n'
    )
    run = poise("keyframe", model, script, "-o", tmp_path / "far.bvh")
    assert run.code == 0
    assert "left_hand cannot reach its path" in run.err


def test_the_file_to_write_must_be_named(poise: Program, model: Path, tmp_path: Path) -> None:
    run = poise("keyframe", model, tmp_path / "s.toml")
    assert run.code == 2
    assert "name the file to write" in run.err
