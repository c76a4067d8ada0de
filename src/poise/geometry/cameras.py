"""Pinhole cameras: projection of world points to pixels, and the ray through a pixel.

Camera axes follow OpenCV: x right, y down, z forward; pixels from the top left corner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.types import Array


@dataclass(frozen=True, eq=False)
class Camera:
    """Intrinsics (3, 3) and the transform that takes world points to camera coordinates: p_cam = R p_world + t."""

    intrinsics: Float[Array, "3 3"]
    rotation: Float[Array, "3 3"]
    translation: Float[Array, "3"]

    @classmethod
    def looking_at(
        cls,
        target: tuple[float, float, float],
        *,
        eye: tuple[float, float, float],
        size: tuple[int, int] = (640, 480),
        field_of_view: float = 0.8,
    ) -> Camera:
        """A camera at `eye` with `target` in the middle of its image; the field of view is vertical, in radians."""
        forward = np.subtract(target, eye).astype(float)
        if np.linalg.norm(forward) == 0 or not 0 < field_of_view < np.pi:
            raise InvalidValueError(
                "a camera needs a target away from its eye and a field of view between 0 and pi"
            )
        forward /= np.linalg.norm(forward)
        up = np.array([0.0, 1.0, 0.0]) if abs(forward[1]) < 0.999 else np.array([0.0, 0.0, 1.0])
        right = np.cross(forward, up)
        right /= np.linalg.norm(right)
        rotation = np.stack([right, np.cross(forward, right), forward])
        focal = size[1] / 2 / np.tan(field_of_view / 2)
        intrinsics = np.array([[focal, 0.0, size[0] / 2], [0.0, focal, size[1] / 2], [0.0, 0.0, 1.0]])
        return cls(intrinsics, rotation, -rotation @ np.asarray(eye, dtype=float))

    @property
    def matrix(self) -> Float[Array, "3 4"]:
        """The projection matrix K [R | t]."""
        return self.intrinsics @ np.column_stack([self.rotation, self.translation])

    @property
    def centre(self) -> Float[Array, "3"]:
        """The camera's position in the world."""
        return -self.rotation.T @ self.translation

    @property
    def focal_length(self) -> float:
        """The focal length in pixels (the mean of both axes)."""
        return float(self.intrinsics[0, 0] + self.intrinsics[1, 1]) / 2

    def project(self, points: Float[Array, "*n 3"]) -> Float[Array, "*n 2"]:
        """Pixels of world points; NaN for points that are not in front of the camera."""
        homogeneous = points @ self.matrix[:, :3].T + self.matrix[:, 3]
        depth = homogeneous[..., 2:]
        return np.where(depth > 0, homogeneous[..., :2] / np.where(depth > 0, depth, 1.0), np.nan)

    def ray(self, pixel: Float[Array, "2"]) -> Float[Array, "3"]:
        """The unit direction in the world from the camera's centre through a pixel."""
        direction = self.rotation.T @ np.linalg.solve(self.intrinsics, np.array([pixel[0], pixel[1], 1.0]))
        return direction / np.linalg.norm(direction)
