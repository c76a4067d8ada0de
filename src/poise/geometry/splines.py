"""Smooth curves through points or rotations in time: cubic segments with given or default tangents, and easing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.types import Array

KINDS = ("hermite", "monotone", "centripetal", "linear")
_LOOKS = 64  # samples per segment for its arc length


def curve_through(
    times: Float[Array, "keys"],
    points: Float[Array, "keys dimensions"],
    at: Float[Array, "samples"],
    *,
    tangents: Float[Array, "keys dimensions"] | None = None,
    kind: str = "hermite",
    even_pace: bool = False,
    ease: str | Sequence[str] = "none",
) -> Float[Array, "samples dimensions"]:
    """Sample the curve through points at increasing times; it is constant beyond its ends.

    `tangents` are velocities at the keys. Rows of NaN get defaults: for "hermite" those of the parabola through a key
    and its neighbours in time (a Catmull-Rom curve for uneven times), for "monotone" the same within the bounds of
    Fritsch and Carlson (1980), so that no coordinate swings beyond its keys and what stands at two keys stands between
    them, for "centripetal" those of the centripetal
    Catmull-Rom curve, which has no loops or cusps at any timing; "linear" has corners. With `even_pace` each segment
    has constant speed along its arc length; `ease` slows down at its start ("in"), its end ("out") or both ("in-out"),
    for all segments or one each.
    """
    times, points = np.asarray(times, dtype=np.float64), np.asarray(points, dtype=np.float64)
    _check(times, points, kind)
    if len(times) == 1:
        return np.repeat(points, len(at), axis=0)
    left, paced = _placed(times, at, ease)
    leaving, arriving = _segment_tangents(times, np.diff(points, axis=0), tangents, kind)
    if even_pace:  # the parameters at which the fractions of the segments' lengths have been passed
        along, shares = np.linspace(0.0, 1.0, _LOOKS + 1), paced.copy()
        for segment in np.unique(left):
            shape = _hermite(along, np.full(len(along), segment), points, leaving, arriving)
            lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(shape, axis=0), axis=1))])
            here = left == segment
            if lengths[-1] > 0.0:
                paced[here] = np.interp(shares[here] * lengths[-1], lengths, along)
    return _hermite(paced, left, points, leaving, arriving)


def turns_through(
    times: Float[Array, "keys"],
    turns: Float[Array, "keys 4"],
    at: Float[Array, "samples"],
    *,
    spins: Float[Array, "keys 3"] | None = None,
    kind: str = "hermite",
    ease: str | Sequence[str] = "none",
) -> Float[Array, "samples 4"]:
    """Sample the curve through unit quaternions at increasing times, along the shorter rotation between keys.

    Cubic Bezier segments by de Casteljau's scheme on the sphere (Shoemake 1985). `spins` are angular velocities at the
    keys, about the world's axes; rows of NaN are chosen as in `curve_through`. "linear" rotates evenly from key to key.
    """
    times, turns = np.asarray(times, dtype=np.float64), rotations.normalize(turns)
    _check(times, turns, kind)
    if len(times) == 1:
        return np.repeat(turns, len(at), axis=0)
    left, paced = _placed(times, at, ease)
    steps = rotations.expmap_from_quaternion(
        rotations.canonical(rotations.multiply(rotations.conjugate(turns[:-1]), turns[1:]))
    )
    own = None if spins is None else rotations.rotate(rotations.conjugate(turns), spins)
    leaving, arriving = _segment_tangents(times, steps, own, kind)
    ahead = rotations.multiply(turns[:-1], rotations.quaternion_from_expmap(leaving / 3.0))
    behind = rotations.multiply(turns[1:], rotations.quaternion_from_expmap(-arriving / 3.0))
    corners = [turns[left], ahead[left], behind[left], turns[left + 1]]
    while len(corners) > 1:
        pairs = [
            (a, np.where(np.sum(a * b, axis=-1, keepdims=True) < 0.0, -b, b)) for a, b in pairwise(corners)
        ]
        corners = [rotations.slerp(a, b, paced) for a, b in pairs]
    return rotations.normalize(corners[0])


def smoothstep(t: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """From 0 to 1 over t in [0, 1] with flat ends."""
    t = np.clip(t, 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t))


EASES: Mapping[str, Callable[[Array], Array]] = {
    "none": lambda t: t,
    "in": lambda t: t * t,
    "out": lambda t: t * (2.0 - t),
    "in-out": smoothstep,
}
"""Easing of a segment: from the fraction of its time to the fraction of its length."""


def _check(times: Array, points: Array, kind: str) -> None:
    if len(times) != len(points) or len(times) == 0:
        raise InvalidValueError(
            f"a curve needs as many times as points, at least one; got {len(times)}, {len(points)}"
        )
    if np.any(np.diff(times) <= 0):
        raise InvalidValueError("the times of a curve must increase from key to key")
    if kind not in KINDS:
        raise UnknownNameError("kind of curve", kind, KINDS)


def _placed(times: Array, at: Array, ease: str | Sequence[str]) -> tuple[Array, Array]:
    """The segment of every sample, and the eased fraction of it that has been passed."""
    segments = len(times) - 1
    at = np.clip(at, times[0], times[-1])
    left = np.clip(np.searchsorted(times, at, side="right") - 1, 0, segments - 1)
    eases = [ease] * segments if isinstance(ease, str) else list(ease)
    if len(eases) != segments:
        raise InvalidValueError(f"{segments} segments need one ease, or one each; got {len(eases)}")
    passed = (at - times[left]) / np.diff(times)[left]
    paced = passed.copy()
    for segment, name in enumerate(eases):
        if name not in EASES:
            raise UnknownNameError("ease", name, EASES)
        paced[left == segment] = EASES[name](passed[left == segment])
    return left, paced


def _segment_tangents(
    times: Array, chords: Array, given: Array | None, kind: str
) -> tuple[Float[Array, "segments dimensions"], Float[Array, "segments dimensions"]]:
    """Tangents of each segment at its first and its last key, per unit of the segment."""
    spans = np.diff(times)[:, None]
    if kind == "linear":
        return chords, chords
    knots = spans
    if kind == "centripetal":
        knots = np.sqrt(np.maximum(np.linalg.norm(chords, axis=1, keepdims=True), 1e-12))
    # Of the parabola through each key and its neighbours; at both ends, of the chord.
    slopes = chords / knots
    inner = (knots[1:] * slopes[:-1] + knots[:-1] * slopes[1:]) / (knots[:-1] + knots[1:])
    chosen = np.concatenate([slopes[:1], inner, slopes[-1:]])
    if kind == "monotone":
        around = np.concatenate([slopes[:1], slopes, slopes[-1:]])
        before, after = around[:-1], around[1:]
        most = 3.0 * np.where(before * after > 0.0, np.minimum(np.abs(before), np.abs(after)), 0.0)
        chosen = np.clip(chosen, -most, most)
    leaving, arriving = chosen[:-1] * knots, chosen[1:] * knots
    if given is not None:
        known = np.isfinite(given).all(axis=1, keepdims=True)
        leaving = np.where(known[:-1], given[:-1] * spans, leaving)
        arriving = np.where(known[1:], given[1:] * spans, arriving)
    return leaving, arriving


def _hermite(t: Array, left: Array, points: Array, leaving: Array, arriving: Array) -> Array:
    t = t[:, None]
    return np.asarray(
        (1 + 2 * t) * (1 - t) ** 2 * points[left]
        + t * (1 - t) ** 2 * leaving[left]
        + t**2 * (3 - 2 * t) * points[left + 1]
        - t**2 * (1 - t) * arriving[left]
    )
