"""Clusters of poses as Gaussians (Huang et al. 2017, section 4.2): learning, and low-rank covariances.

A few poses determine little in 70 dimensions, so a cluster's covariance is half its own and half the one pooled over
all clusters, plus beta I. This makes every cluster, and every mixture with positive weights, positive definite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from poise.priors import medoids
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array

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
    _, labels = medoids.cluster(compared, count, rng=rng, progress=progress)
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
    return np.concatenate(
        [first[k] + np.arange(n) * pieces[k] // max(n, 1) for k, n in enumerate(lengths)], dtype=np.int64
    )


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
