"""Examples that look like the observations: a local Gaussian of poses from rays and positions of markers.

A marker that one camera sees is on a ray: two of its coordinates are known, the third is not. Every example, with the
assumed root rotation, is shifted to where its markers are nearest to all rays and positions (a linear problem with the
same matrix for all); the remaining distance measures dissimilarity. The nearest examples, weighted by similarity, give
mean and covariance of the pose: the local model of Chai and Hodgins 2005, section 5, in the picture instead of the
room. It has no memory, so a wrong depth does not persist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from poise.geometry import rotations
from poise.geometry.alignment import shifts_across
from poise.priors.local.examples import Examples
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.types import Array

MOST = 3000  # largest number of examples compared, spread over the library
NEAREST = 600  # examples in the Gaussian
BETA = 1e-3  # radians squared, added to every variance


@dataclass(frozen=True, eq=False)
class Seen:
    """Markers, each with a point that it is at or on a ray through, and the projection of gaps to the known axes."""

    markers: Int[Array, "seen"]
    through: Float[Array, "seen 3"]
    across: Float[Array, "seen 3 3"]


class Lookalikes:
    """The examples of a library, compared by their markers."""

    def __init__(self, examples: Examples, handles: Handles) -> None:
        some = examples.every(-(-len(examples) // MOST))
        self._maps = some.maps
        shapes = some.space.points_in_root_frame(some.maps, handles)
        self._shapes = np.ascontiguousarray(shapes.swapaxes(0, 1))

    def __call__(
        self, root: Float[Array, "7"], seen: Seen
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the pose for an approximate root."""
        squares = self.squared_gaps(root, seen)
        near = np.argpartition(squares, min(NEAREST, len(squares) - 1))[:NEAREST]
        apart = squares[near]
        shares = 1.0 / (apart + 0.1 * apart.mean() + 1e-9) ** 2
        shares /= shares.sum()
        mean = shares @ self._maps[near]
        spread = np.sqrt(shares)[:, None] * (self._maps[near] - mean)
        return mean, spread.T @ spread + BETA * np.eye(len(mean))

    def squared_gaps(self, root: Float[Array, "7"], seen: Seen) -> Float[Array, "examples"]:
        """Squared distance of each example's markers from the observations, after the best shift."""
        turn = rotations.matrix_from_quaternion(root[3:ROOT_SIZE])
        placed = self._shapes[seen.markers] @ turn.T + (root[:3] - seen.through)[:, None]
        return shifts_across(placed, seen.across)[1]
