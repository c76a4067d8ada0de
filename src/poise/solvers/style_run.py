"""Solves one problem with a style prior: several starts and annealing when cold, the fine model alone when tracking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from poise.priors.style.observed import Observed
from poise.priors.style.prior import StylePrior
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.solvers import core
from poise.solvers.map_run import in_root_frame
from poise.solvers.problem import Problem
from poise.solvers.style_core import FREE_ROOT, solve_style

Array = np.ndarray

STARTS = 3
# Steps of the smooth, the middle and the fine model: from a cold start in two turns, tracking, and while dragging.
SMOOTH_STEPS = np.array([4, 0, 0])
FINER_STEPS = np.array([0, 3, 5])
TRACKED_STEPS = np.array([0, 0, 4])
DRAGGED_STEPS = np.array([5, 0, 0])
LAST_STEP = np.array([0, 0, 1])
SHORT_FINISH = 10  # steps to meet hard constraints from every start; only the best start takes more
SAME_BASIN = 1.0  # of a kernel's width: an active pose no farther than that promises no other optimum
SAME_PLACE = 0.25  # of a kernel's width, within which two starts have come together


@dataclass(frozen=True, eq=False)
class Optimum:
    """One of the poses that a problem has, with its place in the latent space of every style that took part."""

    q: Float[Array, "size"]
    latents: tuple[Float[Array, "latent"], ...]
    status: int
    steps: int
    errors: Float[Array, "rows"]
    loss: float

    @property
    def rank(self) -> tuple[float, float]:
        """Lower is better: constraints first, then the loss."""
        return (0.0 if self.status == core.REACHED else float(np.linalg.norm(self.errors)), self.loss)

    @property
    def x(self) -> Float[Array, "latent"]:
        """The place in the first style's latent space: all there is without a blend."""
        return self.latents[0]


class Watched:
    """What a style makes of the frame at hand, given the frames before it and how fast they follow each other."""

    def __init__(self, prior: StylePrior, fps: float | None) -> None:
        self._prior, self._fps = prior, fps
        self._stages: dict[int, tuple[Observed, ...]] = {}
        self._stiffness: dict[int, Float[Array, "maps maps"]] = {}
        self._known = -1
        self.take(())

    def take(self, before: Sequence[Float[Array, "size"]]) -> None:
        """Take in the frames before, the newest first."""
        known = 0 if self._fps is None else min(len(before), 2)
        if known == self._known == 0:
            return
        self._known = known
        if known not in self._stages:
            self._stages[known] = self._prior.observed(fps=self._fps, known=known)
        stages = self._stages[known]
        self.styles = tuple(stage.arrays for stage in stages)
        self.frame = stages[-1].frame(before)

    @property
    def stiffness(self) -> Float[Array, "maps maps"]:
        """The inverse of what the style leaves open, for a variance of one."""
        if self._known not in self._stiffness:
            self._stiffness[self._known] = np.linalg.inv(self.styles[-1].noise)
        return self._stiffness[self._known]


class StyleRun:
    """The runner of a style; it remembers the last frame, so that the next one can be tracked from it."""

    def __init__(self, prior: StylePrior, problem: Problem, *, fps: float | None = None) -> None:
        self.prior, self.problem = prior, problem
        self._blocks = problem.position_blocks
        handles = Handles(problem.integers[self._blocks, 1].copy(), problem.floats[self._blocks, :3].copy())
        self._prediction = prior.prepare(handles)
        self._watched = Watched(prior, fps)
        self._poses = prior.model.predict(prior.model.active_latents)[:, : prior.mean.size]
        self._settings = problem.settings.array()
        self._unfinished = replace(problem.settings, finish_steps=0).array()
        short = min(SHORT_FINISH, problem.settings.finish_steps)
        self._briefly = replace(problem.settings, finish_steps=short).array()
        smooth, _, fine = (1.0 / math.sqrt(style.parameters[2]) for style in self._watched.styles)
        self._same_place, self._same_basin = SAME_PLACE * smooth, SAME_BASIN * fine
        self._last: Optimum | None = None
        self.dragging = False
        self.alternatives: tuple[Optimum, ...] = ()

    def __call__(self, q: Array, before: Sequence[Float[Array, "size"]] = ()) -> tuple[int, int, Array]:
        """Solve from q, after these frames (the newest first), whose motion counts if the frame rate is known."""
        self._watched.take(before)
        if len(before) and not self.remembers(before[0]):
            self.resume(before[0])
        last = self._last
        goes_on = last is not None and (len(before) > 0 or self.remembers(q))
        found = self._tracked(q, last.x) if last is not None and goes_on else self._cold(q)
        best = found[0]
        self._last, self.alternatives = best, tuple(found)
        q[:] = best.q
        return best.status, sum(optimum.steps for optimum in found), best.errors

    def remembers(self, q: Float[Array, "size"]) -> bool:
        """Whether this is the last frame's pose, wherever its root is."""
        return self._last is not None and bool((self._last.q[ROOT_SIZE:] == q[ROOT_SIZE:]).all())

    def resume(self, q: Float[Array, "size"]) -> None:
        """Take a pose, wherever it came from, as the last frame."""
        self._last = resumed(q, (self.prior.place(q)[0],))

    @property
    def latents(self) -> tuple[Float[Array, "latent"], ...]:
        """Where the last frame lies in the latent space; empty before the first."""
        return self._last.latents if self._last is not None else ()

    @property
    def expectation(self) -> tuple[Float[Array, "maps"], Float[Array, "freedoms freedoms"]]:
        """The mean of the maps and the covariance of all freedoms that the style has around the last solve."""
        freedoms = self.problem.space.freedoms
        covariance = np.zeros((freedoms, freedoms))
        root = np.arange(ROOT_FREEDOMS)
        covariance[root, root] = np.where(self.problem.free[:ROOT_FREEDOMS], FREE_ROOT, 0.0)
        x = self._last.x if self._last is not None else self.prior.model.active_latents[0]
        mean, covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = self.prior.gaussian_at(x)
        return mean, covariance

    def _tracked(self, q: Array, last: Float[Array, "latent"]) -> list[Optimum]:
        """From the last frame's place, and from the active pose that suits the handles best if it lies elsewhere."""
        if self.dragging:
            return [self._from(q, last, DRAGGED_STEPS)]
        on = self._from(q, last, TRACKED_STEPS)
        targets = self.problem.floats[self._blocks, 3:6]
        if len(targets) == 0:
            return [on]
        number = self._prediction.nearest(in_root_frame(q, targets), 1)[0]
        x = self.prior.model.active_latents[number]
        if math.dist(x, on.x) <= self._same_basin:
            return [on]
        anew = self._from(self._posed(q, number), x, TRACKED_STEPS)
        return _distinct(sorted((on, anew), key=lambda optimum: optimum.rank))

    def _cold(self, q: Array) -> list[Optimum]:
        """From the active poses that suit the handles best, as far as the smooth model keeps them apart."""
        targets = self.problem.floats[self._blocks, 3:6]
        q = q.copy()
        if self.problem.root == "solved" and len(targets):
            q[:3], q[3:7] = self._prediction.place_root(targets)
        apart: list[Optimum] = []
        for number in self._prediction.nearest(in_root_frame(q, targets), STARTS):
            x = self.prior.model.active_latents[number]
            smooth = self._from(self._posed(q, number), x, SMOOTH_STEPS, settings=self._unfinished)
            if all(math.dist(smooth.x, other.x) > self._same_place for other in apart):
                apart.append(smooth)
        found = [
            self._from(one.q, one.x, FINER_STEPS, settings=self._briefly, taken=one.steps) for one in apart
        ]
        best, *others = sorted(found, key=lambda optimum: optimum.rank)
        if best.status == core.OUT_OF_TIME:
            best = self._from(best.q, best.x, LAST_STEP, taken=best.steps)
        return _distinct(sorted([best, *others], key=lambda optimum: optimum.rank))

    def _posed(self, q: Array, number: int) -> Array:
        """An active pose at the root of another."""
        start = q.copy()
        start[ROOT_SIZE:] = self._poses[number]
        return self.problem.start(start)

    def _from(
        self,
        q: Array,
        x: Array,
        steps: Int[Array, "3"],
        *,
        settings: Float[Array, "settings"] | None = None,
        taken: int = 0,
    ) -> Optimum:
        q, x, errors = q.copy(), x.copy(), np.empty(len(self.problem.rows))
        status, more, loss = solve_style(
            q,
            x,
            self.problem.body,
            self.problem.blocks,
            self.problem.rows,
            self._watched.styles,
            steps,
            self._watched.frame.base,
            self._watched.frame.ups,
            self._watched.frame.contrasts,
            self.problem.free,
            self.problem.limits,
            self._settings if settings is None else settings,
            errors,
        )
        return Optimum(q, (x,), status, taken + more, errors, loss + self.problem.soft_loss(errors))


def resumed(q: Float[Array, "size"], latents: tuple[Float[Array, "latent"], ...]) -> Optimum:
    """A pose that was not solved for here, to go on from."""
    return Optimum(q.copy(), latents, core.REACHED, 0, np.empty(0), 0.0)


def _distinct(found: list[Optimum]) -> list[Optimum]:
    """The optima that differ by more than a few degrees at some joint."""
    kept: list[Optimum] = []
    for optimum in found:
        if all(np.abs(optimum.q[ROOT_SIZE:] - other.q[ROOT_SIZE:]).max() > 0.1 for other in kept):
            kept.append(optimum)
    return kept
