"""Which point is which marker: points assigned to where markers are expected, none farther than its gate."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from poise.types import Array

NOBODY = -1
_NEVER = 1e6


def assign(
    expected: Float[Array, "markers 3"], gates: Float[Array, "markers"], points: Float[Array, "points 3"]
) -> Int[Array, "markers"]:
    """Per marker the number of its point, or -1: least squared distances in all, each in units of the marker's gate."""
    from scipy.optimize import linear_sum_assignment

    found = np.full(len(expected), NOBODY)
    if len(expected) == 0 or len(points) == 0:
        return found
    distances = np.linalg.norm(expected[:, None] - points[None], axis=2) / gates[:, None]
    near = distances <= 1.0
    rows, columns = linear_sum_assignment(np.where(near, distances**2, _NEVER))
    kept = near[rows, columns]
    found[rows[kept]] = columns[kept]
    return found
