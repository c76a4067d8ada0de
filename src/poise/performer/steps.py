"""Feet on the floor: each footfall in time and place, its roll from heel to toe, the swing between; and the course.

A planted foot turns about the back of the heel while the toes are up and about the base of the toes while the heel is
up (at last about the tips of the toes), so that what touches the floor does not move. A swing is any free movement,
bent so that its position and velocity match the planted foot's where it leaves the floor and where it lands. A course
is speed and heading as functions of time, along a turn or through points on the floor.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.geometry import rotations as rot
from poise.performer.bodies import Body
from poise.performer.posing import Foot, turned, yawed
from poise.performer.tracks import ease, hermite, soft_minimum, soft_positive
from poise.types import Array

FreeFoot = Callable[[Array], tuple[Array, Array]]  # times to ankle positions (n, 3) and pitches (n,)
PlantedAngle = Callable[[Array, Array], Array]  # times and footfall numbers to angles

_TOUCHING = np.radians(1.5)  # a heel (or the toes) raised by less counts as on the floor
_TOES_BEND_FIRST = np.radians(30.0)
_RELEASE = 0.3  # share of a swing at either end in which the leg's reach still limits the pelvis
_DIFFERENCE = 2e-3  # seconds, for velocities at the ends of a swing


@dataclass(frozen=True)
class Footfalls:
    """One foot's footfalls in order: landing and leaving times, position of the base of the toes, and yaw."""

    strike: Float[Array, "steps"]
    off: Float[Array, "steps"]
    ball: Float[Array, "steps 3"]
    yaw: Float[Array, "steps"]

    def current(self, times: Float[Array, "frames"]) -> Int[Array, "frames"]:
        """The index of the last footfall before each time."""
        return np.clip(np.searchsorted(self.strike, times, side="right") - 1, 0, len(self.strike) - 1)


@dataclass(frozen=True)
class Stepping:
    """A foot's motion through its footfalls: pitch (heel up) and extra yaw while planted, and its swing between."""

    body: Body
    falls: Footfalls
    pitch: PlantedAngle
    yaw: PlantedAngle = lambda times, _: np.zeros_like(times)
    free: FreeFoot | None = None  # by default straight to the next footfall
    lift: float = 0.0  # metres, added in the middle of the swing
    impact: float = 0.0  # share of the free foot's speed with which it hits the floor
    fade: float = 0.5  # share of the swing over which the match with either planted end fades
    clearance: float = 0.02  # metres between the floor and the sole in the middle of the swing

    def foot(self, times: Float[Array, "frames"]) -> Foot:
        """The foot at these times."""
        index = self.falls.current(times)
        planted = times <= self.falls.off[index]
        ankle, pitch, yaw, toes = self._planted(times, index)
        swinging = np.flatnonzero(~planted)
        if len(swinging):
            swung = self._swung(times[swinging], index[swinging])
            ankle[swinging], pitch[swinging], yaw[swinging], toes[swinging] = swung
        turn = np.stack([pitch, yaw, np.zeros_like(pitch)], axis=-1)
        following = np.minimum(index + 1, len(self.falls.strike) - 1)
        since, until = times - self.falls.off[index], self.falls.strike[following] - times
        release = _RELEASE * np.maximum(since + until, 1e-3)
        holds = 1.0 - ease(since / release) * ease(until / release)
        flat = np.abs(pitch) < _TOUCHING
        heel_down = planted & (flat | (pitch < 0))
        ball_down = planted & (flat | (pitch > 0)) & (toe_roll(pitch) < _TOUCHING)
        return Foot(ankle, turn, toes, heel_down, ball_down, holds)

    def _planted(self, times: Array, index: Array) -> tuple[Array, Array, Array, Array]:
        pitch = self.pitch(times, index)
        yaw = self.falls.yaw[index] + self.yaw(times, index)
        ankle = planted_ankle(self.body, self.falls.ball[index], yaw, pitch)
        return ankle, pitch, yaw, np.maximum(pitch, 0.0) - toe_roll(pitch)

    def _swung(self, times: Array, index: Array) -> tuple[Array, Array, Array, Array]:
        following = np.minimum(index + 1, len(self.falls.strike) - 1)
        leave, land = self.falls.off[index], self.falls.strike[following]
        duration = np.maximum(land - leave, 1e-3)
        u = np.clip((times - leave) / duration, 0.0, 1.0)
        every = np.arange(len(self.falls.strike))
        left, left_rate = (values[index] for values in self._mismatch(self.falls.off, every))
        met, met_rate = (values[following] for values in self._mismatch(self.falls.strike, every))
        width = self.fade * duration[:, None]
        ankle, pitch = self._free(times)
        bent = np.concatenate([ankle, pitch[:, None]], axis=1)
        bent += _fade(u / self.fade, left, width * left_rate)
        bent += _fade((1.0 - u) / self.fade, met, (self.impact - 1.0) * width * met_rate)
        _, _, yaw_left, toes_left = (values[index] for values in self._planted(self.falls.off, every))
        _, _, yaw_met, toes_met = (values[following] for values in self._planted(self.falls.strike, every))
        yaw = yaw_left + ease(u) * (yaw_met - yaw_left)
        toes = toes_left * (1.0 - ease(1.6 * u)) + toes_met * ease(2.2 * u - 0.8)
        arch = 64 * (u * (1 - u)) ** 3
        # Metres; none where the foot leaves and lands.
        softness = 1e-4 + 0.04 * ease(5 * u) * ease(5 * (1 - u))
        pitch, raised = bent[:, 3], bent[:, :3] + self.lift * arch[:, None] * np.array([0.0, 1.0, 0.0])
        lowest = lowest_of_sole(self.body, raised, pitch, yaw, toes, softness=softness)
        raised[:, 1] += soft_positive(self.clearance * arch - lowest, width=softness)
        return raised, pitch, yaw, toes

    def _mismatch(self, times: Array, index: Array) -> tuple[Array, Array]:
        """How the planted foot differs from the free one: position and pitch, and their rates."""

        def difference(times: Array) -> Array:
            planted_at, planted_pitch, _, _ = self._planted(times, index)
            free_at, free_pitch = self._free(times)
            return np.concatenate([planted_at - free_at, (planted_pitch - free_pitch)[:, None]], axis=1)

        before, now, after = (difference(times + step) for step in (-_DIFFERENCE, 0.0, _DIFFERENCE))
        return now, (after - before) / (2 * _DIFFERENCE)

    def _free(self, times: Array) -> tuple[Array, Array]:
        """The ankle and the pitch; by default straight from each footfall to the next."""
        if self.free is not None:
            return self.free(times)
        every = np.arange(len(self.falls.strike))
        moments = np.stack([self.falls.strike, self.falls.off])
        ends = [self._planted(at, every) for at in moments]
        places = np.stack([np.column_stack([ankle, pitch]) for ankle, pitch, _, _ in ends], axis=1)
        places = places.reshape(-1, 4)
        way = hermite(times, moments.T.ravel(), places, np.zeros_like(places))
        return way[:, :3], way[:, 3]


@dataclass(frozen=True)
class Rolling:
    """The pitch of a planted foot: toes up at the strike, flat, then the heel rising until the toes leave."""

    falls: Footfalls
    strike: Float[Array, "steps"]
    push: Float[Array, "steps"]
    flat_by: Float[Array, "steps"]
    push_from: Float[Array, "steps"]

    def pitch(self, times: Array, index: Array) -> Array:
        """How far the heel is up, at these times of these footfalls."""
        falls = self.falls
        share = (times - falls.strike[index]) / (falls.off[index] - falls.strike[index])
        landing = np.maximum(1.0 - share / self.flat_by[index], 0.0)
        settling = landing**2 * (2.0 - landing)
        pushing = np.maximum((share - self.push_from[index]) / (1.0 - self.push_from[index]), 0.0)
        return self.strike[index] * settling + self.push[index] * pushing**2


def toe_roll(pitch: Float[Array, "frames"]) -> Float[Array, "frames"]:
    """How far the toes tip forward when the heel is raised by `pitch`: not at all at first, then more and more."""
    beyond = np.maximum(pitch - _TOES_BEND_FIRST, 0.0)
    return beyond**2 / (beyond + 0.3)


def planted_ankle(
    body: Body, ball: Float[Array, "frames 3"], yaw: Float[Array, "frames"], pitch: Float[Array, "frames"]
) -> Float[Array, "frames 3"]:
    """Where the ankle is when the foot is rolled by `pitch` about its heel (negative) or its toes (positive)."""
    floor = ball * [1.0, 0.0, 1.0]
    to_heel = np.array([0.0, 0.0, body.heel[2] - body.ball[2]])
    heel = floor + yawed(yaw, np.broadcast_to(to_heel, ball.shape))
    about_heel = heel - _turned_point(body.heel, pitch, yaw)
    tip = floor + yawed(yaw, np.broadcast_to(body.toe_tip * [0.0, 0.0, 1.0], ball.shape))
    joint = tip - _turned_point(body.toe_tip, toe_roll(pitch), yaw)
    return np.where(pitch[:, None] < 0, about_heel, joint - _turned_point(body.ball, pitch, yaw))


def lowest_of_sole(
    body: Body,
    ankle: Float[Array, "frames 3"],
    pitch: Float[Array, "frames"],
    yaw: Float[Array, "frames"],
    toes: Float[Array, "frames"],
    *,
    softness: Float[Array, "frames"],
) -> Float[Array, "frames"]:
    """The height of the lowest of the heel and both ends of the toes, rounded off within `softness` metres."""
    below_ball = body.toe_tip * [0.0, 1.0, 0.0]
    heel = _turned_point(body.heel, pitch, yaw)[:, 1]
    ball = _turned_point(body.ball, pitch, yaw)[:, 1]
    ends = [ball + _turned_point(point, pitch - toes, yaw)[:, 1] for point in (below_ball, body.toe_tip)]
    return ankle[:, 1] + soft_minimum(heel, soft_minimum(*ends, width=softness / 2), width=softness / 2)


def _turned_point(point: Float[Array, "3"], pitch: Array, yaw: Array) -> Array:
    rotation = turned(np.stack([pitch, yaw, np.zeros_like(pitch)], axis=-1))
    return rot.rotate(rotation, np.broadcast_to(point, (len(pitch), 3)))


def _fade(u: Array, value: Array, rate: Array) -> Array:
    """From this value and rate at u = 0 smoothly to nothing at u = 1."""
    u = np.clip(u, 0.0, 1.0)[:, None]
    return (1.0 - ease(u)) * value + (u - 6 * u**3 + 8 * u**4 - 3 * u**5) * rate


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
    lengths, line = path_through(points)
    travelled = integral(grid, speeds)
    positions = _along(lengths, line, travelled)
    nearby = 0.15  # metres over which the heading is computed
    chord = _along(lengths, line, travelled + nearby) - _along(lengths, line, travelled - nearby)
    headings = np.unwrap(np.arctan2(chord[:, 0], chord[:, 1]))
    floor = np.stack([positions[:, 0], np.zeros(len(grid)), positions[:, 1]], axis=-1)
    return Course(grid, speeds, floor, headings, np.gradient(headings, grid))


def path_through(points: Sequence[Sequence[float]]) -> tuple[Float[Array, "fine"], Float[Array, "fine 2"]]:
    """A smooth curve through (x, z) points (centripetal slopes), finely divided: lengths from its start, and places."""
    corners = np.asarray(points, dtype=np.float64)
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 2 or not np.all(np.isfinite(corners)):
        raise InvalidValueError(f"a path must be two or more (x, z) points in metres; got {points!r}")
    if np.any(np.linalg.norm(np.diff(corners, axis=0), axis=1) < 0.1):
        raise InvalidValueError("neighbouring points of a path must be at least 0.1 m apart")
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
