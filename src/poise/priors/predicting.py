"""Guides that predict: from where handles are in the root's frame to a mean and a covariance of the pose."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.priors.forms import FREE_ROOT, fixed
from poise.priors.prior import ALL, Guide, Information, Plan, Start, Steps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, forward, matrix_from_wxyz, point_on
from poise.skeleton.pose_space import Handles, PoseSpace

Array = np.ndarray

_ROOT = np.arange(ROOT_FREEDOMS)
_SETTLED = 0.02  # metres, or quaternion components: a root that moved less needs no new prediction
_FAR = 0.12  # metres that a handle lacks in the predicted pose, from which a start's root is not believed


class Predicted(NamedTuple):
    """A prediction, and the root from which its targets were seen."""

    mean: Float[Array, "maps"]
    covariance: Float[Array, "maps maps"]
    root: Float[Array, "7"]


class PredictingGuide(Guide):
    """A guide whose state is a prediction of the pose from targets in the root's frame.

    A prior of this kind says how it predicts (`__call__`) and where it would put a root (`place_root`), nothing else.
    """

    plan = Plan(finer=((ALL,),) * 3)

    def __init__(self, space: PoseSpace, handles: Handles) -> None:
        self.space, self.handles = space, handles

    @abstractmethod
    def __call__(
        self, targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the exponential maps, given where the handles should be in the root's frame."""

    @abstractmethod
    def place_root(self, targets: Float[Array, "handles 3"]) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """A root position and orientation from which the prior's poses come closest to targets in the world."""

    def starts(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[Start]:
        """The prediction itself, from a root that explains the targets; without handles, the pose as it is."""
        if len(targets) == 0:
            return [Start(q, self.resumed(q, targets))]
        q = q.copy()
        predicted = self._rooted(q, targets) if free_root else self.resumed(q, targets)
        q[ROOT_SIZE:] = predicted.mean
        return [Start(q, predicted)]

    def resumed(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> Predicted:
        """The prediction from the root of a pose."""
        return Predicted(*self(in_root_frame(q, targets)), q[:ROOT_SIZE].copy())

    def forms(self, q: Float[Array, "size"], state: Predicted, steps: Steps) -> tuple[tuple[Any, ...], Steps]:
        """One Gaussian, with no opinion about the root."""
        del q
        covariance = np.zeros((self.space.freedoms, self.space.freedoms))
        covariance[_ROOT, _ROOT] = FREE_ROOT
        covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = state.covariance
        return fixed(state.mean, covariance), steps

    def follow(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: Predicted
    ) -> Predicted:
        """What is predicted depends on the root: predicted again where it has moved far."""
        settled = len(targets) == 0 or np.abs(q[:ROOT_SIZE] - state.root).max() < _SETTLED
        return state if settled else self.resumed(q, targets)

    def expectation(
        self, q: Float[Array, "size"], state: Predicted
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """The prediction."""
        del q
        return state.mean, state.covariance

    def gaussian(self, q: Float[Array, "size"], state: Predicted, *, stage: int = -1) -> Information:
        """The prediction around a pose; the root is free."""
        del stage
        size = len(q) - 1
        pull, precision = np.zeros(size), np.zeros((size, size))
        own = np.linalg.inv(state.covariance)
        precision[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = own
        pull[ROOT_FREEDOMS:] = own @ (state.mean - q[ROOT_SIZE:])
        return Information(pull, precision)

    def pulled(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: Predicted
    ) -> Predicted:
        """Predicted again from the root of the new pose."""
        del state
        return self.resumed(q, targets)

    def misfit(self, q: Float[Array, "size"], state: Predicted) -> float:
        """Half the squared distance from the prediction, in its own metric."""
        gap = q[ROOT_SIZE:] - state.mean
        return float(0.5 * gap @ np.linalg.solve(state.covariance, gap))

    def _rooted(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> Predicted:
        """Moves the root to where the prior explains the targets, and predicts from there.

        The root of a frame before moves along with its handles; a start that is no such frame gets a root of its own.
        """
        tree, handles = self.space.tree, self.handles
        _follow(q, *tree, handles.joints, handles.offsets, targets)
        predicted = self.resumed(q, targets)
        if _farthest(q, predicted.mean, *tree, handles.joints, handles.offsets, targets) > _FAR:
            q[:3], q[3:ROOT_SIZE] = self.place_root(targets)
            predicted = self.resumed(q, targets)
        return predicted


def in_root_frame(q: Float[Array, "size"], points: Float[Array, "points 3"]) -> Float[Array, "points 3"]:
    """World points as seen from the root of a pose."""
    seen = np.empty((len(points), 3))
    _see(q, points, seen)
    return seen


def farthest_gap(
    space: PoseSpace, q: Float[Array, "size"], handles: Handles, targets: Float[Array, "handles 3"]
) -> float:
    """The largest component of what handles lack in a pose."""
    return float(np.abs(_gaps(q, *space.tree, handles.joints, handles.offsets, targets)).max())


@compiled
def _see(q: Array, points: Array, seen: Array) -> None:
    m = matrix_from_wxyz(q[3], q[4], q[5], q[6])
    for p in range(len(points)):
        x, y, z = points[p, 0] - q[0], points[p, 1] - q[1], points[p, 2] - q[2]
        for i in range(3):
            seen[p, i] = m[i] * x + m[3 + i] * y + m[6 + i] * z


@compiled
def _follow(q: Array, links: Array, rest: Array, joints: Array, offsets: Array, targets: Array) -> None:
    """Move the root along with its handles: by what they lack on average."""
    gaps = _gaps(q, links, rest, joints, offsets, targets)
    for h in range(len(gaps)):
        for i in range(3):
            q[i] += gaps[h, i] / len(gaps)


@compiled
def _farthest(
    q: Array, maps: Array, links: Array, rest: Array, joints: Array, offsets: Array, targets: Array
) -> float:
    """The largest component of what handles lack in a pose of these maps at the root of q."""
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
