"""Rigid alignment of point sets."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations

Array = np.ndarray


def rigid_fit(
    source: Float[Array, "points 3"], target: Float[Array, "points 3"], *, upright: bool = False
) -> tuple[Float[Array, "3 3"], Float[Array, "3"], float]:
    """The rotation and translation that bring source closest to target (Kabsch 1976), and the distance that is left.

    `upright` turns about the vertical only, as does a fit of fewer than three points, which leaves other turns open.
    """
    centre, goal = source.mean(axis=0), target.mean(axis=0)
    moment = (target - goal).T @ (source - centre)
    if upright or len(source) < 3:
        angle = np.arctan2(moment[0, 2] - moment[2, 0], moment[0, 0] + moment[2, 2])
        turn = rotations.matrix_from_expmap(np.array([0.0, angle, 0.0]))
    else:
        left, _, right = np.linalg.svd(moment)
        turn = left @ np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))]) @ right
    shift = goal - turn @ centre
    return turn, shift, float(np.linalg.norm(source @ turn.T + shift - target))
