"""Baselines for local models: simpler predictions from the same markers.

Each takes the markers of a frame and returns a pose vector, with the root placed by the torso's markers (Chai and
Hodgins 2005, section 7.2 and Fig. 6): the nearest example, locally weighted regression, one subspace for the whole
library, and a mixture of local linear models (a subspace per cluster).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.priors import medoids
from poise.priors.local.control import Control
from poise.priors.local.examples import Examples
from poise.priors.local.pca import (
    Query,
    Subspace,
    principal_subspace,
    synthesize,
)
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.types import Array

WEIGHTED = 40  # examples averaged by locally weighted regression
GLOBAL_DIMENSIONS = 20
CLUSTERS = 40
CLUSTER_DIMENSIONS = 10


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
        self._query = Query(self._seen_from_torso(), examples.maps)
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

    def _seen_from_torso(self) -> Float[Array, "examples markers 3"]:
        points = self.space.points(self.examples.q, self.handles)
        turns, places = self.control.torso.frames(points)
        return np.asarray(np.einsum("fba,fmb->fma", turns, points - places[:, None]))


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
        return self._synthesized(root, markers, self._subspace, int(near[0]), expected)

    def _synthesized(
        self, root: Array, markers: Array, subspace: Subspace, nearest: int, expected: Array | None
    ) -> Array:
        return synthesize(
            self.space,
            self.handles,
            root=root,
            targets=markers,
            subspace=subspace,
            start=self.examples.maps[nearest],
            expected=expected,
        )


class LocalLinearMixture(GlobalPca):
    """A mixture of local linear models: a subspace per cluster; the cluster of the nearest example is used."""

    def __init__(self, examples: Examples, handles: Handles) -> None:
        super().__init__(examples, handles)
        self.labels, self.subspaces = cluster_subspaces(examples.maps, CLUSTERS, CLUSTER_DIMENSIONS)

    def _pose(self, root: Array, local: Array, markers: Array, expected: Array | None) -> Array:
        near, _ = self._query(local, expected, 1)
        subspace = self.subspaces[self.labels[near[0]]]
        return self._synthesized(root, markers, subspace, int(near[0]), expected)


def cluster_subspaces(
    maps: Float[Array, "examples maps"], count: int, dimension: int | None
) -> tuple[Array, list[Subspace]]:
    """Clusters of poses, and the principal subspace of each."""
    _, labels = medoids.cluster(maps, min(count, max(1, len(maps) // 20)), rng=np.random.default_rng(0))
    return labels, [principal_subspace(maps[labels == k], dimension) for k in range(int(labels.max()) + 1)]


BASELINES: Mapping[str, Callable[[Examples, Handles], Baseline]] = {
    "nearest": Baseline,
    "lwr": WeightedRegression,
    "pca": GlobalPca,
    "mixture": LocalLinearMixture,
}
