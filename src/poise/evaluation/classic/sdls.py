"""Selectively damped least squares: damp each singular direction of the Jacobian by its effect on the handles.

Buss and Kim, "Selectively damped least squares for inverse kinematics", Journal of Graphics Tools, 2005. With
J = sum of sigma u v', the response to the error along u is v <u, e> / sigma, cut to min(1, N / M) gamma_max, where
N is the requested motion of the handles, and M the motion that the joints would cause if nothing cancelled. Near
singular poses M is large, so the response is small. No handle is asked to move by more than the longest bone (D_max:
Buss, "Introduction to inverse kinematics", 2004). For the root's translation, a metre counts as a radian.
"""

import math
from functools import partial

import numpy as np

from poise.compiled import compiled
from poise.evaluation.classic.task import ClassicRun, ClassicTask, advance, begin, block, finished
from poise.skeleton.kernels import forward, point_jacobian, point_on
from poise.types import Array

GREATEST_TURN = math.pi / 4  # gamma_max: largest rotation of any joint in one step
_SINGULAR = 1e-10  # relative to the largest singular value


@compiled
def solve(q: Array, task: ClassicTask) -> int:
    """See `CompiledSolver`."""
    best, record = begin(q, task)
    links, joints = task.links, task.joints
    count, handles = len(links), len(joints)
    positions, matrices, axes = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3, 3))
    errors, jacobian, moved = (
        np.empty((handles, 3)),
        np.zeros((3 * handles, len(task.lower))),
        np.empty_like(q),
    )
    longest = _longest_bone(task.rest)
    iteration = 0
    while True:
        forward(q, links, task.rest, positions, matrices, axes)
        for h in range(handles):
            point_on(joints[h], task.offsets[h], positions, matrices, errors[h])
            point_jacobian(joints[h], errors[h], links, positions, axes, jacobian[3 * h : 3 * h + 3])
            for i in range(3):
                errors[h, i] = task.targets[h, i] - errors[h, i]
        if finished(q, errors, task.tolerance, best, record) or iteration >= task.max_iterations:
            break
        _drop_blocked_columns(q, errors, jacobian, task)
        _shorten(errors, longest)
        advance(q, damped_step(jacobian, errors), task, moved)
        q[:] = moved
        iteration += 1
    q[:] = best
    return iteration


@compiled
def damped_step(jacobian: Array, errors: Array) -> Array:
    """The step of the degrees of freedom for these handle errors (handles, 3)."""
    u, sigma, v = np.linalg.svd(jacobian, False)
    reaches = _reaches(jacobian)
    step = np.zeros(jacobian.shape[1])
    for i in range(len(sigma)):
        if sigma[i] <= _SINGULAR * sigma[0]:
            break
        asked, along = 0.0, 0.0  # N, and <u, e>
        for h in range(len(errors)):
            x, y, z = u[3 * h, i], u[3 * h + 1, i], u[3 * h + 2, i]
            asked += math.sqrt(x * x + y * y + z * z)
            along += x * errors[h, 0] + y * errors[h, 1] + z * errors[h, 2]
        alone = np.sum(np.abs(v[i]) * reaches) / sigma[i]  # M
        response = along / sigma[i] * v[i]
        step += _clamped(response, GREATEST_TURN * min(1.0, asked / alone))
    return _clamped(step, GREATEST_TURN)


@compiled
def _longest_bone(rest: Array) -> float:
    squared = 0.0
    for j in range(1, len(rest)):
        squared = max(squared, rest[j, 0] ** 2 + rest[j, 1] ** 2 + rest[j, 2] ** 2)
    return math.sqrt(squared) if squared > 0.0 else math.inf


@compiled
def _shorten(errors: Array, longest: float) -> None:
    for h in range(len(errors)):
        length = math.sqrt(errors[h, 0] ** 2 + errors[h, 1] ** 2 + errors[h, 2] ** 2)
        if length > longest:
            errors[h] *= longest / length


@compiled
def _reaches(jacobian: Array) -> Array:
    """Effect of each degree of freedom on the handles: the sum over handles of its column lengths (rho)."""
    reaches = np.zeros(jacobian.shape[1])
    for row in range(0, len(jacobian), 3):
        for c in range(len(reaches)):
            x, y, z = jacobian[row, c], jacobian[row + 1, c], jacobian[row + 2, c]
            reaches[c] += math.sqrt(x * x + y * y + z * z)
    return reaches


@compiled
def _clamped(step: Array, greatest: float) -> Array:
    """A step scaled so that none of its components exceeds a bound."""
    largest = np.max(np.abs(step))
    return step * (greatest / largest) if largest > greatest else step


@compiled
def _drop_blocked_columns(q: Array, errors: Array, jacobian: Array, task: ClassicTask) -> None:
    """Zero the columns of degrees of freedom that could help only by leaving their bounds."""
    pulls = np.zeros(jacobian.shape[1])
    for row in range(len(jacobian)):
        pulls += errors[row // 3, row % 3] * jacobian[row]
    kept = pulls.copy()
    block(q, kept, task)
    for c in range(len(pulls)):
        if kept[c] == 0.0:
            jacobian[:, c] = 0.0


run = partial(ClassicRun, solve)
