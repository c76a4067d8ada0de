"""The primal step, compiled: the result of the dual step, with a system the size of the degrees of freedom.

Forty markers give more rows than a body has degrees of freedom. Soft rows J d = e of variance R then condition N(g, S)
by its root S = L L', in a system the size of S:

    d = g + L M^-1 L' J' R^-1 (e - J g),        P = L M^-1 L',        M = I + L' J' R^-1 J L,

which needs no inverse of S, so held degrees of freedom (zeros in S) cost nothing. The few remaining rows (hard rows,
inequalities, joint limits) go through the dual step with the conditioned Gaussian N(d, P) in place of the prior.
"""

import numpy as np

from poise.compiled import compiled, inlined
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.solvers.dual_step import (
    INEQUALITY,
    Workspace,
    cholesky,
    constrained_step,
    spread_rows,
    substitute,
    workspace,
)
from poise.types import Array


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
