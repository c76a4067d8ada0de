"""K-means: centres that cover points evenly, and hierarchical division of points into compact parts."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.vq import kmeans2, vq

from poise.types import Array

_BRANCHES = 32  # parts per division; larger ones are divided again
_ROUNDS = 4  # of k-means per division: its parts only need to be compact


def lloyd(
    points: Float[Array, "points columns"], centres: Float[Array, "centres columns"], *, rounds: int
) -> Float[Array, "centres columns"]:
    """Lloyd's rounds of k-means; a centre that loses all its points stays in place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of such centres
        return np.asarray(kmeans2(points, centres, iter=rounds, minit="matrix")[0])


def divided(
    points: Float[Array, "points columns"], most: int, *, rng: np.random.Generator
) -> list[Int[Array, "_"]]:
    """Divide points into parts of limited size, recursively (hierarchical k-means)."""
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
    labels = vq(own, centres)[0]
    branches = [members[labels == number] for number in np.unique(labels)]
    return branches if len(branches) > 1 else np.array_split(members, count)  # all points are equal
