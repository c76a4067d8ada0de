"""Calibration from pictures of a board (Zhang 2000): each camera's lens, then the cameras' relative positions.

Views that fit much worse than the others are left out and reported, as are parts of the picture without the board,
because a lens is known only where it was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8

from poise.errors import InvalidValueError
from poise.geometry.cameras import Camera
from poise.types import Array
from poise.vision.opencv import cv2
from poise.vision.rig import LensCamera, Rig

FEWEST_VIEWS = 4
BAD = 2.5  # times the median error of all views: worse views are left out
BAD_PIXELS = 0.15  # pixels in addition, so that slightly worse views are kept
CELLS = 3  # grid of the picture, per axis, in which the board should have been


@dataclass(frozen=True)
class Board:
    """A printed chessboard: inner corners along both sides, and the side of a square in metres.

    `markers` makes it a ChArUco board, with a marker of so many metres in every white square, which identifies its
    corners: it may be partly hidden.
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
        cv = cv2()
        grey = cv.cvtColor(picture, cv.COLOR_BGR2GRAY) if picture.ndim == 3 else picture
        numbers: Any
        if self.markers:
            corners, numbers, _, _ = cv.aruco.CharucoDetector(self._charuco()).detectBoard(grey)
            if corners is None or numbers is None:
                return None
        else:
            flags = cv.CALIB_CB_ADAPTIVE_THRESH | cv.CALIB_CB_NORMALIZE_IMAGE | cv.CALIB_CB_FAST_CHECK
            found, corners = cv.findChessboardCorners(grey, (self.columns, self.rows), flags=flags)
            if not found:
                return None
            grid = corners.reshape(self.rows, self.columns, 2)
            closest = min(np.linalg.norm(np.diff(grid, axis=axis), axis=-1).min() for axis in (0, 1))
            reach = int(np.clip(0.35 * closest, 2, 11))  # half the window of the search: well inside a square
            ends = (cv.TERM_CRITERIA_EPS + cv.TERM_CRITERIA_MAX_ITER, 60, 1e-4)
            corners = cv.cornerSubPix(grey, corners, (reach, reach), (-1, -1), ends)
            numbers = np.arange(self.columns * self.rows)
        numbers, pixels = numbers.ravel().astype(np.int64), corners.reshape(-1, 2).astype(np.float64)
        size = grey.shape[1], grey.shape[0]
        return BoardView(numbers, self.corners[numbers], pixels, size) if len(numbers) >= 6 else None

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


@dataclass(frozen=True, eq=False)
class LensCalibration:
    """One camera's lens: its error in pixels (rms) over the kept views, that of each view, and views left out."""

    camera: LensCamera
    error: float
    view_errors: Mapping[int, float]
    left_out: tuple[int, ...]
    hints: tuple[str, ...]
    boards: Mapping[int, tuple[Float[Array, "3 3"], Float[Array, "3"]]]


@dataclass(frozen=True, eq=False)
class RigCalibration:
    """A rig in the first camera's frame, and the errors of every camera and shared view."""

    rig: Rig
    lenses: tuple[LensCalibration, ...]
    shared_views: tuple[int, ...]
    error: float

    def moved(self, rig: Rig) -> RigCalibration:
        """The same calibration with its cameras in another world."""
        return replace(self, rig=rig)


def calibrate_lens(views: Mapping[int, BoardView], *, name: str = "camera1") -> LensCalibration:
    """Zhang's method on the views of one camera, by number; outlier views are left out one by one."""
    sizes = {view.size for view in views.values()}
    if not sizes:
        raise InvalidValueError(
            f"{name}: the board was not found in any picture; is it the right one (inner corners, not squares)?"
        )
    if len(sizes) > 1:
        listed = ", ".join(f"{width}x{height}" for width, height in sorted(sizes))
        raise InvalidValueError(
            f"{name}: its pictures differ in size ({listed}); calibrate each size for itself"
        )
    cv, size = cv2(), sizes.pop()
    kept, left_out = dict(views), list[int]()
    while True:
        if len(kept) < FEWEST_VIEWS:
            raise InvalidValueError(
                f"{name}: a calibration needs at least {FEWEST_VIEWS} different good views of the board; "
                f"got {len(kept)}: show it near and far, in all corners of the picture, tilted"
            )
        boards = [view.on_board.astype(np.float32) for view in kept.values()]
        pixels = [view.pixels.astype(np.float32) for view in kept.values()]
        found = cv.calibrateCameraExtended(boards, pixels, size, None, None)
        error, matrix, lens, turns, shifts, _, _, each = found
        errors = {k: float(value) for k, value in zip(kept, each.ravel(), strict=True)}
        worst = max(errors, key=lambda number: errors[number])
        median = float(np.median(list(errors.values())))
        if errors[worst] <= BAD * median + BAD_PIXELS or len(kept) == FEWEST_VIEWS:
            break
        left_out.append(worst)
        del kept[worst]
    placed = zip(kept, turns, shifts, strict=True)
    poses = {k: (cv.Rodrigues(turn)[0], shift.ravel()) for k, turn, shift in placed}
    camera = LensCamera(name, Camera(matrix, np.eye(3), np.zeros(3)), size, lens.ravel()[:5])
    hints = coverage_hints(kept, poses)
    return LensCalibration(camera, float(error), errors, tuple(left_out), hints, poses)


def calibrate_rig(views: Sequence[Mapping[int, BoardView]], *, names: Sequence[str]) -> RigCalibration:
    """Calibrate the lenses, then every other camera's position relative to the first from shared views."""
    lenses = tuple(calibrate_lens(own, name=name) for own, name in zip(views, names, strict=True))
    first, cameras, shared_all, errors = lenses[0], [lenses[0].camera], set[int](), [lenses[0].error]
    for own, lens in zip(views[1:], lenses[1:], strict=True):
        shared = sorted(set(first.boards) & set(lens.boards))
        if not shared:
            raise InvalidValueError(
                f"{lens.camera.name} and {first.camera.name} never see the board at the same time: show it to both"
            )
        error, turn, shift = _between(first.camera, lens.camera, [(views[0][k], own[k]) for k in shared])
        cameras.append(lens.camera.moved(turn, shift))
        shared_all.update(shared)
        errors.append(error)
    return RigCalibration(Rig(tuple(cameras)), lenses, tuple(sorted(shared_all)), max(errors))


def on_floor(rig: Rig, view: BoardView, *, camera: int = 0) -> Rig:
    """The rig in the world of a board on the floor: its first corner is the origin, and up is Y."""
    seen_by = rig.cameras[camera]
    turn, shift = placed_board(seen_by, view)  # camera from board
    # Board axes: x along the columns, y along the rows, z into the floor when seen from above.
    up = -turn[:, 2] if np.dot(turn[:, 2], shift) > 0 else turn[:, 2]
    world_axes = np.column_stack([turn[:, 0], up, np.cross(turn[:, 0], up)])  # camera from world
    back = seen_by.pinhole.rotation.T
    axes, origin = back @ world_axes, back @ (shift - seen_by.pinhole.translation)  # rig's frame from world
    moved = []
    for one in rig.cameras:
        own = one.pinhole.rotation
        moved.append(one.moved(own @ axes, own @ origin + one.pinhole.translation))
    return Rig(tuple(moved))


def placed_board(camera: LensCamera, view: BoardView) -> tuple[Float[Array, "3 3"], Float[Array, "3"]]:
    """The pose of a board in front of a calibrated camera: p_camera = turn p_board + shift."""
    cv, matrix, lens = cv2(), camera.pinhole.intrinsics, camera.distortion
    found, turn, shift = cv.solvePnP(view.on_board, view.pixels, matrix, lens, flags=cv.SOLVEPNP_ITERATIVE)
    if not found:
        raise InvalidValueError(f"{camera.name}: the board could not be placed; show more of it")
    return cv.Rodrigues(turn)[0], shift.ravel()


def scaled(rig: Rig, factor: float) -> Rig:
    """The rig with all distances scaled, for squares of another size than given."""
    if not (np.isfinite(factor) and factor > 0):
        raise InvalidValueError(f"the scale must be positive; got {factor}")
    holes = [(one, one.pinhole) for one in rig.cameras]
    return Rig(tuple(one.moved(hole.rotation, factor * hole.translation) for one, hole in holes))


def coverage_hints(
    views: Mapping[int, BoardView], boards: Mapping[int, tuple[Array, Array]]
) -> tuple[str, ...]:
    """Hints on what the camera still needs to see: parts of the picture, and tilted boards."""
    hints, size = [], next(iter(views.values())).size
    pixels = np.concatenate([view.pixels for view in views.values()])
    cells = np.clip((pixels / size * CELLS).astype(int), 0, CELLS - 1)
    counts = np.zeros((CELLS, CELLS), dtype=int)
    np.add.at(counts, (cells[:, 1], cells[:, 0]), 1)
    words = "top left", "top", "top right", "left", "middle", "right", "bottom left", "bottom", "bottom right"
    if missing := [words[CELLS * row + column] for row, column in np.argwhere(counts == 0)]:
        hints.append(
            f"the board was never in the {', '.join(missing)} of the picture: the lens is a guess there"
        )
    tilts = [np.degrees(np.arccos(min(abs(turn[2, 2]), 1.0))) for turn, _ in boards.values()]
    if tilts and np.median(tilts) < 12:
        hints.append("the board always faces the camera: tilt it, or the focal length is a guess")
    return tuple(hints)


def _between(
    first: LensCamera, second: LensCamera, views: Sequence[tuple[BoardView, BoardView]]
) -> tuple[float, Array, Array]:
    """The position of the second camera relative to the first, with fixed lenses."""
    cv, boards, pixels, other = cv2(), [], [], []
    for a, b in views:
        _, in_a, in_b = np.intersect1d(a.numbers, b.numbers, return_indices=True)
        if len(in_a) >= 6:
            boards.append(a.on_board[in_a].astype(np.float32))
            pixels.append(a.pixels[in_a].astype(np.float32))
            other.append(b.pixels[in_b].astype(np.float32))
    if not boards:
        raise InvalidValueError(f"{first.name} and {second.name} share no view with enough corners in common")
    error, _, _, _, _, turn, shift, _, _ = cv.stereoCalibrate(
        boards, pixels, other,
        first.pinhole.intrinsics.copy(), first.distortion.copy(),
        second.pinhole.intrinsics.copy(), second.distortion.copy(),
        first.size, flags=cv.CALIB_FIX_INTRINSIC,
    )  # fmt: skip
    return float(error), turn, shift.ravel()
