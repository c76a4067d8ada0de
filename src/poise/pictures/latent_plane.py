"""The plane in which a latent space is shown, and the likelihood over it: what needs no charts.

A space of more than two dimensions is projected along the directions in which its training points spread least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.spatial import cKDTree

from poise.priors.latent.model import LatentSpace
from poise.types import Array

Extent = tuple[float, float, float, float]  # left, right, bottom, top

GRID = 140  # places along the longer side of a map
DEPTHS = 6  # training points near a place whose depths are tried
MARGIN = 0.16  # of the training points' extent, around them


@dataclass(frozen=True, eq=False)
class LatentPlane:
    """The plane in which a latent space is drawn: its centre, and all directions by decreasing spread."""

    middle: Float[Array, "latent"]
    directions: Float[Array, "latent latent"]

    @classmethod
    def of(cls, points: Float[Array, "points latent"]) -> LatentPlane:
        """The plane in which points spread most; points of one dimension lie on the line of zero height."""
        middle = points.mean(axis=0)
        _, _, directions = np.linalg.svd(points - middle, full_matrices=True)
        signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
        return cls(middle, directions * signs[:, None])

    def split(self, points: Float[Array, "n latent"]) -> tuple[Float[Array, "n 2"], Float[Array, "n depths"]]:
        """The positions of points in the plane, and their depths behind it."""
        seen = (points - self.middle) @ self.directions.T
        if seen.shape[1] == 1:
            seen = np.column_stack([seen, np.zeros(len(seen))])
        return seen[:, :2], seen[:, 2:]

    def joined(self, seen: Float[Array, "n 2"], depths: Float[Array, "n depths"]) -> Float[Array, "n latent"]:
        """The points at these positions and depths."""
        coordinates = np.column_stack([seen, depths])[:, : len(self.middle)]
        return np.asarray(self.middle + coordinates @ self.directions)


def mapped(space: LatentSpace, plane: LatentPlane) -> tuple[Float[Array, "rows columns"], Extent]:
    """The likelihood map around all training points, its rows from the bottom up, and its extent."""
    extent = extent_of(plane.split(space.latents)[0])
    places, shape = places_in(extent)
    return likelihood_grid(space, plane, places).reshape(shape), extent


def likelihood_grid(space: LatentSpace, plane: LatentPlane, places: Float[Array, "n 2"]) -> Float[Array, "n"]:
    """The likelihood map over places of the plane: the best at the depths of the training points near each."""
    seen, depths = plane.split(space.latents)
    if depths.shape[1] == 0:
        return space.likelihood_map(plane.joined(places, np.empty((len(places), 0))))
    count = min(DEPTHS, len(seen))
    _, near = cKDTree(seen).query(places, k=count)
    near = near.reshape(len(places), count)
    values = [space.likelihood_map(plane.joined(places, depths[near[:, k]])) for k in range(count)]
    return np.asarray(np.max(values, axis=0))


def extent_of(seen: Float[Array, "n 2"]) -> Extent:
    """Around all points with a margin, no narrower than a third of its length."""
    low, high = seen.min(axis=0), seen.max(axis=0)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    half = np.maximum(half * (1.0 + 2.0 * MARGIN), half.max() / 1.6 * (1.0 + 2.0 * MARGIN)) + 1e-6
    (left, bottom), (right, top) = (middle - half).tolist(), (middle + half).tolist()
    return left, right, bottom, top


def places_in(extent: Extent) -> tuple[Float[Array, "n 2"], tuple[int, int]]:
    """Places over an extent, row by row from the bottom, and the numbers of rows and columns."""
    left, right, bottom, top = extent
    longer = max(right - left, top - bottom)
    columns, rows = (max(2, round(GRID * side / longer)) for side in (right - left, top - bottom))
    across, down = np.meshgrid(np.linspace(left, right, columns), np.linspace(bottom, top, rows))
    return np.column_stack([across.ravel(), down.ravel()]), (rows, columns)
