"""The one solver, compiled: maximum a posteriori poses under hard, soft and inequality constraints and joint limits.

With a prior of mean m and covariance S, a pose q (g = m - q) and constraint rows J d = e of variance R, the step

    d = g + S J' (J S J' + R)^-1 (e - J g)                                                      (the dual form)

minimises (q + d - m)' S^-1 (q + d - m) + (J d - e)' R^-1 (J d - e) at the cost of one system the size of the rows;
S is never inverted. Eq. 17 of Huang et al. 2017 is this step with R = lambda_2 / 2, whose lambda_2 shrinks with the
remaining distance (their section 4.5): at R = 0 the targets are met, and by the most likely pose that meets them.
Joint limits and half-spaces join the rows while they bind, by the signs of their multipliers (an active set).

Two phases: `map` steps towards the most likely pose, then `finish` meets the hard rows exactly by the smallest change
in the prior's metric (g = 0), Levenberg-Marquardt damped, so that rows that cannot be met end at their least distance,
weighted by priority. Without a prior (S diagonal, g = 0) the finish alone is damped least squares.
"""

import math

import numpy as np

from poise.compiled import compiled
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, integrate
from poise.solvers.rows import Blocks, Body, evaluate

Array = np.ndarray
Workspace = tuple[Array, Array, Array, Array, Array, Array, Array]

# What `solve` returns besides the pose: how it ended.
REACHED, RELAXED, OUT_OF_TIME, BROKEN = range(4)

# Columns of `rows`: variance (0: hard), how far it gives way in a conflict (1: highest priority), whether >= 0.
VARIANCE, COMPLIANCE, INEQUALITY = range(3)

# `settings`: see `Settings` in problem.py.
TOLERANCE, MAP_STEPS, FINISH_STEPS, LONGEST_TURN, LONGEST_PULL, STEP_TOLERANCE = range(6)

_RANK = 1e-11  # a pivot this small against its diagonal: the row repeats others and adds nothing
_SLACK = 1e-10  # radians by which a limit may be passed before it is made active
_PATIENCE = 3  # steps in a row that may stall
_STALL = 1e-4  # relative decrease of the remaining distance below which a finish has ended


@compiled
def solve(
    q: Array,
    body: Body,
    blocks: Blocks,
    rows: Array,
    mean: Array,
    covariance: Array,
    limits: Array,
    settings: Array,
    errors: Array,
) -> tuple[int, int, int]:
    """Move q to the solution; leaves the remaining errors. Returns how it ended and the steps of each phase."""
    _inside(q, limits)
    work = _workspace(len(errors), limits.shape[1])
    map_steps, finish_steps = 0, 0
    if len(mean) > 0:
        map_steps = _map(q, body, blocks, rows, mean, covariance, limits, settings, errors, work)
    included = _included(rows, len(mean) == 0)
    status, finish_steps = _finish(
        q, body, blocks, rows, covariance, limits, settings, errors, included, work
    )
    for i in range(len(q)):
        if not math.isfinite(q[i]):
            status = BROKEN
    return status, map_steps, finish_steps


@compiled
def _workspace(count: int, freedoms: int) -> Workspace:
    """Jacobian, J S, J S J', gap g, step d, active flags of rows and limits."""
    return (
        np.empty((count, freedoms)),
        np.empty((count, freedoms)),
        np.empty((count, count)),
        np.zeros(freedoms),
        np.empty(freedoms),
        np.zeros(count, dtype=np.int64),
        np.zeros(freedoms, dtype=np.int64),
    )


@compiled
def _included(rows: Array, soft_too: bool) -> Array:
    """Which rows a finish works on: the hard ones, and without a prior the soft ones too."""
    included = np.zeros(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        included[r] = rows[r, VARIANCE] == 0.0 or soft_too
    return included


@compiled
def _inside(q: Array, limits: Array) -> None:
    """A start within the joint limits."""
    for i in range(ROOT_FREEDOMS, limits.shape[1]):
        k = i + ROOT_SIZE - ROOT_FREEDOMS
        q[k] = min(max(q[k], limits[0, i]), limits[1, i])


@compiled
def _map(
    q: Array,
    body: Body,
    blocks: Blocks,
    rows: Array,
    mean: Array,
    covariance: Array,
    limits: Array,
    settings: Array,
    errors: Array,
    work: Workspace,
) -> int:
    """Gauss-Newton steps to the most likely pose under the constraints; shorter ones when they stop helping."""
    jacobian, spread, gram, gap, step, active_rows, active_limits = work
    included = np.ones(len(rows), dtype=np.bool_)
    variances = rows[:, VARIANCE].copy()
    shorten, last = 1.0, np.inf
    for k in range(int(settings[MAP_STEPS])):
        evaluate(q, body, blocks, errors, jacobian)
        remaining = _remaining(errors, rows, blocks)
        if k > 1 and remaining > last:
            shorten *= 0.5
        last = remaining
        _clamp(errors, settings[LONGEST_PULL], blocks[0])
        for i in range(len(mean)):
            gap[ROOT_FREEDOMS + i] = mean[i] - q[ROOT_SIZE + i]
        _spread(jacobian, covariance, spread, gram)
        _constrained(
            q,
            jacobian,
            errors,
            rows,
            variances,
            included,
            covariance,
            spread,
            gram,
            gap,
            limits,
            step,
            active_rows,
            active_limits,
        )
        length = _take(q, step, shorten, settings[LONGEST_TURN], limits)
        if length < settings[STEP_TOLERANCE]:
            return k + 1
    return int(settings[MAP_STEPS])


@compiled
def _finish(
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
    """Levenberg-Marquardt on the included rows with g = 0: exact where they can be met, least distance elsewhere."""
    jacobian, spread, gram, gap, step, active_rows, active_limits = work
    gap[:] = 0.0
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
        _clamp(errors, settings[LONGEST_PULL], blocks[0])
        _spread(jacobian, covariance, spread, gram)
        scale = _mean_diagonal(gram)
        while True:
            for r in range(len(rows)):
                variances[r] = damping * scale * rows[r, COMPLIANCE]
            _constrained(
                q,
                jacobian,
                errors,
                rows,
                variances,
                included,
                covariance,
                spread,
                gram,
                gap,
                limits,
                step,
                active_rows,
                active_limits,
            )
            trial[:] = q
            _take(trial, step, 1.0, settings[LONGEST_TURN], limits)
            evaluate(trial, body, blocks, errors, jacobian)
            tried = _cost(errors, rows, included)
            if tried < cost:
                stalled = stalled + 1 if tried > cost * (1.0 - _STALL) else 0
                q[:] = trial
                cost, damping = tried, max(0.1 * damping, 1e-9)
                break
            damping *= 10.0
            if damping > 1e6:  # no step of any length helps: this is the least distance
                evaluate(q, body, blocks, errors, jacobian)
                return (
                    REACHED if _remaining(errors, rows, blocks) <= settings[TOLERANCE] else RELAXED
                ), k + 1
            evaluate(q, body, blocks, errors, jacobian)
            _clamp(errors, settings[LONGEST_PULL], blocks[0])
    if _remaining(errors, rows, blocks) <= settings[TOLERANCE]:
        return REACHED, int(settings[FINISH_STEPS])
    return OUT_OF_TIME, int(settings[FINISH_STEPS])


@compiled
def _cost(errors: Array, rows: Array, included: Array) -> float:
    """Squared errors of the included rows, by compliance; inequalities count while violated."""
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
def _clamp(errors: Array, longest: float, integers: Array) -> None:
    """No block pulls further than this in one step (Buss 2004): far targets would make the linear step meaningless."""
    for b in range(len(integers)):
        first, count = integers[b, 3], integers[b, 4]
        length = 0.0
        for r in range(first, first + count):
            length += errors[r] * errors[r]
        if length > longest * longest:
            scale = longest / math.sqrt(length)
            for r in range(first, first + count):
                errors[r] *= scale


@compiled
def _spread(jacobian: Array, covariance: Array, spread: Array, gram: Array) -> None:
    """J S and J S J', skipping the zeros of J; a covariance of one row is a diagonal."""
    count, freedoms = jacobian.shape
    diagonal = covariance.shape[0] == 1
    for r in range(count):
        if diagonal:
            for i in range(freedoms):
                spread[r, i] = jacobian[r, i] * covariance[0, i]
        else:
            spread[r, :] = 0.0
            for i in range(freedoms):
                weight = jacobian[r, i]
                if weight != 0.0:
                    for k in range(freedoms):
                        spread[r, k] += weight * covariance[i, k]
    np.dot(spread, jacobian.T, gram)


@compiled
def _mean_diagonal(gram: Array) -> float:
    total = 0.0
    for r in range(len(gram)):
        total += gram[r, r]
    return max(total / max(len(gram), 1), 1e-12)


@compiled
def _entry(covariance: Array, i: int, k: int) -> float:
    if covariance.shape[0] == 1:
        return covariance[0, i] if i == k else 0.0
    return covariance[i, k]


@compiled
def _constrained(
    q: Array,
    jacobian: Array,
    errors: Array,
    rows: Array,
    variances: Array,
    included: Array,
    covariance: Array,
    spread: Array,
    gram: Array,
    gap: Array,
    limits: Array,
    step: Array,
    active_rows: Array,
    active_limits: Array,
) -> None:
    """The dual step with binding inequalities and limits held as equalities; limits are -1 low, 1 high, 0 free."""
    count, freedoms = jacobian.shape
    for r in range(count):
        if not included[r]:
            active_rows[r] = 0
        elif rows[r, INEQUALITY] == 0.0:
            active_rows[r] = 1
    for _ in range(4 + 2 * freedoms):
        members, multipliers = _dual_solve(
            q, jacobian, errors, variances, covariance, spread, gram, gap, limits, active_rows, active_limits
        )
        _primal(members, multipliers, covariance, spread, gap, step, count)
        changed = _release(members, multipliers, rows, active_rows, active_limits, count)
        if not changed:
            changed = _hold(q, step, jacobian, errors, rows, included, limits, active_rows, active_limits)
        if not changed:
            return


@compiled
def _dual_solve(
    q: Array,
    jacobian: Array,
    errors: Array,
    variances: Array,
    covariance: Array,
    spread: Array,
    gram: Array,
    gap: Array,
    limits: Array,
    active_rows: Array,
    active_limits: Array,
) -> tuple[Array, Array]:
    """Members of the active set (rows, then rows + freedom for limits) and their multipliers."""
    count, freedoms = jacobian.shape
    members = np.empty(count + freedoms, dtype=np.int64)
    size = 0
    for i in range(freedoms):
        if active_limits[i] != 0:
            members[size] = count + i
            size += 1
    for r in range(count):
        if active_rows[r] == 1:
            members[size] = r
            size += 1
    matrix, right = np.empty((size, size)), np.empty(size)
    for a in range(size):
        m = members[a]
        if m >= count:
            i = m - count
            bound = limits[0, i] if active_limits[i] < 0 else limits[1, i]
            right[a] = bound - q[i + ROOT_SIZE - ROOT_FREEDOMS] - gap[i]
        else:
            right[a] = errors[m]
            for i in range(freedoms):
                right[a] -= jacobian[m, i] * gap[i]
        for b in range(a + 1):
            n = members[b]
            if m >= count:
                matrix[a, b] = _entry(covariance, m - count, n - count)
            elif n >= count:
                matrix[a, b] = spread[m, n - count]
            else:
                matrix[a, b] = gram[m, n]
        if m < count:
            matrix[a, a] += variances[m]
    cholesky_solve(matrix, right)
    return members[:size], right


@compiled
def cholesky_solve(matrix: Array, right: Array) -> None:
    """Solve in place for a symmetric positive semi-definite matrix (lower part given); dependent rows get zero."""
    size = len(right)
    for a in range(size):
        diagonal = matrix[a, a]
        for b in range(a):
            total = matrix[a, b]
            for c in range(b):
                total -= matrix[a, c] * matrix[b, c]
            matrix[a, b] = total * matrix[b, b]
        pivot = diagonal
        for c in range(a):
            pivot -= matrix[a, c] * matrix[a, c]
        if pivot <= _RANK * diagonal or pivot <= 1e-300:
            matrix[a, a] = 0.0
            for c in range(a):
                matrix[a, c] = 0.0
        else:
            matrix[a, a] = 1.0 / math.sqrt(pivot)  # the inverse of the diagonal is what the rest needs
    for a in range(size):
        total = right[a]
        for c in range(a):
            total -= matrix[a, c] * right[c]
        right[a] = total * matrix[a, a]
    for a in range(size - 1, -1, -1):
        total = right[a]
        for c in range(a + 1, size):
            total -= matrix[c, a] * right[c]
        right[a] = total * matrix[a, a]


@compiled
def _primal(
    members: Array, multipliers: Array, covariance: Array, spread: Array, gap: Array, step: Array, count: int
) -> None:
    """d = g + S J' y."""
    step[:] = gap
    freedoms = len(step)
    for a in range(len(members)):
        m, y = members[a], multipliers[a]
        if m < count:
            for i in range(freedoms):
                step[i] += y * spread[m, i]
        elif covariance.shape[0] == 1:
            step[m - count] += y * covariance[0, m - count]
        else:
            for i in range(freedoms):
                step[i] += y * covariance[m - count, i]


@compiled
def _release(
    members: Array, multipliers: Array, rows: Array, active_rows: Array, active_limits: Array, count: int
) -> bool:
    """Let go of the limit or inequality that pulls the wrong way hardest; False when none does."""
    worst, which = -1e-9, -1
    for a in range(len(members)):
        m = members[a]
        if m >= count:
            push = -multipliers[a] * active_limits[m - count]  # a low limit pushes up, a high one down
        elif rows[m, INEQUALITY] == 1.0:
            push = multipliers[a]
        else:
            continue
        if push < worst:
            worst, which = push, m
    if which >= count:
        active_limits[which - count] = 0
    elif which >= 0:
        active_rows[which] = 0
    return which >= 0


@compiled
def _hold(
    q: Array,
    step: Array,
    jacobian: Array,
    errors: Array,
    rows: Array,
    included: Array,
    limits: Array,
    active_rows: Array,
    active_limits: Array,
) -> bool:
    """Take up the limit or inequality that the step violates most; False when it violates none."""
    count, freedoms = jacobian.shape
    worst, which, side = _SLACK, -1, 0
    for i in range(ROOT_FREEDOMS, freedoms):
        if active_limits[i] == 0:
            value = q[i + ROOT_SIZE - ROOT_FREEDOMS] + step[i]
            if limits[0, i] - value > worst:
                worst, which, side = limits[0, i] - value, count + i, -1
            elif value - limits[1, i] > worst:
                worst, which, side = value - limits[1, i], count + i, 1
    for r in range(count):
        if included[r] and rows[r, INEQUALITY] == 1.0 and active_rows[r] == 0:
            short = errors[r]
            for i in range(freedoms):
                short -= jacobian[r, i] * step[i]
            if short > worst:
                worst, which = short, r
    if which >= count:
        active_limits[which - count] = side
    elif which >= 0:
        active_rows[which] = 1
    return which >= 0


@compiled
def _take(q: Array, step: Array, shorten: float, longest: float, limits: Array) -> float:
    """Go along the step, no component further than `longest`; returns how far the largest went."""
    largest = 0.0
    for i in range(len(step)):
        largest = max(largest, abs(step[i]))
    scale = shorten * min(1.0, longest / max(largest, 1e-300))
    for i in range(len(step)):
        step[i] *= scale
    integrate(q, step, q)
    _inside(q, limits)  # only rounding is left to take away: the active set has kept the step inside
    return scale * largest
