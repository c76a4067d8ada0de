"""The viewpoint of pictures: an upright camera that looks slightly down and fits its subject."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from poise.types import Array


@dataclass(frozen=True, eq=False)
class PictureView:
    """A pinhole camera at `eye` with its axes in the world; `focal` in pixels, `middle` the pixel it looks at."""

    eye: Float[Array, "3"]
    right: Float[Array, "3"]
    up: Float[Array, "3"]
    back: Float[Array, "3"]
    focal: float
    middle: tuple[float, float]
    size: tuple[int, int]

    def project(self, points: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
        """Columns and rows in pixels, and nearness (one over the distance along the view; 0 behind the camera)."""
        local = (np.asarray(points) - self.eye) @ np.stack([self.right, self.up, -self.back], axis=-1)
        distance = local[..., 2]
        near = np.where(distance > 0.05, 1.0 / np.where(distance > 0.05, distance, 1.0), 0.0)
        column = self.middle[0] + self.focal * local[..., 0] * near
        row = self.middle[1] - self.focal * local[..., 1] * near
        return np.stack([column, row, near], axis=-1)

    def rays(self) -> Float[Array, "3 3"]:
        """The world direction through pixel (0, 0) and how it changes per column and per row."""
        across, down = self.right / self.focal, -self.up / self.focal
        return np.stack([-self.back - self.middle[0] * across - self.middle[1] * down, across, down])

    def moved(self, shift: Float[Array, "3"]) -> PictureView:
        """The same view from another position."""
        return replace(self, eye=self.eye + shift)


def looking(
    at: Float[Array, "3"],
    *,
    azimuth: float,
    elevation: float,
    distance: float,
    focal: float,
    size: tuple[int, int],
) -> PictureView:
    """A view of a point from an azimuth about the vertical (0 is from +Z, positive towards +X), in radians."""
    level = np.cos(elevation)
    back = np.array([np.sin(azimuth) * level, np.sin(elevation), np.cos(azimuth) * level])
    right = np.array([np.cos(azimuth), 0.0, -np.sin(azimuth)])
    up = np.cross(back, right)
    middle = (0.5 * (size[0] - 1), 0.5 * (size[1] - 1))
    return PictureView(np.asarray(at) + distance * back, right, up, back, focal, middle, size)


def fitted(
    points: Float[Array, "n 3"],
    *,
    azimuth: float,
    elevation: float,
    size: tuple[int, int],
    margins: tuple[float, float, float, float] = (0.06, 0.06, 0.06, 0.06),
    lens: float = 5.0,
) -> PictureView:
    """A view in which all points are inside the margins (left, top, right, bottom, as fractions of the size).

    `lens` is the distance in units of the subject's size: larger is flatter, like a longer lens.
    """
    points = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    reach = max(float(np.linalg.norm(points - centre, axis=-1).max()), 0.05)
    view = looking(centre, azimuth=azimuth, elevation=elevation, distance=lens * reach, focal=1.0, size=size)
    seen = view.project(points)[:, :2] - view.middle
    low, high = seen.min(axis=0), np.maximum(seen.max(axis=0), seen.min(axis=0) + 1e-6)
    room = (size[0] * (1.0 - margins[0] - margins[2]), size[1] * (1.0 - margins[1] - margins[3]))
    focal = min(room[0] / (high[0] - low[0]), room[1] / (high[1] - low[1]))
    box_middle = (
        size[0] * (0.5 + 0.5 * (margins[0] - margins[2])),
        size[1] * (0.5 + 0.5 * (margins[1] - margins[3])),
    )
    middle = tuple(box_middle[k] - focal * 0.5 * (low[k] + high[k]) for k in (0, 1))
    return replace(view, focal=focal, middle=(float(middle[0]), float(middle[1])))
