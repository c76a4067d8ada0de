"""Guides whose state is a prediction of the whole pose, such as one from handle positions in the root's frame.

A *predictor* is a named tuple with compiled implementations of `begin` and `again` (see `forms.answer`), for which a
whole solve is compiled. One that predicts the maps from handles alone implements `predict` and `place_root`
(`answer_from_handles`); a guide without a predictor has the same two as methods, and they run in the interpreter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numba.extending import register_jitable

from poise.compiled import compiled
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit
from poise.priors.forms import FREE_ROOT, answer, fixed, question, root_gap, settled
from poise.priors.prior import ALL, Gaussian, Guide, Plan, Prior, Start, Steps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, forward, matrix_from_wxyz, point_on
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.types import Array, MapsGaussian, Points, PoseVector

ROUNDS = 3  # largest number of predictions while the root is being solved
_FAR = 0.12  # metres: handle residual in the predicted pose above which a start's root is discarded


class Predicted(NamedTuple):
    """A prediction over all degrees of freedom.

    If it is `rooted`, the root is predicted too; else it is free, and the mean has the one that targets were seen from.
    """

    mean: PoseVector
    covariance: Float[Array, "freedoms freedoms"]
    metric: Float[Array, "freedoms freedoms"]  # the covariance by which handles are met
    rooted: Bool[Array, "1"]
    kept: Array  # what a predictor notes for itself

    @classmethod
    def blank(cls, space: PoseSpace, *, own_metric: bool = False, kept: int = 0) -> Predicted:
        """Allocate a prediction."""
        covariance = np.empty((space.freedoms, space.freedoms))
        metric = np.empty_like(covariance) if own_metric else covariance
        return cls(np.empty(space.size), covariance, metric, np.zeros(1, dtype=np.bool_), np.empty(kept))

    @property
    def maps(self) -> MapsGaussian:
        """Mean and covariance of the maps."""
        return self.mean[ROOT_SIZE:], self.covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:]

    def around(self, q: PoseVector) -> Gaussian:
        """The prediction as a Gaussian around a pose."""
        gap, rooted = np.zeros(len(q) - 1), bool(self.rooted[0])
        if rooted:
            root_gap(q, self.mean, gap)
        gap[ROOT_FREEDOMS:] = self.mean[ROOT_SIZE:] - q[ROOT_SIZE:]
        return Gaussian(gap, self.covariance.copy(), rooted)


class PredictedGuide(Guide):
    """A guide whose state is a prediction, by its compiled predictor."""

    def __init__(self, space: PoseSpace, handles: Handles) -> None:
        self.space, self.handles = space, handles

    def blank(self) -> Predicted:
        """Allocate a prediction of the predictor."""
        return Predicted.blank(self.space)

    def starts(self, q: PoseVector, targets: Points, *, free_root: bool) -> list[Start]:
        """The prediction itself, from a root that fits the targets; without handles, the pose unchanged."""
        q, predicted, handles = q.copy(), self.blank(), self.handles
        how, predictor = (enter, self) if self.predictor is None else (_begin, self.predictor)
        how(predictor, q, targets, *self.space.tree, handles.joints, handles.offsets, free_root, predicted)
        return [Start(q, predicted)]

    def resumed(self, q: PoseVector, targets: Points) -> Predicted:
        """The prediction relative to the root of a pose."""
        predicted = self.blank()
        how, predictor = (predict_from, self) if self.predictor is None else (_again, self.predictor)
        how(predictor, q, targets, *self.space.tree, predicted)
        return predicted

    def gaussian(self, q: PoseVector, state: Predicted, *, stage: int = -1) -> Gaussian:
        """The prediction."""
        del stage
        return state.around(q)

    def expectation(self, q: PoseVector, state: Predicted) -> MapsGaussian:
        """The predicted maps."""
        del q
        return state.maps

    def forms(self, q: PoseVector, state: Predicted, steps: Steps) -> tuple[tuple[Any, ...], Steps]:
        """One Gaussian, by the metric to meet handles."""
        del q
        root = state.mean[:ROOT_SIZE] if state.rooted[0] else None
        return fixed(state.mean[ROOT_SIZE:], state.metric, root=root), steps


class PredictingGuide(PredictedGuide):
    """A guide that predicts the maps from targets in the root's frame; the root is free.

    A prior of this kind defines only its prediction (`__call__`) and the placement of a root (`place_root`).
    """

    plan = Plan(finer=((ALL,),) * ROUNDS)

    @abstractmethod
    def __call__(self, targets: Points) -> MapsGaussian:
        """Mean and covariance of the exponential maps, given the targets in the root's frame."""

    @abstractmethod
    def place_root(self, targets: Points) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root position and orientation for which the prior's poses fit the world targets best."""

    def moved(self, q: PoseVector, targets: Points, state: Predicted) -> Predicted:
        """The prediction depends on the root: repeat it if the root has moved far."""
        return state if len(targets) == 0 or settled(q, state.mean) else self.resumed(q, targets)


class MeanPoseGuide(PredictingGuide):
    """A guide whose root is placed where the mean pose's handles fit the targets best, in a rigid alignment."""

    def __init__(self, prior: Prior, handles: Handles) -> None:
        super().__init__(prior.space, handles)
        self._points = prior.space.points_in_root_frame(prior.mean[None], handles)[0]

    def place_root(self, targets: Points) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root of the best fit."""
        turn, shift, _ = rigid_fit(self._points, targets)
        return shift, rotations.quaternion_from_matrix(turn)


# --- predictors -------------------------------------------------------------------------------------------------------


begin = question()
"""Move a start to the predicted pose, and write the prediction; return whether it is rooted (see `enter`)."""
again = question()
"""Predict for targets relative to the root of a pose (see `predict_from`)."""


def predict(predictor: Any, targets: Array, mean: Array, covariance: Array) -> None:
    """Write mean and covariance of the maps, after that of the root, for targets in the root's frame."""
    mean[:], covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = predictor(targets)


def place_root(predictor: Any, targets: Array, root: Array) -> None:
    """Write the root for which the predictor's poses fit the world targets best."""
    root[:3], root[3:] = predictor.place_root(targets)


@register_jitable
def enter(
    predictor: Any,
    q: Array,
    targets: Array,
    links: Array,
    rest: Array,
    joints: Array,
    offsets: Array,
    free_root: bool,
    out: Predicted,
) -> bool:
    """`begin` for predictors of the maps; a free root is moved to fit the targets.

    The root of a previous frame moves with its handles; any other start gets a new root.
    """
    if free_root and len(targets) > 0:
        gaps = handle_gaps(q, links, rest, joints, offsets, targets)
        for h in range(len(gaps)):
            for i in range(3):
                q[i] += gaps[h, i] / len(gaps)
    predict_from(predictor, q, targets, links, rest, out)
    if len(targets) == 0:
        return False
    if free_root and np.abs(handle_gaps(out.mean, links, rest, joints, offsets, targets)).max() > _FAR:
        place_root(predictor, targets, q[:ROOT_SIZE])
        predict_from(predictor, q, targets, links, rest, out)
    q[ROOT_SIZE:] = out.mean[ROOT_SIZE:]
    return False


@register_jitable
def predict_from(predictor: Any, q: Array, targets: Array, links: Array, rest: Array, out: Predicted) -> None:
    """`again` for predictors of the maps."""
    out.rooted[0] = False
    free_of_root(out.covariance)
    out.mean[:ROOT_SIZE] = q[:ROOT_SIZE]
    predict(predictor, in_root_frame(q, targets), out.mean[ROOT_SIZE:], out.covariance)


def answer_from_handles(
    kind: type, *, predict_by: Callable[..., Any], place_root_by: Callable[..., Any]
) -> None:
    """Register the compiled implementations of a predictor of the maps."""
    answer(kind, {predict: predict_by, place_root: place_root_by, begin: enter, again: predict_from})


@compiled
def _begin(
    predictor: Any,
    q: Array,
    targets: Array,
    links: Array,
    rest: Array,
    joints: Array,
    offsets: Array,
    free_root: bool,
    out: Predicted,
) -> bool:
    return begin(predictor, q, targets, links, rest, joints, offsets, free_root, out)


@compiled
def _again(predictor: Any, q: Array, targets: Array, links: Array, rest: Array, out: Predicted) -> None:
    again(predictor, q, targets, links, rest, out)


@compiled
def free_of_root(covariance: Array) -> None:
    """Write a covariance's rows and columns of a root of which nothing is known."""
    covariance[:ROOT_FREEDOMS, :] = 0.0
    covariance[:, :ROOT_FREEDOMS] = 0.0
    for i in range(ROOT_FREEDOMS):
        covariance[i, i] = FREE_ROOT


@compiled
def in_root_frame(q: PoseVector, points: Float[Array, "points 3"]) -> Float[Array, "points 3"]:
    """World points in the frame of a pose's root."""
    seen = np.empty((len(points), 3))
    m = matrix_from_wxyz(q[3], q[4], q[5], q[6])
    for p in range(len(points)):
        x, y, z = points[p, 0] - q[0], points[p, 1] - q[1], points[p, 2] - q[2]
        for i in range(3):
            seen[p, i] = m[i] * x + m[3 + i] * y + m[6 + i] * z
    return seen


@compiled
def handle_gaps(q: Array, links: Array, rest: Array, joints: Array, offsets: Array, targets: Array) -> Array:
    """What each handle lacks to its target in a pose."""
    count = len(links)
    positions, matrices, axes = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3, 3))
    forward(q, links, rest, positions, matrices, axes)
    gaps = np.empty((len(joints), 3))
    for h in range(len(joints)):
        point_on(joints[h], offsets[h], positions, matrices, gaps[h])
        for i in range(3):
            gaps[h, i] = targets[h, i] - gaps[h, i]
    return gaps
