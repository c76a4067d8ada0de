"""The next moment of a drag: towards the solved pose, with no joint moving much further than the hand."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
from jaxtyping import Float

from poise.skeleton.pose_space import Handles
from poise.solvers.problem import Problem, tangent_step
from poise.solvers.solution import STATUSES, Solution, Status
from poise.types import Array

SHARES = (0.9, 0.45, 0.2, 0.0, 0.0, 0.0, 0.0)  # tried fractions of the allowed distance, largest first
CLOSE = 0.003  # metres: largest lag of a handle on the way
STIFF = 1e-3  # relative weight of degrees of freedom that move no joint
FIRMER = 4.0  # largest factor on a joint's weight in the next try after it moved too far
TINY = 1e-6  # metres: movement of a hand at rest


def eased(
    problem: Problem, start: Float[Array, "size"], goal: Solution, most: float
) -> tuple[Solution, bool]:
    """Move towards a solved pose so that no joint moves further than `most`; return whether one must, to meet handles.

    On the way hard constraints are met by the smallest movement of the joints. If that is still too far, those that
    moved farthest weigh more in the next try.
    """
    moved = _Moved(problem, start)
    far = moved.farthest(goal.q)
    if far <= most:
        return goal, False
    left = problem.rank(problem.errors(goal.q)[0])[0] + CLOSE
    least, nearest = far, goal
    for share in SHARES:
        q = problem.space.integrate(start, share * most / far * tangent_step(start, goal.q))
        status, steps, errors = problem.finish(q, moved.metric())
        gone = moved.farthest(q, most)
        if problem.rank(errors)[0] <= left and gone < least:
            least, nearest = gone, _at(problem, goal, q, errors, status=STATUSES[status], steps=steps)
        if least <= most:
            return nearest, False
    if goal.reached:
        return nearest, True
    q, share = goal.q, 1.0
    while (gone := moved.farthest(q)) > most:
        share *= SHARES[0] * most / gone
        q = problem.space.integrate(start, share * tangent_step(start, goal.q))
    return _at(problem, goal, q, problem.errors(q)[0], status=goal.status), False


class _Moved:
    """Distances of joints from their start positions, and the metric in which far-moved ones weigh more."""

    def __init__(self, problem: Problem, start: Float[Array, "size"]) -> None:
        self._problem, self._space = problem, problem.space
        self._start, self._before = start, self._space.forward(start)[0]
        self._weights: float | Float[Array, "joints"] = 1.0

    def farthest(self, q: Float[Array, "size"], most: float = np.inf) -> float:
        """The largest joint distance; joints that move further than `most` weigh more from now on."""
        way = self._space.forward(q)[0] - self._before
        squares = (way * way).sum(axis=-1)
        if most < np.inf:
            self._weights = self._weights * np.clip(squares / max(most, TINY) ** 2, 1.0, FIRMER)
        return math.sqrt(squares.max())

    @cached_property
    def _jacobian(self) -> Float[Array, "rows freedoms"]:
        """The Jacobian of the joints at the start."""
        joints = np.arange(len(self._space.skeleton))
        return self._space.handle_positions(self._start, Handles(joints, np.zeros((len(joints), 3))))[1]

    def metric(self) -> Float[Array, "freedoms freedoms"]:
        """The covariance under which the smallest change moves joints least."""
        free = np.flatnonzero(self._problem.free)
        rows, weights = self._jacobian[:, free], np.broadcast_to(self._weights, len(self._before))
        stiffness = rows.T @ (rows * np.repeat(weights, 3)[:, None])
        stiffness += STIFF * np.trace(stiffness) / len(stiffness) * np.eye(len(stiffness))
        found = np.zeros((self._space.freedoms,) * 2)
        found[np.ix_(free, free)] = np.linalg.inv(stiffness)
        return found


def _at(
    problem: Problem,
    goal: Solution,
    q: Float[Array, "size"],
    errors: Array,
    *,
    status: Status,
    steps: int = 0,
) -> Solution:
    """The solution with another pose."""
    measure, iterations = partial(problem.residuals, errors), goal.iterations + steps
    return replace(goal, q=q, measure=measure, status=status, iterations=iterations)
