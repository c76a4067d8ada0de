"""`poise learn`, `poise pose` and `poise edit`: from recordings to a model to poses and edits, and what goes wrong."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import poise
from poise import performer
from poise.cli.main import main


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "walk.bvh"
    poise.write(performer.act("walk", seconds=2.0, fps=30), path)
    return path


@pytest.fixture(scope="module")
def model(clip: Path) -> Path:
    path = clip.with_name("walk.poise")
    assert run("learn", path, clip, "--clusters", "12") == 0
    return path


def run(*words: object) -> int:
    return main([str(word) for word in words])


def test_without_handles_a_relaxed_stand_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("pose", "-o", tmp_path / "stand.bvh") == 0
    assert len(poise.read(tmp_path / "stand.bvh")) == 1
    words = capsys.readouterr().out
    assert "all hard constraints are met" in words
    assert "off balance" not in words


def test_a_pose_is_written_and_reported(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handles = ("--handle", "left_hand=0.35,1.0,0.3", "--handle", "right_foot=-0.1,0.1,0.0", "--floor")
    for name in ("pose.bvh", "pose.glb", "pose.png"):
        assert run("pose", model, *handles, "-o", tmp_path / name) == 0
        assert (tmp_path / name).stat().st_size > 500
    assert len(poise.read(tmp_path / "pose.bvh")) == 1
    capsys.readouterr()
    assert run("pose", model, *handles, "--look-at", "0,1.5,3", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["reached"]
    assert {residual["constraint"] for residual in report["residuals"]} >= {
        "position of left_hand",
        "lookat of head",
    }
    assert report["positions_m"]["LeftHand"] == pytest.approx([0.35, 1.0, 0.3], abs=2e-3)


@pytest.mark.parametrize(("target", "code"), [("0.35,1.0,0.3", 0), ("0,9,0", 1), ("0,nine,0", 2)])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_exit_code_tells_a_missed_handle(
    model: Path, target: str, code: int, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("pose", model, "--handle", f"left_hand={target}", *options) == code
    capsys.readouterr()


def test_the_time_of_a_solve_excludes_loading_and_compiling() -> None:
    """In a process of its own, where every kernel is compiled or read from the cache first."""
    script = """if True:
        import poise
        body = poise.performer.act("walk", seconds=0.2).skeleton
        print(poise.solve(body, {"head": (0.0, 1.0, 0.0)}).seconds)
    """
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(ended.stdout) < 0.1


def test_help_names_every_choice_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("learn", "--help") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "CHOICE|" not in shown
    assert "choices: limbs, huang2017, handles, correlated, grochow2004" in shown


def test_learning_in_a_pipe_shows_its_progress(clip: Path, tmp_path: Path) -> None:
    script = """
import sys
from poise.cli import main, terminal
terminal._FIRST_LINE = terminal._LINE_EVERY = 0.1  # a fast machine has learned within two seconds
sys.exit(main(sys.argv[1:]))
"""
    words = ["learn", str(tmp_path / "s.poise"), str(clip), "--kind", "style"]
    command = [sys.executable, "-c", script, *words]
    environment = {name: value for name, value in os.environ.items() if name != "POISE_QUIET"}
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert re.search(r"learning, \d+ %, \d+ s", ended.stderr)


def test_what_the_readers_warn_of_is_told_once(
    clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.bvh"
    wrong.write_text(clip.read_text().replace("Frames: 60", "Frames: 61"))
    assert run("learn", tmp_path / "m.poise", wrong, clip, wrong, "--clusters", "4", "--units", "cm") == 0
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 1
    assert warnings[0].endswith("all 60 were read (2 of 3 files)")


def test_an_unreachable_handle_is_told_not_hidden(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("pose", model, "--handle", "left_hand=0,1,0", "--handle", "right_hand=9,1,0") == 1
    out = capsys.readouterr().out
    assert "cannot be met together" in out
    assert "mm off" in out
    assert "e+0" not in out
    assert "m out of reach" in out


def test_a_handle_is_suggested_only_if_the_others_can_be_met(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("pose", model, "--handle", "left_hand=0,9,0", "--suggest") == 1
    assert "no handle is suggested" in capsys.readouterr().out
    run("pose", model, "--handle", "left_hand=0,9,0", "--json")
    assert json.loads(capsys.readouterr().out)["suggestions"] == []
    assert run("pose", model, "--handle", "left_hand=0.4,1.2,0.2", "--json") == 0
    found = json.loads(capsys.readouterr().out)["suggestions"]
    assert 1.0 > found[0]["share"] > 0.0
    assert "LeftHand" not in [one["joint"] for one in found]


def test_nine_metres_up_is_said_and_so_is_what_is_near(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("pose", model, "--handle", "left_hand=0,9,0") == 1
    out = capsys.readouterr().out
    assert re.search(r"position of left_hand: [67]\.\d+ m out of reach", out)
    assert "unlike what was learned, most in its left arm" in out
    assert re.search(r"nearest frames: walk frame \d+", out)


def test_a_hand_in_the_belly_is_said(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handles = ("pelvis=0,0.95,0", "left_foot=0.1,0.1,0", "right_foot=-0.1,0.1,0", "left_hand=0,1.1,0")
    assert run("pose", model, *(word for handle in handles for word in ("--handle", handle))) == 0
    assert "left_forearm is inside torso" in capsys.readouterr().out


def test_how_sure_a_pose_is_and_its_sources_go_beside_an_export(
    clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "own.poise"
    assert run("learn", model, clip, "--clusters", "4", "--licence", "CC0-1.0") == 0
    assert run("pose", model, "--handle", "head=0,1.5,0", "--uncertainty", "-o", tmp_path / "p.bvh") == 0
    beside = json.loads((tmp_path / "p.uncertainty.json").read_text())
    assert beside["learned_from"][0]["licence"] == "CC0-1.0"
    assert 0.0 < beside["deviation_m"]["LeftHand"] < beside["radius_95_m"]["LeftHand"]
    capsys.readouterr()
    assert run("model", "show", model) == 0
    assert re.search(r"learned from walk  [0-9a-f]{12}  CC0-1\.0", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("handle", "message"),
    [
        ("left_hand", "write a handle as NAME=x,y,z"),
        ("left_hand=1,2", "write a point as three numbers"),
        ("left_hand=1,2,nan", "write a point as three numbers"),
        ("left_hnd=1,2,3", "did you mean left_hand"),
    ],
)
def test_wrong_handles_say_what_is_right(
    model: Path, capsys: pytest.CaptureFixture[str], handle: str, message: str
) -> None:
    assert run("pose", model, "--handle", handle) == 2
    assert message in capsys.readouterr().err


def test_an_edit_follows_its_trajectory(model: Path, clip: Path, tmp_path: Path) -> None:
    (tmp_path / "up.csv").write_text("time,x,y,z\n0.5,0,0,0\n1,0,0.15,0\n1.5,0,0,0\n")
    words = ("edit", model, clip, "--handle", "left_hand", "--trajectory", tmp_path / "up.csv", "--relative")
    assert run(*words, "-o", tmp_path / "edited.bvh") == 0
    before, after = poise.read(clip), poise.read(tmp_path / "edited.bvh")
    assert len(after) == len(before)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (lambda clip: ("learn", clip.with_name("x.poise")), "name the clips to learn from"),
        (
            lambda clip: ("learn", clip.with_name("x.poise"), clip, "--kind", "gausian"),
            "did you mean gaussian",
        ),
        (lambda clip: ("learn", clip.with_name("x.poise"), clip, "--clusters", "0"), "at least 1"),
        (lambda clip: ("pose", clip, "--handle", "head=0,0,0"), "not a model file"),
    ],
)
def test_mistakes_are_one_line(
    clip: Path, capsys: pytest.CaptureFixture[str], words: Callable[[Path], tuple[object, ...]], message: str
) -> None:
    assert run(*words(clip)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_what_is_open_can_be_drawn_and_asked_for(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["pose", str(model), "--handle", "right_hand=-0.2,1.4,0.3", "-o"]
    assert main([*asked, str(tmp_path / "pose.png"), "--suggest", "--uncertainty"]) == 0
    assert re.search(r"a handle on \w+ would remove \d+ % of the uncertainty", capsys.readouterr().out)
    assert main([*asked, str(tmp_path / "plain.png")]) == 0
    assert (tmp_path / "pose.png").read_bytes() != (tmp_path / "plain.png").read_bytes()


def test_a_body_stays_on_the_floor_whatever_its_hand_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("pose", "--handle", "left_hand=0,9,0", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["reached"]
    assert 0.5 < told["root_position"][1] < 1.2
    assert run("pose", "--handle", "left_hand=0,9,0", "--no-floor", "--json") == 0
    assert json.loads(capsys.readouterr().out)["root_position"][1] > 7.0
