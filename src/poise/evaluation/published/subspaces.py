"""Principal subspaces of poses (Eq. 3), synthesis in them (Eq. 9) by Levenberg-Marquardt, and the simpler baselines.

After Chai and Hodgins 2005, sections 5 and 6; the published method as a whole is in `chai2005`.

Leaving an example out of a principal subspace needs no new one: with fixed directions, the residual of an example
outside the subspace grows by 1 / (1 - h), h its leverage (1/K plus its squared scores over K times their variances). A
pose is predicted from a part of it, so its components are left out too: 1 / (1 - B/D), with D of them (both factors
are those of generalised cross-validation for PCA, Josse and Husson 2012, with each example's own leverage).
The paper does not give units for Eq. 9's weights; here markers count in centimetres and angles in radians.

A baseline takes the markers of a frame and returns a pose vector, with the root placed by the torso's markers (section
7.2 and Fig. 6): the nearest example, locally weighted regression, one subspace for the whole library, and a mixture of
local linear models (a subspace per cluster).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.geometry import rotations
from poise.priors.clusters import cluster
from poise.priors.local.control import Control
from poise.priors.local.examples import Examples, Query
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, handle_points
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.types import Array

Chain = tuple[
    Array, Array, Array, Array, Array
]  # links, rest, joints and offsets of handles, and their targets
Around = tuple[Array, Array, Array]  # mean, basis and variances of a subspace

CONTROL_WEIGHT, SMOOTHNESS_WEIGHT = 0.8 * 100.0**2, 0.2  # alpha and beta of Eq. 9, markers in centimetres
COUNTS = (12, 24, 48, 96)  # candidates for K
MOST_DIMENSIONS = 12
ITERATIONS = 20
FLAT = 1e-8  # radians squared: directions with less variance are dropped
WEIGHTED = 40  # examples averaged by locally weighted regression
GLOBAL_DIMENSIONS = 20
CLUSTERS = 40
CLUSTER_DIMENSIONS = 10


@dataclass(frozen=True, eq=False)
class Subspace:
    """A linear model of poses: p + U w, with the variance along each direction (Eq. 3)."""

    mean: Float[Array, "maps"]
    basis: Float[Array, "maps dimension"]
    variances: Float[Array, "dimension"]

    @property
    def dimension(self) -> int:
        """B."""
        return len(self.variances)

    def cut(self, dimension: int) -> Subspace:
        """The subspace of its first directions."""
        basis = np.ascontiguousarray(self.basis[:, :dimension])
        return Subspace(self.mean, basis, self.variances[:dimension])

    def project(self, maps: Float[Array, "maps"]) -> Float[Array, "maps"]:
        """The closest pose in the subspace."""
        return np.asarray(self.mean + self.basis @ (self.basis.T @ (maps - self.mean)))


def principal_subspace(poses: Float[Array, "poses maps"], dimension: int | None = None) -> Subspace:
    """The directions of largest variance; by default all with a significant one."""
    mean = poses.mean(axis=0)
    centred = poses - mean
    if len(poses) <= poses.shape[1]:
        values, vectors = np.linalg.eigh(centred @ centred.T / len(poses))
        carrying = values > FLAT
        basis = centred.T @ vectors[:, carrying] / np.sqrt(len(poses) * values[carrying])
        values = values[carrying]
    else:
        values, basis = np.linalg.eigh(centred.T @ centred / len(poses))
        basis, values = basis[:, values > FLAT], values[values > FLAT]
    most = len(values) if dimension is None else min(dimension, len(values))
    return Subspace(mean, np.ascontiguousarray(basis[:, ::-1][:, :most]), values[::-1][:most].copy())


def candidates(
    near: Float[Array, "examples maps"], most: int
) -> Iterator[tuple[int, Subspace, Float[Array, "dimensions"]]]:
    """For every candidate K, the subspace of the K nearest, and its leave-one-out error by dimension."""
    for count in sorted({min(k, len(near)) for k in COUNTS}):
        # with as many dimensions as examples no error would remain
        subspace = principal_subspace(near[:count], max(1, min(most, count // 2)))
        if subspace.dimension > 0:
            centred = near[:count] - subspace.mean
            yield count, subspace, leave_one_out(centred, subspace.basis, subspace.variances)


@compiled
def leave_one_out(centred: Array, basis: Array, variances: Array) -> Array:
    """Per dimension, the mean squared leave-one-out error of the nearer half of the examples."""
    count, dimensions = len(centred), len(variances)
    scores = np.dot(centred, basis)
    errors = np.zeros(dimensions)
    judged = max(2, count // 2)
    for i in range(judged):
        left = 0.0
        for j in range(centred.shape[1]):
            left += centred[i, j] * centred[i, j]
        leverage = 1.0 / count
        for b in range(dimensions):
            left -= scores[i, b] * scores[i, b]
            leverage += scores[i, b] * scores[i, b] / (count * variances[b])
            grown = max(1.0 - leverage, 1e-3) * (1.0 - (b + 1.0) / (centred.shape[1] + 1.0))
            errors[b] += max(left, 0.0) / (grown * grown)
    return errors / judged


def synthesize(
    space: PoseSpace,
    handles: Handles,
    *,
    root: Float[Array, "7"],
    targets: Float[Array, "markers 3"],
    subspace: Subspace,
    start: Float[Array, "maps"],
    expected: Float[Array, "maps"] | None,
) -> Float[Array, "size"]:
    """The pose of a subspace that minimises Eq. 9; `expected` is the extrapolation of the last two poses."""
    q = np.concatenate([root, start])
    going = np.empty(0) if expected is None else expected
    seen = np.isfinite(targets).all(axis=1)
    known = Handles(handles.joints[seen], handles.offsets[seen])
    chain = (*space.tree, known.joints, known.offsets, targets[seen])
    minimise(q, chain, (subspace.mean, subspace.basis, subspace.variances), going)
    return q


@compiled
def energy(
    w: Array, q: Array, chain: Chain, around: Around, expected: Array, residuals: Array, jacobian: Array
) -> float:
    """Eq. 9 at w as a sum of squares; writes its residuals and their Jacobian, and the pose into q."""
    (links, rest, joints, offsets, targets), (mean, basis, variances) = chain, around
    dimensions, rows = len(w), 3 * len(joints)
    for i in range(len(mean)):
        total = mean[i]
        for b in range(dimensions):
            total += basis[i, b] * w[b]
        q[ROOT_SIZE + i] = total
    points, full = np.empty((len(joints), 3)), np.empty((rows, len(mean) + ROOT_FREEDOMS))
    handle_points(q, links, rest, joints, offsets, points, full)
    jacobian[:] = 0.0
    scale = math.sqrt(CONTROL_WEIGHT)
    for h in range(len(joints)):
        for i in range(3):
            residuals[3 * h + i] = scale * (points[h, i] - targets[h, i])
    moved = np.dot(full[:, ROOT_FREEDOMS:].copy(), basis)
    for r in range(rows):
        for b in range(dimensions):
            jacobian[r, b] = scale * moved[r, b]
    for b in range(dimensions):
        inverse = 1.0 / math.sqrt(variances[b])
        residuals[rows + b] = inverse * w[b]
        jacobian[rows + b, b] = inverse
    smooth = math.sqrt(SMOOTHNESS_WEIGHT)
    for i in range(len(expected)):
        residuals[rows + dimensions + i] = smooth * (q[ROOT_SIZE + i] - expected[i])
        for b in range(dimensions):
            jacobian[rows + dimensions + i, b] = smooth * basis[i, b]
    total = 0.0
    for r in range(len(residuals)):
        total += residuals[r] * residuals[r]
    return total


@compiled
def minimise(q: Array, chain: Chain, around: Around, expected: Array) -> int:
    """Levenberg-Marquardt on Eq. 9 from the pose in q, in place; return the iterations."""
    mean, basis, variances = around
    dimensions = len(variances)
    w = np.dot(basis.T.copy(), q[ROOT_SIZE:] - mean)
    count = 3 * len(chain[4]) + dimensions + len(expected)
    residuals, jacobian = np.empty(count), np.empty((count, dimensions))
    other_residuals, other_jacobian = np.empty(count), np.empty((count, dimensions))
    value = energy(w, q, chain, around, expected, residuals, jacobian)
    damping = 1e-3
    for iteration in range(ITERATIONS):
        transposed = jacobian.T.copy()
        normal, pull = np.dot(transposed, jacobian), np.dot(transposed, residuals)
        for b in range(dimensions):
            normal[b, b] *= 1.0 + damping
        tried = w - np.linalg.solve(normal, pull)
        found = energy(tried, q, chain, around, expected, other_residuals, other_jacobian)
        if found < value:
            done = value - found < 1e-6 * value
            w, value, damping = tried, found, 0.3 * damping
            residuals[:], jacobian[:] = other_residuals, other_jacobian
            if done:
                return iteration + 1
        else:
            damping *= 10.0
            if damping > 1e6:
                break
    energy(w, q, chain, around, expected, residuals, jacobian)
    return ITERATIONS


class Baseline:
    """Prediction of poses from markers over one set of examples; it keeps the last two poses, as in Eq. 2."""

    def __init__(self, examples: Examples, handles: Handles) -> None:
        self._wear(examples, handles)

    def worn(self, examples: Examples, handles: Handles) -> Baseline:
        """The same pose models for other markers, or on another body."""
        other = copy.copy(self)
        other._wear(examples, handles)
        return other

    def _wear(self, examples: Examples, handles: Handles) -> None:
        self.examples, self.handles = examples, handles
        self.space: PoseSpace = examples.space
        self.control = Control.of(examples, handles)
        points = self.space.points(examples.q, handles)
        turns, places = self.control.torso.frames(points)
        seen = np.asarray(np.einsum("fba,fmb->fma", turns, points - places[:, None]))
        self._query = Query(seen, examples.maps)
        self._last: list[Array] = []

    def reset(self) -> None:
        """Forget previous frames."""
        self._last = []

    def step(self, markers: Float[Array, "markers 3"]) -> Float[Array, "size"]:
        """The pose for one frame of markers."""
        turns, places = self.control.torso.frames(markers[None])
        root = np.concatenate([places[0], rotations.quaternion_from_matrix(turns[0])])
        local = (markers - places[0]) @ turns[0]
        expected = 2 * self._last[-1] - self._last[-2] if len(self._last) == 2 else None
        q = self._pose(root, local, markers, expected)
        self._last = [*self._last[-1:], q[ROOT_SIZE:].copy()]
        return q

    def _pose(self, root: Array, local: Array, markers: Array, expected: Array | None) -> Array:
        """Nearest neighbour: the closest example, unchanged."""
        del markers
        near, _ = self._query(local, expected, 1)
        return np.concatenate([root, self.examples.maps[near[0]]])


class WeightedRegression(Baseline):
    """The nearest examples, averaged by distance."""

    def _pose(self, root: Array, local: Array, markers: Array, expected: Array | None) -> Array:
        del markers
        near, squares = self._query(local, expected, WEIGHTED)
        shares = np.exp(-squares / max(float(np.median(squares)), 1e-12))
        return np.concatenate([root, shares @ self.examples.maps[near] / shares.sum()])


class GlobalPca(Baseline):
    """One principal subspace for all examples, with the energies of Eq. 9."""

    def __init__(self, examples: Examples, handles: Handles) -> None:
        super().__init__(examples, handles)
        self._subspace = principal_subspace(examples.maps, GLOBAL_DIMENSIONS)

    def _pose(self, root: Array, local: Array, markers: Array, expected: Array | None) -> Array:
        near, _ = self._query(local, expected, 1)
        subspace, start = self._subspace_of(int(near[0])), self.examples.maps[near[0]]
        return synthesize(
            self.space,
            self.handles,
            root=root,
            targets=markers,
            subspace=subspace,
            start=start,
            expected=expected,
        )

    def _subspace_of(self, nearest: int) -> Subspace:
        del nearest
        return self._subspace


class LocalLinearMixture(GlobalPca):
    """A mixture of local linear models: a subspace per cluster; the cluster of the nearest example is used."""

    def __init__(self, examples: Examples, handles: Handles) -> None:
        super().__init__(examples, handles)
        self.labels, self.subspaces = cluster_subspaces(examples.maps, CLUSTERS, CLUSTER_DIMENSIONS)

    def _subspace_of(self, nearest: int) -> Subspace:
        return self.subspaces[self.labels[nearest]]


def cluster_subspaces(
    maps: Float[Array, "examples maps"], count: int, dimension: int | None
) -> tuple[Array, list[Subspace]]:
    """Clusters of poses, and the principal subspace of each."""
    _, labels = cluster(maps, min(count, max(1, len(maps) // 20)), rng=np.random.default_rng(0))
    return labels, [principal_subspace(maps[labels == k], dimension) for k in range(int(labels.max()) + 1)]


BASELINES: Mapping[str, Callable[[Examples, Handles], Baseline]] = {
    "nearest": Baseline,
    "lwr": WeightedRegression,
    "pca": GlobalPca,
    "mixture": LocalLinearMixture,
}
