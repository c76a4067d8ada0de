"""K-means: centres that cover points evenly, and points divided into parts of points that are alike."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray

_BRANCHES = 32  # parts that points are divided into at once; larger ones are divided again
_ROUNDS = 4  # of k-means for a division: its parts only have to be compact


def lloyd(
    points: Float[Array, "points columns"], centres: Float[Array, "centres columns"], *, rounds: int
) -> Float[Array, "centres columns"]:
    """Lloyd's rounds of k-means; a centre that loses all its points stays where it is."""
    for _ in range(rounds):
        labels = nearest_centres(points, centres)
        order, counts = np.argsort(labels, kind="stable"), np.bincount(labels, minlength=len(centres))
        held = counts > 0
        begins = (np.cumsum(counts) - counts)[held]
        sums = np.add.reduceat(points[order], begins, axis=0, dtype=centres.dtype)
        centres = centres.copy()
        centres[held] = sums / counts[held, None]
    return centres


def nearest_centres(
    points: Float[Array, "points columns"], centres: Float[Array, "centres columns"]
) -> Int[Array, "points"]:
    """Which centre each point is nearest to."""
    return np.argmin((centres**2).sum(axis=1) - 2.0 * points @ centres.T, axis=1)


def divided(
    points: Float[Array, "points columns"], most: int, *, rng: np.random.Generator
) -> list[Int[Array, "_"]]:
    """Points divided into parts of at most so many, and those into parts again (hierarchical k-means)."""
    parts, waiting = [], [np.arange(len(points))]
    while waiting:
        members = waiting.pop()
        if len(members) <= most:
            parts.append(members)
        else:
            waiting += _branches(points, members, min(_BRANCHES, -(-len(members) // most)), rng)
    return parts


def _branches(
    points: Array, members: Int[Array, "_"], count: int, rng: np.random.Generator
) -> list[Int[Array, "_"]]:
    own = points[members]
    centres = lloyd(own, own[rng.choice(len(own), count, replace=False)], rounds=_ROUNDS)
    labels = nearest_centres(own, centres)
    branches = [members[labels == number] for number in np.unique(labels)]
    return branches if len(branches) > 1 else np.array_split(members, count)  # points that are all the same
