"""The problem that a classic method solves, as one compiled value; what all of them share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, integrate
from poise.skeleton.skeleton import read_only
from poise.solvers import core
from poise.types import Array

if TYPE_CHECKING:
    from poise.solvers.problem import Problem

STEPS = 200  # iteration limit of a run
PATIENCE = 20  # iterations allowed without progress
LEAST_PROGRESS = 0.02  # of the tolerance: a smaller decrease of the residual counts as none


class ClassicTask(NamedTuple):
    """Move handles (points on joints) to targets, within bounds.

    `links` and `rest` are a `PoseSpace.tree`; `joints`, `offsets` and `targets` have a row per handle. `lower` and
    `upper` bound the tangent coordinates of q by clamping; their first six, the root's, are not used.
    """

    links: Array  # (joints, 2)
    rest: Array  # (joints, 12)
    joints: Array  # (handles,)
    offsets: Array  # (handles, 3)
    targets: Array  # (handles, 3)
    lower: Array  # (freedoms,)
    upper: Array  # (freedoms,)
    free_root: bool  # whether the root moves
    tolerance: float  # metres: largest residual of a handle at convergence
    max_iterations: int


CompiledSolver = Callable[[Array, ClassicTask], int]
"""Moves `q` in place until every handle reaches its target; returns the number of iterations.

`q` ends at the best pose found, also if no pose reaches every target.
"""


class ClassicRun:
    """Solve one problem, of position constraints only, by a classic method."""

    def __init__(self, method: CompiledSolver, problem: Problem, _guide_of: object) -> None:
        if len(problem.position_blocks) != len(problem.integers) or problem.pins:
            raise InvalidValueError(
                "the classic methods support position constraints only; for other constraints use 'dls' or a prior"
            )
        self.method, self.problem = method, problem
        # Read-only, like those of `PoseSpace.handles`: for another array type the method would be compiled again.
        self._handles = read_only(problem.integers[:, 1], dtype=np.int64), read_only(problem.floats[:, :3])

    def __call__(self, q: Array, before: Sequence[Array] = ()) -> tuple[int, int, Array]:
        """Move q to the solution; return status, steps and remaining errors."""
        del before
        problem, tolerance = self.problem, self.problem.settings.tolerance
        targets, (lower, upper) = problem.floats[:, 3:6].copy(), problem.limits.copy()
        free_root = problem.root == "solved"
        task = ClassicTask(
            *problem.space.tree, *self._handles, targets, lower, upper, free_root, tolerance, STEPS
        )
        steps = self.method(q, task)
        errors, _ = problem.errors(q)
        reached = np.all(np.linalg.norm(errors.reshape(-1, 3), axis=1) <= tolerance)
        return (core.REACHED if reached else core.OUT_OF_TIME), steps, errors


@compiled
def begin(q: Array, task: ClassicTask) -> tuple[Array, Array]:
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
def clamp(q: Array, task: ClassicTask) -> None:
    """Clamp every exponential map to its bounds."""
    for i in range(ROOT_SIZE, len(q)):
        q[i] = min(max(q[i], task.lower[i - 1]), task.upper[i - 1])


@compiled
def block(q: Array, step: Array, task: ClassicTask) -> None:
    """Zero the components of a step that point out of the bounds, and the root's part if the root is given."""
    if not task.free_root:
        step[:ROOT_FREEDOMS] = 0.0
    lower, upper = task.lower, task.upper
    for i in range(ROOT_FREEDOMS, len(step)):
        if (step[i] < 0.0 and q[i + 1] <= lower[i]) or (step[i] > 0.0 and q[i + 1] >= upper[i]):
            step[i] = 0.0


@compiled
def advance(q: Array, step: Array, task: ClassicTask, out: Array) -> None:
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
