"""Gaussian-process regression from the places of handles to poses (Huang et al. 2017, Eqs. 8 and 9), limb by limb.

The paper's Laplacian kernel takes all targets as one vector, so that a hand predicts a knee as much as an elbow. Here
each joint has a kernel in which the handles that it moves (or, beyond the last handle of a limb, that one) count more
than the others. The reach delta and the noise are those that predict held-out blocks of the recording best: frames
beside each other are so alike that leaving out one at a time would choose a process that only repeats them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.spatial.distance import cdist

from poise.compiled import compiled
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton

Array = np.ndarray

OTHER_HANDLES = 0.1  # weight of the squared distances of handles that a joint has nothing to do with
REACHES = (0.5, 2.0, 8.0)  # candidates for delta, over the typical distance between inputs
NOISES = (
    1e-3,
    1e-2,
    1e-1,
    3e-1,
)  # candidates for the variance of poses of the same targets, over the signal's
ENOUGH = 120  # samples on which delta and noise are chosen, at most


@dataclass(frozen=True, eq=False)
class Limbs:
    """Which handles count how much for which joints; components of poses sorted by limb, for the compiled core."""

    weights: Float[Array, "limbs handles"]
    order: Int[Array, "maps"]  # the components of a pose, limb after limb
    ends: Int[Array, "limbs"]  # where each limb ends in that order

    @classmethod
    def alike(cls, handles: int, maps: int) -> Limbs:
        """All handles count the same for all joints: the paper's kernel."""
        return cls(np.ones((1, handles)), np.arange(maps), np.array([maps]))


@dataclass(frozen=True, eq=False)
class Process:
    """Regression to poses: mean(T) = centre + sum of kernel(T, T_j) weights_j, with a kernel per limb."""

    inputs: Float[Array, "samples handles 3"]
    limbs: Limbs
    reach: float
    noise: float
    weights: Float[Array, "samples maps"]  # columns in the order of the limbs
    centre: Float[Array, "maps"]


def limbs_between(space: PoseSpace, handles: Handles) -> Limbs:
    """Joints that move the same handles, or hang from the same, are a limb; its own handles weigh most."""
    own = [own_handles(space.skeleton, int(joint), handles) for joint in space.moving]
    distinct = sorted(set(own), key=sorted)
    weights = np.full((len(distinct), len(handles)), OTHER_HANDLES)
    for limb, numbers in enumerate(distinct):
        weights[limb, list(numbers)] = 1.0
    limb_of = np.repeat([distinct.index(numbers) for numbers in own], 3)
    return Limbs(weights, np.argsort(limb_of, kind="stable"), np.cumsum(np.bincount(limb_of)))


def fit(
    inputs: Float[Array, "samples handles 3"],
    outputs: Float[Array, "samples maps"],
    *,
    limbs: Limbs,
    blocks: Int[Array, "samples"],
    centre: Float[Array, "maps"],
) -> Process:
    """The process through samples; samples of one block are held out together when delta and noise are chosen."""
    few = slice(None, None, -(-len(inputs) // ENOUGH))
    reach, noise = _choose(inputs[few], outputs[few] - centre, limbs, _several(blocks[few]))
    weights = [
        cho_solve(cho_factor(_kernel(distances, reach, noise)), outputs[:, own] - centre[own])
        for own, distances in _limb_distances(inputs, limbs)
    ]
    return Process(inputs, limbs, reach, noise, np.hstack(weights), centre)


def spacing(inputs: Float[Array, "samples handles 3"]) -> float:
    """How far samples are from the nearest other one, typically."""
    flat = inputs.reshape(len(inputs), -1)
    distances = cdist(flat, flat) + np.diag(np.full(len(flat), np.inf))
    nearest = distances.min(axis=1)
    return float(np.median(nearest)) if np.any(np.isfinite(nearest) & (nearest > 0)) else 1.0


def held_out_errors(
    kernel: Float[Array, "samples samples"],
    outputs: Float[Array, "samples maps"],
    blocks: Int[Array, "samples"],
) -> Float[Array, "samples maps"]:
    """What the process gets wrong on each block when fitted to all others, from one inverse (Rasmussen 2006, 5.12)."""
    inverse, order = inverse_of(kernel), np.argsort(blocks, kind="stable")
    errors = inverse @ outputs
    leave_out(inverse, errors, order, np.append(np.unique(blocks[order], return_index=True)[1], len(blocks)))
    return errors


@compiled
def leave_out(inverse: Array, errors: Array, order: Array, starts: Array) -> None:
    """Turn the kernel's inverse times outputs into errors, block by block; `order` has blocks one after the other."""
    for block in range(len(starts) - 1):
        members = order[starts[block] : starts[block + 1]]
        count = len(members)
        own, right = np.empty((count, count)), np.empty((count, errors.shape[1]))
        for i in range(count):
            right[i] = errors[members[i]]
            for j in range(count):
                own[i, j] = inverse[members[i], members[j]]
        found = np.linalg.solve(own, right)
        for i in range(count):
            errors[members[i]] = found[i]


def solved(
    kernel: Float[Array, "samples samples"], outputs: Float[Array, "samples maps"]
) -> Float[Array, "samples maps"]:
    """The kernel's inverse times outputs, by its Cholesky factor."""
    factor, failed = dpotrf(kernel, lower=1)
    return np.linalg.solve(kernel, outputs) if failed else np.asarray(dpotrs(factor, outputs, lower=1)[0])


def inverse_of(kernel: Float[Array, "samples samples"]) -> Float[Array, "samples samples"]:
    """The inverse of a kernel by its Cholesky factor, at half the work of a general one."""
    factor, failed = dpotrf(kernel, lower=1)
    inverse, singular = dpotri(factor, lower=1, overwrite_c=1)
    if failed or singular:
        return np.linalg.inv(kernel)
    mirror_below(inverse.T)
    return np.asarray(inverse)


@compiled
def mirror_below(matrix: Array) -> None:
    """Copy what is above the diagonal below it."""
    for i in range(len(matrix)):
        for j in range(i):
            matrix[i, j] = matrix[j, i]


def own_handles(skeleton: Skeleton, joint: int, handles: Handles) -> frozenset[int]:
    """The handles that a joint moves or carries; without any, those of the nearest joint above; or all."""
    carried = [number for number, place in enumerate(handles.joints) if joint in _chain(skeleton, int(place))]
    if carried:
        return frozenset(carried)
    for above in _chain(skeleton, joint):
        held = np.flatnonzero(handles.joints == above)
        if len(held):
            return frozenset(held.tolist())
    return frozenset(range(len(handles)))


def moved_joints(skeleton: Skeleton, handles: Handles) -> Bool[Array, "joints"]:
    """Which joints move a handle."""
    moves = np.zeros(len(skeleton), dtype=np.bool_)
    for joint, offset in zip(handles.joints, handles.offsets, strict=True):
        above = int(joint) if np.any(offset) else int(skeleton.parents[joint])
        while above >= 0:
            moves[above] = True
            above = int(skeleton.parents[above])
    return moves


def _choose(inputs: Array, outputs: Array, limbs: Limbs, blocks: Array) -> tuple[float, float]:
    parts = list(_limb_distances(inputs, limbs))
    typical = _typical(cdist(*2 * (inputs.reshape(len(inputs), -1),)))
    best, chosen = np.inf, (typical, NOISES[0])
    for reach in typical * np.array(REACHES):
        for noise in NOISES:
            error = 0.0
            for own, distances in parts:
                kernel = _kernel(distances, reach, noise)
                error += float(np.sum(held_out_errors(kernel, outputs[:, own], blocks) ** 2))
            if error < best:
                best, chosen = error, (float(reach), noise)
    return chosen


def _kernel(distances: Array, reach: float, noise: float) -> Array:
    """Eq. 8, with noise on its diagonal: cluster means are averages, not exact observations."""
    return np.asarray(np.exp(-distances / reach) + noise * np.eye(len(distances)))


def _limb_distances(inputs: Array, limbs: Limbs) -> Iterator[tuple[Array, Array]]:
    """Per limb, its components of a pose and the distances between inputs as it weighs them."""
    for weights, own in zip(limbs.weights, np.split(limbs.order, limbs.ends[:-1]), strict=True):
        scaled = (inputs * np.sqrt(weights)[:, None]).reshape(len(inputs), -1)
        yield own, cdist(scaled, scaled)


def _typical(distances: Array) -> float:
    apart = distances[distances > 0]
    return float(np.median(apart)) if apart.size else 1.0


def _several(blocks: Array) -> Array:
    """At least two blocks: where all samples are of one, each is its own."""
    return blocks if np.any(blocks != blocks[0]) else np.arange(len(blocks))


def _chain(skeleton: Skeleton, joint: int) -> Iterator[int]:
    """A joint and those above it, up to the root."""
    while joint >= 0:
        yield joint
        joint = int(skeleton.parents[joint])
