"""Voronoi-iteration k-medoids (Park and Jun 2009), written for many poses: never all pairs in memory.

Medoids are real poses. Each round assigns every pose to its nearest medoid and moves each medoid to the member with the
smallest summed distance to the others. Park and Jun start from the most central objects of the whole set, which
needs all pairs and puts the medoids side by side; we start from poses drawn far from those drawn before (k-means++,
Arthur and Vassilvitskii 2007), which needs k passes and spreads them.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError

Array = np.ndarray

_CHUNK = 2048


def cluster(
    points: Float[Array, "points dimensions"],
    count: int,
    *,
    rng: np.random.Generator,
    rounds: int = 20,
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[Int[Array, "clusters"], Int[Array, "points"]]:
    """Indices of the medoids, and for each point the number of its cluster. No cluster is empty."""
    if count < 1:
        raise InvalidValueError(f"the number of clusters must be at least 1; got {count}")
    points = np.ascontiguousarray(points, dtype=np.float64)
    squares = np.einsum("ij,ij->i", points, points)
    medoids = _spread_start(points, squares, min(count, len(points)), rng)
    for turn in range(rounds):
        labels = _assign(points, squares, medoids)
        moved = np.array(
            [_medoid(points, np.flatnonzero(labels == k), int(medoids[k])) for k in range(len(medoids))]
        )
        progress((turn + 1) / rounds)
        if np.array_equal(moved, medoids):
            break
        medoids = moved
    labels = _assign(points, squares, medoids)
    kept = np.unique(labels)  # repeated poses can leave a medoid without members
    return medoids[kept], np.searchsorted(kept, labels)


def _spread_start(
    points: Array, squares: Array, count: int, rng: np.random.Generator
) -> Int[Array, "clusters"]:
    chosen = [int(rng.integers(len(points)))]
    nearest = _squared_to(points, squares, chosen[0])
    while len(chosen) < count:
        total = nearest.sum()
        if total <= 0:  # fewer distinct poses than clusters
            break
        pick = int(np.searchsorted(np.cumsum(nearest), rng.uniform(0.0, total)))
        chosen.append(min(pick, len(points) - 1))
        nearest = np.minimum(nearest, _squared_to(points, squares, chosen[-1]))
    return np.array(chosen)


def _squared_to(points: Array, squares: Array, index: int) -> Array:
    return np.maximum(squares - 2.0 * points @ points[index] + squares[index], 0.0)


def _assign(points: Array, squares: Array, medoids: Array) -> Int[Array, "points"]:
    labels = np.empty(len(points), dtype=np.int64)
    centres, offsets = points[medoids], squares[medoids]
    for begin in range(0, len(points), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        labels[part] = np.argmin(offsets - 2.0 * points[part] @ centres.T, axis=1)
    return labels


def _medoid(points: Array, members: Array, old: int) -> int:
    """The member with the smallest summed distance to the other members."""
    if len(members) == 0:
        return old
    own = points[members]
    squares = np.einsum("ij,ij->i", own, own)
    sums = np.empty(len(members))
    for begin in range(0, len(members), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        squared = squares[part, None] - 2.0 * own[part] @ own.T + squares
        sums[part] = np.sqrt(np.maximum(squared, 0.0)).sum(axis=1)
    return int(members[np.argmin(sums)])
