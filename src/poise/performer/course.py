"""The course of a walker: speed and heading as functions of time, along a turn or through points on the floor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.types import Array

Rate = Callable[[Array], Array]  # times to values

_STEP = 1.0 / 240.0  # seconds between the points of the integration grid, at any frame rate
# Metres (and 3 to 30 seconds) added before and after the clip, for the footfalls that reach into it.
_MARGIN = 5.0


@dataclass(frozen=True)
class Course:
    """Positions on the floor and headings on a fine grid of times, to be read at any time."""

    grid: Float[Array, "grid"]
    speed: Float[Array, "grid"]
    positions: Float[Array, "grid 3"]
    headings: Float[Array, "grid"]
    turn_rates: Float[Array, "grid"]

    def position(self, times: Array) -> Float[Array, "frames 3"]:
        """Positions on the floor at these times."""
        return self.at(self.positions, times)

    def heading(self, times: Array) -> Float[Array, "frames"]:
        """The heading at these times."""
        return self.at(self.headings, times)

    def at(self, values: Float[Array, "grid *n"], times: Array) -> Float[Array, "frames *n"]:
        """Any function on the grid, at these times (Catmull and Rom 1974)."""
        place = np.clip((times - self.grid[0]) / _STEP, 1.0, len(self.grid) - 2.001)
        index = place.astype(np.int64)
        u = (place - index).reshape(-1, *(1,) * (values.ndim - 1))
        before, start, stop, after = (values[index + step] for step in (-1, 0, 1, 2))
        return start + 0.5 * u * (
            stop
            - before
            + u * (2 * before - 5 * start + 4 * stop - after + u * (3 * (start - stop) + after - before))
        )


def grid_of(seconds: float, speed: Rate) -> Float[Array, "grid"]:
    """The integration grid for a clip of this length at this speed."""
    slowest = float(np.min(speed(np.linspace(0.0, seconds, 9))))
    margin = np.ceil(np.clip(_MARGIN / slowest, 3.0, 30.0))
    count = int(np.ceil((seconds + 2 * margin) / _STEP))
    return _STEP * np.arange(count + 1) - margin


def integral(grid: Float[Array, "grid"], rates: Float[Array, "grid *n"]) -> Float[Array, "grid *n"]:
    """The integral of a rate over the grid, zero at time zero."""
    total = np.concatenate(
        [np.zeros_like(rates[:1]), np.cumsum((rates[1:] + rates[:-1]) / 2 * _STEP, axis=0)]
    )
    return total - total[np.searchsorted(grid, -_STEP / 2)]


def turning_course(seconds: float, speed: Rate, turn: Rate) -> Course:
    """From the origin along +Z at this speed, turning at this rate (radians a second, to the left)."""
    grid = grid_of(seconds, speed)
    speeds, rates = speed(grid), turn(grid)
    headings = integral(grid, rates)
    ahead = np.stack([np.sin(headings), np.zeros_like(headings), np.cos(headings)], axis=-1)
    return Course(grid, speeds, integral(grid, speeds[:, None] * ahead), headings, rates)


def path_course(seconds: float, speed: Rate, points: Sequence[Sequence[float]]) -> Course:
    """Through these (x, z) points on the floor at this speed, straight on beyond both ends."""
    grid = grid_of(seconds, speed)
    speeds = speed(grid)
    lengths, line = _rounded(_checked(points))
    travelled = integral(grid, speeds)
    positions = _along(lengths, line, travelled)
    nearby = 0.15  # metres over which the heading is computed
    chord = _along(lengths, line, travelled + nearby) - _along(lengths, line, travelled - nearby)
    headings = np.unwrap(np.arctan2(chord[:, 0], chord[:, 1]))
    floor = np.stack([positions[:, 0], np.zeros(len(grid)), positions[:, 1]], axis=-1)
    return Course(grid, speeds, floor, headings, np.gradient(headings, grid))


def _checked(points: Sequence[Sequence[float]]) -> Float[Array, "points 2"]:
    corners = np.asarray(points, dtype=np.float64)
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 2 or not np.all(np.isfinite(corners)):
        raise InvalidValueError(f"a path must be two or more (x, z) points in metres; got {points!r}")
    if np.any(np.linalg.norm(np.diff(corners, axis=0), axis=1) < 0.1):
        raise InvalidValueError("neighbouring points of a path must be at least 0.1 m apart")
    return corners


def _rounded(corners: Float[Array, "points 2"]) -> tuple[Array, Array]:
    """Distances along, and points of, a smooth curve through the corners (centripetal slopes), finely divided."""
    knots = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
    slopes = np.gradient(corners, knots, axis=0)
    fine = np.linspace(0.0, knots[-1], max(200, int(knots[-1] / 0.01)))
    piece = np.clip(np.searchsorted(knots, fine, side="right") - 1, 0, len(knots) - 2)
    width = (knots[piece + 1] - knots[piece])[:, None]
    u = ((fine - knots[piece])[:, None]) / width
    line = (
        (2 * u**3 - 3 * u**2 + 1) * corners[piece]
        + (u**3 - 2 * u**2 + u) * width * slopes[piece]
        + (3 * u**2 - 2 * u**3) * corners[piece + 1]
        + (u**3 - u**2) * width * slopes[piece + 1]
    )
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))]), line


def _along(lengths: Array, line: Array, distance: Array) -> Float[Array, "n 2"]:
    inside = np.stack([np.interp(distance, lengths, line[:, axis]) for axis in (0, 1)], axis=-1)
    first, last = line[1] - line[0], line[-1] - line[-2]
    before = np.minimum(distance, 0.0)[:, None] * first / np.linalg.norm(first)
    after = np.maximum(distance - lengths[-1], 0.0)[:, None] * last / np.linalg.norm(last)
    return inside + before + after
