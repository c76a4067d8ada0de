"""Solves one problem with a blend of priors: one latent point per style, one pose for all (Grochow et al. 2004, Eq. 9).

In rounds: every component gives its Gaussian around the pose at hand (a style at its own latent point), the blend of
them goes through the shared solve, and each style moves its latent point by what the new pose implies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.priors.blend import BlendPrior, Chart, blended
from poise.priors.poses import handle_positions
from poise.priors.prior import Prior
from poise.priors.style import local_gaussian as shape
from poise.priors.style.prior import StylePrior
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.solvers.map_run import MapRun, in_root_frame
from poise.solvers.problem import Problem
from poise.solvers.style_run import Optimum, StyleRun, Watched, resumed

Array = np.ndarray


@runtime_checkable
class Runner(Protocol):
    """Solves one problem with a prior, again and again."""

    @property
    def expectation(self) -> tuple[Float[Array, "maps"], Float[Array, "freedoms freedoms"]]:
        """The mean of the maps and the covariance of all freedoms that the last solve took from the prior."""
        ...

    def __call__(self, q: Array) -> tuple[int, int, Array]:
        """Move q to the solution; how it ended, the steps it took and what is left of every row."""
        ...


STARTS = 2
SMOOTH_STAGES, FINER_STAGES = (0, 0), (1, 2, 2)  # of the rounds: the smooth, the middle and the fine models
TRACKED_STAGES = (2, 2)
LATENT_REACH = 1.0  # of a kernel's width that a latent point may go in one round
FREE_ROOT = 1.0  # metres and radians squared: no opinion about where the root is and which way it faces


def runner_of(prior: Prior, problem: Problem, *, fps: float | None = None) -> Runner:
    """The run that suits a prior; a blend with one component that has weight is that component.

    The frame rate is for styles that have learned velocities.
    """
    if isinstance(prior, BlendPrior):
        parts = prior.parts
        return (
            runner_of(parts[0][0], problem, fps=fps) if len(parts) == 1 else BlendRun(prior, problem, fps=fps)
        )
    return StyleRun(prior, problem, fps=fps) if isinstance(prior, StylePrior) else MapRun(prior, problem)


class BlendRun:
    """The runner of a blend; it remembers the last frame's latent points, so that the next can be tracked from them."""

    def __init__(self, prior: BlendPrior, problem: Problem, *, fps: float | None = None) -> None:
        self.prior, self.problem = prior, problem
        self._blocks = problem.position_blocks
        handles = Handles(problem.integers[self._blocks, 1].copy(), problem.floats[self._blocks, :3].copy())
        self._parts: list[_StylePart | _OtherPart] = [
            _StylePart(part, weight, chart, handles, fps)
            if isinstance(part, StylePrior)
            else _OtherPart(part, weight, chart, handles)
            for part, weight, chart in prior.parts
        ]
        self._styles = [part for part in self._parts if isinstance(part, _StylePart)]
        self._prediction = prior.prepare(handles)
        self._pinned = np.flatnonzero(~problem.free[ROOT_FREEDOMS:])
        self._last: Optimum | None = None
        self.expectation = prior.mean, np.zeros((problem.space.freedoms, problem.space.freedoms))

    def __call__(self, q: Array, before: Sequence[Float[Array, "size"]] = ()) -> tuple[int, int, Array]:
        """Solve from q, after these frames (the newest first), whose motion counts if the frame rate is known."""
        for part in self._styles:
            part.watch(before)
        if len(before) and not self.remembers(before[0]):
            self.resume(before[0])
        last = self._last
        if last is not None and (len(before) or self.remembers(q)):
            found = self._on(q, last, TRACKED_STAGES)
        else:
            smooth = min(self._starts(q), key=lambda one: one.rank)
            found = self._on(smooth.q, smooth, FINER_STAGES)
        self._last = found
        q[:] = found.q
        return found.status, found.steps, found.errors

    def remembers(self, q: Float[Array, "size"]) -> bool:
        """Whether this is the last frame's pose, wherever its root is."""
        return self._last is not None and bool((self._last.q[ROOT_SIZE:] == q[ROOT_SIZE:]).all())

    def resume(self, q: Float[Array, "size"]) -> None:
        """Take a pose, wherever it came from, as the last frame."""
        self._last = resumed(q, tuple(part.place(q) for part in self._styles))

    @property
    def latents(self) -> tuple[Float[Array, "latent"], ...]:
        """Where the last frame lies in the latent spaces of the styles; empty before the first."""
        return self._last.latents if self._last is not None else ()

    def _on(self, q: Array, last: Optimum, stages: tuple[int, ...]) -> Optimum:
        """More rounds from the latent points of a pose found before."""
        for part, x in zip(self._styles, last.latents, strict=True):
            part.x = x
        return self._rounds(q, stages)

    def _starts(self, q: Array) -> list[Optimum]:
        """From the active poses of the first style that suit the handles best, and their likes in the other styles."""
        targets = self.problem.floats[self._blocks, 3:6]
        q = q.copy()
        if self.problem.root == "solved" and len(targets):
            q[:3], q[3:ROOT_SIZE] = self._prediction.place_root(targets)
        seen = in_root_frame(q, targets)
        if not self._styles:
            q[ROOT_SIZE:] = self._prediction(seen)[0]
            return [self._rounds(self.problem.start(q), TRACKED_STAGES)]
        leader, found = self._styles[0], []
        for number in leader.nearest(seen, STARTS):
            for part in self._styles:
                part.x = leader.latent(number) if part is leader else part.like(leader.body(number), seen)
            start = q.copy()
            start[ROOT_SIZE:] = leader.posed(number)
            found.append(self._rounds(self.problem.start(start), SMOOTH_STAGES))
        return found

    def _rounds(self, q: Array, stages: tuple[int, ...]) -> Optimum:
        q, steps = q.copy(), 0
        targets = self.problem.floats[self._blocks, 3:6]
        for stage in stages:
            gaussians = [part.gaussian(q, in_root_frame(q, targets), stage) for part in self._parts]
            mean, covariance = blended(self.prior, q[ROOT_SIZE:], gaussians)
            across = self._lean(q)
            self.expectation = self._held(q, mean), self._metric(q, covariance, across)
            status, more, errors = self.problem.run(q, *self.expectation)
            steps += more
            for part in self._styles:
                part.follow(q)
        loss = sum(part.weight * part.loss(q) for part in self._parts)
        return Optimum(q, tuple(part.x for part in self._styles), status, steps, errors, loss)

    def _held(self, q: Array, mean: Float[Array, "maps"]) -> Float[Array, "maps"]:
        mean[self._pinned] = q[ROOT_SIZE + self._pinned]
        return mean

    def _lean(self, q: Array) -> float:
        """Lean a root that is solved as the styles expect; how far it may lean otherwise, as a variance."""
        if self.problem.root == "given" or not self._styles:
            return FREE_ROOT
        certainty = np.array([part.weight / part.across for part in self._styles])
        expected = certainty @ np.stack([part.up for part in self._styles])
        expected /= max(float(np.linalg.norm(expected)), 1e-9)
        q[3:ROOT_SIZE] = rotations.multiply(q[3:ROOT_SIZE], rotations.quaternion_between(expected, _up(q)))
        return min(1.0 / float(certainty.sum()), FREE_ROOT)

    def _metric(
        self, q: Array, covariance: Float[Array, "maps maps"], across: float
    ) -> Float[Array, "freedoms freedoms"]:
        """The maps' covariance, a root free to move and to turn about the vertical, and nothing for what is held."""
        metric = np.zeros((self.problem.space.freedoms,) * 2)
        metric[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = covariance
        if self.problem.root == "solved":
            metric[range(3), range(3)] = FREE_ROOT
            metric[3:6, 3:6] = across * np.eye(3) + (FREE_ROOT - across) * np.outer(_up(q), _up(q))
        metric[ROOT_FREEDOMS + self._pinned, :] = 0.0
        metric[:, ROOT_FREEDOMS + self._pinned] = 0.0
        return metric


def _up(q: Array) -> Float[Array, "3"]:
    """The world's up in the root's frame."""
    w, x, y, z = q[3:ROOT_SIZE]
    return np.array([2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)])


class _OtherPart:
    """A component that predicts its Gaussian from the handles alone."""

    def __init__(self, prior: Prior, weight: float, chart: Chart, handles: Handles) -> None:
        self.weight, self.chart = weight, chart
        self._predict = prior.prepare(handles)

    def gaussian(self, q: Array, targets: Float[Array, "handles 3"], stage: int) -> tuple[Array, Array]:
        """Mean and precision in the component's own maps."""
        del q, stage
        self._mean, covariance = self._predict(targets)
        self._precision = np.linalg.inv(covariance)
        return self._mean, self._precision

    def loss(self, q: Array) -> float:
        """Half the squared distance from its mean, in its own metric."""
        gap = self.chart.own_maps(q[ROOT_SIZE:]) - self._mean
        return float(0.5 * gap @ self._precision @ gap)


class _StylePart:
    """A style with its own latent point."""

    def __init__(
        self, prior: StylePrior, weight: float, chart: Chart, handles: Handles, fps: float | None
    ) -> None:
        self.prior, self.weight, self.chart = prior, weight, chart
        self._prediction = prior.prepare(handles)
        self._watched = Watched(prior, fps)
        model, maps = prior.model, prior.mean.size
        self._poses = model.mean[:maps] + model.outputs[:, :maps]
        joints = np.arange(len(prior.space.skeleton))
        self._bodies = handle_positions(prior.space, self._poses, Handles(joints, np.zeros((len(joints), 3))))
        self._local = shape.room(maps, model.dimensions)
        self.x = model.active_latents[0]
        self.up, self.across = np.array([0.0, 1.0, 0.0]), FREE_ROOT

    def watch(self, before: Sequence[Float[Array, "size"]]) -> None:
        """Take in the frames before, as this style writes them."""
        self._watched.take([self._own(q) for q in before])

    def nearest(self, targets: Float[Array, "handles 3"], count: int) -> list[int]:
        """Active poses whose handles come closest to targets in the root's frame."""
        return self._prediction.nearest(targets, count)

    def latent(self, number: int) -> Float[Array, "latent"]:
        """Where an active pose lies."""
        return self.prior.model.active_latents[number]

    def place(self, q: Float[Array, "size"]) -> Float[Array, "latent"]:
        """Where a pose of the blend lies in this style."""
        return self.prior.place(self._own(q))[0]

    def body(self, number: int) -> Float[Array, "joints 3"]:
        """Where the joints of an active pose are, from its root."""
        return np.asarray(self._bodies[number])

    def posed(self, number: int) -> Float[Array, "common"]:
        """An active pose in the blend's maps."""
        return self.chart.common_maps(self._poses[number])

    def like(
        self, body: Float[Array, "joints 3"], targets: Float[Array, "handles 3"]
    ) -> Float[Array, "latent"]:
        """The latent point of the active pose most like a body, and with its handles near targets."""
        unlike = np.square(self._bodies - body).mean(axis=(1, 2))
        if len(targets):
            unlike += np.square(self._prediction.positions - targets).mean(axis=(1, 2))
        return self.latent(int(np.argmin(unlike)))

    def gaussian(self, q: Array, targets: Float[Array, "handles 3"], stage: int) -> tuple[Array, Array]:
        """Mean and precision in the style's own maps, at its latent point."""
        del targets
        self._style = self._watched.styles[stage]
        variance = self._shape(self.chart.own_maps(q[ROOT_SIZE:]), self._aims(q))
        self._precision = self._inverse_covariance(variance)
        return self._local.mean.copy(), self._precision

    def _inverse_covariance(self, variance: float) -> Float[Array, "own own"]:
        """(s N + F A^-1 F')^-1 from the inverse of N, which stays (Woodbury)."""
        stiffness = self._watched.stiffness
        spread = stiffness @ self._local.slopes.T
        inner = variance * np.linalg.inv(self._local.inverse_curvature) + self._local.slopes @ spread
        return np.asarray((stiffness - spread @ np.linalg.solve(inner, spread.T)) / variance)

    def _shape(self, maps: Float[Array, "own"], aims: Float[Array, "checks"]) -> float:
        """The local shape for a pose brought as near as the style's own poses are; the value is sigma^2.

        A pose between styles is unlike each of them. Counted in full, that would drive the latent points to where a
        style knows nothing, and so take it out of the blend.
        """
        style, base = self._style, self._watched.frame.base
        k, mean, left, variance, misfit = self._misfit(style, maps, aims)
        scales, usual = self._watched.frame.ups
        if len(scales):
            self.up = usual + (k @ style.checks[:, :3]) / scales
            self.across = min(3.0 * variance / float(scales @ scales), FREE_ROOT)
        near = math.sqrt(min(1.0, style.features * variance / max(misfit, 1e-300)))
        brought = mean + near * (maps - mean), aims - (1.0 - near) * left
        return float(shape.local_shape(style, base, brought[1], brought[0], self.x, self._local))

    def follow(self, q: Array) -> None:
        """Move the latent point by what a new pose, brought near, implies."""
        gap = self.chart.own_maps(q[ROOT_SIZE:]) - self._local.mean
        pull = self._precision @ gap
        near = math.sqrt(min(1.0, len(gap) / max(float(gap @ pull), 1e-300)))
        step = shape.latent_step(self._local, near * pull)
        reach = LATENT_REACH / math.sqrt(self._style.parameters[2])
        self.x = self.x + step * min(1.0, reach / max(float(np.linalg.norm(step)), 1e-300))

    def loss(self, q: Array) -> float:
        """L_IK under the fine model, but with misfits in units of its noise, wherever the latent point is."""
        style = self._watched.styles[-1]
        *_, variance, misfit = self._misfit(style, self.chart.own_maps(q[ROOT_SIZE:]), self._aims(q))
        uncertainty = style.features * math.log(variance) + float(self.x @ self.x)
        return float(0.5 * (misfit * style.parameters[1] + uncertainty))

    def _misfit(
        self, style: shape.StyleArrays, maps: Float[Array, "own"], aims: Float[Array, "checks"]
    ) -> tuple[Array, Array, Array, float, float]:
        """At the latent point: k(x), the prediction, what it leaves of the aims, sigma^2 and the squared misfit."""
        count, latent = style.actives.shape
        k, mean, left = np.empty(count), np.empty(len(maps)), np.empty(len(aims))
        variance = shape.spread_at(style, self.x, k, np.empty((count, latent)), np.empty(latent))
        misfit = shape.misfit_at(style, self._watched.frame.base, aims, maps, k, mean, left)
        return k, mean, left, variance, misfit

    def _aims(self, q: Array) -> Float[Array, "checks"]:
        """What the pose does not decide: the scaled up of its root, and how far motion and pose disagree."""
        frame = self._watched.frame
        scales, usual = frame.ups
        return np.concatenate([scales * (_up(q)[: len(scales)] - usual), frame.contrasts])

    def _own(self, q: Float[Array, "size"]) -> Float[Array, "own"]:
        """A pose of the blend as this style writes it."""
        return np.concatenate([q[:ROOT_SIZE], self.chart.own_maps(q[ROOT_SIZE:])])
