"""Voronoi-iteration k-medoids (Park and Jun 2009), for many poses: never all pairs in memory.

Medoids are real poses. Each round assigns every pose to its nearest medoid and moves each medoid to the member with the
smallest summed distance to the others. Park and Jun start from the most central objects of the whole set, which needs
all pairs and puts the medoids close together; we start from poses drawn far from those drawn before (k-means++, Arthur
and Vassilvitskii 2007), which needs k passes and spreads them. In large clusters the medoid is searched among the
members nearest to their mean, and a cluster whose members did not change keeps its medoid.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.types import Array

_CHUNK = 2048
_CANDIDATES = 256  # members, nearest to the mean, among which a medoid is searched


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
    labels = np.full(len(points), -1)
    for turn in range(rounds):
        before, labels = labels, _assign(points, squares, medoids)
        moved = np.flatnonzero(labels != before)
        for k in np.unique(np.concatenate([labels[moved], before[moved]])):
            if k >= 0:
                medoids[k] = _medoid(points, np.flatnonzero(labels == k), int(medoids[k]))
        progress((turn + 1) / rounds)
        if len(moved) == 0:
            break
    labels = _assign(points, squares, medoids)
    kept = np.unique(labels)  # duplicate poses can leave a medoid without members
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
    return np.asarray(np.maximum(squares - 2.0 * points @ points[index] + squares[index], 0.0))


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
    from_mean = np.linalg.norm(own - own.mean(axis=0), axis=1)
    candidates = np.sort(np.argsort(from_mean, kind="stable")[:_CANDIDATES])
    squares = np.einsum("ij,ij->i", own, own)
    sums = np.zeros(len(candidates))
    for begin in range(0, len(members), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        squared = squares[candidates, None] - 2.0 * own[candidates] @ own[part].T + squares[part]
        sums += np.sqrt(np.maximum(squared, 0.0)).sum(axis=1)
    return int(members[candidates[np.argmin(sums)]])
