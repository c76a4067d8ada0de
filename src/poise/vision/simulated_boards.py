"""Simulated pictures of a printed board, for practising and measuring calibration."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, UInt8

from poise.types import Array
from poise.vision.boards import Board
from poise.vision.lens import LensCamera
from poise.vision.opencv import cv2
from poise.vision.rig import Rig

_PRINTED = 40  # pixels of the printed picture per square
_WALL = 110  # grey around the board
_NOISE = 2.0  # grey levels


def board_picture(
    camera: LensCamera,
    board: Board,
    turn: Float[Array, "3 3"],
    place: Float[Array, "3"],
    *,
    plane: Float[Array, "pixels 2"] | None = None,
) -> UInt8[Array, "height width"]:
    """A camera's distorted picture of a board in the world: p_world = turn p_board + place.

    `plane` is `pixel_plane(camera)`, for many pictures by one camera.
    """
    width, height = camera.size
    plane = pixel_plane(camera) if plane is None else plane
    turned = camera.pinhole.rotation @ turn
    shift = camera.pinhole.rotation @ place + camera.pinhole.translation
    plane_from_board = np.column_stack([turned[:, 0], turned[:, 1], shift])
    on_board = np.linalg.solve(plane_from_board, np.c_[plane, np.ones(len(plane))].T)
    # The first inner corner is two squares in: one square of white rim, one of the board.
    printed = (on_board[:2] / on_board[2] / board.square + 2) * _PRINTED - 0.5
    at = printed.T.reshape(height, width, 2).astype(np.float32)
    cv = cv2()
    seen = cv.remap(board.picture(_PRINTED), at[..., 0], at[..., 1], cv.INTER_AREA, borderValue=_WALL)
    return np.asarray(cv.GaussianBlur(seen, (3, 3), 0.7))


def board_pictures(
    rig: Rig, board: Board, *, count: int = 40, seed: int = 0
) -> Iterator[tuple[UInt8[Array, "height width"], ...]]:
    """Pictures by all cameras of a board at various positions and tilts, with noise."""
    rng = np.random.default_rng(seed)
    middle = np.mean([camera.pinhole.centre for camera in rig.cameras], axis=0)
    forward = np.mean([camera.pinhole.rotation[2] for camera in rig.cameras], axis=0)
    axes = rig.cameras[0].pinhole.rotation.T  # columns: right, down, forward
    planes = [pixel_plane(camera) for camera in rig.cameras]
    for _ in range(count):
        distance = rng.uniform(1.3, 3.2)
        sideways, down = rng.uniform(-0.35, 0.35) * distance, rng.uniform(-0.3, 0.3) * distance
        place = middle + distance * forward + sideways * axes[:, 0] + down * axes[:, 1]
        turn = axes @ cv2().Rodrigues(rng.uniform(-0.6, 0.6, 3))[0]
        place = place - turn @ board.corners.mean(axis=0)
        yield tuple(
            _noisy(board_picture(camera, board, turn, place, plane=plane), rng)
            for camera, plane in zip(rig.cameras, planes, strict=True)
        )


def pixel_plane(camera: LensCamera) -> Float[Array, "pixels 2"]:
    """Where the ray of every pixel meets the plane at distance one, row by row."""
    width, height = camera.size
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float64)
    return camera.plane_from_pixels(np.stack([columns.ravel(), rows.ravel()], axis=1))


def _noisy(picture: Array, rng: np.random.Generator) -> UInt8[Array, "height width"]:
    return np.clip(picture + rng.normal(0.0, _NOISE, picture.shape), 0, 255).astype(np.uint8)
