"""Solve a whole sequence at once: the one solver over time, for any list of terms.

Keyframes, animation from contacts, people in video, and whatever an outside term adds are sums of terms over frames
(`priors.terms`, `solvers.terms`). Each round linearises all terms into a banded system with a border for shared
unknowns, and takes a damped Gauss-Newton step (Levenberg-Marquardt), in time linear in the frames. Rounds end when a
step gains little. Hard constraints are stiff in the steps and met exactly at the end, frame by frame, by the smallest
change in the metric of the other terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.priors.blend import BlendPrior
from poise.priors.prior import Prior
from poise.priors.terms import Accelerations, System, Targets, Term, Unknowns, WindowGaussian, tangents
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import JointLimits, Pose
from poise.solvers import core
from poise.solvers.constraints import Constraint, Orientation, Position
from poise.solvers.follow import Follower
from poise.solvers.problem import Problem, Settings
from poise.solvers.solution import MotionSolution
from poise.solvers.solve import Solver
from poise.solvers.terms import STIFF, Constraints, PosePriors
from poise.types import Array, Progress

ROUNDS = 9
SETTLED = 0.02  # nats per frame: a step that gains less is the last
LONGEST_TURN, LONGEST_WAY, LONGEST_STRIDE = (
    0.3,
    0.5,
    0.4,
)  # largest step of joints (rad), root (m), latent points
FIRST_DAMPING, TRIES = (
    1e-4,
    6,
)  # relative to the diagonal; and how often a step that gains nothing is damped more
MOST_TARGETS = 1200  # that a model of motion is shown
AWAY = 0.3  # radians (metres for the root): typical deviation of a frame from its own solution
SMOOTHER = 0.995  # of the roughness before: a step that smooths less is not worth meeting constraints again
QUICKEST_TURN = 2.5  # radians per second: typical largest turning speed of a root


class SequenceSolver:
    """All frames as one problem: the sum of its terms."""

    def __init__(self, space: PoseSpace, terms: Sequence[Term], *, limits: JointLimits | None = None) -> None:
        self.space, self.terms = space, list(terms)
        self._limits = Problem(space, [], limits=limits).limits
        latent = shared = 0
        for term in self.terms:
            term.own, term.common = slice(latent, latent + term.latent), slice(shared, shared + term.shared)
            latent, shared = latent + term.latent, shared + term.shared
        self.latent, self.shared = latent, shared

    def solve(
        self,
        start: Unknowns,
        *,
        rounds: int = ROUNDS,
        settled: float = SETTLED,
        progress: Callable[[int], None] = lambda _round: None,
    ) -> tuple[Unknowns, int]:
        """The unknowns of least cost near a start, and the rounds: until one gains less than `settled` a frame."""
        if start.x.shape[1] != self.latent or len(start.shared) != self.shared:
            raise InvalidValueError(
                f"the terms have {self.latent} latent unknowns a frame and {self.shared} shared ones; "
                f"the start has {start.x.shape[1]} and {len(start.shared)}"
            )
        now, damping = start, FIRST_DAMPING
        for number in range(rounds):
            changing = [term.update(now, number) for term in self.terms]
            system, before, gained = self.system(now), self.cost(now), 0.0
            for _ in range(TRIES):
                trial = self._moved(now, *system.steps(damping))
                gained = before - self.cost(trial)
                if gained > 0.0:
                    now, damping = trial, max(0.2 * damping, 1e-8)
                    break
                damping = 10.0 * max(damping, 1e-6)
            progress(number + 1)
            if gained < settled * len(now) and not any(changing):
                return now, number + 1
        return now, rounds

    def cost(self, now: Unknowns) -> float:
        """The sum of the terms' costs."""
        return sum(term.cost(now) for term in self.terms)

    def system(self, now: Unknowns, terms: Sequence[Term] | None = None) -> System:
        """The Gauss-Newton system of all terms, or of some."""
        chosen = self.terms if terms is None else terms
        system = System(now, reach=max((term.reach for term in self.terms), default=0))
        for term in chosen:
            term.add(now, system)
        return system

    def deviations(self, now: Unknowns) -> Float[Array, "frames joints"]:
        """One standard deviation per axis of each joint's position, from the terms of its own frame."""
        system, count = (
            self.system(now, [term for term in self.terms if not term.reach]),
            len(self.space.skeleton),
        )
        joints = self.space.handles(self.space.skeleton.names)
        found = np.empty((len(now), count))
        for frame, q in enumerate(now.q):
            _, jacobian = self.space.handle_positions(q, joints)
            spread = np.linalg.inv(system.bands[0][frame, : system.freedoms, : system.freedoms])
            variances = np.einsum("ij,jk,ik->i", jacobian, spread, jacobian)
            found[frame] = np.sqrt(variances.reshape(-1, 3).mean(axis=1))
        return found

    def _moved(self, now: Unknowns, steps: Float[Array, "frames block"], shared: Array) -> Unknowns:
        """The unknowns after a step, which is shortened frame by frame and kept within joint limits."""
        bounds = np.full(steps.shape[1], LONGEST_TURN)
        bounds[:3], bounds[self.space.freedoms :] = LONGEST_WAY, LONGEST_STRIDE
        steps = steps / np.maximum((np.abs(steps) / bounds).max(axis=1, keepdims=True), 1.0)
        q = np.empty_like(now.q)
        for frame, step in enumerate(steps[:, : self.space.freedoms]):
            q[frame] = self.space.integrate(now.q[frame], step)
            core.bring_inside(q[frame], self._limits)
        return Unknowns(q, now.x + steps[:, self.space.freedoms :], now.shared + shared)


def solve_terms(
    prior: Prior,
    frames: Sequence[Sequence[Constraint]],
    terms: Sequence[Term],
    start: Unknowns,
    *,
    fps: float,
    settings: Settings | None = None,
    space: PoseSpace | None = None,
    stiff: float = STIFF,
    rounds: int = ROUNDS,
    progress: Progress = lambda _done, _all: None,
) -> MotionSolution:
    """The motion of least cost under any terms that meets the constraints of every frame, from a start near it.

    The prior gives its space and limits, unless another `space` is given, and scores the result. In the steps, hard
    constraints have the tolerance `stiff`.
    """
    if not len(frames) == len(start) >= 1:
        raise InvalidValueError(
            f"constraints and start must have the same number of frames, at least 1; "
            f"got {len(frames)} and {len(start)}"
        )
    space, limits = (prior.space, prior.limits) if space is None else (space, None)
    problems = [Problem(space, own, limits=limits, settings=settings) for own in frames]
    constraints = Constraints(problems, stiff=stiff)
    solver = SequenceSolver(space, [*terms, constraints], limits=limits)
    total = rounds + 1
    found, taken = solver.solve(start, rounds=rounds, progress=lambda done: progress(done, total))
    q = found.q.copy()
    solutions = constraints.finish(q, solver.system(found, terms), prior, taken)
    progress(total, total)
    return MotionSolution(solutions, fps, latents=found.x)


def targets_of(space: PoseSpace, frames: Sequence[Sequence[Constraint]], fps: float) -> Targets:
    """The position constraints of all frames; if there are too many, evenly spaced ones."""
    found = [
        (frame / fps, constraint)
        for frame, constraints in enumerate(frames)
        for constraint in constraints
        if isinstance(constraint, Position)
    ]
    found = found[:: max(1, -(-len(found) // MOST_TARGETS))]
    handles = space.handles([constraint.at for _, constraint in found])
    points = np.array([constraint.target for _, constraint in found], dtype=np.float64).reshape(-1, 3)
    return Targets(np.array([time for time, _ in found]), handles, points)


# --- from priors of poses ------------------------------------------------------------------------------------------


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

    def term(self, freedoms: int, fps: float) -> Accelerations:
        """The term at a frame rate."""
        typical = np.full(freedoms, self.turning)
        typical[:3] = self.moving
        return Accelerations((fps**2 / typical) ** 2)


class Smoother(Term):
    """Forbids steps that do not make the joints' paths smoother, by a little at least: they go too far for one step.

    A style that has learned velocities solves frames smoothly one after the other, and gains nothing from smoothing.
    """

    def __init__(self, space: PoseSpace) -> None:
        self._space, self._most = space, np.inf
        self._before: Unknowns | None = None

    def update(self, now: Unknowns, number: int) -> bool:
        """Measure the present roughness."""
        del number
        self._before, self._most = now, SMOOTHER * self._roughness(now)
        return False

    def cost(self, now: Unknowns) -> float:
        """Infinite for paths that are not smoother than before the round, else nothing."""
        return 0.0 if now is self._before or self._roughness(now) <= self._most else np.inf

    def add(self, now: Unknowns, system: System) -> None:
        """Nothing: it has no gradient."""

    def _roughness(self, now: Unknowns) -> float:
        changes = np.diff(self._space.forward(now.q)[0], n=2, axis=0)
        return float(np.linalg.norm(changes, axis=-1).sum())


def solve_motion(
    priors: Sequence[Prior],
    frames: Sequence[Frame],
    *,
    fps: float,
    smoothness: Smoothness | None = None,
    settings: Settings | None = None,
    start: Float[Array, "frames size"] | None = None,
    progress: Progress = lambda _done, _all: None,
) -> MotionSolution:
    """Likely poses that meet every frame's constraints and move smoothly; priors are blended by frames' weights.

    By default the start is the same frames solved one after the other (section 6.2 of Grochow et al. 2004).
    """
    if not frames:
        raise InvalidValueError("a motion needs at least one frame; got none")
    common, smooth = common_space(priors), smoothness or Smoothness()
    space, wanted = common.space, [frame.constraints for frame in frames]
    total = len(frames) * (2 + smooth.rounds)
    alone = start
    if alone is None:
        alone = frame_by_frame(priors, frames, space, fps=fps, progress=lambda done: progress(done, total))
    handles = [Problem(space, own).handles for own in wanted]
    terms: list[Term] = [PosePriors(priors, space, handles, [frame.weights for frame in frames])]
    if smooth.rounds:
        near = np.full(space.freedoms, AWAY**-2)
        terms += [smooth.term(space.freedoms, fps), WindowGaussian(0, alone, near), Smoother(space)]
    else:
        terms[0].update(Unknowns(alone), 0)
    return solve_terms(
        common, wanted, terms, Unknowns(alone), fps=fps, settings=settings, rounds=smooth.rounds,
        progress=lambda done, _all: progress((1 + done) * len(frames), total),
    )  # fmt: skip


def common_space(priors: Sequence[Prior]) -> BlendPrior | Prior:
    """A prior with the common space and limits of all: the only one, or their even blend."""
    return priors[0] if len(priors) == 1 else BlendPrior(priors, [1.0 / len(priors)] * len(priors))


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
        steady: list[Constraint] = []
        if before is not None:
            root = before.skeleton.names[0]
            slowly = QUICKEST_TURN / fps
            steady = [Orientation(root, before.rotations[0], tolerance=slowly, name="turn of the root")]
        before = follower.step([*frame.constraints, *steady]).pose
        poses.append(space.q_from_pose(before))
        progress(done)
    return np.stack(poses)


def keyed_frames(prior: Prior, frames: Sequence[Frame], *, fps: float) -> Float[Array, "frames size"]:
    """Solve the frames of which something is asked, one after the other; the others lie between them."""
    asked = np.array([number for number, frame in enumerate(frames) if frame.constraints])
    solved, space = frame_by_frame([prior], [frames[k] for k in asked], prior.space, fps=fps), prior.space
    found = np.empty((len(frames), space.size))
    for number in range(len(frames)):
        earlier = max(int(np.searchsorted(asked, number, side="right")) - 1, 0)
        later = min(int(np.searchsorted(asked, number)), len(asked) - 1)
        gone = tangents(solved[earlier][None], solved[later][None])[0]
        share = (number - asked[earlier]) / max(asked[later] - asked[earlier], 1)
        found[number] = space.integrate(solved[earlier], (later > earlier) * share * gone)
    return found


def _model(priors: Sequence[Prior], weights: tuple[float, ...]) -> Prior:
    """The prior of one frame: the only one with a positive weight, or the blend."""
    taking_part = [(prior, weight) for prior, weight in zip(priors, weights, strict=True) if weight > 0.0]
    if len(taking_part) == 1:
        return taking_part[0][0]
    return BlendPrior([prior for prior, _ in taking_part], [weight for _, weight in taking_part])
