"""Fills the gaps of a recorded take from a tracked body: as good as a spline near a gap's ends, as the model far off.

Inside a gap there are two guesses. The model's is where the body carries the marker, moved by what it was off at the
gap's ends; that offset fades as an Ornstein-Uhlenbeck process between its two known values would. The spline's error is
known from the take itself (`motion.gaps`). Both come with a variance, and are combined by it; only gaps too short for
anything to happen in them are the spline's alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from poise.motion.gaps import Gap, SplineErrors, gaps_of, spline_filled
from poise.types import Array

SHORT = 0.1  # seconds up to which a gap is left to its spline; from twice that on the model has its full say
LEAST_LEFT = 0.3  # of the model's variance that stays even beside a point that was seen
FADING = 0.4  # seconds over which a marker's offset from the model goes over into others


@dataclass(frozen=True, eq=False)
class Filled:
    """A take without gaps, and of what was filled in the standard deviation per axis (metres; 0 where measured)."""

    points: Float[Array, "frames markers 3"]
    sigmas: Float[Array, "frames markers"]
    measured: Bool[Array, "frames markers"]


def fill(
    measured: Float[Array, "frames markers 3"],
    carried: Float[Array, "frames markers 3"],
    sigmas: Float[Array, "frames markers"],
    *,
    errors: SplineErrors,
    fps: float,
) -> Filled:
    """Measured points (NaN in gaps) with their gaps filled, given where a model carries all markers and how surely."""
    seen = np.isfinite(measured).all(axis=2)
    points, spread = np.where(seen[..., None], measured, carried), np.where(seen, 0.0, sigmas)
    splines = spline_filled(measured)
    for gap in gaps_of(seen):
        frames, m = slice(gap.start, gap.end), gap.marker
        offset, left = _faded_offset(measured[:, m], carried[:, m], gap, fps)
        guess, variance = carried[frames, m] + offset, np.maximum(left, LEAST_LEFT) * sigmas[frames, m] ** 2
        if np.isfinite(splines[gap.start, m]).all():
            own = errors.sigma(gap, fps, acceleration=_acceleration(carried[:, m], gap, fps)) ** 2
            if not gap.closed:
                own += _gone(carried[:, m], gap)
            share = variance / (variance + own)
            if gap.closed:
                share = np.maximum(share, np.clip(2.0 - len(gap) / (SHORT * fps), 0.0, 1.0))
            guess = (1.0 - share)[:, None] * guess + share[:, None] * splines[frames, m]
            variance = (1.0 - share) ** 2 * variance + share**2 * own
        points[frames, m], spread[frames, m] = guess, np.sqrt(variance)
    return Filled(points, spread, seen)


def _gone(carried: Float[Array, "frames 3"], gap: Gap) -> Float[Array, "gap"]:
    """How far the body has carried a marker from the one end at which it was seen: squared, per axis.

    What stays where it was last seen is that far off, however still the marker has been until then.
    """
    known = carried[gap.start - 1] if gap.start > 0 else carried[gap.end]
    return np.asarray(np.square(carried[gap.start : gap.end] - known).mean(axis=1))


def _acceleration(carried: Float[Array, "frames 3"], gap: Gap, fps: float) -> float:
    """How lively the body is about a gap: root mean square, per axis."""
    around = carried[max(0, gap.start - 2) : gap.end + 2]
    return float(np.sqrt(np.square(np.diff(around, n=2, axis=0) * fps**2).mean())) if len(around) > 2 else 0.0


def _faded_offset(
    track: Float[Array, "frames 3"], carried: Float[Array, "frames 3"], gap: Gap, fps: float
) -> tuple[Float[Array, "gap 3"], Float[Array, "gap"]]:
    """What the model is off by inside a gap, from both its ends, and the share of its variance that is left."""
    count = len(gap)
    before, after = (
        np.exp(-np.arange(1, count + 1) / (FADING * fps)),
        np.exp(-np.arange(count, 0, -1) / (FADING * fps)),
    )
    if gap.start == 0:
        before = np.zeros(count)
    if gap.end == len(track):
        after = np.zeros(count)
    whole = np.maximum(1.0 - (before * after) ** 2, 1e-9)
    first, last = before * (1.0 - after**2) / whole, after * (1.0 - before**2) / whole
    offset = np.zeros((count, 3))
    if gap.start > 0:
        offset += first[:, None] * (track[gap.start - 1] - carried[gap.start - 1])
    if gap.end < len(track):
        offset += last[:, None] * (track[gap.end] - _led_on(carried, gap))
    left = 1.0 - (before**2 + after**2 - 2.0 * (before * after) ** 2) / whole
    return offset, np.maximum(left, 0.0)


def _led_on(carried: Float[Array, "frames 3"], gap: Gap) -> Float[Array, "3"]:
    """Where the model would carry the marker at the frame after the gap, had it not been seen again there."""
    last = carried[gap.end - 1]
    return np.asarray(2.0 * last - carried[gap.end - 2]) if gap.end >= 2 else last
