"""Clusters of poses: k-medoids, and Gaussians of the clusters (Huang et al. 2017, section 4.2).

A few poses determine little in 70 dimensions, so a cluster's covariance is half its own and half the one pooled over
all clusters, plus beta I. This makes every cluster, and every mixture with positive weights, positive definite.

Voronoi-iteration k-medoids (Park and Jun 2009), for many poses: never all pairs in memory.

Medoids are real poses. Each round assigns every pose to its nearest medoid and moves each medoid to the member with the
smallest summed distance to the others. Park and Jun start from the most central objects of the whole set, which needs
all pairs and puts the medoids close together; we start from poses drawn far from those drawn before (k-means++, Arthur
and Vassilvitskii 2007), which needs k passes and spreads them. In large clusters the medoid is searched among the
members nearest to their mean, and a cluster whose members did not change keeps its medoid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.skeleton.pose_space import PoseSpace
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
    chosen, nearest = [int(rng.integers(len(points)))], np.full(len(points), np.inf)
    while len(chosen) < count:
        last = chosen[-1]
        nearest = np.minimum(nearest, np.maximum(squares - 2.0 * points @ points[last] + squares[last], 0.0))
        total = nearest.sum()
        if total <= 0:  # fewer distinct poses than clusters
            break
        pick = int(np.searchsorted(np.cumsum(nearest), rng.uniform(0.0, total)))
        chosen.append(min(pick, len(points) - 1))
    return np.array(chosen)


def _assign(points: Array, squares: Array, medoids: Array) -> Int[Array, "points"]:
    labels, centres, offsets = np.empty(len(points), dtype=np.int64), points[medoids], squares[medoids]
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


BETA = 1e-3  # radians squared, added to every covariance
POOLED_SHARE = 0.5  # of the pooled covariance in each cluster's own
BLOCKS = 8  # smallest number of contiguous pieces of the recordings that can be held out
SHORTEST = 0.05  # metres: lever arm assumed for a joint at the end of a limb


@dataclass(frozen=True, eq=False)
class Clusters:
    """Gaussians, the share of poses in each, and the block of the recordings that most of its poses come from."""

    means: Float[Array, "clusters maps"]
    covariances: Float[Array, "clusters maps maps"]
    shares: Float[Array, "clusters"]
    blocks: Int[Array, "clusters"]


def learn(
    space: PoseSpace,
    maps: Float[Array, "poses maps"],
    *,
    lengths: Sequence[int],
    count: int,
    rng: np.random.Generator,
    published: bool = False,
    progress: Callable[[float], None] = lambda _: None,
) -> Clusters:
    """Cluster poses, given as exponential maps of clips with these lengths.

    With `published`, poses are compared by their angles, and each cluster's covariance is its own plus beta I.
    """
    compared = maps if published else maps * influence(space)
    _, labels = cluster(compared, count, rng=rng, progress=progress)
    blocks, size = blocks_of(lengths), maps.shape[1]
    number = int(labels.max()) + 1
    means, covariances = np.empty((number, size)), np.empty((number, size, size))
    shares, home = np.empty(number), np.empty(number, dtype=np.int64)
    for k in range(number):
        own = maps[labels == k]
        means[k], shares[k] = own.mean(axis=0), len(own) / len(maps)
        covariances[k] = (own - means[k]).T @ (own - means[k]) / len(own)
        home[k] = np.bincount(blocks[labels == k]).argmax()
    pooled = 0.0 if published else POOLED_SHARE
    return Clusters(means, shrunk(covariances, shares, pooled), shares, home)


def influence(space: PoseSpace) -> Float[Array, "maps"]:
    """Weight of each rotation in pose distances: the length that the joint swings, so that positions are compared."""
    skeleton = space.skeleton
    lengths, swung = np.linalg.norm(skeleton.offsets, axis=1), np.zeros(len(skeleton))
    for joint in range(len(skeleton) - 1, 0, -1):
        parent = skeleton.parents[joint]
        swung[parent] = max(swung[parent], swung[joint] + lengths[joint])
    return np.repeat(np.maximum(swung[space.moving], SHORTEST), 3)


def blocks_of(lengths: Sequence[int]) -> Int[Array, "poses"]:
    """Block numbers of all poses: blocks are contiguous and within one clip; long clips have several."""
    pieces = [max(1, round(BLOCKS * length / sum(lengths))) for length in lengths]
    first = np.cumsum([0, *pieces])
    numbers = [first[k] + np.arange(n) * pieces[k] // max(n, 1) for k, n in enumerate(lengths)]
    return np.concatenate(numbers, dtype=np.int64)


def shrunk(
    covariances: Float[Array, "clusters maps maps"],
    shares: Float[Array, "clusters"],
    pooled_share: float = POOLED_SHARE,
) -> Float[Array, "clusters maps maps"]:
    """Each covariance mixed with the pooled one, plus beta I."""
    pooled = np.einsum("k,kij->ij", shares, covariances)
    identity = np.eye(covariances.shape[-1])
    return np.asarray((1.0 - pooled_share) * covariances + pooled_share * pooled + BETA * identity)


def low_rank(
    covariances: Float[Array, "clusters maps maps"], rank: int
) -> tuple[Float[Array, "clusters maps rank"], Float[Array, "clusters maps"]]:
    """Factors F and diagonals d with S ~ F F' + diag(d): the leading directions, with every variance preserved.

    The remainder of a positive definite matrix is positive semi-definite, so its diagonal is not negative; the floor
    of beta / 2 keeps the sum positive definite.
    """
    values, vectors = np.linalg.eigh(covariances)
    factors = vectors[:, :, -rank:] * np.sqrt(values[:, None, -rank:])
    left = np.diagonal(covariances, axis1=1, axis2=2) - np.sum(factors**2, axis=2)
    return factors, np.maximum(left, 0.5 * BETA)


def dense(
    factors: Float[Array, "clusters maps rank"], diagonals: Float[Array, "clusters maps"]
) -> Float[Array, "clusters maps maps"]:
    """F F' + diag(d)."""
    return np.asarray(
        factors @ factors.transpose(0, 2, 1) + diagonals[:, None, :] * np.eye(diagonals.shape[1])
    )
