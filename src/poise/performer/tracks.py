"""Functions of time: key frames joined by smooth curves, easing, and slow random drift. All are continuous in time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from poise.types import Array

Key = tuple[float, Any]  # a time, and a number or several

GRAVITY = 9.81  # metres a second squared


def track(times: Float[Array, "frames"], keys: Sequence[Key]) -> Float[Array, "frames *n"]:
    """Values through (time, value) keys, held before the first and after the last, with continuous acceleration.

    Each piece is a fifth-degree polynomial with zero acceleration at its keys, so that a move from rest to rest has
    minimum jerk (Flash and Hogan 1985). Speeds at keys are those of Fritsch and Carlson (1980): no overshoot.
    """
    knots = np.array([time for time, _ in keys], dtype=np.float64)
    values = np.array([value for _, value in keys], dtype=np.float64)
    if len(knots) == 1:
        return np.broadcast_to(values[0], (len(times), *values.shape[1:])).copy()
    widths = _column(np.diff(knots), values.ndim)
    secants = np.diff(values, axis=0) / widths
    slopes = np.zeros_like(values)
    before, after = secants[:-1], secants[1:]
    weight_before, weight_after = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
    same_way = before * after > 0
    safe_before, safe_after = np.where(same_way, before, 1.0), np.where(same_way, after, 1.0)
    harmonic = (weight_before + weight_after) / (weight_before / safe_before + weight_after / safe_after)
    slopes[1:-1] = np.where(same_way, harmonic, 0.0)
    return hermite(times, knots, values, slopes)


def hermite(
    times: Float[Array, "frames"],
    knots: Float[Array, "knots"],
    values: Float[Array, "knots *n"],
    slopes: Float[Array, "knots *n"],
) -> Float[Array, "frames *n"]:
    """Fifth-degree pieces through values with the given slopes and zero acceleration at the knots; held outside."""
    at = np.clip(times, knots[0], knots[-1])
    piece = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 2)
    width = knots[piece + 1] - knots[piece]
    u = _column((at - knots[piece]) / width, values.ndim)
    width = _column(width, values.ndim)
    ease = u**3 * (10 - 15 * u + 6 * u**2)
    leave = u - 6 * u**3 + 8 * u**4 - 3 * u**5
    arrive = -4 * u**3 + 7 * u**4 - 3 * u**5
    start, stop = values[piece], values[piece + 1]
    return start + ease * (stop - start) + width * (leave * slopes[piece] + arrive * slopes[piece + 1])


def ease(x: ArrayLike) -> Float[Array, "..."]:
    """0 before 0, 1 after 1, and the minimum-jerk curve between."""
    u = np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0)
    return u**3 * (10 - 15 * u + 6 * u**2)


def soft_minimum(a: ArrayLike, b: ArrayLike, *, width: ArrayLike) -> Float[Array, "..."]:
    """A smooth function that is never above either argument and close to the smaller one."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return 0.5 * (a + b - np.sqrt((a - b) ** 2 + np.asarray(width) ** 2))


def soft_positive(a: ArrayLike, *, width: ArrayLike) -> Float[Array, "..."]:
    """A smooth function that is never below max(a, 0) and close to it."""
    return -soft_minimum(-np.asarray(a, dtype=np.float64), 0.0, width=width)


def bounding(u: Float[Array, "frames"], share: Float[Array, "frames"]) -> Float[Array, "frames"]:
    """Height over the height at strike, in units of g times the step's duration squared, at a share u of the step.

    Acceleration is -1 in flight (u > share) and -1 + (pi / 2 share) sin(pi u / share) on the floor, so that a step
    ends as it began.
    """
    half = 0.5 * (share - 1.0)
    push = 0.5 * (u - share / np.pi * np.sin(np.pi * u / share))
    on_floor = half * u - u**2 / 2 + push
    in_flight = (half + 1.0) * u - u**2 / 2 - share / 2
    return np.where(u < share, on_floor, in_flight)


class Drift:
    """Slow random functions of time with unit standard deviation, the same whatever the frame rate."""

    _WAVES = 5

    def __init__(self, generator: np.random.Generator, *, hertz: float, channels: int = 1) -> None:
        self._hertz = hertz * generator.uniform(0.3, 1.7, (self._WAVES, channels))
        self._phases = generator.uniform(0.0, 2 * np.pi, (self._WAVES, channels))

    def __call__(self, times: Float[Array, "frames"]) -> Float[Array, "frames channels"]:
        """The channels' values at these times."""
        angles = 2 * np.pi * times[:, None, None] * self._hertz + self._phases
        return np.sin(angles).sum(axis=1) * np.sqrt(2.0 / self._WAVES)


def _column(x: Array, dimensions: int) -> Array:
    return x.reshape(x.shape + (1,) * (dimensions - 1))
