"""Alignment of point sets: by a turn and a shift, or by the shift that is known across rays."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def rigid_fits(
    sources: Float[Array, "sets points 3"], target: Float[Array, "points 3"], *, upright: bool = False
) -> tuple[Float[Array, "sets 3 3"], Float[Array, "sets 3"], Float[Array, "sets"]]:
    """The rotations and translations that bring sets closest to a target (Kabsch 1976), and the distances left.

    `upright` turns about the vertical only, as does a fit of fewer than three points, which leaves other turns open.
    """
    centres, goal = sources.mean(axis=1), target.mean(axis=0)
    moments = (target - goal).T @ (sources - centres[:, None])
    if upright or len(target) < 3:
        angles = np.arctan2(moments[:, 0, 2] - moments[:, 2, 0], moments[:, 0, 0] + moments[:, 2, 2])
        turns = np.zeros_like(moments)
        turns[:, 0, 0] = turns[:, 2, 2] = np.cos(angles)
        turns[:, 0, 2], turns[:, 1, 1] = np.sin(angles), 1.0
        turns[:, 2, 0] = -turns[:, 0, 2]
    else:
        left, _, right = np.linalg.svd(moments)
        left[:, :, 2] *= np.sign(np.linalg.det(left @ right))[:, None]
        turns = left @ right
    shifts = goal - np.einsum("sab,sb->sa", turns, centres)
    placed = sources @ turns.transpose(0, 2, 1) + shifts[:, None]
    return turns, shifts, np.linalg.norm((placed - target).reshape(len(sources), -1), axis=1)


def rigid_fit(
    source: Float[Array, "points 3"], target: Float[Array, "points 3"], *, upright: bool = False
) -> tuple[Float[Array, "3 3"], Float[Array, "3"], float]:
    """The rotation and translation that bring one set closest to a target, and the distance left."""
    turns, shifts, distances = rigid_fits(source[None], target, upright=upright)
    return turns[0], shifts[0], float(distances[0])


def shifts_across(
    gaps: Float[Array, "points fits 3"], across: Float[Array, "points 3 3"]
) -> tuple[Float[Array, "fits 3"], Float[Array, "fits"]]:
    """What points are off together, where `across` takes from each gap what is known of it; and the squares left."""
    known = gaps @ across
    normal = across.sum(axis=0) + 1e-6 * np.eye(3)  # along rays that are parallel, nothing shifts
    shifts = np.linalg.solve(normal, known.sum(axis=0).T).T
    return shifts, np.asarray(np.sum((known - shifts @ across) ** 2, axis=(0, 2)))
