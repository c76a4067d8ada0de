"""Stopping rule, best pose and bounds, shared by the classic methods."""

import math

import numpy as np

from poise.compiled import compiled
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, integrate
from poise.solvers.classic.task import Task
from poise.types import Array

PATIENCE = 20  # iterations allowed without progress
LEAST_PROGRESS = 0.02  # of the tolerance: a smaller decrease of the residual counts as none


@compiled
def begin(q: Array, task: Task) -> tuple[Array, Array]:
    """Clamp the pose; return the state of `finished`: the best pose, and [its residual, last progress, waiting]."""
    clamp(q, task)
    return q.copy(), np.array([math.inf, math.inf, 0.0])


@compiled
def finished(q: Array, errors: Array, tolerance: float, best: Array, record: Array) -> bool:
    """Store the pose if it is the best so far; return whether all handles converged or progress has stalled."""
    squared, farthest = 0.0, 0.0
    for h in range(len(errors)):
        square = errors[h, 0] ** 2 + errors[h, 1] ** 2 + errors[h, 2] ** 2
        squared += square
        farthest = max(farthest, square)
    distance = math.sqrt(squared)
    if distance < record[0]:
        record[0] = distance
        best[:] = q
    record[2] += 1
    if distance < record[1] - LEAST_PROGRESS * tolerance:
        record[1], record[2] = distance, 0.0
    return farthest <= tolerance * tolerance or record[2] >= PATIENCE


@compiled
def clamp(q: Array, task: Task) -> None:
    """Clamp every exponential map to its bounds."""
    for i in range(ROOT_SIZE, len(q)):
        q[i] = min(max(q[i], task.lower[i - 1]), task.upper[i - 1])


@compiled
def block(q: Array, step: Array, task: Task) -> None:
    """Zero the components of a step that point out of the bounds, and the root's part if the root is given."""
    if not task.free_root:
        step[:ROOT_FREEDOMS] = 0.0
    lower, upper = task.lower, task.upper
    for i in range(ROOT_FREEDOMS, len(step)):
        if (step[i] < 0.0 and q[i + 1] <= lower[i]) or (step[i] > 0.0 and q[i + 1] >= upper[i]):
            step[i] = 0.0


@compiled
def advance(q: Array, step: Array, task: Task, out: Array) -> None:
    """Write the pose after a tangent step, clamped to the bounds; a given root is copied unchanged."""
    integrate(q, step, out)
    if not task.free_root:
        out[:ROOT_SIZE] = q[:ROOT_SIZE]
    for k in range(ROOT_SIZE, len(out), 3):
        _unwind(out[k : k + 3], task.lower[k - 1 : k + 2], task.upper[k - 1 : k + 2])
    clamp(out, task)


@compiled
def _unwind(e: Array, lower: Array, upper: Array) -> None:
    """Rewrite a rotation beyond pi as the equivalent shorter one, away from the singularity at two pi."""
    angle = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
    if angle <= math.pi:
        return
    scale = 1.0 - 2.0 * math.pi / angle
    for i in range(3):
        if not lower[i] <= scale * e[i] <= upper[i]:
            return
    for i in range(3):
        e[i] *= scale
