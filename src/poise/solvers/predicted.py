"""Solves under a prior that predicts in compiled code: enter, solve, and predict again while the root moves.

One pose is one compiled call. So are many poses of one problem, with other targets and starts: one call for each core.
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

Array = np.ndarray

Asked = tuple[Any, Array, Array, Array]  # the predictor, the blocks of its handles, their joints and offsets
Outcome = tuple[Int[Array, "poses"], Int[Array, "poses"], Float[Array, "poses rows"]]


def solve_predicted(
    problem: Problem,
    predictor: Any,
    q: Float[Array, "size"],
    predicted: Predicted,
    errors: Float[Array, "rows"],
) -> tuple[int, int]:
    """Move q to its solution; how it ended, and the steps. Fills the prediction, and what is left of the rows."""
    return _solve(
        q, problem.floats, problem.arrays, _asked(problem, predictor), problem.settings.map_steps,
        problem.settings_array, *predicted, errors,
    )  # fmt: skip


def solve_many(
    problem: Problem,
    predictor: Any,
    q: Float[Array, "poses size"],
    floats: Float[Array, "poses blocks parameters"],
    *,
    threads: int,
) -> Outcome:
    """Move every q to its solution; how each ended, its steps, and what is left of its rows."""
    count, asked = len(q), _asked(problem, predictor)
    statuses, steps = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    errors = np.empty((count, len(problem.rows)))

    def stretch(first: int, end: int) -> None:
        own = slice(first, end)
        _solve_stretch(
            q[own], floats[own], problem.arrays, asked, problem.settings.map_steps, problem.settings_array,
            statuses[own], steps[own], errors[own],
        )  # fmt: skip

    ends = np.linspace(0, count, threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(stretch, ends[:-1], ends[1:]))
    return statuses, steps, errors


def _asked(problem: Problem, predictor: Any) -> Asked:
    return predictor, problem.position_blocks, problem.handles.joints, problem.handles.offsets


@compiled
def _solve_stretch(
    q: Array,
    floats: Array,
    problem: core.Arrays,
    asked: Asked,
    map_steps: int,
    settings: Array,
    statuses: Array,
    steps: Array,
    errors: Array,
) -> None:
    """One pose after the other."""
    freedoms = len(problem[3])
    mean, covariance = np.empty(freedoms - ROOT_FREEDOMS), np.empty((freedoms, freedoms))
    root = np.empty(ROOT_SIZE)
    for i in range(len(q)):
        statuses[i], steps[i] = _solve(
            q[i], floats[i], problem, asked, map_steps, settings, mean, covariance, root, errors[i]
        )


@compiled
def _solve(
    q: Array,
    floats: Array,
    problem: core.Arrays,
    asked: Asked,
    map_steps: int,
    settings: Array,
    mean: Array,
    covariance: Array,
    root: Array,
    errors: Array,
) -> tuple[int, int]:
    (links, rest, masses), (integers, _), rows, free, limits = problem
    predictor, position_blocks, joints, offsets = asked
    own = ((links, rest, masses), (integers, floats), rows, free, limits)
    start, steps, status = q.copy(), 0, 0
    targets, state, trail = np.empty((len(joints), 3)), np.empty(0), np.empty((0, 0))
    for h in range(len(joints)):
        targets[h] = floats[position_blocks[h], 3:6]
    enter(q, targets, predictor, links, rest, joints, offsets, free[0], mean, covariance, root)
    for k in range(ROOT_FREEDOMS, len(free)):
        if not free[k]:
            q[k + 1] = start[k + 1]
    for left in range(ROUNDS - 1, -1, -1):
        form = Fixed(root, SEEN if left > 0 and len(targets) > 0 else FREE, mean, covariance)
        status, more = core.solve(q, state, own, form, map_steps, settings, errors, trail, 0, 0.0)
        steps += more
        if len(targets) == 0 or (status != core.LEFT and settled(q, root)):
            break
        predict_from(q, targets, predictor, mean, covariance, root)
    return status, steps
