"""Where rays of several cameras meet, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.vision.lens import LensCamera

Array = np.ndarray

PIXEL_NOISE = 0.3  # pixels by which the centre of a blob is off, typically
_STEPS = 3  # of Gauss-Newton on the pixels, after the rays' own meeting point


@dataclass(frozen=True, eq=False)
class Meeting:
    """A point seen by two cameras or more: its place and covariance in metres, and how far off its pixels are (rms)."""

    point: Float[Array, "3"]
    covariance: Float[Array, "3 3"]
    pixels_off: float


def triangulate(
    cameras: Sequence[LensCamera], pixels: Float[Array, "cameras 2"], *, noise: float = PIXEL_NOISE
) -> Meeting:
    """The point whose pictures are nearest to these pixels, by Gauss-Newton from where the rays meet best."""
    if len(cameras) < 2 or len(cameras) != len(pixels):
        raise InvalidValueError(f"a point needs a pixel from each of two cameras or more; got {len(pixels)}")
    straight = np.stack([camera.straightened(pixel) for camera, pixel in zip(cameras, pixels, strict=True)])
    point = _nearest_to_rays(cameras, pixels)
    for _ in range(_STEPS):
        gap, jacobian = _off(cameras, straight, point)
        point = point + np.linalg.lstsq(jacobian, gap, rcond=None)[0]
    gap, jacobian = _off(cameras, straight, point)
    covariance = noise**2 * np.linalg.pinv(jacobian.T @ jacobian)
    return Meeting(point, covariance, float(np.sqrt(np.mean(gap**2))))


def _nearest_to_rays(cameras: Sequence[LensCamera], pixels: Array) -> Array:
    """The point with the least squared distance to all rays."""
    matrix, right = np.zeros((3, 3)), np.zeros(3)
    for camera, pixel in zip(cameras, pixels, strict=True):
        ray = camera.rays(pixel)
        across = np.eye(3) - np.outer(ray, ray)
        matrix += across
        right += across @ camera.pinhole.centre
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])


def _off(cameras: Sequence[LensCamera], straight: Array, point: Array) -> tuple[Array, Array]:
    """What straightened pixels lack at a point, and how its pictures move with it."""
    gaps, rows = [], []
    for camera, pixel in zip(cameras, straight, strict=True):
        x, y, depth = camera.pinhole.matrix @ np.append(point, 1.0)
        depth = max(depth, 1e-6)
        seen = np.array([x, y]) / depth
        matrix = camera.pinhole.matrix[:, :3]
        gaps.append(pixel - seen)
        rows.append((matrix[:2] - np.outer(seen, matrix[2])) / depth)
    return np.concatenate(gaps), np.concatenate(rows)
