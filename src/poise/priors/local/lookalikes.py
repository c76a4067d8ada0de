"""Examples that look like what is seen: a local Gaussian of poses from the rays and places of markers.

A marker that one camera sees is on a ray: two of its coordinates are known, the third is not. Every example, turned as
the root is thought to be, is shifted to where its markers are nearest to all rays and places at once (a linear problem
whose matrix is the same for all); how far they still are says how unlike it is. The nearest examples, the more alike
the weightier, give mean and covariance of the pose: the local model of Chai and Hodgins 2005, section 5, asked in the
picture instead of in the room. It keeps no memory, so that depths that are wrong once do not stay wrong.
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

MOST = 3000  # examples that are looked at, spread over the library
NEAREST = 600  # of them that make the Gaussian
BETA = 1e-3  # radians squared, added to every variance


@dataclass(frozen=True, eq=False)
class Seen:
    """Markers with a point that each is at or on a ray through, and what takes from a gap to it all that is known."""

    markers: Int[Array, "seen"]
    through: Float[Array, "seen 3"]
    across: Float[Array, "seen 3 3"]


class Lookalikes:
    """The examples of a library, as markers on them are seen."""

    def __init__(self, examples: Examples, handles: Handles) -> None:
        some = examples.every(-(-len(examples) // MOST))
        self._maps = some.maps
        shapes = some.space.points_in_root_frame(some.maps, handles)
        self._shapes = np.ascontiguousarray(shapes.swapaxes(0, 1))

    def __call__(
        self, root: Float[Array, "7"], seen: Seen
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the pose, with the root turned about like this, and about there."""
        squares = self.squared_gaps(root, seen)
        near = np.argpartition(squares, min(NEAREST, len(squares) - 1))[:NEAREST]
        apart = squares[near]
        shares = 1.0 / (apart + 0.1 * apart.mean() + 1e-9) ** 2
        shares /= shares.sum()
        mean = shares @ self._maps[near]
        spread = np.sqrt(shares)[:, None] * (self._maps[near] - mean)
        return mean, spread.T @ spread + BETA * np.eye(len(mean))

    def squared_gaps(self, root: Float[Array, "7"], seen: Seen) -> Float[Array, "examples"]:
        """How far each example's markers are from where they are seen, once it is shifted there."""
        turn = rotations.matrix_from_quaternion(root[3:ROOT_SIZE])
        placed = self._shapes[seen.markers] @ turn.T + (root[:3] - seen.through)[:, None]
        return shifts_across(placed, seen.across)[1]
