"""Fill the gaps of a recorded take from a tracked body: by a spline near a gap's ends, by the model far from them.

Inside a gap there are two estimates. The model's is where the body carries the marker, shifted by its error at the
gap's ends, which fades like an Ornstein-Uhlenbeck process between its two known values. The spline's error is measured
on the take itself (`motion.gaps`). Both have a variance, by which they are combined; only very short gaps are filled
by the spline alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from poise.motion.gaps import Gap, SplineErrors, gaps_of, spline_filled
from poise.types import Array

SHORT = 0.1  # seconds: longest gap for the spline alone; from twice that the model has its full weight
LEAST_LEFT = 0.3  # share of the model's variance that remains even next to a seen point
FADING = 0.4  # seconds: time constant of a marker's offset from the model


@dataclass(frozen=True, eq=False)
class Filled:
    """A take without gaps, and the standard deviation per axis of filled points (metres; 0 if measured)."""

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
    """Fill the gaps of measured points (NaN), given the model's marker positions and their uncertainty."""
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
    """The squared distance per axis that the body has carried a marker from the one end where it was seen.

    A marker held at its last position would be that far off, however still it was before.
    """
    known = carried[gap.start - 1] if gap.start > 0 else carried[gap.end]
    return np.asarray(np.square(carried[gap.start : gap.end] - known).mean(axis=1))


def _acceleration(carried: Float[Array, "frames 3"], gap: Gap, fps: float) -> float:
    """The root-mean-square acceleration of the body around a gap, per axis."""
    around = carried[max(0, gap.start - 2) : gap.end + 2]
    return float(np.sqrt(np.square(np.diff(around, n=2, axis=0) * fps**2).mean())) if len(around) > 2 else 0.0


def _faded_offset(
    track: Float[Array, "frames 3"], carried: Float[Array, "frames 3"], gap: Gap, fps: float
) -> tuple[Float[Array, "gap 3"], Float[Array, "gap"]]:
    """The model's error inside a gap, interpolated from both ends, and the remaining share of its variance."""
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
    """The model's prediction of the marker at the frame after the gap, as if it were not seen there."""
    last = carried[gap.end - 1]
    return np.asarray(2.0 * last - carried[gap.end - 2]) if gap.end >= 2 else last
