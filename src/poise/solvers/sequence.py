"""Solve a whole sequence at once: the one solver over time, for any list of terms.

Keyframes, animation from contacts, people in video, and whatever an outside term adds are sums of terms over frames
(`priors.terms`, and those below). Each round linearises all terms into a banded system with a border for shared
unknowns, and takes a damped Gauss-Newton step (Levenberg-Marquardt), in time linear in the frames. Rounds end when a
step gains little. Hard constraints are stiff in the steps and met exactly at the end, frame by frame, by the smallest
change in the metric of the other terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.priors.blend import BlendPrior, Chart, weighed
from poise.priors.forms import FREE_ROOT
from poise.priors.prior import Information, Prior
from poise.priors.terms import Accelerations, System, Targets, Term, Unknowns, WindowGaussian, tangents
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Pose
from poise.solvers import core, dual_step
from poise.solvers.constraints import ROWS, Constraint, Kind, Orientation, Position
from poise.solvers.problem import Problem, Settings
from poise.solvers.rows import Body, evaluate
from poise.solvers.solution import STATUSES, MotionSolution, Residual, Solution
from poise.solvers.solve import Follower, Solver
from poise.types import Array, PoseVector, Progress

ROUNDS = 9
SETTLED = 0.02  # nats per frame: a step that gains less is the last
LONGEST_TURN, LONGEST_WAY, LONGEST_STRIDE = 0.3, 0.5, 0.4  # of joints (rad), root (m), latent points
FIRST_DAMPING, TRIES = 1e-4, 6  # relative to the diagonal; how often a step that gains nothing is damped more
AWAY = 0.3  # radians (metres for the root): typical deviation of a frame from its own solution
SMOOTHER = 0.995  # of the roughness before: a step that smooths less is not worth meeting constraints again
QUICKEST_TURN = 2.5  # radians per second: typical largest turning speed of a root
STIFF = 1e-3  # metres, radians: tolerance of hard constraints in the steps; less allows short steps only
EXACT = 0.1  # of the tolerance of hard constraints: where their finish ends
AT_ONCE = 64  # frames whose rows are linearised together


class SequenceSolver:
    """All frames as one problem: the sum of its terms. Without a space, all unknowns are latent or shared."""

    def __init__(
        self, space: PoseSpace | None, terms: Sequence[Term], *, limits: JointLimits | None = None
    ) -> None:
        self.space, self.terms = space, list(terms)
        self._limits = np.empty((2, 0)) if space is None else Problem(space, [], limits=limits).limits
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
        system = self.system(now, [term for term in self.terms if not term.reach])
        assert self.space is not None, "deviations are those of a body's joints"
        names = self.space.skeleton.names
        joints, found = self.space.handles(names), np.empty((len(now), len(names)))
        for frame, q in enumerate(now.q):
            _, jacobian = self.space.handle_positions(q, joints)
            spread = np.linalg.inv(system.bands[0][frame, : system.freedoms, : system.freedoms])
            variances = np.einsum("ij,jk,ik->i", jacobian, spread, jacobian)
            found[frame] = np.sqrt(variances.reshape(-1, 3).mean(axis=1))
        return found

    def _moved(self, now: Unknowns, steps: Float[Array, "frames block"], shared: Array) -> Unknowns:
        """The unknowns after a step, which is shortened frame by frame and kept within joint limits."""
        freedoms, bounds = self._limits.shape[1], np.full(steps.shape[1], LONGEST_TURN)
        bounds[:3], bounds[freedoms:] = LONGEST_WAY, LONGEST_STRIDE
        steps = steps / np.maximum((np.abs(steps) / bounds).max(axis=1, keepdims=True), 1.0)
        q, x = now.q.copy(), now.x + steps[:, freedoms:]
        if self.space is not None:
            for pose, step in zip(q, steps[:, :freedoms], strict=True):
                pose[:] = self.space.integrate(pose, step)
                core.bring_inside(pose, self._limits)
        for term in self.terms:
            x[:, term.own] = term.inside(x[:, term.own])
        return Unknowns(q, x, now.shared + shared)


def solve_terms(
    prior: Prior | None,
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

    The prior, if there is one, scores the result, and gives its space and limits unless another `space` is given. In
    the steps, hard constraints have the tolerance `stiff`.
    """
    if not len(frames) == len(start) >= 1:
        raise InvalidValueError(
            f"constraints and start must have the same number of frames, at least 1; "
            f"got {len(frames)} and {len(start)}"
        )
    limits = None
    if space is None:
        if prior is None:
            raise InvalidValueError("a sequence needs a prior or a pose space; got neither")
        space, limits = prior.space, prior.limits
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
    """The position constraints of all frames."""
    timed = [(frame / fps, one) for frame, own in enumerate(frames) for one in own]
    found = [(time, one.at, one.target) for time, one in timed if isinstance(one, Position)]
    handles = space.handles([at for _, at, _ in found])
    points = np.array([target for _, _, target in found], dtype=np.float64).reshape(-1, 3)
    return Targets(np.array([time for time, _, _ in found]), handles, points)


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

    def update(self, now: Unknowns, number: int) -> bool:  # noqa: ARG002
        """Measure the present roughness."""
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
            root, turn, slowly = before.skeleton.names[0], before.rotations[0], QUICKEST_TURN / fps
            steady = [Orientation(root, turn, tolerance=slowly, name="turn of the root")]
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


# --- terms of constraints and of priors of poses ----------------------------------------------------------------------


class Constraints(Term):
    """The constraints of every frame: soft ones by their tolerance, hard ones stiff, and met exactly at the end."""

    def __init__(self, problems: Sequence[Problem], *, stiff: float = STIFF) -> None:
        self.problems, self._stiff = problems, stiff

    def cost(self, now: Unknowns) -> float:
        """Half the weighted squares of the errors."""
        posed = [(problem, problem.errors(q)[0]) for problem, q in zip(self.problems, now.q, strict=True)]
        return 0.5 * sum(float(errors**2 @ _weights(own, errors, self._stiff)) for own, errors in posed)

    def add(self, now: Unknowns, system: System) -> None:
        """Add the rows; freedoms that a frame has pinned or given are held."""
        own = slice(0, system.freedoms)
        for frame, problem in enumerate(self.problems):
            system.held[frame, own] |= ~problem.free
            if len(problem.rows):
                errors, jacobian = problem.errors(now.q[frame])
                weighed = jacobian.T * _weights(problem, errors, self._stiff)
                system.right[frame, own] += weighed @ errors
                system.bands[0][frame, own, own] += weighed @ jacobian

    def finish(
        self, q: Float[Array, "frames size"], metric: System, prior: Prior | None, steps: int
    ) -> list[Solution]:
        """Meet every frame's hard constraints exactly, in place, by the smallest change in a metric."""
        found = []
        for frame, problem in enumerate(self.problems):
            own = metric.bands[0][frame, : metric.freedoms, : metric.freedoms]
            precision = own + np.eye(len(own)) / FREE_ROOT
            covariance = np.linalg.inv(precision) * np.outer(problem.free, problem.free)
            status, taken, _ = problem.finish(q[frame], covariance, share=EXACT)
            measure, outcome = partial(_left, problem, q[frame]), STATUSES[status]
            found.append(Solution(q[frame], problem.space, measure, outcome, steps + taken, 0.0, prior))
        return found


class Rows(Term):
    """Soft rows of the same kinds in every frame, each frame with parameters and variances of its own.

    A row with infinite variance is not used. Blocks farther off than `outlier` standard deviations count less and
    less (the loss of Geman and McClure): r^2 / (1 + r^2 / outlier^2) for a block's squared errors r^2. Rows that
    depend on shared unknowns override `take` and `by_shared`.
    """

    def __init__(self, template: Problem, frames: int, *, outlier: float = np.inf) -> None:
        self.body, self._integers, self._outlier = template.body, template.integers, outlier
        self._counts = np.array([ROWS[Kind(kind)] for kind in self._integers[:, 0]])
        self.floats = np.repeat(template.floats[None], frames, axis=0)
        self.variances = np.full((frames, len(template.rows)), np.inf)

    def take(self, shared: Float[Array, "shared"]) -> None:
        """Write the shared unknowns into body and rows."""

    def by_shared(self, q: Float[Array, "frames size"]) -> Float[Array, "frames rows shared"]:
        """The Jacobian of the rows by the shared unknowns at some poses."""
        return np.zeros((len(q), self.variances.shape[1], 0))

    def cost(self, now: Unknowns) -> float:
        """Half the squared errors over their variances."""
        return 0.5 * sum(cost for _, _, _, _, cost in self._linearised(now))

    def add(self, now: Unknowns, system: System) -> None:
        """Add the rows of all frames, with outliers weighted by their present errors."""
        own, common = slice(0, system.freedoms), self.common
        for some, errors, jacobians, weights, _ in self._linearised(now):
            weighed, columns = np.swapaxes(jacobians * weights[..., None], 1, 2), self.by_shared(now.q[some])
            system.right[some, own] += (weighed @ errors[..., None])[..., 0]
            system.bands[0][some, own, own] += weighed @ jacobians
            system.border[some, own, common] += weighed @ columns
            flat = columns.reshape(errors.size, -1)
            across = (flat * weights.reshape(-1, 1)).T
            system.corner[common, common] += across @ flat
            system.shared_right[common] += across @ errors.ravel()

    def _linearised(self, now: Unknowns) -> Iterable[tuple[slice, Array, Array, Array, float]]:
        """Errors, Jacobians and weights of the rows, and twice their cost, for some frames at once."""
        self.take(now.shared[self.common])
        for first in range(0, len(now), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            variances, poses = self.variances[some], np.ascontiguousarray(now.q[some])
            errors, jacobians = np.empty(variances.shape), np.empty((*variances.shape, poses.shape[1] - 1))
            _evaluate_all(poses, self.body, self._integers, self.floats[some], errors, jacobians)
            squares = np.add.reduceat(errors**2 / variances, self._integers[:, 3], axis=1)
            less = 1.0 / (1.0 + squares / self._outlier**2)
            weights = np.repeat(less**2, self._counts, axis=1) / variances
            yield some, errors, jacobians, weights, float((squares * less).sum())


class PosePriors(WindowGaussian):
    """The priors of every frame, by weight, as a Gaussian around its pose; asked again every few rounds."""

    def __init__(
        self,
        priors: Sequence[Prior],
        space: PoseSpace,
        handles: Sequence[Handles],
        weights: Sequence[Sequence[float]],
        *,
        every: int = 1,
    ) -> None:
        """`handles` are those with positions, by which a prior predicts, and `weights` those of priors, by frame.

        With `every` of 0, priors are asked by `ask` alone.
        """
        super().__init__(0, np.zeros((len(handles), space.size)), np.zeros(space.freedoms))
        made: dict[tuple[bytes, bytes], LocalGaussian] = {}
        self._asked = [
            made.setdefault((own.joints.tobytes(), own.offsets.tobytes()), LocalGaussian(priors, space, own))
            for own in handles
        ]
        self._weights, self._every = weights, every

    def update(self, now: Unknowns, number: int) -> bool:
        """Ask the priors around the present poses."""
        if self._every and number % self._every == 0:
            self.ask(now.q, range(len(now)))
        return False

    def ask(self, q: Float[Array, "frames size"], frames: Iterable[int]) -> None:
        """Ask the priors around the poses of some frames."""
        for frame in frames:
            self.mean[frame] = q[frame]
            self.pull[frame], self.precision[frame] = self._asked[frame](q[frame], self._weights[frame])


class LocalGaussian:
    """Several priors for one set of handles, by weight, as one Gaussian around poses of a common space."""

    def __init__(self, priors: Sequence[Prior], space: PoseSpace, handles: Handles) -> None:
        self._space, self._handles = space, handles
        self._parts = [(prior.guide(handles), Chart(prior.space, space)) for prior in priors]

    def __call__(self, q: PoseVector, weights: Sequence[float]) -> Information:
        """Pull and precision at a pose; zero without a prior of positive weight."""
        points, _ = self._space.handle_positions(q, self._handles)
        found = [(1.0, Information(np.zeros(len(q) - 1), np.eye(len(q) - 1) / FREE_ROOT))]
        for (guide, chart), weight in zip(self._parts, weights, strict=True):
            if weight > 0.0:
                found.append((weight, chart.seen(q, guide.around(chart.own(q), points))))
        return weighed(found)


def _weights(problem: Problem, errors: Float[Array, "rows"], stiff: float) -> Float[Array, "rows"]:
    """One over the variance of each row; zero for inequalities that hold."""
    variance = problem.rows[:, dual_step.VARIANCE]
    hard = stiff**2 * problem.rows[:, dual_step.COMPLIANCE]
    weights = 1.0 / np.where(variance > 0.0, variance, hard)
    weights[(problem.rows[:, dual_step.INEQUALITY] == 1.0) & (errors <= 0.0)] = 0.0
    return np.asarray(weights)


def _left(problem: Problem, q: PoseVector) -> tuple[Residual, ...]:
    return problem.residuals(problem.errors(q)[0])


@compiled
def _evaluate_all(
    q: Array, body: Body, integers: Array, floats: Array, errors: Array, jacobians: Array
) -> None:
    """The rows' errors and Jacobians of many frames."""
    for frame in range(len(q)):
        evaluate(q[frame], body, (integers, floats[frame]), errors[frame], jacobians[frame])
