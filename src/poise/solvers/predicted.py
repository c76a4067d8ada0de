"""Solve under a prior with a compiled predictor: predict, solve, and predict again while the root moves.

One pose is one compiled call. A batch of poses of one problem, with other targets and starts, is one call per core.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled, inlined
from poise.priors.forms import FREE, SEEN, Fixed, settled
from poise.priors.predicting import ROUNDS, Predicted, enter, predict_from
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.solvers import core
from poise.solvers.problem import Problem
from poise.solvers.rows import Body
from poise.types import Array

Outcome = tuple[Int[Array, "poses"], Int[Array, "poses"], Float[Array, "poses rows"]]


def solve_predicted(
    problem: Problem,
    predictor: Any,
    q: Float[Array, "size"],
    predicted: Predicted,
    errors: Float[Array, "rows"],
) -> tuple[int, int]:
    """Move q to its solution; return status and steps. Writes the prediction and the remaining errors of the rows."""
    handles, (status, steps) = problem.handles, np.empty((2, 1), dtype=np.int64)
    _solve_all(
        q[None], problem.floats[None], problem.body, problem.integers, problem.rows, predictor,
        problem.position_blocks, handles.joints, handles.offsets, problem.free, problem.limits,
        problem.settings.map_steps, problem.settings_array, *predicted, status, steps, errors[None],
    )  # fmt: skip
    return int(status[0]), int(steps[0])


def solve_many(
    problem: Problem,
    predictor: Any,
    q: Float[Array, "poses size"],
    floats: Float[Array, "poses blocks parameters"],
    *,
    threads: int,
) -> Outcome:
    """Move every q to its solution; return each status, step count and the remaining errors of its rows."""
    count = len(q)
    statuses, steps = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    errors = np.empty((count, len(problem.rows)))
    handles, blocks, freedoms = problem.handles, problem.position_blocks, problem.space.freedoms

    def stretch(first: int, end: int) -> None:
        own = slice(first, end)
        mean, covariance = np.empty(freedoms - ROOT_FREEDOMS), np.empty((freedoms, freedoms))
        _solve_all(
            q[own], floats[own], problem.body, problem.integers, problem.rows, predictor, blocks,
            handles.joints, handles.offsets, problem.free, problem.limits, problem.settings.map_steps,
            problem.settings_array, mean, covariance, np.empty(ROOT_SIZE), statuses[own], steps[own], errors[own],
        )  # fmt: skip

    ends = np.linspace(0, count, threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(stretch, ends[:-1], ends[1:]))
    return statuses, steps, errors


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
    root: Array,
    statuses: Array,
    steps: Array,
    errors: Array,
) -> None:
    """Solve poses one after the other."""
    for i in range(len(q)):
        statuses[i], steps[i] = _solve(
            q[i], floats[i], body, integers, rows, predictor, position_blocks, joints, offsets, free, limits,
            map_steps, settings, mean, covariance, root, errors[i],
        )  # fmt: skip


@inlined
def _solve(
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
    root: Array,
    errors: Array,
) -> tuple[int, int]:
    start, steps, status = q.copy(), 0, 0
    targets, state, trail = np.empty((len(joints), 3)), np.empty(0), np.empty((0, 0))
    for h in range(len(joints)):
        targets[h] = floats[position_blocks[h], 3:6]
    enter(q, targets, predictor, body[0], body[1], joints, offsets, free[0], mean, covariance, root)
    for k in range(ROOT_FREEDOMS, len(free)):
        if not free[k]:
            q[k + 1] = start[k + 1]
    for left in range(ROUNDS - 1, -1, -1):
        form = Fixed(root, SEEN if left > 0 and len(targets) > 0 else FREE, mean, covariance)
        status, more = core.solve(
            q,
            state,
            body,
            (integers, floats),
            rows,
            form,
            map_steps,
            free,
            limits,
            settings,
            errors,
            trail,
            0,
            0.0,
        )
        steps += more
        if len(targets) == 0 or (status != core.LEFT and settled(q, root)):
            break
        predict_from(q, targets, predictor, mean, covariance, root)
    return status, steps
