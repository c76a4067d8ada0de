"""Printed boards that a camera is calibrated with: chessboards, and ChArUco boards, which may be partly hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8

from poise.errors import InvalidValueError
from poise.types import Array
from poise.vision.opencv import cv2


@dataclass(frozen=True)
class Board:
    """Inner corners along both sides and the side of a square in metres; `markers` makes it a ChArUco board.

    A ChArUco board has a marker of `markers` metres in every white square, which identifies its corners.
    """

    columns: int
    rows: int
    square: float
    markers: float | None = None

    def __post_init__(self) -> None:
        if self.columns < 3 or self.rows < 3 or not self.square > 0:
            raise InvalidValueError(
                f"a board needs at least 3x3 inner corners and a positive square size; got {self.columns}x{self.rows} "
                f"and {self.square} m"
            )
        if self.markers is not None and not 0 < self.markers < self.square:
            raise InvalidValueError("the markers of a ChArUco board must be smaller than its squares")

    @property
    def corners(self) -> Float[Array, "corners 3"]:
        """The inner corners on the board, in metres."""
        columns, rows = np.meshgrid(np.arange(self.columns), np.arange(self.rows))
        return np.stack([columns.ravel(), rows.ravel(), np.zeros(columns.size)], axis=1) * self.square

    def picture(self, pixels_per_square: int = 60) -> UInt8[Array, "height width"]:
        """The board for printing, with a white rim."""
        if self.markers is not None:
            size = ((self.columns + 1) * pixels_per_square, (self.rows + 1) * pixels_per_square)
            drawn = self._charuco().generateImage(size)
        else:
            cells = np.add.outer(np.arange(self.rows + 1), np.arange(self.columns + 1)) % 2
            drawn = np.kron(np.where(cells == 0, 0, 255), np.ones((pixels_per_square, pixels_per_square)))
        return np.pad(drawn.astype(np.uint8), pixels_per_square, constant_values=255)

    def find(self, picture: UInt8[Array, "height width *channels"]) -> BoardView | None:
        """The board's corners in a picture, with subpixel precision; None if it is not found."""
        grey = cv2().cvtColor(picture, cv2().COLOR_BGR2GRAY) if picture.ndim == 3 else picture
        numbers, pixels = self._charuco_corners(grey) if self.markers else self._chessboard_corners(grey)
        if len(numbers) < 6:
            return None
        return BoardView(numbers, self.corners[numbers], pixels, (grey.shape[1], grey.shape[0]))

    def _chessboard_corners(self, grey: Array) -> tuple[Array, Array]:
        cv = cv2()
        flags = cv.CALIB_CB_ADAPTIVE_THRESH | cv.CALIB_CB_NORMALIZE_IMAGE | cv.CALIB_CB_FAST_CHECK
        found, corners = cv.findChessboardCorners(grey, (self.columns, self.rows), flags=flags)
        if not found:
            return np.empty(0, dtype=np.int64), np.empty((0, 2))
        ends = (cv.TERM_CRITERIA_EPS + cv.TERM_CRITERIA_MAX_ITER, 60, 1e-4)
        reach = _corner_reach(corners.reshape(self.rows, self.columns, 2))
        finer = cv.cornerSubPix(grey, corners, (reach, reach), (-1, -1), ends)
        return np.arange(self.columns * self.rows), finer.reshape(-1, 2).astype(np.float64)

    def _charuco_corners(self, grey: Array) -> tuple[Array, Array]:
        corners, numbers, _, _ = cv2().aruco.CharucoDetector(self._charuco()).detectBoard(grey)
        if corners is None or numbers is None:
            return np.empty(0, dtype=np.int64), np.empty((0, 2))
        return numbers.ravel().astype(np.int64), corners.reshape(-1, 2).astype(np.float64)

    def _charuco(self) -> Any:
        aruco = cv2().aruco
        words = aruco.getPredefinedDictionary(aruco.DICT_4X4_250)
        return aruco.CharucoBoard((self.columns + 1, self.rows + 1), self.square, self.markers, words)


@dataclass(frozen=True, eq=False)
class BoardView:
    """One view of a board: corner indices, their positions on it and in the picture, and the picture's size."""

    numbers: Int[Array, "corners"]
    on_board: Float[Array, "corners 3"]
    pixels: Float[Array, "corners 2"]
    size: tuple[int, int]


def _corner_reach(corners: Array) -> int:
    """Half the window of the subpixel search: well inside a square."""
    across = np.linalg.norm(np.diff(corners, axis=1), axis=-1).min()
    down = np.linalg.norm(np.diff(corners, axis=0), axis=-1).min()
    return int(np.clip(0.35 * min(across, down), 2, 11))
