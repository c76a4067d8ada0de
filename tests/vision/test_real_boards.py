"""Calibration on photographs of a real chessboard."""

import numpy as np
import pytest

from poise.vision.calibrate import Board, calibrate_lens
from poise.vision.sources import read_picture
from pose2sim import recordings

cv2 = pytest.importorskip("cv2")
BOARD = Board(4, 7, 0.06)


@pytest.fixture(scope="module", params=["cam01", "cam03"])
def photographs(request: pytest.FixtureRequest) -> list[np.ndarray]:
    paths = sorted(recordings().rglob(f"int_{request.param}_img/*.jpg"))
    return [read_picture(path) for path in paths]


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
