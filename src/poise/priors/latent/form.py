"""A style as a form of the compiled loop: Gauss-Newton on the latent point and the pose together.

At every step the style gives its local Gaussian around the pose and its latent point (see `local_gaussian`), over all
degrees of freedom: the maps', the root's expected tilt, and no information about the root's position and heading. The
rows' pull then moves the latent point. The stages of a solve follow section 6.2 of Grochow et al. 2004: the annealed
model, the intermediate one, then the model itself.
"""

import math
from typing import NamedTuple

import numpy as np

from poise.compiled import compiled
from poise.priors import forms
from poise.priors.forms import FREE_ROOT, held
from poise.priors.latent.local_gaussian import LatentArrays, Shape, latent_step, local_shape, room
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, matrix_from_wxyz
from poise.types import Array

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
