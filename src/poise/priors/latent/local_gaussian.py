"""The local Gaussian of a style at a latent point, compiled, and the style as a form of the compiled loop.

The local Gaussian of a style at a latent point, compiled: the solver's step on L_IK (Eqs. 3 to 6, 16 to 19).

At x, L_IK is least squares in the pose plus a few smooth terms in x. With a pose's exponential maps theta, the
prediction m(x) = base + k(x) weights and precisions w^2 of its scaled features,

    L_IK = sum w^2 (theta - m(x))^2 / (2 s) + sum r(x)^2 / (2 s) + D/2 ln s + |x|^2 / 2,        s = sigma^2(x),

where r are features that the pose does not determine here (the vertical orientation of a given root, velocities that
disagree with positions). To second order in a change dx (the terms in x alone by their Hessian made positive, the rest
by Gauss-Newton) the pose is a Gaussian after dx is integrated out:

    theta ~ N(m + F a, s N + F A^-1 F'),      F = dm/dx,   A the curvature and a = -A^-1 b the step of the x terms.

N is the residual covariance of the style for a variance of one. In the paper it is 1 / w^2, each feature
independently; here it includes the correlations between features in the style's own residuals (see `prior`).

So a style is one more (mean, covariance) for the dual step; the pull P = S^-1 (theta + d - mean) of its rows gives the
latent step dx = a + A^-1 F' P. This is the joint Gauss-Newton step on (x, q), without alternation.

A style as a form of the compiled loop: Gauss-Newton on the latent point and the pose together.

At every step the style gives its local Gaussian around the pose and its latent point (see `local_gaussian`), over all
degrees of freedom: the maps', the root's expected tilt, and no information about the root's position and heading. The
rows' pull then moves the latent point. The stages of a solve follow section 6.2 of Grochow et al. 2004: the annealed
model, the intermediate one, then the model itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poise.compiled import compiled
from poise.gp.covariance import Curves, curves_of, kernel_curves, kernel_self, self_bend, weighed_bends
from poise.priors import forms
from poise.priors.forms import FREE_ROOT, held
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, matrix_from_wxyz
from poise.types import Array

_FLOOR = 1e-6  # of k(x, x): lower bound of a predicted variance, against rounding


class LatentArrays(NamedTuple):
    """A style under one kernel, reduced to the features in use."""

    kind: int
    parameters: Array  # (4,)
    actives: Array  # (active, latent)
    inverse: Array  # (active, active)
    weights: Array  # (active, maps): m(x) = base + k(x) weights
    precisions: Array  # (maps,): squared scales of the maps
    checks: Array  # (active, checks): r(x) = aims - k(x) checks, in scaled units
    features: float  # D, the number of features in use
    noise: Array  # (maps, maps): residual covariance of the style, for a variance of one
    floor: Array  # (maps, maps): residual covariance that is added everywhere


class Shape(NamedTuple):
    """Work arrays for the local shape at a latent point."""

    mean: Array  # (maps,)
    covariance: Array  # (maps, maps), after the rows and columns of the root, if there are any
    slopes: Array  # F' (latent, maps)
    step: Array  # a (latent,)
    inverse_curvature: Array  # A^-1 (latent, latent)
    checked: Array  # k(x) checks (checks,)
    curves: Curves  # k(x) and its derivatives


@compiled
def room(style: LatentArrays, root: int) -> Shape:
    """Allocate work arrays for a style and `root` degrees of freedom of the root."""
    maps, latent = style.weights.shape[1], style.actives.shape[1]
    return Shape(
        np.empty(maps),
        np.zeros((root + maps, root + maps)),
        np.empty((latent, maps)),
        np.empty(latent),
        np.empty((latent, latent)),
        np.empty(style.checks.shape[1]),
        curves_of(style.actives),
    )


@compiled
def spread_at(style: LatentArrays, x: Array, curves: Curves, slope: Array) -> float:
    """sigma^2(x) (Eqs. 5, 6) and its gradient (Eq. 19); writes k(x) and dk/dx."""
    whole = kernel_self(style.kind, style.parameters, x, slope)
    kernel_curves(style.kind, style.parameters, x, style.actives, curves)
    solved = np.dot(style.inverse, curves.rows[0])
    slope -= 2.0 * np.dot(curves.rows[1:], solved)
    return max(whole - np.dot(curves.rows[0], solved), _FLOOR * whole)


@compiled
def misfit_at(
    style: LatentArrays, base: Array, aims: Array, maps: Array, k: Array, mean: Array, left: Array
) -> float:
    """|W (y - f(x))|^2 of the features in use; writes the prediction and the residuals of the aims."""
    mean[:], left[:] = base, aims
    for i in range(len(k)):
        weight = k[i]
        for j in range(len(mean)):
            mean[j] += weight * style.weights[i, j]
        for c in range(len(left)):
            left[c] -= weight * style.checks[i, c]
    total = 0.0
    for j in range(len(mean)):
        total += style.precisions[j] * (maps[j] - mean[j]) ** 2
    for c in range(len(left)):
        total += left[c] ** 2
    return total


@compiled
def objective(style: LatentArrays, base: Array, aims: Array, maps: Array, x: Array) -> float:
    """L_IK (Eq. 3) of a pose's maps at a latent point."""
    curves = curves_of(style.actives)
    variance = spread_at(style, x, curves, np.empty(len(x)))
    misfit = misfit_at(style, base, aims, maps, curves.rows[0], np.empty(len(base)), np.empty(len(aims)))
    return 0.5 * (misfit / variance + style.features * np.log(variance) + np.dot(x, x))


@compiled
def local_shape(style: LatentArrays, base: Array, aims: Array, maps: Array, x: Array, shape: Shape) -> float:
    """Fill in the local shape at x for a pose with these maps; return sigma^2(x)."""
    latent, slope, curves = len(x), np.empty(len(x)), shape.curves
    whole = kernel_self(style.kind, style.parameters, x, slope)
    kernel_curves(style.kind, style.parameters, x, style.actives, curves)
    solved, predicted = np.dot(curves.rows, style.inverse), np.dot(curves.rows, style.weights)
    checked = np.dot(curves.rows, style.checks) if len(aims) > 0 else np.zeros((1 + latent, 0))
    variance = max(whole - np.dot(curves.rows[0], solved[0]), _FLOOR * whole)
    slope -= 2.0 * np.dot(curves.rows[1:], solved[0])
    shape.slopes[:], misfit = predicted[1:], 0.0
    for j in range(len(base)):
        shape.mean[j] = base[j] + predicted[0, j]
        misfit += style.precisions[j] * (maps[j] - shape.mean[j]) ** 2
    shape.checked[:] = checked[0]
    left = aims - checked[0]
    misfit += np.dot(left, left)
    curvature = _curvature(style, variance, slope, curves, solved)
    gradient = x + 0.5 * (style.features - misfit / variance) / variance * slope
    wanting = 0.5 * misfit / variance**3  # misfit / (2 s) grows as the square of a change of ln s
    for a in range(latent):
        gradient[a] -= np.dot(checked[1 + a], left) / variance
        for b in range(latent):
            shared = np.dot(checked[1 + a], checked[1 + b]) / variance
            curvature[a, b] += shared + wanting * slope[a] * slope[b]
    shape.inverse_curvature[:] = np.linalg.inv(curvature)
    shape.step[:] = -np.dot(shape.inverse_curvature, gradient)
    _gaussian(style, variance, shape)
    return variance


@compiled
def _curvature(style: LatentArrays, variance: float, slope: Array, curves: Curves, solved: Array) -> Array:
    """The Hessian of D/2 ln sigma^2 + |x|^2 / 2, its eigenvalues made positive.

    `solved` is k(x) and its gradient times the inverse kernel matrix.
    """
    latent, half = len(slope), 0.5 * style.features / variance
    hessian = np.empty((latent, latent))
    for a in range(latent):
        for b in range(a + 1):
            hessian[a, b] = hessian[b, a] = np.dot(curves.rows[1 + a], solved[1 + b])
    weighed_bends(curves, solved[0], hessian)
    own = self_bend(style.kind, style.parameters)
    for a in range(latent):
        for b in range(latent):
            hessian[a, b] = -half * (2.0 * hessian[a, b] + slope[a] * slope[b] / variance)
        hessian[a, a] += 1.0 + half * own
    return hessian if _above_one(hessian) else _bent_up(hessian)


@compiled
def _above_one(matrix: Array) -> bool:
    """Whether all eigenvalues of a symmetric matrix are above one: whether the matrix minus I has a Cholesky factor."""
    size, factor = len(matrix), matrix.copy()
    for a in range(size):
        pivot = factor[a, a] - 1.0
        for c in range(a):
            pivot -= factor[a, c] * factor[a, c]
        if not pivot > 0.0:
            return False
        for b in range(a + 1, size):
            for c in range(a):
                factor[b, a] -= factor[a, c] * factor[b, c]
            factor[b, a] /= np.sqrt(pivot)
    return True


@compiled
def _bent_up(matrix: Array) -> Array:
    """The symmetric matrix with its eigenvalues replaced by their magnitudes, at least one."""
    values, vectors = np.linalg.eigh(matrix)
    for a in range(len(matrix)):
        values[a] = max(abs(values[a]), 1.0)
    return np.dot(vectors * values, vectors.T)


@compiled
def _gaussian(style: LatentArrays, variance: float, shape: Shape) -> None:
    """The pose's mean m + F a and covariance s N + N0 + F A^-1 F'."""
    slopes, covariance, noise, floor = shape.slopes, shape.covariance, style.noise, style.floor
    latent, maps = slopes.shape
    spread, root = np.dot(shape.inverse_curvature, slopes), len(covariance) - maps
    for i in range(maps):
        row, weight, along = covariance[root + i, root:], slopes[0, i], spread[0]
        for j in range(maps):
            row[j] = variance * noise[i, j] + floor[i, j] + weight * along[j]
        for a in range(1, latent):
            weight, along = slopes[a, i], spread[a]
            for j in range(maps):
                row[j] += weight * along[j]
    for a in range(latent):
        for j in range(maps):
            shape.mean[j] += shape.step[a] * slopes[a, j]


@compiled
def latent_step(shape: Shape, pull: Array) -> Array:
    """dx for a pose step, from the pull of the rows on the maps."""
    return shape.step + np.dot(shape.inverse_curvature, np.dot(shape.slopes, pull))


@compiled
def project(style: LatentArrays, base: Array, aims: Array, maps: Array, x: Array, steps: int) -> float:
    """Move x to the minimum of L_IK for a given pose (damped Newton); return L_IK there."""
    latent, slope, left, curves = len(x), np.empty(len(x)), np.empty(len(aims)), curves_of(style.actives)
    mean, value, damping = np.empty(len(base)), objective(style, base, aims, maps, x), 1e-3
    for _ in range(steps):
        variance = spread_at(style, x, curves, slope)
        misfit = misfit_at(style, base, aims, maps, curves.rows[0], mean, left)
        curvature = _curvature(style, variance, slope, curves, np.dot(curves.rows, style.inverse))
        gradient = x + 0.5 * (style.features - misfit / variance) / variance * slope
        slopes, checked = np.dot(curves.rows[1:], style.weights), np.zeros((latent, len(aims)))
        if len(aims) > 0:
            checked = np.dot(curves.rows[1:], style.checks)
        for a in range(latent):
            weighed = slopes[a] * style.precisions
            gradient[a] -= (np.dot(weighed, maps - mean) + np.dot(checked[a], left)) / variance
            for b in range(latent):
                curvature[a, b] += (np.dot(weighed, slopes[b]) + np.dot(checked[a], checked[b])) / variance
        better = False
        for _ in range(8):
            damped = curvature.copy()
            for a in range(latent):
                damped[a, a] *= 1.0 + damping
            trial = x - np.linalg.solve(damped, gradient)
            tried = objective(style, base, aims, maps, trial)
            if tried < value:
                better = value - tried > 1e-9 * (1.0 + abs(value))
                x[:], value, damping = trial, tried, max(0.1 * damping, 1e-6)
                break
            damping *= 10.0
        if not better:
            break
    return value


# --- the form of the compiled loop ------------------------------------------------------------------------------------


_LATENT_REACH = 0.5  # of a kernel's width: largest step of the latent point
_LATENT_REST = 0.3  # of that step: below this, further steps change joints by hundredths of a degree


class LatentForm(NamedTuple):
    """One stage of a style, and the terms from previous frames (see `observed.ObservedFrame`)."""

    style: LatentArrays
    base: Array
    ups: Array
    contrasts: Array
    answer: Array  # (maps,): the pose predicted from handles alone (see `answers`)
    share: float  # its share in the mean; if positive, the latent point does not move


class LatentRoom(NamedTuple):
    """Work arrays of one solve."""

    covariance: Array
    local: Shape
    aims: Array
    rests: Array  # (1,): whether the shape is kept


def _room_for(form: LatentForm, free: Array) -> LatentRoom:
    local = room(form.style, len(free) - len(form.base))
    aims = np.concatenate((np.zeros(form.ups.shape[1]), form.contrasts))
    return LatentRoom(local.covariance, local, aims, np.zeros(1, dtype=np.bool_))


def _look(form: LatentForm, place: LatentRoom, q: Array, x: Array, free: Array, gap: Array) -> None:
    """Gap and covariance of all degrees of freedom: the maps' local shape, the root's tilt, zero for those held.

    While the latent point does not move the shape is kept: otherwise it would follow a pose that handles moved away.
    """
    local, gap[:] = place.local, 0.0
    if not place.rests[0]:
        _shape(form, place, q, x, gap)
        held(free, place.covariance)
        place.rests[0] = form.share > 0.0
    for i in range(len(local.mean)):
        expected = local.mean[i] + form.share * (form.answer[i] - local.mean[i])
        gap[ROOT_FREEDOMS + i] = expected - q[ROOT_SIZE + i]
    for i in range(len(free)):
        if not free[i]:
            gap[i] = 0.0


@compiled
def _shape(form: LatentForm, place: LatentRoom, q: Array, x: Array, gap: Array) -> None:
    """The local shape at a pose, and the root's tilt."""
    local, covariance = place.local, place.covariance
    aim_up(q, form.ups, place.aims)
    variance = local_shape(form.style, form.base, place.aims, q[ROOT_SIZE:], x, local)
    covariance[:ROOT_FREEDOMS, :ROOT_FREEDOMS] = 0.0
    for i in range(ROOT_FREEDOMS):
        covariance[i, i] = FREE_ROOT
    if form.ups.shape[1] == 3:
        _tilt(form, local, q, variance, covariance, gap)


def _follow(form: LatentForm, place: LatentRoom, x: Array, pull: Array, shorten: float) -> bool:
    """Take the latent step, limited in length; return whether it was long."""
    if form.share > 0.0:
        return False
    reach = _LATENT_REACH / math.sqrt(form.style.parameters[2])
    step = latent_step(place.local, pull[ROOT_FREEDOMS:])
    length = math.sqrt(np.dot(step, step))
    scale = shorten * min(1.0, reach / max(length, 1e-300))
    x += scale * step
    return scale * length >= _LATENT_REST * reach


@compiled
def aim_up(q: Array, ups: Array, aims: Array) -> None:
    """The scaled up features of the root minus their prediction without k(x): the first of the aims."""
    m = matrix_from_wxyz(q[3], q[4], q[5], q[6])
    for i in range(ups.shape[1]):
        aims[i] = ups[0, i] * (m[3 + i] - ups[1, i])


@compiled
def expected_up(form: LatentForm, local: Shape) -> Array:
    """The expected up direction in the root's frame at the point of `local`, at unit length."""
    expected = np.empty(3)
    for i in range(3):
        expected[i] = local.checked[i] / form.ups[0, i] + form.ups[1, i]
    expected /= max(math.sqrt(np.dot(expected, expected)), 1e-9)
    return expected


@compiled
def _tilt(form: LatentForm, local: Shape, q: Array, variance: float, covariance: Array, gap: Array) -> None:
    """The root's expected tilt: a rotation by expected x actual up, constrained across it and free about it."""
    expected = expected_up(form, local)
    m = matrix_from_wxyz(q[3], q[4], q[5], q[6])
    up = np.array([m[3], m[4], m[5]])
    gap[3] = expected[1] * up[2] - expected[2] * up[1]
    gap[4] = expected[2] * up[0] - expected[0] * up[2]
    gap[5] = expected[0] * up[1] - expected[1] * up[0]
    across = min(3.0 * variance / np.dot(form.ups[0], form.ups[0]), FREE_ROOT)
    for i in range(3):
        for j in range(3):
            along = up[i] * up[j]
            covariance[3 + i, 3 + j] = FREE_ROOT * along + across * ((1.0 if i == j else 0.0) - along)


def _holds(form: LatentForm, q: Array) -> bool:
    return True


forms.answer(
    LatentForm,
    {forms.room_for: _room_for, forms.look: _look, forms.follow: _follow, forms.holds: _holds},
)
