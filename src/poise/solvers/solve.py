"""One call for every pose: `solve(model, constraints)`, with a learned prior or without, one pose or a sequence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import cpu_count
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.bounds import FARTHEST, checked_rate
from poise.engine import Engine
from poise.errors import InvalidValueError, UnknownNameError
from poise.priors.prior import Guide, Prior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace, all_finite
from poise.skeleton.skeleton import Pose, Skeleton, read_only
from poise.solvers import core
from poise.solvers.classic import METHODS, CompiledSolver
from poise.solvers.classic.task import Task
from poise.solvers.follow import Follower
from poise.solvers.given import Given, constraints_from
from poise.solvers.problem import Problem, Root, Settings
from poise.solvers.run import PlainRunner, Runner
from poise.solvers.solution import STATUSES, Solution, Status
from poise.solvers.style_reference import REFERENCES, ReferenceRun

Array = np.ndarray
Model = Prior | PoseSpace | Skeleton
Run = Callable[[Array, Sequence[Array]], tuple[int, int, Array]]  # moves a pose, after the frames before

MAP, DLS = "map", "dls"
STRETCH = 100  # poses of a batch that a process takes at once
CLASSIC_STEPS = 200  # iterations a classic method may take


def solve(
    model: Model,
    constraints: Given,
    *,
    start: Pose | Float[Array, "size"] | None = None,
    root: Root = "solved",
    method: str | None = None,
    settings: Settings | None = None,
    fps: float | None = None,
    before: Sequence[Float[Array, "size"]] = (),
) -> Solution:
    """The most likely pose under the model that meets the constraints.

    Constraints are a list of them, or a mapping such as `{"right_hand": (x, y, z)}` (see `solvers.given`). The model is
    a learned prior, or a skeleton or pose space for plain inverse kinematics. `root="given"` keeps the
    start's root where it is. Methods: "map" (with a prior), "dls", "transpose", "sdls", "ccd", "fabrik";
    for a style also the paper's own, "lbfgs" and "sqp", to compare with.
    Where a style has learned velocities, `before` (the newest first) and `fps` let it go on from the frames before.
    """
    solver = Solver(model, constraints, root=root, method=method, settings=settings, fps=fps)
    return solver.solve(start, before=before)


def track(
    model: Model,
    frames: Sequence[Given],
    *,
    starts: Sequence[Pose | Float[Array, "size"]] | None = None,
    **options: Any,
) -> list[Solution]:
    """One pose per frame of constraints, each started from the one before (or from `starts`, e.g. for given roots).

    Given the frame rate, `fps=30.0`, a style also goes by the velocities and accelerations it has learned.
    """
    follower = Follower(partial(Solver, model, **options))
    given = starts if starts is not None else [None] * len(frames)
    asked = map(constraints_from, frames)
    return [follower.step(frame, start=start) for frame, start in zip(asked, given, strict=True)]


def solve_batch(
    model: Model,
    frames: Sequence[Given],
    *,
    starts: Sequence[Pose | Float[Array, "size"]] | None = None,
    threads: int | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> list[Solution]:
    """Independent poses on all cores: the compiled core runs without the interpreter's lock.

    With an engine, stretches of the batch go to its processes, or to the machines of its cluster.
    """
    given = starts if starts is not None else [None] * len(frames)
    one = partial(_one_of, model, options)
    if engine is None:
        with ThreadPoolExecutor(threads or cpu_count()) as pool:
            return list(pool.map(one, frames, given))
    stretches = [slice(first, first + STRETCH) for first in range(0, len(frames), STRETCH)]
    found = engine.map(partial(_stretch_of, one), [(frames[part], given[part]) for part in stretches])
    return [solution for solutions in found for solution in solutions]


def _one_of(
    model: Model,
    options: dict[str, Any],
    constraints: Given,
    start: Pose | Float[Array, "size"] | None,
) -> Solution:
    return solve(model, constraints, start=start, **options)


def _stretch_of(one: Callable[..., Solution], stretch: tuple[Sequence[Any], Sequence[Any]]) -> list[Solution]:
    return [one(constraints, start) for constraints, start in zip(*stretch, strict=True)]


class Solver:
    """One problem solved again and again: the same constraints with other targets, frame after frame."""

    def __init__(
        self,
        model: Model,
        constraints: Given,
        *,
        root: Root = "solved",
        method: str | None = None,
        settings: Settings | None = None,
        fps: float | None = None,
        guide: Guide | None = None,
    ) -> None:
        """`guide` goes before the one that the prior would have for these handles."""
        if fps is not None:
            checked_rate(fps)
        self.fps = fps
        self.prior = prior_of(model)
        self.space = space_of(model)
        self.method = method or (DLS if self.prior is None else MAP)
        limits = self.prior.limits if self.prior is not None else None
        self.problem = Problem(
            self.space, constraints_from(constraints), root=root, limits=limits, settings=settings
        )
        self._notes = tuple(f"{c.label}: ignored, its weight is 0" for c in self.problem.ignored)
        self.runner: Runner | None = None
        self._run = self._chosen_run(guide)

    def solve(
        self,
        start: Pose | Float[Array, "size"] | None = None,
        *,
        targets: Float[Array, "handles 3"] | None = None,
        before: Sequence[Float[Array, "size"]] = (),
    ) -> Solution:
        """The solution from a start, with new targets for the position constraints if given.

        `before` are the poses of the frames before, the newest first: a style that has learned velocities moves on
        from them, if the solver was told the frame rate.
        """
        if targets is not None:
            self.problem.with_targets(finite(targets, self.problem))
        q = self.problem.start(self._start(start))
        begun = time.perf_counter_ns()
        status, steps, errors = self._run(q, before)
        microseconds = (time.perf_counter_ns() - begun) / 1000
        if STATUSES[status] is Status.BROKEN:
            q = self.problem.start(self._start(start))
        return self._solution(q, STATUSES[status], steps, errors, microseconds)

    def track(
        self, targets: Float[Array, "frames handles 3"], start: Pose | Float[Array, "size"] | None = None
    ) -> Iterator[Solution]:
        """A solution per frame of targets, each started from the one before."""
        follower = Follower(lambda _: self)
        for frame in targets:
            yield follower.solve(self, start=start, targets=frame)
            start = None

    def resume(self, q: Float[Array, "size"]) -> None:
        """Take a pose as the frame before, so that the next solve goes on from it rather than from a cold start."""
        if self.runner is not None and not self.runner.remembers(q):
            self.runner.resume(self.space.checked(q))

    @property
    def resumes(self) -> bool:
        """Whether a solve can go on from a pose; a model that predicts poses from positions starts from those."""
        return self.runner is None or self.runner.tracks

    def forget(self) -> None:
        """Forget the frames before: the next solve is a cold one."""
        if self.runner is not None:
            self.runner.forget()

    @property
    def dragging(self) -> bool:
        """Whether a style answers with its smooth model alone: steady under a hand that moves; others do not change."""
        return self.runner is not None and self.runner.dragging

    @dragging.setter
    def dragging(self, dragging: bool) -> None:
        if self.runner is not None:
            self.runner.dragging = dragging

    @property
    def latents(self) -> tuple[Float[Array, "latent"], ...]:
        """Where the last solve ended in the latent space of every style that took part; empty for other models."""
        return () if self.runner is None else self.runner.latents

    @property
    def alternatives(self) -> tuple[Float[Array, "size"], ...]:
        """The distinct poses that the last solve found, best first; empty without a prior."""
        return () if self.runner is None else tuple(found.q for found in self.runner.found)

    # --- private ---------------------------------------------------------------------------------------------------

    def _chosen_run(self, guide: Guide | None) -> Run:
        if self.method == MAP or self.method in REFERENCES:
            if self.prior is None:
                needed = "a learned prior" if self.method == MAP else "a style"
                raise InvalidValueError(f"the method {self.method!r} needs {needed}; a skeleton has 'dls'")
            guide = guide or self.prior.guide(self.problem.handles, fps=self.fps)
            if self.method in REFERENCES:
                return ReferenceRun(guide, self.problem, self.method)
            self.runner = Runner(guide, self.problem)
            return self.runner
        if self.method == DLS:
            return PlainRunner(self.problem)
        if self.method not in METHODS:
            raise UnknownNameError("method", self.method, (MAP, DLS, *METHODS, *REFERENCES))
        return classic_run(METHODS[self.method], self.problem)

    def _start(self, start: Pose | Float[Array, "size"] | None) -> Float[Array, "size"]:
        if isinstance(start, Pose):
            if not start.skeleton.same_topology(self.space.skeleton):
                raise InvalidValueError("the start pose is of another skeleton than the model")
            return self.space.q_from_pose(start)
        if start is not None:
            return start
        q = np.zeros(self.space.size)
        q[3] = 1.0
        if self.prior is not None:
            q[ROOT_SIZE:] = self.prior.mean
        return q

    def _solution(self, q: Array, status: Status, steps: int, errors: Array, microseconds: float) -> Solution:
        return Solution(
            q,
            self.space,
            partial(self.problem.residuals, errors),
            status,
            steps,
            microseconds,
            prior=self.prior,
            notes=self._notes,
        )


def classic_run(method: CompiledSolver, problem: Problem) -> Run:
    """A classic method on a problem of nothing but handle positions."""
    if len(problem.position_blocks) != len(problem.integers) or problem.pins:
        raise InvalidValueError(
            "the classic methods take position constraints only; use 'dls' or a prior for others"
        )
    # Read-only, as those of `PoseSpace.handles` are: for another type of array the method would be compiled again.
    joints = read_only(problem.integers[:, 1], dtype=np.int64)
    offsets = read_only(problem.floats[:, :3])
    lower, upper = problem.limits[0].copy(), problem.limits[1].copy()
    tolerance, free_root = problem.settings.tolerance, problem.root == "solved"

    def run(q: Array, before: Sequence[Array] = ()) -> tuple[int, int, Array]:
        del before
        targets = problem.floats[:, 3:6].copy()
        task = Task(
            *problem.space.tree, joints, offsets, targets, lower, upper, free_root, tolerance, CLASSIC_STEPS
        )
        steps = method(q, task)
        errors, _ = problem.errors(q)
        reached = np.all(np.linalg.norm(errors.reshape(-1, 3), axis=1) <= tolerance)
        return (core.REACHED if reached else core.OUT_OF_TIME), steps, errors

    return run


def prior_of(model: Model) -> Prior | None:
    """The model, if it is a learned one."""
    if isinstance(model, Skeleton | PoseSpace):
        return None
    if not hasattr(model, "guide"):
        raise InvalidValueError(f"a model is learned, loaded by poise.load, or a skeleton; got {model!r}")
    return model


def space_of(model: Model) -> PoseSpace:
    """The pose space of a prior, of a skeleton, or itself."""
    if isinstance(model, PoseSpace):
        return model
    return PoseSpace(model) if isinstance(model, Skeleton) else model.space


def finite(targets: Float[Array, "handles 3"], problem: Problem) -> Float[Array, "handles 3"]:
    """Targets as an array of the right shape and finite numbers, or an error before solving."""
    targets = np.asarray(targets, dtype=np.float64)
    expected = (len(problem.position_blocks), 3)
    if targets.shape != expected or not all_finite(targets):
        raise InvalidValueError(f"targets must be {expected} finite numbers; got shape {targets.shape}")
    if np.vdot(targets, targets) > FARTHEST**2 and np.abs(targets).max() > FARTHEST:
        raise InvalidValueError(f"targets must be within {FARTHEST:,.0f} m; got {np.abs(targets).max():g}")
    return targets
