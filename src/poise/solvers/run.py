"""The runner: solve a problem under a guide, from initial guesses or from the previous frame, stage by stage.

A cold solve takes the guide's starts through its smooth stage, keeps those that remain distinct, takes them through
the finer stages, and ranks the results: constraints first, then the loss. A tracked solve warm-starts from the state of
the previous frame, and also tries another start if the handles fit it better. Every round ends with the exact finish.

Under a guide with a compiled predictor, one pose is one compiled call: predict, solve, and predict again while the root
moves. A batch of poses of one problem, with other targets and starts, is one call per core.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.priors.forms import EXPECTED, FREE, FREE_ROOT, SEEN, Fixed, settled
from poise.priors.predicting import ROUNDS, Predicted, again, begin, in_root_frame
from poise.priors.prior import Asked, Guide, Start, State, Steps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.solvers import core
from poise.solvers.problem import NO_TRAIL, Problem, Trail
from poise.solvers.rows import Body
from poise.types import Array, PoseVector

_NOTHING = np.empty(0)
SHORT_FINISH = 10  # steps to meet hard constraints from every start; only the best start takes more
DISTINCT = 0.1  # radians: two poses are distinct if some joint differs by more
ASTRAY = 0.1  # metres or radians: row error at the previous frame above which other starts are tried too
MOVED = 0.04  # metres or radians: the same threshold for a frame that is also unlikely
UNLIKELY = 10.0  # nats: excess of a frame's loss over the running mean that makes it unlikely
ALIKE = 0.08  # metres: mean joint distance below which two poses are of one kind
USUAL = 0.1  # update rate of the running mean


@dataclass(eq=False)
class Optimum:
    """One local optimum of a problem, with the guide's state there."""

    q: PoseVector
    state: State
    status: int
    steps: int
    errors: Float[Array, "rows"]


class Runner:
    """Solves one problem under a guide repeatedly; it keeps the last frame for warm starts."""

    def __init__(self, guide: Guide, problem: Problem) -> None:
        self.guide, self.problem = guide, problem
        self.dragging = False
        self.tracks = len(guide.plan.tracked) > 0  # whether the guide has a state to warm-start from
        self.found: tuple[Optimum, ...] = ()
        self._last: Optimum | None = None
        self._on_the_way = False  # whether the last frame's state belongs to a pose further ahead
        self._usual = np.inf  # running mean loss of tracked frames whose targets moved by `MOVED` or more
        self.compiled = guide.predictor is not None and not problem.in_python
        self._predicted = guide.blank() if self.compiled else None  # type: ignore[attr-defined]
        settings = problem.settings
        self._briefly = replace(settings, finish_steps=min(SHORT_FINISH, settings.finish_steps)).array()

    def __call__(self, q: PoseVector, before: Sequence[PoseVector] = ()) -> tuple[int, int, Array]:
        """Move q to the solution, given the frames `before` (newest first); return status, steps, remaining errors."""
        self.ask(before, q)
        if self.tracks and len(before) and not self.remembers(before[0]):
            self.resume(before[0])
        last = self._last
        if last is not None and self.tracks and (len(before) > 0 or self.remembers(q)):
            found = self._tracked(q, last, follows=len(before) > 0)
        else:
            found = self._cold(q)
        best = self._last = found[0]
        self._on_the_way = False
        self.found, q[:] = tuple(found), best.q
        return best.status, sum([optimum.steps for optimum in found]), best.errors

    def ask(self, before: Sequence[PoseVector] = (), q: Array | None = None) -> None:
        """Tell the guide what it is asked besides the targets."""
        problem = self.problem
        given = problem.root == "given"
        points = in_root_frame(q, problem.targets) if given and q is not None else None
        facing = problem.facing if self.guide.faces else None
        self.guide.ask(Asked(before, facing, points, free_root=not given))

    def modes(self, q: PoseVector) -> list[tuple[float, Optimum]]:
        """Distinct kinds of poses that meet the constraints, each with its probability, the likeliest first.

        Kinds that converge to one pose are merged. Kinds that miss constraints by more than others are dropped.
        """
        self.ask()
        starts = self.guide.modes(q, self.problem.targets, free_root=self.problem.root == "solved")
        rounds, space = self.guide.plan.finer, self.problem.space
        found = [(share, self._through(self._pinned(start), rounds)) for share, start in starts]
        least = min((self.rank(one)[0] for _, one in found), default=0.0) + self.problem.settings.tolerance
        kept: list[tuple[float, Optimum]] = []
        for share, one in sorted(found, key=lambda pair: -pair[0]):
            same = [number for number, (_, other) in enumerate(kept) if are_alike(space, one.q, other.q)]
            if same:
                kept[same[0]] = (kept[same[0]][0] + share, kept[same[0]][1])
            elif self.rank(one)[0] <= least:
                kept.append((share, one))
        total = sum(share for share, _ in kept)
        return sorted(((share / total, one) for share, one in kept), key=lambda pair: -pair[0])

    def remembers(self, q: PoseVector) -> bool:
        """Whether `q` is the last frame's pose, up to its root, with a state to warm-start from."""
        if self._last is None or (self._on_the_way and not self.dragging):
            return False
        return self._last.q[ROOT_SIZE:].tobytes() == q[ROOT_SIZE:].tobytes()

    def forget(self) -> None:
        """Make the next solve a cold one."""
        self._last = None

    def resume(self, q: PoseVector) -> None:
        """Use a pose, from any source, as the last frame."""
        if self.tracks:
            state = self.guide.resumed(q, self.problem.targets)
            self._last, self._on_the_way = Optimum(q.copy(), state, core.REACHED, 0, np.empty(0)), False

    def pause(self, q: PoseVector) -> None:
        """Use a pose between the last two as the last frame; its state is kept while dragging."""
        if self._last is not None:
            self._last, self._on_the_way = replace(self._last, q=q.copy()), True

    @property
    def latents(self) -> tuple[Float[Array, "latent"], ...]:
        """Latent point of the last frame in the latent space of every style that took part."""
        return () if self._last is None else self.guide.latents(self._last.state)

    def spread(self, q: PoseVector) -> tuple[Float[Array, "freedoms"], Array]:
        """Gap from a solved pose to the guide's mean there, and the covariance of the degrees of freedom not held.

        It is conditioned on the held ones: pinned joints, and the root if given.
        """
        state = None
        if self._last is not None and not self._on_the_way and np.array_equal(self._last.q, q):
            state = self._last.state
        if state is None:
            state = self.guide.resumed(q, self.problem.space.handle_positions(q, self.problem.handles)[0])
        gap, covariance, _ = self.guide.gaussian(q, state)
        held = np.flatnonzero(~self.problem.free)
        if len(pinned := held[held >= ROOT_FREEDOMS]):
            across = covariance[:, pinned]
            covariance -= across @ np.linalg.solve(covariance[np.ix_(pinned, pinned)], across.T)
        gap[held], covariance[held], covariance[:, held] = 0.0, 0.0, 0.0
        return gap, covariance

    @property
    def expectation(self) -> tuple[Float[Array, "maps"], Float[Array, "freedoms freedoms"]]:
        """The guide's mean of the maps and covariance of all degrees of freedom around the last solve."""
        assert self._last is not None, "nothing was solved yet"
        mean, own = self.guide.expectation(self._last.q, self._last.state)
        root, covariance = np.arange(ROOT_FREEDOMS), np.zeros((self.problem.space.freedoms,) * 2)
        covariance[root, root] = FREE_ROOT
        covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = own
        return mean, covariance * np.outer(self.problem.free, self.problem.free)

    def _tracked(self, q: Array, last: Optimum, *, follows: bool) -> list[Optimum]:
        """Solve from the last frame's state, and from another start if the guide has a better one.

        If the targets have moved far, or the pose is less likely than those before, all starts are tried too. A pose
        that follows others in time tries no other start, because it would jump.
        """
        plan = self.guide.plan
        if self.dragging and plan.dragged:
            return [self._through(Start(q, last.state), plan.dragged)]
        lacking = 0.0 if follows else self.problem.farthest(q)
        on = self._through(self._pinned(Start(self.guide.onward(q, last.state), last.state)), plan.tracked)
        lost = lacking > ASTRAY
        if MOVED < lacking <= ASTRAY:
            _, loss = self.rank(on)
            lost = loss > self._usual + UNLIKELY
            self._usual = loss if np.isinf(self._usual) else self._usual + USUAL * (loss - self._usual)
        if lost:
            return self._ranked([on, *self._cold(q)])
        other = self.guide.alternative(q, self.problem.targets, on.state)
        if other is None:
            return [on]
        return self._ranked([on, self._through(self._pinned(other), plan.tracked)])

    def _cold(self, q: Array) -> list[Optimum]:
        """Solve from those of the guide's starts that the smooth stage keeps distinct."""
        guide, plan, problem = self.guide, self.guide.plan, self.problem
        if self.compiled:
            assert self._predicted is not None
            one = q[None].copy()
            statuses, taken, left = solve_predicted(
                problem, guide, one, problem.floats[None], self._predicted
            )
            return [Optimum(one[0], self._predicted, int(statuses[0]), int(taken[0]), left[0])]
        starts = guide.starts(q, problem.targets, free_root=problem.root == "solved")
        places = len(starts) * sum(map(sum, plan.smooth)) if guide.together > 0.0 else 0
        states = np.empty((places, np.size(guide.moving(starts[0].state)[1])))
        apart, passed = list[Optimum](), 0
        for start in map(self._pinned, starts):
            trail = Trail(states, passed, guide.together)
            smooth = self._through(start, plan.smooth, settings=problem.unfinished, trail=trail)
            if smooth.status != core.JOINED:
                apart.append(smooth)
                passed += smooth.steps
        settings = self._briefly if len(apart) > 1 else None
        found = self._ranked(
            [self._through(Start(a.q, a.state), plan.finer, settings=settings, taken=a.steps) for a in apart]
        )
        if settings is not None and found[0].status == core.OUT_OF_TIME:
            last, best = (*(0 for _ in plan.finer[-1][1:]), 1), found[0]
            found[0] = self._through(Start(best.q, best.state), (last,), taken=best.steps)
            found = self._ranked(found)
        return found

    def _pinned(self, start: Start) -> Start:
        return Start(self.problem.pinned(start.q), start.state)

    def _through(
        self,
        start: Start,
        rounds: tuple[Steps, ...],
        *,
        settings: Float[Array, "settings"] | None = None,
        trail: Trail = NO_TRAIL,
        taken: int = 0,
    ) -> Optimum:
        """Repeat the compiled solve until the guide's state has converged."""
        guide, problem, targets = self.guide, self.problem, self.problem.targets
        q, (state, x) = start.q.copy(), guide.moving(start.state)
        status, errors = core.BROKEN, _NOTHING
        for steps in rounds:
            forms, own = guide.forms(q, state, steps)
            status, more, errors = problem.through(q, x, forms, own, settings=settings, trail=trail)
            taken += more
            moved = state if len(x) else guide.moved(q, targets, state)
            if moved is state:
                break
            state = moved
        return Optimum(q, state, status, taken, errors)

    def _ranked(self, found: list[Optimum]) -> list[Optimum]:
        """Sort best first, and drop optima within a few degrees of a better one."""
        if len(found) == 1:
            return found
        kept: list[Optimum] = []
        for optimum in sorted(found, key=self.rank):
            if all(np.abs(optimum.q[ROOT_SIZE:] - other.q[ROOT_SIZE:]).max() > DISTINCT for other in kept):
                kept.append(optimum)
        return kept

    def rank(self, one: Optimum) -> tuple[float, float]:
        """Sort key, lower is better: constraints first, then the loss."""
        missed = 0.0 if one.status == core.REACHED else float(np.linalg.norm(one.errors))
        return missed, self.guide.score(one.q, one.state) + self.problem.soft_loss(one.errors)


class PlainRunner:
    """Damped least squares without a prior; if it gets stuck, it restarts from the middle of the joint limits."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._metric = problem.diagonal()
        lower, upper = problem.limits[:, ROOT_FREEDOMS:]
        bounded = np.isfinite(lower) & np.isfinite(upper) & problem.free[ROOT_FREEDOMS:]
        self._bounded = np.flatnonzero(bounded)
        self._middle = (lower[bounded] + upper[bounded]) / 2

    def __call__(self, q: PoseVector, before: Sequence[PoseVector] = ()) -> tuple[int, int, Array]:
        """Move q to the solution; return status, steps and remaining errors."""
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


def are_alike(space: PoseSpace, one: PoseVector, other: PoseVector) -> bool:
    """Whether the joints of two poses have nearly the same positions."""
    apart = space.forward(one)[0] - space.forward(other)[0]
    return float(np.linalg.norm(apart, axis=-1).mean()) < ALIKE


# --- predictors -------------------------------------------------------------------------------------------------------

Outcome = tuple[Int[Array, "poses"], Int[Array, "poses"], Float[Array, "poses rows"]]


def solve_predicted(
    problem: Problem,
    guide: Guide,
    q: Float[Array, "poses size"],
    floats: Float[Array, "poses blocks parameters"],
    predicted: Predicted,
) -> Outcome:
    """Move every q to its solution; return each status, step count and the remaining errors of its rows.

    The last prediction is written into `predicted`.
    """
    count, handles = len(q), problem.handles
    statuses, steps = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    errors = np.empty((count, len(problem.rows)))
    _solve_all(
        q, floats, problem.body, problem.integers, problem.rows, guide.predictor, problem.position_blocks,
        handles.joints, handles.offsets, problem.free, problem.limits, problem.settings.map_steps,
        problem.settings_array, *predicted, statuses, steps, errors,
    )  # fmt: skip
    return statuses, steps, errors


def solve_many(
    problem: Problem,
    guide: Any,
    q: Float[Array, "poses size"],
    floats: Float[Array, "poses blocks parameters"],
    *,
    threads: int,
) -> Outcome:
    """The same with a part of the poses on every thread."""
    ends = np.linspace(0, len(q), threads + 1).astype(int)
    parts = [slice(first, end) for first, end in pairwise(ends)]

    def solved(own: slice) -> Outcome:
        return solve_predicted(problem, guide, q[own], floats[own], guide.blank())

    with ThreadPoolExecutor(threads) as pool:
        statuses, steps, errors = zip(*pool.map(solved, parts), strict=True)
    return np.concatenate(statuses), np.concatenate(steps), np.concatenate(errors)


@compiled
def _solve_all(
    q: Array,
    floats: Array,
    body: Body,
    integers: Array,
    rows: Array,
    predictor: Any,
    position_blocks: Array,
    joints: Array,
    offsets: Array,
    free: Array,
    limits: Array,
    map_steps: int,
    settings: Array,
    mean: Array,
    covariance: Array,
    metric: Array,
    rooted_at: Array,
    kept: Array,
    statuses: Array,
    steps: Array,
    errors: Array,
) -> None:
    """Solve poses one after the other: predict, solve, and predict again while a free root moves.

    The arrays of the prediction come one by one: Numba takes microseconds to look at a tuple.
    """
    predicted = Predicted(mean, covariance, metric, rooted_at, kept)
    targets, state, trail = np.empty((len(joints), 3)), np.empty(0), np.empty((0, 0))
    root, maps = predicted.mean[:ROOT_SIZE], predicted.mean[ROOT_SIZE:]
    for i in range(len(q)):
        own, start, steps[i] = q[i], q[i].copy(), 0
        for h in range(len(joints)):
            targets[h] = floats[i, position_blocks[h], 3:6]
        rooted = begin(predictor, own, targets, body[0], body[1], joints, offsets, free[0], predicted)
        for k in range(ROOT_FREEDOMS, len(free)):
            if not free[k]:
                own[k + 1] = start[k + 1]
        for left in range(ROUNDS - 1, -1, -1):
            kind = EXPECTED if rooted else (SEEN if left > 0 and len(targets) > 0 else FREE)
            statuses[i], more = core.solve(
                own, state, body, (integers, floats[i]), rows, Fixed(root, kind, maps, predicted.metric), map_steps,
                free, limits, settings, errors[i], trail, 0, 0.0,
            )  # fmt: skip
            steps[i] += more
            if rooted or len(targets) == 0 or (statuses[i] != core.LEFT and settled(own, root)):
                break
            again(predictor, own, targets, body[0], body[1], predicted)
