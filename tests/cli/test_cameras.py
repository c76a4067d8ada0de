"""`poise cameras`: from pictures of a board to a camera file, the check of it, and a take filmed by the simulator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poise.formats import read
from poise.motion.markers import Markers
from poise.vision.calibrate import Board
from poise.vision.rig import load_rig, save_rig
from poise.vision.simulator import board_picture, board_pictures, front_rig

cv2 = pytest.importorskip("cv2")
Program = Callable[..., Any]
BOARD = Board(8, 6, 0.08)
RIG = front_rig()
BOARD_OPTIONS = ("--board", "8x6", "--square", "0.08")


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("boards")
    for number, pictures in enumerate(board_pictures(RIG, BOARD, count=12)):
        for name, picture in zip(("left", "right"), pictures, strict=True):
            (folder / name).mkdir(exist_ok=True)
            cv2.imwrite(str(folder / name / f"{number:02d}.png"), picture)
    flat = np.column_stack([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    floor = board_picture(RIG.cameras[0], BOARD, flat, np.array([-0.3, 0.0, 0.4]))
    cv2.imwrite(str(folder / "floor.png"), floor)
    return folder


@pytest.fixture(scope="module")
def take(walk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from poise.cli import main

    folder = tmp_path_factory.mktemp("filmed") / "take"
    options = ["--seconds", "0.2", "--empty", "0.2", "--size", "320", "240"]
    assert main(["cameras", "simulate", str(walk), "-o", str(folder), *options]) == 0
    return folder


@pytest.mark.slow
def test_a_board_makes_a_camera_file(poise: Program, boards: Path, tmp_path: Path) -> None:
    videos = boards / "left", boards / "right"
    rig, picture = tmp_path / "cams.toml", tmp_path / "coverage.png"
    run = poise(
        "cameras", "calibrate", *videos, *BOARD_OPTIONS, "--floor", boards / "floor.png",
        "-o", rig, "--picture", picture,
    )  # fmt: skip
    assert run.code == 0, run.err
    assert "left out" in run.out
    assert "was never in the" in run.err  # twelve views do not fill the picture
    assert picture.stat().st_size > 1000
    found = load_rig(rig)
    assert found.baseline() == pytest.approx(RIG.baseline(), rel=0.005)
    assert found.cameras[0].pinhole.centre[1] == pytest.approx(1.5, abs=0.02)
    checked = poise("cameras", "check", rig, *videos, *BOARD_OPTIONS)
    assert checked.code == 0, checked.err
    assert "corners off epipolar lines" in checked.out


@pytest.mark.slow
def test_a_check_tells_wrong_squares_and_other_cameras(poise: Program, boards: Path, tmp_path: Path) -> None:
    videos = boards / "left", boards / "right"
    save_rig(front_rig(apart=0.8), tmp_path / "other.toml")
    run = poise("cameras", "check", tmp_path / "other.toml", *videos, *BOARD_OPTIONS)
    assert run.code == 2
    assert "calibrate again" in run.out
    save_rig(RIG, tmp_path / "cams.toml")
    run = poise("cameras", "check", tmp_path / "cams.toml", *videos, "--board", "8x6", "--square", "0.07")
    assert run.code == 2
    assert "the squares differ in size" in run.out


def test_a_simulated_take_fits_its_cameras(poise: Program, take: Path) -> None:
    videos = take / "camera1.avi", take / "camera2.avi"
    truth = read(take / "truth.trc")
    assert isinstance(truth, Markers)
    assert len(truth) == 12
    run = poise("cameras", "check", take / "cams.toml", *videos, "--empty", "0.2", "--json")
    assert run.code == 0, run.out + run.err


def test_a_check_tells_swapped_and_larger_videos(poise: Program, take: Path, tmp_path: Path) -> None:
    videos = take / "camera2.avi", take / "camera1.avi"
    run = poise("cameras", "check", take / "cams.toml", *videos, "--empty", "0.2")
    assert run.code == 2
    assert "another order" in run.out
    save_rig(RIG, tmp_path / "cams.toml")
    run = poise("cameras", "check", tmp_path / "cams.toml", *videos)
    assert run.code == 2
    assert "camera2.avi is 320x240" in run.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("calibrate", "--board", "8x6", "--square", "0.08", "-o", "c.toml"), "for each camera"),
        (("calibrate", "nowhere.avi", "--board", "8by6", "--square", "0.08", "-o", "c.toml"), "such as 8x6"),
        (("calibrate", "nowhere.avi", *BOARD_OPTIONS, "-o", "c.toml"), "nowhere.avi does not exist"),
        (("check", "nowhere.toml", "a.avi"), "nowhere.toml does not exist"),
    ],
)
def test_mistakes_are_told_in_a_line(poise: Program, arguments: tuple[str, ...], message: str) -> None:
    run = poise("cameras", *arguments)
    assert run.code == 2
    assert message in run.err
    assert "Traceback" not in run.err


def test_unknown_markers_and_a_missing_board_are_named(
    poise: Program, walk: Path, take: Path, tmp_path: Path
) -> None:
    run = poise("cameras", "simulate", walk, "-o", tmp_path, "--markers", "LFHD,LFIM")
    assert run.code == 2
    assert "did you mean" in run.err
    assert "LFIN" in run.err
    run = poise("cameras", "calibrate", take / "camera1.avi", *BOARD_OPTIONS, "-o", tmp_path / "c.toml")
    assert run.code == 2
    assert "was not found in any picture" in run.err


def test_videos_drive_a_body(poise: Program, walk: Path, take: Path, tmp_path: Path) -> None:
    model, videos = (
        tmp_path / "walk.poise",
        ("--video", take / "camera1.avi", "--video", take / "camera2.avi"),
    )
    assert poise("learn", model, "--kind", "local", walk).code == 0
    run = poise(
        "perform",
        model,
        *videos,
        "--cameras",
        take / "cams.toml",
        "--empty",
        "0.2",
        "-o",
        tmp_path / "out.bvh",
    )
    assert run.code == 0, run.err
    assert "latency:" in run.err
    run = poise("perform", model, *videos, "-o", tmp_path / "out.bvh")
    assert run.code == 2
    assert "--cameras cams.toml" in run.err
    run = poise("perform", model)
    assert run.code == 2
    assert "--video for each camera" in run.err
