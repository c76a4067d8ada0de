"""Local models as published: K nearest examples, their principal subspace, Eq. 9 in it (Chai and Hodgins 2005).

Per frame (`--kind local --method chai2005`): the K examples closest to the markers and to the extrapolated last two
poses (Eq. 2), their principal directions (Eq. 3), K and the dimension B by leave-one-out (section 5), then prior,
control and smoothness energies in that subspace (Eqs. 6 to 9).

Leave-one-out evaluates what is *not* given: an example's pose is estimated from its markers alone, by Eq. 9 in the
subspace of the others. Neighbouring frames are near-copies, so its whole block of the recording is left out with it.

Eq. 9 in a subspace is a Gaussian of w with soft constraints: prior and smoothness have the covariance (V^-1 + beta
I)^-1 with V the variances along the directions, markers have the variance 1/alpha. So the solver's own steps minimise
it. The paper does not give the units in which alpha and beta weight markers against angles: the unit of markers is the
one with the least leave-one-out error over the library; angles are in radians. Joints that the paper's 18 leave out
(toes, fingers), and the root, which the paper takes from the torso's markers, follow the coefficients linearly; the
root is solved with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.compiled import compiled
from poise.evaluation.published.subspaces import COUNTS, MOST_DIMENSIONS, principal_subspace
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fits
from poise.priors.local.control import root_from_seen, roots_seen
from poise.priors.local.control_guide import ROOT_OFF, ControlState, MarkerGuide
from poise.priors.local.examples import Query
from poise.priors.predicting import PredictingGuide
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.roles import paper_joints
from poise.types import Array, ShareProgress

if TYPE_CHECKING:
    from poise.priors.local.prior import LocalPrior


ALPHA, BETA = 0.8, 0.2  # of Eq. 9
UNITS = (0.003, 0.01, 0.03, 0.1)  # metres: candidates for the unit of markers
JUDGED = 12  # nearest examples that are left out in turn
FEWEST = 4  # smallest number of examples in a subspace
SAMPLED = 60  # examples of the library on which the unit is chosen
SLACK = 1e-8  # radians squared: variance outside a subspace, so that covariances are invertible
MEETING = 1e-3  # the same if handles are met exactly


class LocalSubspace(NamedTuple):
    """The local model of a frame: its mean, the basis and variances of w, and the root's residual covariance."""

    mean: Float[Array, "outputs"]  # the root relative to the torso, and the maps
    basis: Float[Array, "outputs dimension"]
    variances: Float[Array, "dimension"]
    left: Float[Array, "6 6"]
    neighbours: int


class Neighbourhoods:
    """Local models of a library's examples, by marker positions relative to the torso or the root."""

    def __init__(
        self,
        space: PoseSpace,
        maps: Float[Array, "examples maps"],
        markers: Float[Array, "examples markers 3"],
        roots: Float[Array, "examples 6"],
        blocks: Int[Array, "examples"],
        unit: float | None,
    ) -> None:
        self._blocks = blocks
        self._maps, self._markers = maps, markers.reshape(len(maps), -1)
        # A neighbourhood, not the whole library.
        self._most = min(COUNTS[-1], max(COUNTS[0], len(maps) // 4), len(maps))
        self._outputs = np.hstack([roots, maps])
        self._own = np.repeat(paper_joints(space.skeleton)[space.moving], 3)
        if not np.any(self._own):
            self._own[:] = True
        self._angles = np.ascontiguousarray(maps[:, self._own])
        self.query = Query(markers, maps)
        self.unit = unit or self._best_unit()

    def near(self, seen: Float[Array, "markers 3"], expected: Float[Array, "maps"] | None) -> LocalSubspace:
        """The local model for markers and the extrapolation of the last two poses."""
        near, _ = self.query(seen, expected, self._most)
        known = np.repeat(np.isfinite(seen).all(axis=1), 3)
        count, dimension = self._sizes(near, known, self.unit)
        chosen = near[:count]
        subspace = principal_subspace(self._angles[chosen], dimension)
        scores = (self._angles[chosen] - subspace.mean) @ subspace.basis
        outputs = self._outputs[chosen]
        mean = outputs.mean(axis=0)
        basis = (outputs - mean).T @ scores / (count * subspace.variances)
        left = (outputs - mean - scores @ basis.T)[:, :ROOT_FREEDOMS]
        return LocalSubspace(mean, basis, subspace.variances, left.T @ left / count, count)

    def expected(self, going: Float[Array, "maps"], model: LocalSubspace) -> Float[Array, "dimension"]:
        """The coefficients of the closest pose in the subspace."""
        own = np.concatenate([np.zeros(ROOT_FREEDOMS, dtype=np.bool_), self._own])
        return np.asarray(model.basis[own].T @ (going[self._own] - model.mean[own]))

    # --- private ---------------------------------------------------------------------------------------------------

    def _sizes(self, near: Int[Array, "near"], known: Bool[Array, "columns"], unit: float) -> tuple[int, int]:
        """K with the least leave-one-out error, and the smallest B that is as good."""
        angles, markers = self._angles[near], np.ascontiguousarray(self._markers[near][:, known])
        best, chosen = np.inf, (len(near), 1)
        for count in sorted({min(count, len(near)) for count in COUNTS}):
            most = min(MOST_DIMENSIONS, count // 2)
            pieces = self._blocks[near[:count]]
            errors = left_out(angles[:count], markers[:count], pieces, ALPHA / unit**2, most)
            if errors.size and errors.mean(axis=0).min() < best:
                best, chosen = float(errors.mean(axis=0).min()), (count, smallest_dimension(errors))
        return chosen

    def _best_unit(self) -> float:
        """The unit of markers with the least error over the library, each example estimated from other blocks."""
        sample = np.unique(np.linspace(0, len(self._maps) - 1, SAMPLED).astype(int))
        errors = np.zeros(len(UNITS))
        known = np.ones(self._markers.shape[1], dtype=np.bool_)
        for k in sample:
            distances = np.sum((self._markers - self._markers[k]) ** 2, axis=1)
            distances[self._blocks == self._blocks[k]] = np.inf
            near = np.argsort(distances)[: min(self._most, int(np.isfinite(distances).sum()))]
            for number, unit in enumerate(UNITS):
                count, dimension = self._sizes(near, known, unit)
                angles, markers = self._angles[near[:count]], self._markers[near[:count]]
                own = self._angles[k], self._markers[k]
                errors[number] += estimate_errors(angles, markers, *own, ALPHA / unit**2, dimension)[-1]
        return UNITS[int(errors.argmin())]


class PublishedMarkers(MarkerGuide):
    """The published performance method: Eq. 9 around the local model of every frame."""

    def __init__(
        self, prior: LocalPrior, handles: Handles, *, progress: ShareProgress = lambda _: None
    ) -> None:
        super().__init__(prior, handles)
        points = prior.space.points(prior.examples.q, handles)
        turns, places = self.control.torso.frames(points)
        seen = np.einsum("fba,fmb->fma", turns, points - places[:, None])
        roots, maps = roots_seen(prior.examples.q, turns, places), prior.examples.maps
        given = prior.examples.blocks, prior.units.markers
        self.local = Neighbourhoods(prior.space, maps, seen, roots, *given)
        self.noise = self.local.unit / math.sqrt(ALPHA)
        self._smoothness = BETA / prior.units.angles**2
        progress(1.0)

    def expected(self, before: Sequence[Float[Array, "size"]], *, free_root: bool) -> ControlState:
        """The local model of the frame shown, and the extrapolation of the last two poses."""
        going = 2 * before[0][ROOT_SIZE:] - before[1][ROOT_SIZE:] if len(before) > 1 else None
        turn, place = self.torso(self._likely, before)
        model = self.model = self.local.near((self._likely - place) @ turn, going)
        spread, middle = np.diag(model.variances), np.zeros(len(model.variances))
        if going is not None:
            spread = np.diag(1.0 / (1.0 / model.variances + self._smoothness))
            middle = self._smoothness * spread @ self.local.expected(going, model)
        mean = model.mean + model.basis @ middle
        covariance = model.basis @ spread @ model.basis.T + SLACK * np.eye(len(mean))
        covariance[:ROOT_FREEDOMS, :ROOT_FREEDOMS] += model.left
        # In the world instead of the torso's frame; a root seen only in pictures gets more variance.
        covariance[:3] = turn @ covariance[:3]
        covariance[:, :3] = covariance[:, :3] @ turn.T
        if self._pictured is not None and free_root:
            covariance[_ROOT, _ROOT] += np.repeat(ROOT_OFF, 3) ** 2
        root = root_from_seen(mean[:ROOT_FREEDOMS], turn, place)
        return ControlState(root, mean[ROOT_FREEDOMS:], covariance)

    @property
    def dimension(self) -> int | None:
        """The B of the last frame."""
        return len(self.model.variances)


class PublishedPoses(PredictingGuide):
    """The same local models for handles relative to the root; directions outside a subspace give way to meet them."""

    def __init__(self, prior: LocalPrior, handles: Handles) -> None:
        super().__init__(prior.space, handles)
        maps, self._mean = prior.examples.maps, prior.mean
        self._spread = np.cov(maps.T) + MEETING * np.eye(maps.shape[1])
        self._shapes = prior.space.points_in_root_frame(maps, handles)
        if len(handles):
            none, given = np.zeros((len(maps), ROOT_FREEDOMS)), (prior.examples.blocks, prior.units.markers)
            self.local = Neighbourhoods(prior.space, maps, self._shapes, none, *given)

    def __call__(
        self, targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the local examples (Eq. 5)."""
        if targets.size == 0:
            return self._mean, self._spread
        model = self.local.near(np.asarray(targets), None)
        basis = model.basis[ROOT_FREEDOMS:]
        return model.mean[ROOT_FREEDOMS:], basis * model.variances @ basis.T + MEETING * np.eye(len(basis))

    def place_root(self, targets: Float[Array, "handles 3"]) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root of the example whose handles fit best in a rigid alignment."""
        turns, shifts, distances = rigid_fits(self._shapes, targets)
        best = np.argmin(distances)
        return shifts[best], rotations.quaternion_from_matrix(turns[best])


_ROOT = np.arange(ROOT_FREEDOMS)


def smallest_dimension(errors: Float[Array, "judged dimensions"]) -> int:
    """The first dimension whose mean error is within one standard error of the least (Breiman et al. 1984).

    With few examples, the least error often belongs to a larger subspace by chance.
    """
    mean = errors.mean(axis=0)
    doubt = errors[:, mean.argmin()].std() / math.sqrt(max(1, len(errors) - 1))
    return int(np.flatnonzero(mean <= mean.min() + doubt)[0]) + 1


@compiled
def left_out(angles: Array, markers: Array, pieces: Array, precision: float, most: int) -> Array:
    """Squared errors of the nearest examples, each estimated from its markers by other blocks, per dimension."""
    judged = min(JUDGED, len(angles))
    errors, kept = np.empty((judged, most)), most
    for i in range(judged):
        others = pieces != pieces[i]
        if others.sum() < FEWEST:
            return errors[:, :0]
        own = estimate_errors(
            angles[others].copy(), markers[others].copy(), angles[i], markers[i].copy(), precision, most
        )
        kept = min(kept, len(own))
        errors[i, :kept] = own[:kept]
    return errors[:, :kept]


@compiled
def estimate_errors(
    angles: Array, markers: Array, pose: Array, seen: Array, precision: float, most: int
) -> Array:
    """Per dimension, the squared error of a pose estimated from its markers by Eq. 9, linearised at the mean."""
    count = len(angles)
    mean, centre = angles.sum(axis=0) / count, markers.sum(axis=0) / count
    centred = angles - mean
    if count <= angles.shape[1]:
        values, vectors = np.linalg.eigh(np.dot(centred, centred.T.copy()) / count)
        vectors = np.dot(centred.T.copy(), vectors)
    else:
        values, vectors = np.linalg.eigh(np.dot(centred.T.copy(), centred) / count)
    kept = min(most, (values > SLACK).sum())
    basis, variances = np.empty((angles.shape[1], kept)), np.empty(kept)
    for b in range(kept):
        variances[b] = values[len(values) - 1 - b]
        column = vectors[:, len(values) - 1 - b].copy()
        basis[:, b] = column / math.sqrt(np.dot(column, column))
    scores = np.dot(centred, basis)
    moved = np.dot((markers - centre).T.copy(), scores) / (count * variances)
    gap = pose - mean
    own, pull = np.dot(gap, basis), precision * np.dot(seen - centre, moved)
    normal = precision * np.dot(moved.T.copy(), moved)
    errors = np.empty(kept)
    for b in range(kept):
        normal[b, b] += 1.0 / variances[b]
        w = np.linalg.solve(normal[: b + 1, : b + 1].copy(), pull[: b + 1])
        errors[b] = np.dot(gap, gap) - 2.0 * np.dot(w, own[: b + 1]) + np.dot(w, w)
    return errors
