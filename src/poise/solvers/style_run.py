"""Solves one problem with a style prior: several starts and annealing when cold, the fine model alone when tracking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.priors.style.prior import StylePrior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.solvers import core
from poise.solvers.map_run import in_root_frame
from poise.solvers.problem import Problem
from poise.solvers.style_core import solve_style

Array = np.ndarray

STARTS = 3
COLD_STEPS = (6, 4, 6)  # of the smooth, the middle and the fine model
TRACKED_STEPS = (0, 0, 5)
DRAGGED_STEPS = (5, 0, 0)


@dataclass(frozen=True, eq=False)
class Optimum:
    """One of the poses that a problem has, with its place in the latent space."""

    q: Float[Array, "size"]
    x: Float[Array, "latent"]
    status: int
    steps: int
    errors: Float[Array, "rows"]
    loss: float

    @property
    def rank(self) -> tuple[float, float]:
        """Lower is better: constraints first, then L_IK."""
        return (0.0 if self.status == core.REACHED else float(np.linalg.norm(self.errors)), self.loss)


class StyleRun:
    """The runner of a style; it remembers the last frame, so that the next one can be tracked from it."""

    def __init__(self, prior: StylePrior, problem: Problem) -> None:
        self.prior, self.problem = prior, problem
        self._blocks = problem.position_blocks
        handles = Handles(problem.integers[self._blocks, 1].copy(), problem.floats[self._blocks, :3].copy())
        self._prediction = prior.prepare(handles)
        self._styles = prior.stages()
        self._base = np.ascontiguousarray(prior.mean)
        maps, count = prior.mean.size, prior.model.features.pose_count
        self._ups = np.stack([prior.model.scales[maps:count], prior.model.mean[maps:count]])
        self._poses = prior.model.predict(prior.model.active_latents)[:, :maps]
        self._settings = problem.settings.array()
        self._last: Optimum | None = None
        self.dragging = False
        self.alternatives: tuple[Optimum, ...] = ()

    def __call__(self, q: Array) -> tuple[int, int, Array]:
        last = self._last
        if last is not None and np.array_equal(last.q[ROOT_SIZE:], q[ROOT_SIZE:]):
            found = self._tracked(q, last)
        else:
            found = self._cold(q)
        best = found[0]
        self._last, self.alternatives = best, tuple(found)
        q[:] = best.q
        return best.status, sum(optimum.steps for optimum in found), best.errors

    def _tracked(self, q: Array, last: Optimum) -> list[Optimum]:
        """From the last frame's place, and from the active pose that suits the handles best: one gets stuck alone."""
        if self.dragging:
            return [self._from(q, last.x, DRAGGED_STEPS)]
        found = [self._from(q, last.x, TRACKED_STEPS)]
        targets = self.problem.floats[self._blocks, 3:6]
        if len(targets):
            number = self._prediction.nearest(in_root_frame(q, targets), 1)[0]
            start = q.copy()
            start[ROOT_SIZE:] = self._poses[number]
            found.append(
                self._from(self.problem.start(start), self.prior.model.active_latents[number], TRACKED_STEPS)
            )
        return _distinct(sorted(found, key=lambda optimum: optimum.rank))

    def _cold(self, q: Array) -> list[Optimum]:
        """Solve from the active poses that suit the handles best; distinct optima, best first."""
        targets = self.problem.floats[self._blocks, 3:6]
        q = q.copy()
        if self.problem.root == "solved" and len(targets):
            q[:3], q[3:7] = self._prediction.place_root(targets)
        starts = self._prediction.nearest(in_root_frame(q, targets), STARTS)
        found = []
        for number in starts:
            x = self.prior.model.active_latents[number]
            start = q.copy()
            start[ROOT_SIZE:] = self._poses[number]
            found.append(self._from(self.problem.start(start), x, COLD_STEPS))
        return _distinct(sorted(found, key=lambda optimum: optimum.rank))

    def _from(self, q: Array, x: Array, steps: tuple[int, int, int]) -> Optimum:
        q, x, errors = q.copy(), x.copy(), np.empty(len(self.problem.rows))
        status, taken, loss = solve_style(
            q,
            x,
            self.problem.body,
            self.problem.blocks,
            self.problem.rows,
            self._styles,
            np.array(steps),
            self._base,
            self._ups,
            self.problem.free,
            self.problem.limits,
            self._settings,
            errors,
        )
        return Optimum(q, x, status, taken, errors, loss)


def _distinct(found: list[Optimum]) -> list[Optimum]:
    """The optima that differ by more than a few degrees at some joint."""
    kept: list[Optimum] = []
    for optimum in found:
        if all(np.abs(optimum.q[ROOT_SIZE:] - other.q[ROOT_SIZE:]).max() > 0.1 for other in kept):
            kept.append(optimum)
    return kept
