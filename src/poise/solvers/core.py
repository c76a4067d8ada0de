"""The one solver, compiled: most likely poses under hard, soft and inequality constraints and joint limits.

It has two phases of the dual step (see `dual_step`). The first moves towards the most likely pose under the prior;
`solve` is specialised by the type of the prior's form (see `priors.forms`). Then `finish` meets the hard rows
exactly by the smallest change in the prior's metric (g = 0), with Levenberg-Marquardt damping, so that rows that
cannot be met end at their least residual, weighted by priority. Without a prior (S diagonal, g = 0) the finish alone
is damped least squares. Constraints written in Python are linearised at the pose that `Problem` measured them at.
"""

import math
from typing import Any

import numpy as np

from poise.compiled import compiled, inlined
from poise.priors.forms import follow, holds, look, room_for
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, integrate
from poise.solvers.dual_step import (
    COMPLIANCE,
    INEQUALITY,
    VARIANCE,
    Workspace,
    many_soft,
    spread_rows,
    step_under,
    workspace,
)
from poise.solvers.rows import Blocks, Body, evaluate, in_own_unit
from poise.types import Array

# Status that `solve` returns besides the pose. The last two end early, without the finish.
REACHED, RELAXED, OUT_OF_TIME, BROKEN, JOINED, LEFT = range(6)

# `settings`: see `Settings` in problem.py.
TOLERANCE, FINISH_STEPS, LONGEST_TURN, LONGEST_PULL, STEP_TOLERANCE = range(5)

NO_FINISH = -1.0  # value of `FINISH_STEPS` for the first phase only, whose errors are not recomputed

PRIORITY_STEP = 1e4  # ratio of the compliances of two hard constraints that are one priority apart
_PATIENCE = 3  # consecutive steps that may stall
_SHORTEST = 0.1  # smallest fraction to which a first-phase step is shortened when steps do not help
_WITH_STATE = 2.0  # times the tolerance, if the prior has a state, which converges more slowly
_STALL = 1e-4  # relative decrease of the residual below which a finish ends


@compiled
def solve(
    q: Array,
    x: Array,
    body: Body,
    blocks: Blocks,
    rows: Array,
    form: Any,
    steps: int,
    free: Array,
    limits: Array,
    settings: Array,
    errors: Array,
    trail: Array,
    passed: int,
    together: float,
) -> tuple[int, int]:
    """Move a pose q and a prior's state x to the solution in at most `steps` steps; return status and step count.

    Writes the remaining errors, and the visited states into `trail` after its first `passed` rows. If x comes within
    `together` of one of those rows, it has joined that trail, and the solve ends. It also ends when two steps have
    left the range of poses that the form is valid for.
    """
    bring_inside(q, limits)
    work, room = workspace(len(errors), limits.shape[1]), room_for(form, free)
    total, shorten, last = 0, 1.0, np.inf
    short = settings[STEP_TOLERANCE] * (_WITH_STATE if len(x) > 0 else 1.0)
    for k in range(steps):
        look(form, room, q, x, free, work.gap)
        length, remaining = map_step(
            q, body, blocks, rows, room.covariance, limits, settings, errors, work, shorten
        )
        moves = follow(form, room, x, work.pull, shorten)
        total += 1
        if passed + k < len(trail):
            if _joins(x, trail, passed, together):
                return JOINED, total
            trail[passed + k] = x
        if k == 1 and not holds(form, q):
            return LEFT, total
        if length < short and not moves:
            break
        if k > 1 and remaining > last:
            shorten = max(0.5 * shorten, _SHORTEST)
        last = remaining
    if settings[FINISH_STEPS] == NO_FINISH:
        return _whole(q, OUT_OF_TIME), total
    included = included_rows(rows, False)
    status, more = finish(q, body, blocks, rows, room.covariance, limits, settings, errors, included, work)
    return _whole(q, status), total + more


@compiled
def _joins(x: Array, trail: Array, passed: int, together: float) -> bool:
    for i in range(passed):
        squared = 0.0
        for a in range(len(x)):
            squared += (x[a] - trail[i, a]) ** 2
        if squared <= together * together:
            return True
    return False


@compiled
def meet(
    q: Array,
    body: Body,
    blocks: Blocks,
    rows: Array,
    covariance: Array,
    limits: Array,
    settings: Array,
    errors: Array,
    soft_too: bool,
) -> tuple[int, int]:
    """Meet the hard rows alone, or the soft ones too, by the smallest change in a metric; return status and steps."""
    bring_inside(q, limits)
    work, included = workspace(len(errors), limits.shape[1]), included_rows(rows, soft_too)
    status, steps = finish(q, body, blocks, rows, covariance, limits, settings, errors, included, work)
    return _whole(q, status), steps


@compiled
def _whole(q: Array, status: int) -> int:
    """The status, or BROKEN if a component of q is not finite."""
    for i in range(len(q)):
        if not math.isfinite(q[i]):
            return BROKEN
    return status


@compiled
def included_rows(rows: Array, soft_too: bool) -> Array:
    """Mask of the rows that a finish works on: the hard ones, and without a prior the soft ones too."""
    included = np.zeros(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        included[r] = rows[r, VARIANCE] == 0.0 or soft_too
    return included


@compiled
def bring_inside(q: Array, limits: Array) -> None:
    """Clamp the initial pose to the joint limits."""
    for i in range(ROOT_FREEDOMS, limits.shape[1]):
        k = i + ROOT_SIZE - ROOT_FREEDOMS
        q[k] = min(max(q[k], limits[0, i]), limits[1, i])


@inlined
def map_step(
    q: Array,
    body: Body,
    blocks: Blocks,
    rows: Array,
    covariance: Array,
    limits: Array,
    settings: Array,
    errors: Array,
    work: Workspace,
    shorten: float,
) -> tuple[float, float]:
    """Take one dual step from the gap in `work`; return its length, and the residual that it started from."""
    jacobian, spread, gram, step = work.jacobian, work.spread, work.gram, work.step
    evaluate(q, body, blocks, errors, jacobian)
    remaining = _remaining(errors, rows, blocks)
    _clamp(errors, settings[LONGEST_PULL], blocks)
    included, variances = np.ones(len(rows), dtype=np.bool_), rows[:, VARIANCE].copy()
    if not many_soft(rows, variances, included, len(step)):
        spread_rows(jacobian, covariance, spread, gram)
    step_under(q, errors, rows, variances, included, covariance, limits, work)
    return take_step(q, step, shorten, settings[LONGEST_TURN], limits), remaining


@compiled
def finish(
    q: Array,
    body: Body,
    blocks: Blocks,
    rows: Array,
    covariance: Array,
    limits: Array,
    settings: Array,
    errors: Array,
    included: Array,
    work: Workspace,
) -> tuple[int, int]:
    """Meet the included rows, or come as close as their priorities allow.

    Priorities are separated one level at a time: the cost of several levels at once is so steep that it shortens every
    step. Rows that can all be met need no separation.
    """
    hard = included & (rows[:, VARIANCE] == 0.0)
    steepest, steps, steepness = 1.0, 0, 1.0
    for r in range(len(rows)):
        if hard[r]:
            steepest = max(steepest, rows[r, COMPLIANCE])
    while True:
        graded = rows.copy()
        for r in range(len(rows)):
            if hard[r]:
                graded[r, COMPLIANCE] = min(rows[r, COMPLIANCE], steepness)
            else:
                graded[r, COMPLIANCE] *= min(1.0, steepness / steepest)
        status, more = _approach(
            q, body, blocks, graded, covariance, limits, settings, errors, included, work
        )
        steps += more
        if status == REACHED or steepness >= steepest:
            return status, steps
        steepness *= PRIORITY_STEP


@inlined
def _approach(
    q: Array,
    body: Body,
    blocks: Blocks,
    rows: Array,
    covariance: Array,
    limits: Array,
    settings: Array,
    errors: Array,
    included: Array,
    work: Workspace,
) -> tuple[int, int]:
    """Levenberg-Marquardt on the included rows with g = 0: exact if they can be met, else the least residual."""
    jacobian, spread, gram, step = work.jacobian, work.spread, work.gram, work.step
    work.gap[:] = 0.0
    trial, variances = q.copy(), np.empty(len(rows))
    soft = _any_soft(rows, included)
    damping, stalled = 1e-6, 0
    evaluate(q, body, blocks, errors, jacobian)
    cost = _cost(errors, rows, included)
    for k in range(int(settings[FINISH_STEPS])):
        met = _remaining(errors, rows, blocks) <= settings[TOLERANCE]
        if met and (not soft or stalled > 0):
            return REACHED, k
        if stalled >= _PATIENCE:
            return RELAXED, k
        _clamp(errors, settings[LONGEST_PULL], blocks)
        spread_rows(jacobian, covariance, spread, gram)
        scale = _mean_diagonal(gram)
        while True:
            for r in range(len(rows)):
                variances[r] = damping * scale * rows[r, COMPLIANCE]
            step_under(q, errors, rows, variances, included, covariance, limits, work)
            trial[:] = q
            take_step(trial, step, 1.0, settings[LONGEST_TURN], limits)
            evaluate(trial, body, blocks, errors, jacobian)
            tried = _cost(errors, rows, included)
            if tried < cost:
                stalled = stalled + 1 if tried > cost * (1.0 - _STALL) else 0
                q[:] = trial
                cost, damping = tried, max(0.1 * damping, 1e-9)
                break
            damping *= 10.0
            if damping > 1e6:  # no step of any length helps: this is the least residual
                evaluate(q, body, blocks, errors, jacobian)
                return (
                    REACHED if _remaining(errors, rows, blocks) <= settings[TOLERANCE] else RELAXED
                ), k + 1
            evaluate(q, body, blocks, errors, jacobian)
            _clamp(errors, settings[LONGEST_PULL], blocks)
    if _remaining(errors, rows, blocks) <= settings[TOLERANCE]:
        return REACHED, int(settings[FINISH_STEPS])
    return OUT_OF_TIME, int(settings[FINISH_STEPS])


@compiled
def _cost(errors: Array, rows: Array, included: Array) -> float:
    """Squared errors of the included rows over their compliance; inequalities count only if violated."""
    total = 0.0
    for r in range(len(errors)):
        if included[r] and (rows[r, INEQUALITY] == 0.0 or errors[r] > 0.0):
            total += errors[r] * errors[r] / rows[r, COMPLIANCE]
    return total


@compiled
def _remaining(errors: Array, rows: Array, blocks: Blocks) -> float:
    """The largest error among hard blocks."""
    integers = blocks[0]
    worst = 0.0
    for b in range(len(integers)):
        total = 0.0
        for r in range(integers[b, 3], integers[b, 3] + integers[b, 4]):
            if rows[r, VARIANCE] == 0.0 and (rows[r, INEQUALITY] == 0.0 or errors[r] > 0.0):
                total += errors[r] * errors[r]
        worst = max(worst, total)
    return math.sqrt(worst)


@compiled
def _any_soft(rows: Array, included: Array) -> bool:
    return bool(np.any(included & (rows[:, VARIANCE] > 0.0)))


@compiled
def _clamp(errors: Array, longest: float, blocks: Blocks) -> None:
    """Limit the pull of each block in one step (Buss 2004): far targets would make the linear step meaningless."""
    integers, floats = blocks
    for b in range(len(integers)):
        first, count = integers[b, 3], integers[b, 4]
        most = longest * in_own_unit(integers[b], floats[b])
        length = 0.0
        for r in range(first, first + count):
            length += errors[r] * errors[r]
        if length > most * most:
            scale = most / math.sqrt(length)
            for r in range(first, first + count):
                errors[r] *= scale


@compiled
def _mean_diagonal(gram: Array) -> float:
    total = 0.0
    for r in range(len(gram)):
        total += gram[r, r]
    return max(total / max(len(gram), 1), 1e-12)


@compiled
def take_step(q: Array, step: Array, shorten: float, longest: float, limits: Array) -> float:
    """Take a step with no component longer than `longest`; return the length of the largest component."""
    largest = 0.0
    for i in range(len(step)):
        largest = max(largest, abs(step[i]))
    scale = shorten * min(1.0, longest / max(largest, 1e-300))
    for i in range(len(step)):
        step[i] *= scale
    integrate(q, step, q)
    bring_inside(q, limits)  # removes rounding errors only: the active set has kept the step inside
    return scale * largest
