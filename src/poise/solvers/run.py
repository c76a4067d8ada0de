"""The one runner: a problem solved under a guide, from starts or from the frame before, through the guide's stages.

A cold solve takes the guide's starts through its smooth stage, keeps those that are still apart, takes them through the
finer stages, and ranks what came out: constraints first, then the loss. A tracked solve goes on from the state of the
frame before, and from another start where the handles suit one better. Every round ends with the exact finish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from poise.priors.forms import FREE_ROOT
from poise.priors.prior import ALL, Guide, Start, State, Steps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.solvers import core
from poise.solvers.predicted import solve_predicted
from poise.solvers.problem import Problem

Array = np.ndarray

SHORT_FINISH = 10  # steps to meet hard constraints from every start; only the best start takes more
DISTINCT = 0.1  # radians at some joint by which two poses differ


@dataclass(eq=False)
class Optimum:
    """One of the poses that a problem has, with the guide's state there."""

    q: Float[Array, "size"]
    state: State
    status: int
    steps: int
    errors: Float[Array, "rows"]
    loss: float

    @property
    def rank(self) -> tuple[float, float]:
        """Lower is better: constraints first, then the loss."""
        return (0.0 if self.status == core.REACHED else float(np.linalg.norm(self.errors)), self.loss)


class Runner:
    """Solves one problem under a guide, again and again; it remembers the last frame, to go on from it."""

    def __init__(self, guide: Guide, problem: Problem) -> None:
        self.guide, self.problem = guide, problem
        self.dragging = False
        self.tracks = len(guide.plan.tracked) > 0  # whether the guide has a state to go on from
        self.found: tuple[Optimum, ...] = ()
        self._last: Optimum | None = None
        settings = problem.settings
        self._unfinished = replace(settings, finish_steps=0).array()
        self._briefly = replace(settings, finish_steps=min(SHORT_FINISH, settings.finish_steps)).array()
        self._steps: dict[Steps, Array] = {}

    def __call__(
        self, q: Float[Array, "size"], before: Sequence[Float[Array, "size"]] = ()
    ) -> tuple[int, int, Array]:
        """Move q to the solution, after these frames (the newest first); how it ended, the steps, what is left."""
        self.guide.watch(before)
        if self.tracks and len(before) and not self.remembers(before[0]):
            self.resume(before[0])
        last = self._last
        if last is not None and self.tracks and (len(before) > 0 or self.remembers(q)):
            found = self._tracked(q, last)
        else:
            found = self._cold(q)
        self._last, self.found = found[0], tuple(found)
        q[:] = found[0].q
        return found[0].status, sum(optimum.steps for optimum in found), found[0].errors

    def remembers(self, q: Float[Array, "size"]) -> bool:
        """Whether this is the last frame's pose, wherever its root is."""
        return self._last is not None and bool((self._last.q[ROOT_SIZE:] == q[ROOT_SIZE:]).all())

    def forget(self) -> None:
        """The next solve is a cold one."""
        self._last = None

    def resume(self, q: Float[Array, "size"]) -> None:
        """Take a pose, wherever it came from, as the last frame."""
        if self.tracks:
            state = self.guide.resumed(q, self.problem.targets)
            self._last = Optimum(q.copy(), state, core.REACHED, 0, np.empty(0), 0.0)

    @property
    def latents(self) -> tuple[Float[Array, "latent"], ...]:
        """Where the last frame lies in the latent space of every style that took part."""
        return () if self._last is None else self.guide.latents(self._last.state)

    @property
    def expectation(self) -> tuple[Float[Array, "maps"], Float[Array, "freedoms freedoms"]]:
        """The mean of the maps and the covariance of all freedoms that the guide has around the last solve."""
        assert self._last is not None, "nothing was solved yet"
        mean, own = self.guide.expectation(self._last.q, self._last.state)
        covariance = np.zeros((self.problem.space.freedoms,) * 2)
        covariance[_ROOT, _ROOT] = FREE_ROOT
        covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = own
        return mean, covariance * np.outer(self.problem.free, self.problem.free)

    # --- private ---------------------------------------------------------------------------------------------------

    def _tracked(self, q: Array, last: Optimum) -> list[Optimum]:
        """From the last frame's state, and from another start if the guide has a better one."""
        plan = self.guide.plan
        if self.dragging and plan.dragged:
            return [self._through(Start(q, last.state), plan.dragged)]
        on = self._through(Start(q, last.state), plan.tracked)
        other = self.guide.alternative(q, self.problem.targets, on.state)
        if other is None:
            return [on]
        return _ranked([on, self._through(self._pinned(other), plan.tracked)])

    def _cold(self, q: Array) -> list[Optimum]:
        """From the guide's starts, as far as its smooth stage keeps them apart."""
        guide, plan, problem = self.guide, self.guide.plan, self.problem
        if guide.predictor is not None and not problem.in_python:
            return [self._predicted(q)]
        starts = guide.starts(q, problem.targets, free_root=problem.root == "solved")
        if len(starts) == 1:
            return [self._through(self._pinned(starts[0]), (*plan.smooth, *plan.finer))]
        apart: list[Optimum] = []
        for start in starts:
            smooth = self._through(self._pinned(start), plan.smooth, settings=self._unfinished)
            if not any(guide.same(smooth.state, other.state) for other in apart):
                apart.append(smooth)
        settings = self._briefly if len(apart) > 1 else None
        found = [
            self._through(Start(one.q, one.state), plan.finer, settings=settings, taken=one.steps)
            for one in apart
        ]
        best, *others = sorted(found, key=lambda optimum: optimum.rank)
        if settings is not None and best.status == core.OUT_OF_TIME:
            last = (*(0 for _ in plan.finer[-1][1:]), 1)
            best = self._through(Start(best.q, best.state), (last,), taken=best.steps)
        return _ranked([best, *others])

    def _predicted(self, q: Array) -> Optimum:
        """From the guide's prediction, all of it in one compiled call."""
        q, errors, predicted = q.copy(), np.empty(len(self.problem.rows)), self.guide.blank()
        status, steps = solve_predicted(self.problem, self.guide.predictor, q, predicted, errors)
        return Optimum(q, predicted, status, steps, errors, self.problem.soft_loss(errors))

    def _pinned(self, start: Start) -> Start:
        return Start(self.problem.pinned(start.q), start.state)

    def _through(
        self,
        start: Start,
        rounds: tuple[Steps, ...],
        *,
        settings: Float[Array, "settings"] | None = None,
        taken: int = 0,
    ) -> Optimum:
        """Rounds of the compiled solve, until the guide's state has settled."""
        guide, problem, targets = self.guide, self.problem, self.problem.targets
        q, (state, x) = start.q.copy(), guide.moving(start.state)
        for steps in rounds:
            forms, own = guide.forms(q, state, steps)
            status, more, errors, value = problem.through(q, x, forms, self._array(own), settings=settings)
            taken += more
            followed = guide.follow(q, targets, state)
            if followed is state:
                break
            state = followed
        loss = guide.loss(q, state, value) + problem.soft_loss(errors)
        return Optimum(q, state, status, taken, errors, loss)

    def _array(self, steps: Steps) -> Array:
        if steps not in self._steps:
            most = self.problem.settings.map_steps
            self._steps[steps] = np.array([most if count == ALL else count for count in steps])
        return self._steps[steps]


class PlainRunner:
    """Damped least squares without a prior; where it gets stuck, it tries again from the middle of the limits."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._metric = problem.diagonal()
        lower, upper = problem.limits[:, ROOT_FREEDOMS:]
        bounded = np.isfinite(lower) & np.isfinite(upper) & problem.free[ROOT_FREEDOMS:]
        self._bounded = np.flatnonzero(bounded)
        self._middle = (lower[bounded] + upper[bounded]) / 2

    def __call__(
        self, q: Float[Array, "size"], before: Sequence[Float[Array, "size"]] = ()
    ) -> tuple[int, int, Array]:
        """Move q to the solution; how it ended, the steps, what is left."""
        del before
        again = q.copy() if len(self._bounded) else q
        status, steps, errors = self.problem.finish(q, self._metric, soft_too=True)
        if status == core.REACHED or len(self._bounded) == 0:
            return status, steps, errors
        again[ROOT_SIZE + self._bounded] = self._middle
        second, more, left = self.problem.finish(again, self._metric, soft_too=True)
        if self.problem.cost(left) < self.problem.cost(errors):
            q[:], status, errors = again, second, left
        return status, steps + more, errors


_ROOT = np.arange(ROOT_FREEDOMS)


def _ranked(found: list[Optimum]) -> list[Optimum]:
    """Best first, those left out that differ from a better one by a few degrees at most."""
    kept: list[Optimum] = []
    for optimum in sorted(found, key=lambda one: one.rank):
        if all(np.abs(optimum.q[ROOT_SIZE:] - other.q[ROOT_SIZE:]).max() > DISTINCT for other in kept):
            kept.append(optimum)
    return kept
