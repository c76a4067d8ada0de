"""Solve poses: `solve(model, constraints)`, with or without a learned prior, for one pose or a sequence."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import cpu_count
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.bounds import checked_rate
from poise.compiled import work_clock
from poise.engine import Engine
from poise.errors import InvalidValueError
from poise.priors.evidence import held_out_of
from poise.priors.model_file import opened
from poise.priors.prior import Guide, Prior
from poise.registry import Registry
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers import core
from poise.solvers.constraints import Constraint
from poise.solvers.given import Given, constraints_from, doubtful_units
from poise.solvers.problem import Problem, Root, Settings
from poise.solvers.run import PlainRunner, Runner, solve_many
from poise.solvers.solution import STATUSES, Solution, Status
from poise.solvers.uncertainty import Uncertainty
from poise.types import Array, Points, PoseVector

Model = Prior | PoseSpace | Skeleton
GivenModel = Model | str | os.PathLike[str]  # or the file of a model
Run = Callable[[Array, Sequence[Array]], tuple[int, int, Array]]  # moves a pose, after previous frames
Method = Callable[[Problem, Callable[[str], Guide]], Run]  # of a problem, and the model's guide if asked for

MAP, DLS = "map", "dls"
METHODS: Registry[Method] = Registry(
    "method",
    {
        MAP: lambda problem, guide_of: Runner(guide_of("a learned prior"), problem),
        DLS: lambda problem, _: PlainRunner(problem),
        **{name: f"poise.evaluation.classic.{name}:run" for name in ("transpose", "sdls", "ccd", "fabrik")},
        "lbfgs": "poise.evaluation.published.grochow2004:lbfgs",
        "sqp": "poise.evaluation.published.grochow2004:sqp",
        "huang2017": "poise.evaluation.published.huang2017:run",
    },
)
"""Our own methods, and those that serve comparisons only, which are imported at first use."""
STRETCH = 100  # poses of a batch per task of a process
KEPT_SOLVERS = 8  # solvers that `solve` caches, by model and handles
HISTORY = 2  # previous frames that a frame's motion can depend on
KEPT = 64  # constraint sets whose solvers a follower keeps
_KEPT = threading.local()


def solve(
    model: GivenModel,
    constraints: Given,
    *,
    start: Pose | PoseVector | None = None,
    root: Root = "solved",
    method: str | None = None,
    settings: Settings | None = None,
    fps: float | None = None,
    before: Sequence[PoseVector] = (),
) -> Solution:
    """Return the most likely pose under the model that meets the constraints.

    `constraints` is a list of constraints, or a mapping such as `{"right_hand": (x, y, z)}` (see `solvers.given`). The
    model is a learned prior or its file, or a skeleton or pose space for plain inverse kinematics. `root="given"` keeps
    the root of the start. Methods: "map" (with a prior), "dls", "transpose", "sdls", "ccd", "fabrik"; for a style also
    the paper's own, "lbfgs" and "sqp". A model that was learned as published is solved as published. If a style has
    learned velocities, `before` (poses of the previous frames, newest first) and `fps` let it continue the motion.
    """
    asked = constraints_from(constraints)
    solver = _solver_for(opened(model), asked, root=root, method=method, settings=settings, fps=fps)
    solution = solver.solve(start, before=before)
    if start is None:
        solution.notes += doubtful_units(asked, solver.space.skeleton)
    return solution


def _solver_for(model: Model, constraints: Sequence[Constraint], **options: Any) -> Solver:
    """Return a solver for these constraints without previous frames, from the cache if possible.

    Solvers have state, so every thread has its own. A solver keeps its model alive, so the model's `id` stays unique.
    """
    kept: OrderedDict[object, Solver] = _KEPT.__dict__.setdefault("solvers", OrderedDict())
    key = id(model), *options.values(), tuple(one.signature for one in constraints)
    try:
        solver = kept.get(key)
    except TypeError:  # what cannot be a key is not valid either: the solver says what it is
        return Solver(model, constraints, **options)
    if solver is None:
        solver = kept[key] = Solver(model, constraints, **options)
        if len(kept) > KEPT_SOLVERS:
            kept.popitem(last=False)
        return solver
    kept.move_to_end(key)
    solver.problem.retarget(constraints)
    solver.forget()
    return solver


def track(
    model: GivenModel,
    frames: Sequence[Given],
    *,
    starts: Sequence[Pose | PoseVector] | None = None,
    **options: Any,
) -> list[Solution]:
    """Solve one pose per frame of constraints, each started from the one before (or from `starts`, e.g. given roots).

    Given the frame rate, `fps=30.0`, a style also uses the velocities and accelerations it has learned.
    """
    follower = Follower(partial(Solver, opened(model), **options))
    given = starts if starts is not None else [None] * len(frames)
    asked = map(constraints_from, frames)
    return [follower.step(frame, start=start) for frame, start in zip(asked, given, strict=True)]


def solve_batch(
    model: GivenModel,
    frames: Sequence[Given],
    *,
    starts: Sequence[Pose | PoseVector] | None = None,
    root: Root = "solved",
    method: str | None = None,
    settings: Settings | None = None,
    fps: float | None = None,
    threads: int | None = None,
    engine: Engine | None = None,
) -> list[Solution]:
    """Solve independent poses on all cores, in one compiled call per core if the model predicts in compiled code.

    With an engine, parts of the batch go to its processes, or to the machines of its cluster.
    """
    body: Model = opened(model)
    given = starts if starts is not None else [None] * len(frames)
    options: dict[str, Any] = {"root": root, "method": method, "settings": settings, "fps": fps}
    if engine is not None:
        parts = [slice(first, first + STRETCH) for first in range(0, len(frames), STRETCH)]
        work = [(frames[part], given[part]) for part in parts]
        found = engine.map(partial(_stretch_of, body, options), work)
        return [solution for solutions in found for solution in solutions]
    threads, asked = threads or cpu_count() or 1, [constraints_from(frame) for frame in frames]
    solver = _solver_for(body, asked[0], **options) if asked else None
    if solver is not None and solver.batches:
        signatures = [[constraint.signature for constraint in frame] for frame in asked]
        if all(own == signatures[0] for own in signatures):  # they differ in their targets only
            return solver.solve_many(solver.problem.parameters(asked), given, threads=threads)
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda one, start: solve(body, one, start=start, **options), asked, given))


def _stretch_of(
    model: Model, options: dict[str, Any], stretch: tuple[Sequence[Any], Sequence[Any]]
) -> list[Solution]:
    frames, starts = stretch
    return solve_batch(model, frames, starts=starts, threads=1, **options)


class Solver:
    """A solver for one set of constraints, reused with other targets, frame after frame."""

    def __init__(
        self,
        model: GivenModel,
        constraints: Given,
        *,
        root: Root = "solved",
        method: str | None = None,
        settings: Settings | None = None,
        fps: float | None = None,
        guide: Guide | None = None,
    ) -> None:
        """`guide` replaces the prior's own guide for these handles."""
        self.fps = fps if fps is None else checked_rate(fps)
        body: Model = opened(model)
        self.prior, self.space = prior_of(body), space_of(body)
        self.method, asked = method or (DLS if self.prior is None else ""), constraints_from(constraints)
        limits = self.prior.limits if self.prior is not None else None
        self.problem = Problem(self.space, asked, root=root, limits=limits, settings=settings)
        self._notes = tuple(f"{c.label}: ignored, its weight is 0" for c in self.problem.ignored)
        self.runner: Runner | None = None  # of the method "map"
        self._run = self._chosen_run(guide)

    def solve(
        self,
        start: Pose | PoseVector | None = None,
        *,
        targets: Points | None = None,
        before: Sequence[PoseVector] = (),
    ) -> Solution:
        """Solve from a start, with new targets for the position constraints if given.

        `before` holds the poses of the previous frames, newest first: a style that has learned velocities continues
        their motion, if the solver knows the frame rate.
        """
        if targets is not None:
            self.problem.with_targets(targets)
        q = self.problem.start(self._start(start))
        begun = work_clock()
        status, steps, errors = self._run(q, before)
        microseconds = 1e6 * (work_clock() - begun)
        if status == core.BROKEN:
            q = self.problem.start(self._start(start))
        return self._solution(q, STATUSES[status], steps, errors, microseconds)

    @property
    def batches(self) -> bool:
        """Whether one compiled call solves many poses."""
        runner = self.runner
        if runner is None or not runner.compiled:
            return False
        return not runner.guide.faces or self.problem.facing is None

    def solve_many(
        self,
        parameters: Float[Array, "poses blocks parameters"],
        starts: Sequence[Pose | PoseVector | None],
        *,
        threads: int,
    ) -> list[Solution]:
        """Solve the same constraints with other targets (`Problem.parameters`), each from its own start."""
        assert self.runner is not None
        begun = work_clock()
        q = np.stack([self.problem.start(self._start(start)) for start in starts])
        self.runner.ask()
        statuses, steps, errors = solve_many(self.problem, self.runner.guide, q, parameters, threads=threads)
        each = 1e6 * (work_clock() - begun) / len(q)
        ended = zip(q, statuses.tolist(), steps.tolist(), errors, strict=True)
        return [
            self._solution(one, STATUSES[status], taken, left, each) for one, status, taken, left in ended
        ]

    def track(
        self, targets: Float[Array, "frames handles 3"], start: Pose | PoseVector | None = None
    ) -> Iterator[Solution]:
        """Yield a solution per frame of targets, each started from the one before."""
        follower = Follower(lambda _: self)
        for frame in targets:
            yield follower.solve(self, start=start, targets=frame)
            start = None

    def resume(self, q: PoseVector) -> None:
        """Use a pose as the previous frame, so that the next solve is a warm start."""
        if self.runner is not None and not self.runner.remembers(q):
            self.runner.resume(self.space.checked(q))

    @property
    def resumes(self) -> bool:
        """Whether a pose can serve as a warm start; a model that predicts from positions starts from its prediction."""
        return self.runner is None or self.runner.tracks

    def forget(self) -> None:
        """Forget the previous frames: the next solve is a cold one."""
        if self.runner is not None:
            self.runner.forget()

    @property
    def dragging(self) -> bool:
        """Whether a style uses its smooth model alone, which is steady while dragging; other models ignore this."""
        return self.runner is not None and self.runner.dragging

    @dragging.setter
    def dragging(self, dragging: bool) -> None:
        if self.runner is not None:
            self.runner.dragging = dragging

    @property
    def latents(self) -> tuple[Float[Array, "latent"], ...]:
        """Latent points of the last solve, one per style that took part; empty for other models."""
        return () if self.runner is None else self.runner.latents

    @property
    def alternatives(self) -> tuple[PoseVector, ...]:
        """The distinct poses that the last solve found, best first; empty without a prior."""
        return () if self.runner is None else tuple(found.q for found in self.runner.found)

    def _chosen_run(self, guide: Guide | None) -> Run:
        """A run by the requested method, or by the guide's own."""

        def guide_of(needed: str) -> Guide:
            if self.prior is None:
                raise InvalidValueError(
                    f"the method {self.method!r} needs {needed}; for a skeleton, use 'dls'"
                )
            return guide or self.prior.guide(self.problem.handles, fps=self.fps)

        if not self.method:
            guide = guide_of("a learned prior")
            self.method = guide.method(self.problem.root)
        run = METHODS.named(self.method)(self.problem, guide_of)
        self.runner = run if isinstance(run, Runner) else None
        return run

    def _start(self, start: Pose | PoseVector | None) -> PoseVector:
        if isinstance(start, Pose):
            if not start.skeleton.same_topology(self.space.skeleton):
                raise InvalidValueError("the start pose and the model must have the same skeleton")
            return self.space.q_from_pose(start)
        if start is not None:
            return start
        q = np.zeros(self.space.size)
        q[3] = 1.0
        if self.prior is not None:
            q[ROOT_SIZE:] = self.prior.mean
        return q

    def _solution(self, q: Array, status: Status, steps: int, errors: Array, microseconds: float) -> Solution:
        measure, posterior = partial(self.problem.residuals, errors), None
        if self.runner is not None:
            floats, record = self.problem.floats.copy(), held_out_of(self.prior)
            posterior = partial(Uncertainty.of, self.runner, q, floats, record)
        return Solution(
            q, self.space, measure, status, steps, microseconds,
            prior=self.prior, notes=self._notes, posterior_of=posterior,
        )  # fmt: skip


class Follower:
    """Solves frame after frame, with the same solver while only the targets of the constraints change."""

    def __init__(self, make: Callable[[Sequence[Constraint]], Solver], *, kept: int = KEPT) -> None:
        self._recent: list[tuple[PoseSpace, PoseVector]] = []
        self._most = kept
        self.use(make)

    def use(self, make: Callable[[Sequence[Constraint]], Solver]) -> None:
        """Create solvers by `make` from now on, e.g. for another model; previous frames are kept."""
        self._make = make
        self._solvers: dict[Hashable, Solver] = {}

    def step(self, constraints: Sequence[Constraint], *, start: Pose | Array | None = None) -> Solution:
        """Solve the next frame, from the one before or from `start`."""
        return self.solve(self.solver(constraints), start=start)

    def solver(self, constraints: Sequence[Constraint]) -> Solver:
        """Return the solver for these constraints, with their targets set."""
        key = tuple(constraint.signature for constraint in constraints)
        solver = self.kept(key, lambda: constraints)
        solver.problem.retarget(constraints)
        return solver

    def kept(self, key: Hashable, constraints: Callable[[], Sequence[Constraint]]) -> Solver:
        """Return the solver cached under a key; if there is none, create it for these constraints."""
        if key not in self._solvers:
            if len(self._solvers) == self._most:
                del self._solvers[next(iter(self._solvers))]
            self._solvers[key] = self._make(constraints())
        return self._solvers[key]

    def solve(
        self,
        solver: Solver,
        *,
        start: Pose | Array | None = None,
        targets: Points | None = None,
    ) -> Solution:
        """Solve the next frame with this solver."""
        own = solver.space
        before = [q if space is own else own.q_from_pose(space.pose_from_q(q)) for space, q in self._recent]
        if start is None and before:
            start = before[0]
        solution = solver.solve(start, targets=targets, before=before)
        self._recent = [(solution.space, solution.q), *self._recent[: HISTORY - 1]]
        return solution

    @property
    def last(self) -> PoseVector | None:
        """The pose of the previous frame, if there is one."""
        return self._recent[0][1] if self._recent else None

    def begin(self, solver: Solver, q: PoseVector | None, *, follows: bool = False) -> None:
        """Start the next frame from the pose `q`, or cold if None; if it `follows`, `q` is also the previous frame."""
        self._recent = [(solver.space, q)] if follows and q is not None else []
        if q is None:
            solver.forget()
        else:
            solver.resume(q)

    def restart(self, space: PoseSpace | None = None, q: PoseVector | None = None) -> None:
        """Forget the previous frames; `q`, if given, becomes the previous frame."""
        self._recent = [] if space is None or q is None else [(space, q)]
        if not self._recent:
            for solver in self._solvers.values():
                solver.forget()


def prior_of(model: Model) -> Prior | None:
    """Return the model if it is a learned prior, else None."""
    if isinstance(model, Skeleton | PoseSpace):
        return None
    if not hasattr(model, "guide"):
        raise InvalidValueError(
            f"the model must be a learned prior (see poise.load) or a skeleton; got {model!r}"
        )
    return model


def space_of(model: Model) -> PoseSpace:
    """Return the pose space of a model."""
    if isinstance(model, PoseSpace):
        return model
    return PoseSpace(model) if isinstance(model, Skeleton) else model.space
