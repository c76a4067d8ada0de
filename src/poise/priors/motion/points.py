"""The motion prior from oriented points at some frames: feet where they stand, hands, the head or the pelvis.

The network's base is the neutral pose, which goes from where one point has it to where the next one has it; the points
themselves, and which feet stand, are given beside it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.interpolate import CubicSpline

from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.priors.motion.carrying import HANDLES_AT, Change, Frames, neutral_points
from poise.priors.motion.layout import HANDLES
from poise.priors.motion.network import LONGEST, RATE, KeyedFrames, expected, lines
from poise.priors.motion.prior import Between, MotionPrior
from poise.types import Array

_UPRIGHT = np.array([1.0, 0.0, 1.0, 0.0])


def through_points(
    prior: MotionPrior,
    places: Float[Array, "frames handles 3"],
    turns: Float[Array, "frames handles 4"],
    standing: Bool[Array, "frames 2"],
    *,
    fps: float,
) -> Between | None:
    """The motion through canonical points, NaN where they are not given, with feet that are known to stand or not.

    None if no point has a rotation: then nothing says where the body looks.
    """
    carrier = prior.carrier
    rest, upright = neutral_points(carrier)
    every = np.arange(len(places))
    grid = np.arange(0.0, len(places) - 1 + 1e-9, fps / RATE)
    nearest = np.rint(grid).astype(int)
    path = _paths(places, turns, rest[HANDLES_AT], upright, grid)
    if path is None or len(grid) < 2:
        return None
    roots, yaws = path
    base = Frames(roots, np.tile(carrier.still, (len(grid), 1, 1)))
    base.turns[:, 0] = rotations.multiply(yaws, base.turns[:, 0])
    given, turned = (np.isfinite(part[nearest]).all(axis=-1) for part in (places, turns))
    handles = np.zeros((len(grid), len(HANDLES), 8))
    handles[..., 0], handles[..., 4] = given, given & turned
    offsets = places[nearest] - roots[:, None] - rotations.rotate(yaws[:, None], rest[HANDLES_AT])
    handles[..., 1:4] = np.where(given[..., None], offsets, 0.0)
    own = rotations.conjugate(rotations.multiply(yaws[:, None], upright))
    seen = np.where(turned[..., None], turns[nearest], rotations.IDENTITY)
    off = rotations.expmap_from_quaternion(rotations.canonical(rotations.multiply(own, seen)))
    handles[..., 5:] = np.where(turned[..., None], off, 0.0)
    contacts = np.concatenate([np.ones((len(grid), 2)), standing[nearest]], axis=-1)
    none = np.zeros(len(grid), dtype=np.bool_)
    timeline = KeyedFrames(base, ~none, none, handles, np.zeros((len(grid), 3)), contacts)
    found = expected(timeline, carrier, prior.weights, _windows(len(grid)))

    when = np.minimum(every * (RATE / fps), len(grid) - 1)

    def curve(part: Array) -> Array:
        return np.asarray(CubicSpline(np.arange(len(grid)), part)(when))

    whole = carrier.neutral(curve(roots), rotations.normalize(curve(base.turns[:, 0])))
    residual = Change(*(curve(part) for part in found.residual))
    motion = Motion(prior.skeleton, fps, *carrier.added(whole, residual))
    spreads = (found.root_spread, found.point_spread, found.turn_spread)
    others = [lines(when, np.arange(len(grid)), part) for part in (found.contacts, *spreads)]
    return Between(motion, np.zeros(0, dtype=np.int64), *others)


def _paths(
    places: Array,
    turns: Array,
    rest: Float[Array, "handles 3"],
    upright: Float[Array, "handles 4"],
    grid: Array,
) -> tuple[Float[Array, "steps 3"], Float[Array, "steps 4"]] | None:
    """The neutral body's root and heading: the mean over the points of the lines between where each of them has it."""
    roots, yaws = [], []
    for number in range(len(HANDLES)):
        known = np.flatnonzero(np.isfinite(places[:, number]).all(-1) & np.isfinite(turns[:, number]).all(-1))
        if len(known):
            level = rotations.multiply(turns[known, number], rotations.conjugate(upright[number])) * _UPRIGHT
            yaw = rotations.normalize(level + np.array([1e-12, 0.0, 0.0, 0.0]))
            angle = np.unwrap(2.0 * np.arctan2(yaw[:, 2], yaw[:, 0]))
            root = places[known, number] - rotations.rotate(yaw, rest[number])
            roots.append(lines(grid, known, root))
            yaws.append(np.interp(grid, known, angle))
    if not roots:
        return None
    turned = np.angle(np.exp(1j * np.array(yaws)).mean(axis=0))
    about = np.stack([np.cos(turned / 2), np.zeros(len(grid)), np.sin(turned / 2), np.zeros(len(grid))], -1)
    return np.mean(roots, axis=0), rotations.continuous(about)


def _windows(count: int) -> list[tuple[int, int]]:
    """Windows of the longest kind that overlap by half."""
    step = LONGEST // 2
    return [(first, min(first + LONGEST, count)) for first in range(0, max(count - step, 1), step)]
