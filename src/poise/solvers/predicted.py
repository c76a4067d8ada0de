"""Solve under a prior with a compiled predictor: predict, solve, and predict again while the root moves.

One pose is one compiled call. A batch of poses of one problem, with other targets and starts, is one call per core.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.priors.forms import FREE, SEEN, Fixed, settled
from poise.priors.predicting import ROUNDS, Predicted, enter, predict_from
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.solvers import core
from poise.solvers.problem import Problem
from poise.solvers.rows import Posed
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
    return _solve(
        q, problem.posed, predictor, problem.position_blocks, problem.settings.map_steps, problem.settings_array,
        *predicted, errors,
    )  # fmt: skip


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

    def stretch(first: int, end: int) -> None:
        own = slice(first, end)
        _solve_stretch(
            q[own], floats[own], problem.posed, predictor, problem.position_blocks, problem.settings.map_steps,
            problem.settings_array, statuses[own], steps[own], errors[own],
        )  # fmt: skip

    ends = np.linspace(0, count, threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(stretch, ends[:-1], ends[1:]))
    return statuses, steps, errors


@compiled
def _solve_stretch(
    q: Array,
    floats: Array,
    posed: Posed,
    predictor: Any,
    positions: Array,
    map_steps: int,
    settings: Array,
    statuses: Array,
    steps: Array,
    errors: Array,
) -> None:
    """Solve a range of poses one after the other."""
    freedoms = len(posed.free)
    mean, covariance = np.empty(freedoms - ROOT_FREEDOMS), np.empty((freedoms, freedoms))
    root = np.empty(ROOT_SIZE)
    for i in range(len(q)):
        own = Posed(posed.body, (posed.blocks[0], floats[i]), posed.rows, posed.free, posed.limits)
        statuses[i], steps[i] = _solve(
            q[i], own, predictor, positions, map_steps, settings, mean, covariance, root, errors[i]
        )


@compiled
def _solve(
    q: Array,
    posed: Posed,
    predictor: Any,
    positions: Array,
    map_steps: int,
    settings: Array,
    mean: Array,
    covariance: Array,
    root: Array,
    errors: Array,
) -> tuple[int, int]:
    """From what the blocks of `positions` predict."""
    start, steps, status = q.copy(), 0, 0
    body, (integers, floats), free, count = posed.body, posed.blocks, posed.free, len(positions)
    joints, offsets, targets = np.empty(count, dtype=np.int64), np.empty((count, 3)), np.empty((count, 3))
    for h in range(count):
        block = positions[h]
        joints[h], offsets[h], targets[h] = integers[block, 1], floats[block, :3], floats[block, 3:6]
    enter(q, targets, predictor, body[0], body[1], joints, offsets, free[0], mean, covariance, root)
    for k in range(ROOT_FREEDOMS, len(free)):
        if not free[k]:
            q[k + 1] = start[k + 1]
    state, trail = np.empty(0), np.empty((0, 0))
    for left in range(ROUNDS - 1, -1, -1):
        form = Fixed(root, SEEN if left > 0 and count > 0 else FREE, mean, covariance)
        status, more = core.solve(q, state, posed, form, map_steps, settings, errors, trail, 0, 0.0)
        steps += more
        if count == 0 or (status != core.LEFT and settled(q, root)):
            break
        predict_from(q, targets, predictor, mean, covariance, root)
    return status, steps
