"""Real cameras: a pinhole with lens distortion (Brown 1971, with OpenCV's coefficients)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry.cameras import Camera
from poise.skeleton.skeleton import read_only
from poise.types import Array

STRAIGHT = (0.0, 0.0, 0.0, 0.0, 0.0)
_ROUNDS = 20  # of the fixed-point iteration that undistorts
_CLOSE = 1e-10  # in units of the focal length


@dataclass(frozen=True, eq=False)
class LensCamera:
    """A camera, the size of its pictures and its lens: (k1, k2, p1, p2, k3), of which k are radial and p tangential."""

    name: str
    pinhole: Camera
    size: tuple[int, int]
    distortion: Float[Array, "5"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "distortion", read_only(np.asarray(self.distortion, dtype=np.float64)))
        numbers = [self.pinhole.intrinsics, self.pinhole.rotation, self.pinhole.translation, self.distortion]
        if self.distortion.shape != (5,) or not all(np.all(np.isfinite(part)) for part in numbers):
            raise InvalidValueError(
                f"camera {self.name!r} needs finite numbers and five lens coefficients; got {self.distortion.shape}"
            )

    def project(self, points: Float[Array, "*n 3"]) -> Float[Array, "*n 2"]:
        """Distorted pixels of world points; NaN for points that are not in front of the camera."""
        return self.pixels_from_plane(self.plane_from_pixels(self.pinhole.project(points), straight=True))

    def straightened(self, pixels: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """Undistorted pixels, which `pinhole` maps to and from the world."""
        plane = self.plane_from_pixels(pixels)
        intrinsics = self.pinhole.intrinsics
        return np.asarray(plane @ intrinsics[:2, :2].T + intrinsics[:2, 2])

    def rays(self, pixels: Float[Array, "*n 2"]) -> Float[Array, "*n 3"]:
        """Unit directions in the world from the camera's centre through pixels."""
        plane = self.plane_from_pixels(pixels)
        directions = np.concatenate([plane, np.ones((*plane.shape[:-1], 1))], axis=-1) @ self.pinhole.rotation
        return np.asarray(directions / np.linalg.norm(directions, axis=-1, keepdims=True))

    def depth(self, points: Float[Array, "*n 3"]) -> Float[Array, "*n"]:
        """Depth of world points in front of the camera."""
        return np.asarray(points @ self.pinhole.rotation[2] + self.pinhole.translation[2])

    def in_picture(self, pixels: Float[Array, "*n 2"]) -> Array:
        """Mask of the pixels inside the picture."""
        width, height = self.size
        x, y = pixels[..., 0], pixels[..., 1]
        return np.asarray((x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1))

    def moved(self, rotation: Float[Array, "3 3"], translation: Float[Array, "3"]) -> LensCamera:
        """The same camera at another position: p_cam = rotation p_world + translation."""
        return replace(self, pinhole=Camera(self.pinhole.intrinsics, rotation, translation))

    def resized(self, size: tuple[int, int]) -> LensCamera | None:
        """The same camera with pictures of another size, if the aspect ratio is the same."""
        factor = size[0] / self.size[0]
        if abs(size[1] / self.size[1] / factor - 1.0) > 0.01:
            return None
        intrinsics = self.pinhole.intrinsics.copy()
        intrinsics[:2] *= factor
        pinhole = Camera(intrinsics, self.pinhole.rotation, self.pinhole.translation)
        return replace(self, pinhole=pinhole, size=size)

    def pixels_from_plane(self, plane: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """Pixels of points on the plane at distance one, through the lens."""
        bent = _bend(plane, self.distortion)
        intrinsics = self.pinhole.intrinsics
        return np.asarray(bent @ intrinsics[:2, :2].T + intrinsics[:2, 2])

    def plane_from_pixels(
        self, pixels: Float[Array, "*n 2"], *, straight: bool = False
    ) -> Float[Array, "*n 2"]:
        """Points on the plane at distance one; `straight` if the pixels are undistorted."""
        intrinsics = self.pinhole.intrinsics
        bent = (np.asarray(pixels) - intrinsics[:2, 2]) @ np.linalg.inv(intrinsics[:2, :2]).T
        return np.asarray(bent) if straight or not np.any(self.distortion) else _unbend(bent, self.distortion)


def _bend(plane: Array, coefficients: Array) -> Array:
    k1, k2, p1, p2, k3 = coefficients
    x, y = plane[..., 0], plane[..., 1]
    r2 = x * x + y * y
    radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3))
    return np.stack(
        [
            x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x),
            y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y,
        ],
        axis=-1,
    )


def _unbend(bent: Array, coefficients: Array) -> Array:
    """The undistorted point of a distorted one, by fixed-point iteration."""
    plane = bent.copy()
    for _ in range(_ROUNDS):
        missing = bent - _bend(plane, coefficients)
        plane += missing
        if not np.any(np.abs(missing) > _CLOSE):
            break
    return plane
