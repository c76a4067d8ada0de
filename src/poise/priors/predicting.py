"""Guides that predict mean and covariance of the pose from handle positions in the root's frame.

A *predictor* is a named tuple with compiled implementations of `predict` and `place_root` (see `forms.answer`), for
which a whole solve is compiled, or any object with those two as methods, for which the same functions run in the
interpreter.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numba.extending import register_jitable

from poise.compiled import compiled
from poise.priors.forms import FREE_ROOT, fixed, settled
from poise.priors.prior import ALL, Guide, Information, Plan, Start, Steps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, forward, matrix_from_wxyz, point_on
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.types import Array

ROUNDS = 3  # largest number of predictions while the root is being solved
_FAR = 0.12  # metres: handle residual in the predicted pose above which a start's root is discarded


class Predicted(NamedTuple):
    """A prediction over all degrees of freedom, the root's free, and the root that its targets are relative to."""

    mean: Float[Array, "maps"]
    covariance: Float[Array, "freedoms freedoms"]
    root: Float[Array, "7"]


class PredictingGuide(Guide):
    """A guide whose state is a prediction of the pose from targets in the root's frame.

    A prior of this kind defines only its prediction (`__call__`) and the placement of a root (`place_root`).
    """

    plan = Plan(finer=((ALL,),) * ROUNDS)

    def __init__(self, space: PoseSpace, handles: Handles) -> None:
        self.space, self.handles = space, handles

    @abstractmethod
    def __call__(
        self, targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the exponential maps, given the targets in the root's frame."""

    @abstractmethod
    def place_root(self, targets: Float[Array, "handles 3"]) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root position and orientation for which the prior's poses fit the world targets best."""

    def starts(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[Start]:
        """The prediction itself, from a root that fits the targets; without handles, the pose unchanged."""
        q, predicted = q.copy(), self.blank()
        how, predictor = (enter, self) if self.predictor is None else (_compiled_enter, self.predictor)
        how(
            q, targets, predictor, *self.space.tree, self.handles.joints, self.handles.offsets, free_root,
            *predicted,
        )  # fmt: skip
        return [Start(q, predicted)]

    def resumed(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> Predicted:
        """The prediction relative to the root of a pose."""
        predicted = self.blank()
        how, predictor = (
            (predict_from, self) if self.predictor is None else (_compiled_predict_from, self.predictor)
        )
        how(q, targets, predictor, *predicted)
        return predicted

    def forms(self, q: Float[Array, "size"], state: Predicted, steps: Steps) -> tuple[tuple[Any, ...], Steps]:
        """One Gaussian, with no information about the root."""
        del q
        return fixed(state.mean, state.covariance), steps

    def follow(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: Predicted
    ) -> Predicted:
        """The prediction depends on the root: repeat it if the root has moved far."""
        return state if len(targets) == 0 or settled(q, state.root) else self.resumed(q, targets)

    def expectation(
        self, q: Float[Array, "size"], state: Predicted
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """The prediction."""
        del q
        return state.mean, state.covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:]

    def gaussian(self, q: Float[Array, "size"], state: Predicted, *, stage: int = -1) -> Information:
        """The prediction around a pose; the root is free."""
        del stage
        pull, precision = np.zeros(len(q) - 1), np.zeros((len(q) - 1, len(q) - 1))
        own = np.linalg.inv(state.covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:])
        precision[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = own
        pull[ROOT_FREEDOMS:] = own @ (state.mean - q[ROOT_SIZE:])
        return Information(pull, precision)

    def spread(
        self, q: Float[Array, "size"], state: Predicted
    ) -> tuple[Float[Array, "freedoms"], Float[Array, "freedoms freedoms"]]:
        """The prediction."""
        return np.concatenate([np.zeros(ROOT_FREEDOMS), state.mean - q[ROOT_SIZE:]]), state.covariance.copy()

    def pulled(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: Predicted
    ) -> Predicted:
        """A new prediction relative to the root of the new pose."""
        del state
        return self.resumed(q, targets)

    def misfit(self, q: Float[Array, "size"], state: Predicted) -> float:
        """Half the squared Mahalanobis distance from the prediction."""
        gap = q[ROOT_SIZE:] - state.mean
        return float(0.5 * gap @ np.linalg.solve(state.covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:], gap))

    def blank(self) -> Predicted:
        """Allocate a prediction."""
        freedoms = self.space.freedoms
        return Predicted(
            np.empty(freedoms - ROOT_FREEDOMS), np.empty((freedoms, freedoms)), np.empty(ROOT_SIZE)
        )


def predict(predictor: Any, targets: Array, mean: Array, covariance: Array) -> None:
    """Write mean and covariance of the maps, after that of the root, for targets in the root's frame."""
    mean[:], covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = predictor(targets)


def place_root(predictor: Any, targets: Array, root: Array) -> None:
    """Write the root for which the predictor's poses fit the world targets best."""
    root[:3], root[3:] = predictor.place_root(targets)


@register_jitable
def enter(
    q: Array,
    targets: Array,
    predictor: Any,
    links: Array,
    rest: Array,
    joints: Array,
    offsets: Array,
    free_root: bool,
    mean: Array,
    covariance: Array,
    root: Array,
) -> None:
    """Move a start to the predicted pose; a free root is moved to fit the targets.

    The root of a previous frame moves with its handles; any other start gets a new root.
    """
    if free_root and len(targets) > 0:
        gaps = _gaps(q, links, rest, joints, offsets, targets)
        for h in range(len(gaps)):
            for i in range(3):
                q[i] += gaps[h, i] / len(gaps)
    predict_from(q, targets, predictor, mean, covariance, root)
    if len(targets) == 0:
        return
    if free_root and _farthest(q, mean, links, rest, joints, offsets, targets) > _FAR:
        place_root(predictor, targets, q[:ROOT_SIZE])
        predict_from(q, targets, predictor, mean, covariance, root)
    q[ROOT_SIZE:] = mean


@register_jitable
def predict_from(
    q: Array, targets: Array, predictor: Any, mean: Array, covariance: Array, root: Array
) -> None:
    """Predict over all degrees of freedom for targets relative to the root of a pose."""
    covariance[:ROOT_FREEDOMS, :] = 0.0
    covariance[:, :ROOT_FREEDOMS] = 0.0
    for i in range(ROOT_FREEDOMS):
        covariance[i, i] = FREE_ROOT
    root[:] = q[:ROOT_SIZE]
    predict(predictor, in_root_frame(q, targets), mean, covariance)


_compiled_enter, _compiled_predict_from = compiled(enter), compiled(predict_from)


def farthest_gap(
    space: PoseSpace, q: Float[Array, "size"], handles: Handles, targets: Float[Array, "handles 3"]
) -> float:
    """The largest component of the handle residuals in a pose."""
    return float(np.abs(_gaps(q, *space.tree, handles.joints, handles.offsets, targets)).max())


def carried(
    space: PoseSpace, q: Float[Array, "size"], handles: Handles, targets: Float[Array, "handles 3"]
) -> tuple[Float[Array, "size"], float]:
    """A pose moved along with its handles, and the largest component of what they still lack."""
    gaps = _gaps(q, *space.tree, handles.joints, handles.offsets, targets)
    way, moved = gaps.mean(axis=0), q.copy()
    moved[:3] += way
    return moved, float(np.abs(gaps - way).max())


@compiled
def in_root_frame(q: Float[Array, "size"], points: Float[Array, "points 3"]) -> Float[Array, "points 3"]:
    """World points in the frame of a pose's root."""
    seen = np.empty((len(points), 3))
    m = matrix_from_wxyz(q[3], q[4], q[5], q[6])
    for p in range(len(points)):
        x, y, z = points[p, 0] - q[0], points[p, 1] - q[1], points[p, 2] - q[2]
        for i in range(3):
            seen[p, i] = m[i] * x + m[3 + i] * y + m[6 + i] * z
    return seen


@compiled
def _farthest(
    q: Array, maps: Array, links: Array, rest: Array, joints: Array, offsets: Array, targets: Array
) -> float:
    """The largest component of the handle residuals in a pose of these maps at the root of q."""
    expected = q.copy()
    expected[ROOT_SIZE:] = maps
    return np.abs(_gaps(expected, links, rest, joints, offsets, targets)).max()


@compiled
def _gaps(q: Array, links: Array, rest: Array, joints: Array, offsets: Array, targets: Array) -> Array:
    count = len(links)
    positions, matrices, axes = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3, 3))
    forward(q, links, rest, positions, matrices, axes)
    gaps = np.empty((len(joints), 3))
    for h in range(len(joints)):
        point_on(joints[h], offsets[h], positions, matrices, gaps[h])
        for i in range(3):
            gaps[h, i] = targets[h, i] - gaps[h, i]
    return gaps
