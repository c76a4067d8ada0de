"""The step of the solver, compiled: the most likely change of pose that meets rows, inequalities and limits.

The dual step, compiled: the most likely change of pose that meets constraint rows, inequalities and joint limits.

With a prior of mean m and covariance S, a pose q (g = m - q) and constraint rows J d = e of variance R, the step

    d = g + S J' (J S J' + R)^-1 (e - J g)

minimises (q + d - m)' S^-1 (q + d - m) + (J d - e)' R^-1 (J d - e) at the cost of one system the size of the rows;
S is never inverted. Eq. 17 of Huang et al. 2017 is this step with R = lambda_2 / 2, whose lambda_2 shrinks with the
remaining distance (their section 4.5): at R = 0 the targets are met, and by the most likely pose that meets them.
Joint limits and half-spaces join the rows while they bind, by the signs of their multipliers (an active set).

The primal step, compiled: the result of the dual step, with a system the size of the degrees of freedom.

Forty markers give more rows than a body has degrees of freedom. Soft rows J d = e of variance R then condition N(g, S)
by its root S = L L', in a system the size of S:

    d = g + L M^-1 L' J' R^-1 (e - J g),        P = L M^-1 L',        M = I + L' J' R^-1 J L,

which needs no inverse of S, so held degrees of freedom (zeros in S) cost nothing. The few remaining rows (hard rows,
inequalities, joint limits) go through the dual step with the conditioned Gaussian N(d, P) in place of the prior.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poise.compiled import compiled, inlined
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.types import Array

# Columns of `rows`: variance (0: hard), compliance in a conflict (1: highest priority), whether it is an inequality.
VARIANCE, COMPLIANCE, INEQUALITY = range(3)

_RANK = 1e-11  # relative size of a pivot below which its row is linearly dependent on others
_TOGETHER = 8  # rounds in which all violated limits are activated at once
_ALONE = 12  # further rounds, one limit at a time; limits violated even then are clamped in the step
_SLACK = 1e-10  # radians by which a limit may be exceeded before it becomes active


class Workspace(NamedTuple):
    """Work arrays shared by the steps of one solve."""

    jacobian: Array  # J
    spread: Array  # J S
    gram: Array  # J S J'
    gap: Array  # g
    step: Array  # d
    pull: Array  # J' y = S^-1 (d - g): the pull of the rows on every degree of freedom
    active_rows: Array  # 1 while a row is active
    active_limits: Array  # -1 while a lower limit binds, 1 while an upper one does


@compiled
def workspace(count: int, freedoms: int) -> Workspace:
    """Allocate work arrays for a problem with `count` rows and this many degrees of freedom."""
    return Workspace(
        np.empty((count, freedoms)),
        np.empty((count, freedoms)),
        np.empty((count, count)),
        np.zeros(freedoms),
        np.empty(freedoms),
        np.empty(freedoms),
        np.zeros(count, dtype=np.int64),
        np.zeros(freedoms, dtype=np.int64),
    )


@compiled
def spread_rows(jacobian: Array, covariance: Array, spread: Array, gram: Array) -> None:
    """Compute J S and J S J', skipping the zeros of J; a covariance with one row is a diagonal."""
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
def constrained_step(
    q: Array,
    errors: Array,
    rows: Array,
    variances: Array,
    included: Array,
    covariance: Array,
    limits: Array,
    work: Workspace,
) -> None:
    """Compute the dual step, holding binding inequalities and limits (-1 lower, 1 upper, 0 free) as equalities."""
    jacobian, step, active_rows, active_limits = (
        work.jacobian,
        work.step,
        work.active_rows,
        work.active_limits,
    )
    count = len(jacobian)
    for r in range(count):
        if not included[r]:
            active_rows[r] = 0
        elif rows[r, INEQUALITY] == 0.0:
            active_rows[r] = 1
    for attempt in range(_TOGETHER + _ALONE):
        members, multipliers = _dual_solve(q, errors, variances, covariance, limits, work)
        _primal(members, multipliers, covariance, work)
        changed = _release(members, multipliers, rows, active_rows, active_limits, count)
        if not changed:
            changed = _hold(
                q,
                step,
                jacobian,
                errors,
                rows,
                included,
                limits,
                active_rows,
                active_limits,
                attempt >= _TOGETHER,
            )
        if not changed:
            return


@compiled
def _dual_solve(
    q: Array, errors: Array, variances: Array, covariance: Array, limits: Array, work: Workspace
) -> tuple[Array, Array]:
    """Members of the active set (rows, then rows + freedom for limits) and their multipliers."""
    jacobian, spread, gram, gap, active_rows, active_limits = (
        work.jacobian,
        work.spread,
        work.gram,
        work.gap,
        work.active_rows,
        work.active_limits,
    )
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
    expected = np.dot(jacobian, gap)  # by BLAS: a loop would wait for each addition
    for a in range(size):
        m = members[a]
        if m >= count:
            i = m - count
            bound = limits[0, i] if active_limits[i] < 0 else limits[1, i]
            right[a] = bound - q[i + ROOT_SIZE - ROOT_FREEDOMS] - gap[i]
        else:
            right[a] = errors[m] - expected[m]
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
    cholesky(matrix)
    substitute(matrix, right)


@compiled
def cholesky(matrix: Array) -> None:
    """Replace the lower part by the Cholesky factor, with its diagonal inverted and dependent rows set to zero."""
    for a in range(len(matrix)):
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
            matrix[a, a] = 1.0 / math.sqrt(pivot)  # later steps need the inverse of the diagonal


@compiled
def substitute(factor: Array, right: Array) -> None:
    """Solve in place with the factor from `cholesky`."""
    size = len(right)
    for a in range(size):
        total = right[a]
        for c in range(a):
            total -= factor[a, c] * right[c]
        right[a] = total * factor[a, a]
    for a in range(size - 1, -1, -1):
        total = right[a]
        for c in range(a + 1, size):
            total -= factor[c, a] * right[c]
        right[a] = total * factor[a, a]


@compiled
def _primal(members: Array, multipliers: Array, covariance: Array, work: Workspace) -> None:
    """The pull J' y of the members, and the step d = g + S J' y."""
    jacobian, spread, gap, step, pull = work.jacobian, work.spread, work.gap, work.step, work.pull
    count, freedoms = jacobian.shape
    step[:], pull[:] = gap, 0.0
    for a in range(len(members)):
        m, y = members[a], multipliers[a]
        if m < count:
            for i in range(freedoms):
                step[i] += y * spread[m, i]
                pull[i] += y * jacobian[m, i]
            continue
        pull[m - count] += y
        if covariance.shape[0] == 1:
            step[m - count] += y * covariance[0, m - count]
        else:
            for i in range(freedoms):
                step[i] += y * covariance[m - count, i]


@compiled
def _release(
    members: Array, multipliers: Array, rows: Array, active_rows: Array, active_limits: Array, count: int
) -> bool:
    """Deactivate the limit or inequality whose multiplier has the wrong sign most; False if there is none."""
    worst, which = -1e-9, -1
    for a in range(len(members)):
        m = members[a]
        if m >= count:
            push = -multipliers[a] * active_limits[m - count]  # a lower limit pushes up, an upper one down
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
    one: bool,
) -> bool:
    """Activate the limits and inequalities that the step violates, or only the worst; False if it violates none."""
    count, freedoms = jacobian.shape
    worst, which, side = _SLACK, -1, 0
    for i in range(ROOT_FREEDOMS, freedoms):
        if active_limits[i] == 0:
            value = q[i + ROOT_SIZE - ROOT_FREEDOMS] + step[i]
            below, above = limits[0, i] - value, value - limits[1, i]
            if max(below, above) > _SLACK and not one:
                active_limits[i] = -1 if below > above else 1
            if max(below, above) > worst:
                worst, which, side = max(below, above), count + i, -1 if below > above else 1
    for r in range(count):
        if included[r] and rows[r, INEQUALITY] == 1.0 and active_rows[r] == 0:
            short = errors[r]
            for i in range(freedoms):
                short -= jacobian[r, i] * step[i]
            if short > _SLACK and not one:
                active_rows[r] = 1
            if short > worst:
                worst, which = short, r
    if which >= count:
        active_limits[which - count] = side
    elif which >= 0:
        active_rows[which] = 1
    return which >= 0


@compiled
def _entry(covariance: Array, i: int, k: int) -> float:
    if covariance.shape[0] == 1:
        return covariance[0, i] if i == k else 0.0
    return covariance[i, k]


# --- the primal form --------------------------------------------------------------------------------------------------


@compiled
def step_under(
    q: Array,
    errors: Array,
    rows: Array,
    variances: Array,
    included: Array,
    covariance: Array,
    limits: Array,
    work: Workspace,
) -> None:
    """Compute the most likely step under the rows: in primal form if many are soft, else in dual form.

    The dual form needs `spread_rows` first; `many_soft` says which form will be used.
    """
    if many_soft(rows, variances, included, limits.shape[1]):
        _conditioned_step(q, errors, rows, variances, included, covariance, limits, work)
    else:
        constrained_step(q, errors, rows, variances, included, covariance, limits, work)


@compiled
def many_soft(rows: Array, variances: Array, included: Array, freedoms: int) -> bool:
    """Whether soft equalities outnumber the degrees of freedom."""
    count = 0
    for r in range(len(rows)):
        if _is_soft(r, rows, variances, included):
            count += 1
    return count > freedoms


@compiled
def information(
    jacobian: Array, errors: Array, variances: Array, taking_part: Array, gap: Array
) -> tuple[Array, Array]:
    """J' R^-1 J and J' R^-1 (e - J g) of the active rows; rows of infinite variance are skipped."""
    count, freedoms = jacobian.shape
    matrix, pull = np.zeros((freedoms, freedoms)), np.zeros(freedoms)
    places = np.empty(freedoms, dtype=np.int64)
    for r in range(count):
        if not taking_part[r] or variances[r] == np.inf:
            continue
        row, weight, left, size = jacobian[r], 1.0 / variances[r], errors[r], 0
        for i in range(freedoms):
            if row[i] != 0.0:
                places[size] = i
                size += 1
                left -= row[i] * gap[i]
        for a in range(size):
            i = places[a]
            share = weight * row[i]
            pull[i] += share * left
            for b in range(a + 1):
                matrix[i, places[b]] += share * row[places[b]]
    for i in range(freedoms):
        for k in range(i):
            matrix[k, i] = matrix[i, k]
    return matrix, pull


@compiled
def conditioned(covariance: Array, matrix: Array) -> Array:
    """The covariance P of a Gaussian with covariance S, conditioned on rows with this J' R^-1 J."""
    root = _root(covariance)
    inner = _inner(root, matrix)
    cholesky(inner)
    half = root.T.copy()
    _forward(inner, half)
    return np.dot(half.T, half)


@inlined
def _conditioned_step(
    q: Array,
    errors: Array,
    rows: Array,
    variances: Array,
    included: Array,
    covariance: Array,
    limits: Array,
    work: Workspace,
) -> None:
    soft = np.zeros(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        soft[r] = _is_soft(r, rows, variances, included)
    matrix, pull = information(work.jacobian, errors, variances, soft, work.gap)
    root = _root(covariance)
    inner = _inner(root, matrix)
    cholesky(inner)
    move = np.dot(root.T, pull)
    substitute(inner, move)
    work.step[:] = work.gap + np.dot(root, move)
    work.pull[:] = pull - np.dot(matrix, work.step - work.gap)
    rest = np.flatnonzero(included & ~soft)
    if len(rest) > 0 or not _inside(q, work.step, limits):
        half = root.T.copy()
        _forward(inner, half)
        _step_of_rest(q, errors, rows, variances, rest, np.dot(half.T, half), limits, work)
        work.pull[:] += pull - np.dot(matrix, work.step - work.gap)


@inlined
def _step_of_rest(
    q: Array,
    errors: Array,
    rows: Array,
    variances: Array,
    rest: Array,
    covariance: Array,
    limits: Array,
    work: Workspace,
) -> None:
    """The dual step from the conditioned Gaussian under the remaining rows and limits; their pull is not changed."""
    sub = workspace(len(rest), limits.shape[1])
    sub.jacobian[:], sub.gap[:] = work.jacobian[rest], work.step
    sub.active_limits[:] = work.active_limits
    spread_rows(sub.jacobian, covariance, sub.spread, sub.gram)
    all_of_them = np.ones(len(rest), dtype=np.bool_)
    constrained_step(q, errors[rest], rows[rest], variances[rest], all_of_them, covariance, limits, sub)
    work.step[:], work.pull[:], work.active_limits[:] = sub.step, sub.pull, sub.active_limits


@compiled
def _is_soft(r: int, rows: Array, variances: Array, included: Array) -> bool:
    return included[r] and variances[r] > 0.0 and rows[r, INEQUALITY] == 0.0


@compiled
def _inside(q: Array, step: Array, limits: Array) -> bool:
    for i in range(ROOT_FREEDOMS, len(step)):
        value = q[i + ROOT_SIZE - ROOT_FREEDOMS] + step[i]
        if value < limits[0, i] or value > limits[1, i]:
            return False
    return True


@compiled
def _root(covariance: Array) -> Array:
    """L of S = L L', lower triangular; a covariance with one row is a diagonal."""
    if covariance.shape[0] == 1:
        return np.diag(np.sqrt(covariance[0]))
    root = covariance.copy()
    cholesky(root)
    for i in range(len(root)):
        root[i, i] = 1.0 / root[i, i] if root[i, i] > 0.0 else 0.0
        root[i, i + 1 :] = 0.0
    return root


@compiled
def _inner(root: Array, matrix: Array) -> Array:
    """I + L' H L."""
    inner = np.dot(root.T, np.dot(matrix, root))
    for i in range(len(inner)):
        inner[i, i] += 1.0
    return inner


@compiled
def _forward(factor: Array, right: Array) -> None:
    """right <- C^-1 right for the factor of `cholesky`, whose diagonal holds inverses."""
    for a in range(len(factor)):
        for c in range(a):
            weight = factor[a, c]
            for k in range(right.shape[1]):
                right[a, k] -= weight * right[c, k]
        for k in range(right.shape[1]):
            right[a, k] *= factor[a, a]
