"""The interface between the compiled loop and a prior: one loop, specialised by the type of the prior's form.

A form is a named tuple of arrays. Four functions define its meaning; a new form overloads each of them (see `Fixed`
for the simplest, `latent.form` for one with a state):

    room_for(form, free)                 work arrays of one solve, including `room.covariance`
    look(form, room, q, x, free, gap)    fill in the gap m - q and the covariance at a pose and a state x
    follow(form, room, x, pull, shorten) update the state from the rows' pull; whether it still moves
    holds(form, q)                       whether the form is still valid for a pose

Degrees of freedom that are held have zero gap and zero covariance.
"""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from poise.compiled import compiled
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.types import Array

_SETTLED = 0.02  # metres, or quaternion components: a root that moved less needs no new prediction
FREE_ROOT = 1.0  # metres and radians squared: no information about the root's position and heading


def question() -> Callable[..., Any]:
    """A question that compiled code asks a form or a predictor; `answer` gives the answers of a type."""

    def unanswered(form: Any, *_: Any) -> Any:
        raise TypeError(f"{type(form).__name__} has no compiled form")

    unanswered.answered_in = Path(__file__).parent  # type: ignore[attr-defined]  # who asks is compiled again
    return unanswered


room_for, look, follow, holds = question(), question(), question(), question()

FREE, EXPECTED, SEEN = range(3)  # the root is free; it is known; the targets were seen from it


class Fixed(NamedTuple):
    """One Gaussian for the whole solve."""

    root: Array  # (7,)
    rooted: int  # kind of root: FREE, EXPECTED or SEEN
    mean: Array  # (maps,)
    covariance: Array  # (freedoms, freedoms), or (1, freedoms): a diagonal


class FixedRoom(NamedTuple):
    """The covariance without the held degrees of freedom."""

    covariance: Array


NO_ROOT = np.zeros(ROOT_SIZE)


def fixed(mean: Array, covariance: Array, *, root: Array | None = None) -> tuple[Fixed]:
    """The single stage of a solve under one Gaussian."""
    mean = np.require(mean, requirements="W")  # a read-only array has a type of its own, and so a solver
    return (Fixed(NO_ROOT if root is None else root, FREE if root is None else EXPECTED, mean, covariance),)


@compiled
def held(free: Array, covariance: Array) -> None:
    """Zero the covariance of the held degrees of freedom."""
    for i in range(len(free)):
        if not free[i]:
            covariance[:, i] = 0.0
            if len(covariance) > 1:
                covariance[i, :] = 0.0


def answer(kind: type, answers: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
    """Register, for a type of named tuple, one plain function per question, as its compiled implementation."""
    for asked, own in answers.items():

        def chosen(*arguments: Any, own: Callable[..., Any] = own) -> Callable[..., Any] | None:
            return own if getattr(arguments[0], "instance_class", None) is kind else None

        chosen.__signature__ = inspect.signature(own)  # type: ignore[attr-defined]  # Numba compares the two
        overload(asked)(chosen)


def _room_for_fixed(form: Fixed, free: Array) -> FixedRoom:
    covariance = form.covariance
    if not np.all(free):
        covariance = covariance.copy()
        held(free, covariance)
    return FixedRoom(covariance)


def _look_fixed(form: Fixed, room: FixedRoom, q: Array, x: Array, free: Array, gap: Array) -> None:
    if form.rooted == EXPECTED:
        root_gap(q, form.root, gap)
    for i in range(len(form.mean)):
        gap[ROOT_FREEDOMS + i] = form.mean[i] - q[ROOT_SIZE + i]
    for i in range(len(free)):
        if not free[i]:
            gap[i] = 0.0


def _follow_fixed(form: Fixed, room: FixedRoom, x: Array, pull: Array, shorten: float) -> bool:
    return False


def _holds_fixed(form: Fixed, q: Array) -> bool:
    return form.rooted != SEEN or settled(q, form.root)


@compiled
def settled(q: Array, root: Array) -> bool:
    """Whether a root has moved so little that its targets need not be seen again."""
    farthest = 0.0
    for i in range(ROOT_SIZE):
        farthest = max(farthest, abs(q[i] - root[i]))
    return farthest < _SETTLED


answer(Fixed, {room_for: _room_for_fixed, look: _look_fixed, follow: _follow_fixed, holds: _holds_fixed})


@compiled
def root_gap(q: Array, root: Array, gap: Array) -> None:
    """The tangent step from a pose's root to another: translation in world axes, rotation in the root's own frame."""
    for i in range(3):
        gap[i] = root[i] - q[i]
    w0, x0, y0, z0 = q[3], -q[4], -q[5], -q[6]
    w1, x1, y1, z1 = root[3], root[4], root[5], root[6]
    w = w0 * w1 - x0 * x1 - y0 * y1 - z0 * z1
    x = w0 * x1 + x0 * w1 + y0 * z1 - z0 * y1
    y = w0 * y1 - x0 * z1 + y0 * w1 + z0 * x1
    z = w0 * z1 + x0 * y1 - y0 * x1 + z0 * w1
    sine, sign = np.sqrt(x * x + y * y + z * z), 1.0 if w >= 0.0 else -1.0
    scale = 2.0 * sign * np.arctan2(sine, sign * w) / sine if sine > 1e-12 else 2.0 * sign
    gap[3], gap[4], gap[5] = scale * x, scale * y, scale * z
