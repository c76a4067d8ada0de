"""`poise act`: every option reaches the performer, and every output format can be asked for."""

from pathlib import Path

import numpy as np
import pytest

import poise as library
from poise.performer import ACTIONS, PERFORMERS, STYLES


def test_the_motion_written_is_the_one_acted(poise, tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "run.bvh"
    options = [
        "--style",
        "tired",
        "--performer",
        "maya",
        "--seconds",
        1,
        "--fps",
        60,
        "--seed",
        3,
        "--speed",
        3,
        "--turn",
        0.5,
    ]
    done = poise("act", "run", *options, "-o", path)
    assert done.code == 0
    assert done.out.startswith(f"{path}: run (tired, maya), 60 frames at 60 Hz")
    expected = library.performer.act(
        "run", style="tired", performer="maya", seconds=1, fps=60, seed=3, speed=3.0, turn=0.5
    )
    np.testing.assert_allclose(library.read(path).root_positions, expected.root_positions, atol=1e-6)


def test_points_reach_the_action_as_points(poise, tmp_path: Path) -> None:
    assert (
        poise("act", "walk", "--seconds", 1, "--path", "(0,0),(0,2),(1,3)", "-o", tmp_path / "a.bvh").code
        == 0
    )


@pytest.mark.parametrize("extension", ["bvh", "amc", "glb", "png"])
def test_the_extension_names_the_format(poise, tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"clip.{extension}"
    assert poise("act", "walk", "--seconds", 0.5, "--fps", 30, "-o", path).code == 0
    assert path.stat().st_size > 1000


def test_the_list_names_everything(poise) -> None:
    done = poise("act", "--list")
    assert done.code == 0
    assert all(name in done.out for name in (*ACTIONS, *STYLES, *PERFORMERS))
    assert "--speed" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["wlak"], "no action 'wlak'; did you mean walk"),
        (["walk", "--style", "tried"], "no style 'tried'; did you mean tired"),
        (["walk", "--performer", "nobody"], "no performer 'nobody'"),
        (["walk", "--speed", "99"], "a walking speed must be"),
        (["walk", "--sped", "1"], "no parameter of 'walk' called 'sped'; did you mean speed"),
        (["walk", "--seconds", "abc"], "unable to convert"),
    ],
)
def test_mistakes_are_one_line(poise, tmp_path: Path, arguments: list[str], words: str) -> None:
    done = poise("act", *arguments, "-o", tmp_path / "clip.bvh")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("poise: ")
    assert done.err.count("\n") == 1
    assert words in done.err
    assert not (tmp_path / "clip.bvh").exists()


def test_without_an_output_it_says_what_is_missing(poise) -> None:
    assert "a file to write" in poise("act", "walk").err


def test_an_unknown_extension_lists_the_known(poise, tmp_path: Path) -> None:
    done = poise("act", "walk", "-o", tmp_path / "clip.doc")
    assert done.code == 2
    assert ".bvh" in done.err
