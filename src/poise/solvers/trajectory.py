"""Solve a whole sequence at once: likely poses that meet every frame's constraints and move smoothly.

Over all frames t, with each frame's priors as a Gaussian around its pose (`Guide.around`), it minimises

    sum_t |q_t - m_t|^2_P + sum_t |q_(t+1) - 2 q_t + q_(t-1)|^2 / (s dt^2)^2    with C_t(q_t) = 0,

by Gauss-Newton steps on the tangents of all frames together: a block-pentadiagonal system, in time linear in the
frames. Constraints are stiff in the steps and met exactly at the end, frame by frame, by the smallest change given the
prior and the neighbouring frames. The initial guess is the same frames solved one after the other (section 6.2 of
Grochow et al. 2004).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion.motion import Motion, Origin
from poise.priors.blend import BlendPrior, Chart, weighed
from poise.priors.forms import FREE_ROOT
from poise.priors.prior import Information, Prior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Pose
from poise.solvers import core, dual_step
from poise.solvers.block_banded import BlockBanded
from poise.solvers.constraints import Constraint, Orientation
from poise.solvers.follow import Follower
from poise.solvers.problem import Problem, Settings, tangent_step
from poise.solvers.solution import STATUSES, Residual, Solution
from poise.solvers.solve import Solver
from poise.types import Array, Progress

STIFF = 1e-4  # metres, radians: tolerance of hard constraints in the steps; the finish meets them exactly
LONGEST_STEP = 0.3  # radians or metres: largest step of any degree of freedom
AWAY = 0.3  # radians (metres for the root): typical deviation of a frame from its own solution
NEARER = 0.5  # factor on that deviation after a step that made the motion rougher
SETTLED = 2e-3  # radians: the rounds end when the largest step is shorter
QUICKEST_TURN = 2.5  # radians per second: typical largest turning speed of a root
ACCELERATIONS = (1.0, -2.0, 1.0)


@dataclass(frozen=True, eq=False)
class Frame:
    """The constraints of one frame, and its weights over the priors (which sum to one)."""

    constraints: Sequence[Constraint]
    weights: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class Smoothness:
    """Typical accelerations, used as standard deviations of the smoothness term."""

    turning: float = 30.0  # radians per second squared, of every joint
    moving: float = 7.0  # metres per second squared, of the root
    rounds: int = 6

    def __post_init__(self) -> None:
        if not (self.turning > 0 and self.moving > 0 and self.rounds >= 0):
            raise InvalidValueError(
                f"`turning` and `moving` must be positive, `rounds` >= 0; got {self.turning:g}, {self.moving:g}, "
                f"{self.rounds}"
            )


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A solution for every frame."""

    solutions: Sequence[Solution]

    @classmethod
    def of(
        cls,
        q: Float[Array, "frames size"],
        problems: Sequence[Problem],
        ended: Sequence[tuple[int, int, Array]],
        prior: Prior,
    ) -> Trajectory:
        """Create it from the poses, the frames' problems, and the outcome of finishing each."""
        return cls(
            [
                Solution(
                    pose, prior.space, partial(_left, problem, pose), STATUSES[status], steps, 0.0, prior
                )
                for pose, problem, (status, steps, _) in zip(q, problems, ended, strict=True)
            ]
        )

    @property
    def space(self) -> PoseSpace:
        """The pose space of its poses."""
        return self.solutions[0].space

    @cached_property
    def q(self) -> Float[Array, "frames size"]:
        """The pose vectors of all frames."""
        return np.stack([solution.q for solution in self.solutions])

    def motion(self, fps: float, *, name: str = "") -> Motion:
        """Return the motion at this frame rate."""
        origin = Origin(credits=self.solutions[0].credits)
        return Motion(self.space.skeleton, fps, *self.space.frames_from_q(self.q), name=name, origin=origin)

    @property
    def unmet(self) -> tuple[int, ...]:
        """The frames with a hard constraint that could not be met."""
        return tuple(frame for frame, solution in enumerate(self.solutions) if not solution.reached)

    def residuals(self, frame: int) -> dict[str, float]:
        """Residuals of a frame's constraints by label, each in its unit."""
        return {residual.label: residual.value for residual in self.solutions[frame].residuals}


def _left(problem: Problem, q: Float[Array, "size"]) -> tuple[Residual, ...]:
    return problem.residuals(problem.errors(q)[0])


class LocalGaussian:
    """Several priors for one set of handles, by weight, as one Gaussian around poses of a common space."""

    def __init__(self, priors: Sequence[Prior], space: PoseSpace, handles: Handles) -> None:
        self._space, self._handles = space, handles
        self._parts = [(prior.guide(handles), Chart(prior.space, space)) for prior in priors]

    def __call__(self, q: Float[Array, "size"], weights: Sequence[float]) -> Information:
        """Pull and precision at a pose; zero without a prior of positive weight."""
        points, _ = self._space.handle_positions(q, self._handles)
        nothing = Information(np.zeros(len(q) - 1), np.eye(len(q) - 1) / FREE_ROOT)
        return weighed(
            [
                (1.0, nothing),
                *(
                    (weight, chart.seen(q, guide.around(chart.own(q), points)))
                    for (guide, chart), weight in zip(self._parts, weights, strict=True)
                    if weight > 0.0
                ),
            ]
        )


def common_space(priors: Sequence[Prior]) -> BlendPrior | Prior:
    """A prior with the common space and limits of all: the only one, or their even blend."""
    return priors[0] if len(priors) == 1 else BlendPrior(priors, [1.0 / len(priors)] * len(priors))


def solve_trajectory(
    priors: Sequence[Prior],
    frames: Sequence[Frame],
    *,
    fps: float,
    smoothness: Smoothness | None = None,
    settings: Settings | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Trajectory:
    """Return poses for all frames; several priors are blended by each frame's weights."""
    if not frames:
        raise InvalidValueError("a trajectory needs at least one frame; got none")
    common = common_space(priors)
    smooth = smoothness or Smoothness()
    total = len(frames) * (1 + smooth.rounds)
    whole = _Sequence(common.space, common.limits, frames, settings or Settings())
    local = [LocalGaussian(priors, common.space, handles) for handles in whole.handle_sets]
    q = frame_by_frame(priors, frames, common.space, fps=fps, progress=lambda done: progress(done, total))
    alone, least, away = q, _roughness(common.space, q), AWAY
    for number in range(smooth.rounds):
        tried = q.copy()
        went = whole.step(tried, local, smooth, fps, alone, away)
        progress((2 + number) * len(frames), total)
        rough = _roughness(common.space, tried)
        if (
            rough >= least
        ):  # too far for one step, or no further gain in smoothness if a style has learned velocities
            away *= NEARER
            continue
        q, least = tried, rough
        if went < SETTLED:
            break
    ended = whole.finish(q, local, smooth, fps)
    progress(total, total)
    return Trajectory.of(q, whole.problems, ended, common)


def frame_by_frame(
    priors: Sequence[Prior],
    frames: Sequence[Frame],
    space: PoseSpace,
    *,
    fps: float = 30.0,
    after: Pose | None = None,
    progress: Callable[[int], None] = lambda _done: None,
) -> Float[Array, "frames size"]:
    """Solve each frame tracked from the one before, the first from `after`: the initial guess of the sequence.

    The root's turning speed is limited to what people do: two feet side by side do not determine the heading. A style
    that has learned velocities continues the motion of the previous frames.
    """
    poses: list[Array] = []
    weights, before = frames[0].weights, after
    follower = Follower(partial(Solver, _model(priors, weights), fps=fps))
    if after is not None:
        follower.restart(space, space.q_from_pose(after))
    for done, frame in enumerate(frames, start=1):
        if frame.weights != weights:
            weights = frame.weights
            follower.use(partial(Solver, _model(priors, weights), fps=fps))
        before = follower.step([*frame.constraints, *_steady(before, fps)]).pose
        poses.append(space.q_from_pose(before))
        progress(done)
    return np.stack(poses)


def _steady(before: Pose | None, fps: float) -> list[Constraint]:
    """Softly keep the root's orientation of the previous frame, if there is one."""
    if before is None:
        return []
    root = before.skeleton.names[0]
    return [Orientation(root, before.rotations[0], tolerance=QUICKEST_TURN / fps, name="turn of the root")]


def _model(priors: Sequence[Prior], weights: tuple[float, ...]) -> Prior:
    """The prior of one frame: the only one with a positive weight, or the blend."""
    taking_part = [(prior, weight) for prior, weight in zip(priors, weights, strict=True) if weight > 0.0]
    if len(taking_part) == 1:
        return taking_part[0][0]
    return BlendPrior([prior for prior, _ in taking_part], [weight for _, weight in taking_part])


class _Sequence:
    """All frames as one problem."""

    def __init__(
        self, space: PoseSpace, limits: JointLimits | None, frames: Sequence[Frame], settings: Settings
    ) -> None:
        self.space = space
        self.weights = [frame.weights for frame in frames]
        self.problems = [
            Problem(space, frame.constraints, limits=limits, settings=settings) for frame in frames
        ]
        self.handle_sets, self._set_of = _handle_sets(self.problems)

    def information(
        self, q: Float[Array, "frames size"], local: Sequence[LocalGaussian], frame: int
    ) -> tuple[Array, Array]:
        """Pull and precision of a frame's prior; degrees of freedom that may not move are held."""
        pull, precision = local[self._set_of[frame]](q[frame], self.weights[frame])
        return _held(pull, precision, self.problems[frame].free)

    def step(
        self,
        q: Float[Array, "frames size"],
        local: Sequence[LocalGaussian],
        smooth: Smoothness,
        fps: float,
        alone: Float[Array, "frames size"],
        away: float,
    ) -> float:
        """Take one Gauss-Newton step of all frames together, in place; return the largest change of a freedom."""
        freedoms = self.space.freedoms
        system, right = BlockBanded(len(q), freedoms), np.zeros((len(q), freedoms))
        for frame, problem in enumerate(self.problems):
            pull, precision = self.information(q, local, frame)
            towards, stiffness = row_information(problem, q[frame])
            right[frame] = pull + towards + tangent_step(q[frame], alone[frame]) / away**2
            system.bands[0][frame] = precision + stiffness + np.eye(freedoms) / away**2
        rate = rates(freedoms, smooth, fps)
        system.add_differences(ACCELERATIONS, rate)
        if len(q) > 2:
            right -= spread_accelerations(rate * tangent_accelerations(q))
        steps = system.factored().solve(right)
        largest = float(np.abs(steps).max())
        steps *= min(1.0, LONGEST_STEP / max(largest, 1e-300))
        for frame, problem in enumerate(self.problems):
            q[frame] = self.space.integrate(q[frame], steps[frame] * problem.free)
            core.bring_inside(q[frame], problem.limits)
        return largest

    def finish(
        self, q: Float[Array, "frames size"], local: Sequence[LocalGaussian], smooth: Smoothness, fps: float
    ) -> list[tuple[int, int, Array]]:
        """Meet every frame's hard constraints exactly, in place; return the outcome of each frame.

        The change is the smallest given the neighbouring frames, where there are any: a free root would move instead
        of an ankle.
        """
        ended, between = [], smooth.rounds > 0 and len(q) > 2
        kept = between * np.square(ACCELERATIONS).sum() * rates(self.space.freedoms, smooth, fps)
        for frame, problem in enumerate(self.problems):
            _, precision = self.information(q, local, frame)
            covariance = np.linalg.inv(precision + np.diag(kept)) * np.outer(problem.free, problem.free)
            ended.append(problem.finish(q[frame], covariance))
        return ended


def _handle_sets(problems: Sequence[Problem]) -> tuple[list[Handles], list[int]]:
    """The distinct sets of handles with positions, and the index of each frame's set."""
    sets: dict[tuple[bytes, bytes], Handles] = {}
    keys = []
    for problem in problems:
        handles = problem.handles
        keys.append((handles.joints.tobytes(), handles.offsets.tobytes()))
        sets.setdefault(keys[-1], handles)
    places = {key: number for number, key in enumerate(sets)}
    return list(sets.values()), [places[key] for key in keys]


def _held(pull: Array, precision: Array, free: Array) -> tuple[Array, Array]:
    if not free.all():
        pull, precision = pull * free, precision * np.outer(free, free)
        precision[~free, ~free] = 1.0
    return pull, precision


def row_cost(problem: Problem, q: Float[Array, "size"]) -> float:
    """Weighted squared error of the active rows: e' W e."""
    errors, _ = problem.errors(q)
    return float(errors**2 @ _row_weights(problem, errors))


def row_information(problem: Problem, q: Float[Array, "size"]) -> tuple[Array, Array]:
    """Gradient and curvature of the active rows: J' W e and J' W J."""
    errors, jacobian = problem.errors(q)
    weighed = jacobian.T * _row_weights(problem, errors)
    return weighed @ errors, weighed @ jacobian


def _row_weights(problem: Problem, errors: Float[Array, "rows"]) -> Float[Array, "rows"]:
    variance = problem.rows[:, dual_step.VARIANCE]
    hard = STIFF**2 * problem.rows[:, dual_step.COMPLIANCE]
    weights = 1.0 / np.where(variance > 0.0, variance, hard)
    weights[(problem.rows[:, dual_step.INEQUALITY] == 1.0) & (errors <= 0.0)] = 0.0
    return np.asarray(weights)


def rates(freedoms: int, smooth: Smoothness, fps: float) -> Float[Array, "freedoms"]:
    """The precision of second differences from frame to frame."""
    typical = np.full(freedoms, smooth.turning)
    typical[:3] = smooth.moving
    return np.asarray((fps**2 / typical) ** 2)


def tangent_accelerations(q: Float[Array, "frames size"]) -> Float[Array, "middle freedoms"]:
    """Second differences in the tangent space; root rotations are compared in the root's own frame."""
    turns = rotations.multiply(rotations.conjugate(q[:-1, 3:ROOT_SIZE]), q[1:, 3:ROOT_SIZE])
    turning = np.diff(rotations.expmap_from_quaternion(rotations.canonical(turns)), axis=0)
    return np.concatenate(
        [np.diff(q[:, :3], n=2, axis=0), turning, np.diff(q[:, ROOT_SIZE:], n=2, axis=0)], axis=1
    )


def _roughness(space: PoseSpace, q: Float[Array, "frames size"]) -> float:
    """Mean length of the joints' second differences."""
    if len(q) < 3:
        return 0.0
    return float(np.linalg.norm(np.diff(space.forward(q)[0], n=2, axis=0), axis=-1).mean())


def spread_accelerations(forces: Float[Array, "middle freedoms"]) -> Float[Array, "frames freedoms"]:
    """The adjoint of second differences: distribute them to the frames that they are computed from."""
    spread = np.zeros((len(forces) + 2, forces.shape[1]))
    for k, coefficient in enumerate(ACCELERATIONS):
        spread[k : k + len(forces)] += coefficient * forces
    return spread
