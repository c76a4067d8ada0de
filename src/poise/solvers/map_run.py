"""One solve under a prior: predict the pose from the targets, place the root where that explains them, and solve."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.priors.prior import Prediction, Prior
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, forward, matrix_from_wxyz, point_on
from poise.skeleton.pose_space import Handles
from poise.solvers.problem import Problem

Array = np.ndarray

_ROUNDS = 3  # predictions, at most, from a root that is itself being solved
_SETTLED = 0.02  # metres, or quaternion components: a root that moved less needs no new prediction
_FAR = 0.12  # metres that a handle lacks in the predicted pose, from which a start's root is not believed


class MapRun:
    """Prediction by the prior and the compiled solve, for one problem."""

    def __init__(self, prior: Prior, problem: Problem) -> None:
        self.problem = problem
        blocks = problem.position_blocks
        self._blocks = blocks
        self._handles = Handles(problem.integers[blocks, 1].copy(), problem.floats[blocks, :3].copy())
        self._predict: Prediction = prior.prepare(self._handles)
        self._covariance = np.zeros((problem.space.freedoms, problem.space.freedoms))
        free_root = np.arange(ROOT_FREEDOMS)[problem.free[:ROOT_FREEDOMS]]
        self._covariance[free_root, free_root] = 1.0  # metres and radians squared: no opinion about the root
        self._pinned = np.flatnonzero(~problem.free[ROOT_FREEDOMS:])
        self._mean = prior.mean

    def __call__(self, q: Array) -> tuple[int, int, Array]:
        targets = self.problem.floats[self._blocks, 3:6]
        if len(targets) == 0:
            return self._once(q, self._prediction(q, targets))
        prediction = (
            self._prediction(q, targets) if self.problem.root == "given" else self._rooted(q, targets)
        )
        unpinned = self.problem.free[ROOT_FREEDOMS:]
        q[ROOT_SIZE:][unpinned] = prediction[0][unpinned]  # nearer to the solution than any frame before
        return (
            self._once(q, prediction)
            if self.problem.root == "given"
            else self._settled(q, prediction, targets)
        )

    @property
    def expectation(self) -> tuple[Float[Array, "maps"], Float[Array, "freedoms freedoms"]]:
        """The mean of the maps and the covariance of all freedoms that the last solve took from the prior."""
        return self._mean, self._covariance

    def _settled(self, q: Array, prediction: tuple[Array, Array], targets: Array) -> tuple[int, int, Array]:
        """Solves the root too: what the prior predicts depends on it, so predict again until it settles."""
        steps = 0
        for _ in range(_ROUNDS):
            before = q[:ROOT_SIZE].copy()
            status, more, errors = self._once(q, prediction)
            steps += more
            if np.abs(q[:ROOT_SIZE] - before).max() < _SETTLED:
                break
            prediction = self._prediction(q, targets)
        return status, steps, errors

    def _rooted(self, q: Array, targets: Array) -> tuple[Array, Array]:
        """Moves the root to where the prior explains the targets, and predicts from there.

        The root of a frame before goes along with its handles; a start that is no such frame gets its root anew.
        """
        tree, handles = self.problem.space.tree, self._handles
        _follow(q, *tree, handles.joints, handles.offsets, targets)
        prediction = self._prediction(q, targets)
        if _farthest(q, prediction[0], *tree, handles.joints, handles.offsets, targets) > _FAR:
            q[:3], q[3:ROOT_SIZE] = self._predict.place_root(targets)
            prediction = self._prediction(q, targets)
        return prediction

    def _prediction(self, q: Array, targets: Array) -> tuple[Array, Array]:
        return self._predict(in_root_frame(q, targets))

    def _once(self, q: Array, prediction: tuple[Array, Array]) -> tuple[int, int, Array]:
        mean, covariance = prediction
        self._covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = covariance
        if len(self._pinned):
            self._covariance[ROOT_FREEDOMS + self._pinned, :] = 0.0
            self._covariance[:, ROOT_FREEDOMS + self._pinned] = 0.0
            mean = mean.copy()
            mean[self._pinned] = q[ROOT_SIZE + self._pinned]
        self._mean = mean
        return self.problem.run(q, mean, self._covariance)


def in_root_frame(q: Float[Array, "size"], points: Float[Array, "points 3"]) -> Float[Array, "points 3"]:
    """World points as seen from the root of a pose."""
    seen = np.empty((len(points), 3))
    _see(q, points, seen)
    return seen


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
