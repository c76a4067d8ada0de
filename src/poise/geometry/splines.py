"""Smooth curves through points in time: cubic Hermite segments with tangents that neither overshoot nor stall."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError

Array = np.ndarray


def curve_through(
    times: Float[Array, "keys"], points: Float[Array, "keys dimensions"], at: Float[Array, "samples"]
) -> Float[Array, "samples dimensions"]:
    """The cubic Hermite curve through points at increasing times, sampled at other times and held beyond its ends.

    Tangents are those of the parabola through each key and its neighbours (a Catmull-Rom curve for uneven times), and
    those of the chord at both ends.
    """
    times, points = np.asarray(times, dtype=np.float64), np.asarray(points, dtype=np.float64)
    if len(times) != len(points) or len(times) == 0:
        raise InvalidValueError(
            f"a curve needs as many times as points, at least one; got {len(times)}, {len(points)}"
        )
    if np.any(np.diff(times) <= 0):
        raise InvalidValueError("the times of a curve must increase from key to key")
    if len(times) == 1:
        return np.repeat(points, len(at), axis=0)
    tangents = _tangents(times, points)
    at = np.clip(at, times[0], times[-1])
    left = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
    span = (times[left + 1] - times[left])[:, None]
    t = (at - times[left])[:, None] / span
    return np.asarray(
        (1 + 2 * t) * (1 - t) ** 2 * points[left]
        + t * (1 - t) ** 2 * span * tangents[left]
        + t**2 * (3 - 2 * t) * points[left + 1]
        - t**2 * (1 - t) * span * tangents[left + 1]
    )


def smoothstep(t: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """From 0 to 1 over t in [0, 1] with flat ends."""
    t = np.clip(t, 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t))


def _tangents(
    times: Float[Array, "keys"], points: Float[Array, "keys dimensions"]
) -> Float[Array, "keys dimensions"]:
    spans = np.diff(times)[:, None]
    slopes = np.diff(points, axis=0) / spans
    tangents = np.empty_like(points)
    tangents[0], tangents[-1] = slopes[0], slopes[-1]
    tangents[1:-1] = (spans[1:] * slopes[:-1] + spans[:-1] * slopes[1:]) / (spans[:-1] + spans[1:])
    return tangents
