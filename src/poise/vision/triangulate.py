"""Triangulation from several cameras, with covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.types import Array
from poise.vision.lens import LensCamera

PIXEL_NOISE = 0.3  # pixels: standard deviation of a blob's centre
_STEPS = 3  # of Gauss-Newton on the pixels, after the linear meeting point


@dataclass(frozen=True, eq=False)
class Meeting:
    """A point seen by at least two cameras: its position and covariance in metres, and its pixel error (rms)."""

    point: Float[Array, "3"]
    covariance: Float[Array, "3 3"]
    pixels_off: float


def triangulate(
    cameras: Sequence[LensCamera], pixels: Float[Array, "cameras 2"], *, noise: float = PIXEL_NOISE
) -> Meeting:
    """The point with the least reprojection error."""
    if len(cameras) < 2 or len(cameras) != len(pixels):
        raise InvalidValueError(f"a point needs a pixel from each of at least two cameras; got {len(pixels)}")
    straight = np.stack([camera.straightened(pixel) for camera, pixel in zip(cameras, pixels, strict=True)])
    return triangulate_all(projections(cameras), straight[None], noise=noise)[0]


def projections(cameras: Sequence[LensCamera]) -> Float[Array, "cameras 3 4"]:
    """The matrices from world points to undistorted pixels."""
    return np.stack([camera.pinhole.matrix for camera in cameras])


def triangulate_all(
    matrices: Float[Array, "cameras 3 4"],
    straight: Float[Array, "points cameras 2"],
    *,
    noise: float = PIXEL_NOISE,
) -> list[Meeting]:
    """Many points at once, from undistorted pixels (NaN if unseen)."""
    points, covariances = np.empty((len(straight), 3)), np.empty((len(straight), 3, 3))
    off = np.empty(len(straight))
    _meet(matrices, np.ascontiguousarray(straight), points, covariances, off)
    return [
        Meeting(point, noise**2 * covariance, float(rms))
        for point, covariance, rms in zip(points, covariances, off, strict=True)
    ]


@compiled
def _meet(matrices: Array, straight: Array, points: Array, covariances: Array, off: Array) -> None:
    """Linear least squares on the rays first, then Gauss-Newton on the pixels themselves."""
    normal, right = np.empty((3, 3)), np.empty(3)
    for k in range(len(straight)):
        point = points[k]
        _gather(matrices, straight[k], point, True, normal, right)
        point[:] = np.linalg.pinv(normal) @ right
        for _ in range(_STEPS):
            _gather(matrices, straight[k], point, False, normal, right)
            point += np.linalg.pinv(normal) @ right
        off[k] = np.sqrt(_gather(matrices, straight[k], point, False, normal, right))
        covariances[k] = np.linalg.pinv(normal)


@compiled
def _gather(
    matrices: Array, straight: Array, point: Array, linear: bool, normal: Array, right: Array
) -> float:
    """Normal equations of one point over the cameras that see it; return the mean squared pixel error."""
    normal[:], right[:], squares, count, row = 0.0, 0.0, 0.0, 0, np.empty(3)
    for camera in range(len(matrices)):
        for axis in range(2):
            pixel = straight[camera, axis]
            if not np.isnan(pixel):
                gap = _row(matrices[camera, axis], matrices[camera, 2], pixel, point, linear, row)
                for i in range(3):
                    right[i] += row[i] * gap
                    for j in range(3):
                        normal[i, j] += row[i] * row[j]
                squares += gap * gap
                count += 1
    return squares / max(count, 1)


@compiled
def _row(along: Array, depth: Array, pixel: float, point: Array, linear: bool, row: Array) -> float:
    """The residual of one coordinate of a point's pixel, and its Jacobian.

    Linear: pixel (depth . p) = along . p, which needs no initial point. Otherwise the pixel itself.
    """
    if linear:
        row[:] = along[:3] - pixel * depth[:3]
        return float(pixel * depth[3] - along[3])
    far = max(depth[3] + depth[0] * point[0] + depth[1] * point[1] + depth[2] * point[2], 1e-6)
    seen = (along[3] + along[0] * point[0] + along[1] * point[1] + along[2] * point[2]) / far
    row[:] = (along[:3] - seen * depth[:3]) / far
    return float(pixel - seen)
