"""The network over a motion of any length: windows of frames around the gaps, overlapping, each in its own frame F."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.geometry import rotations
from poise.priors.motion import layout
from poise.priors.motion.carrying import AT, Carrier, Change, Frames
from poise.priors.motion.layout import HANDLES, TURNING
from poise.priors.motion.network import MotionWeights, evaluated
from poise.priors.universal.layout import BONES, JOINTS, POINTS
from poise.types import Array

RATE = 30.0  # frames a second inside
LONGEST = 96  # frames of a window
PAST = 10  # frames in a row before the first gap of a window
_POINTS = [JOINTS.index(name) for name in POINTS]
_BONES = [POINTS.index(name) for name in BONES]
_PARENT = np.array([0, *layout.PARENT[1:]])


@dataclass(frozen=True, eq=False)
class KeyedFrames:
    """What is given, at 30 frames a second, on the canonical body."""

    base: Frames  # interpolated between the knots
    knots: Bool[Array, "frames"]  # frames that the base runs through; the first and the last are
    keys: Bool[Array, "frames"]  # knots that are given wholly
    handles: Float[
        Array, "frames handles 8"
    ]  # position given, its offset from the base; turn given, from the base
    path: Float[Array, "frames 3"]  # whether given, and the root's offset from the base on the floor
    contacts: Float[Array, "frames 4"]  # for each foot: whether given, whether it stands


@dataclass(frozen=True, eq=False)
class ExpectedMotion:
    """The network's Gaussian over all frames: what it adds to the base, with standard deviations."""

    residual: Change
    contacts: Float[Array, "frames 2"]  # probability that each foot stands
    root_spread: Float[Array, "frames 3"]  # metres
    turn_spread: Float[Array, "frames turning"]  # radians about each axis
    point_spread: Float[Array, "frames points"]  # metres along each axis


def alone(base: Frames, keys: Bool[Array, "frames"]) -> KeyedFrames:
    """A timeline on which only whole poses are given."""
    count = len(keys)
    zeros = [np.zeros((count, *shape)) for shape in ((len(HANDLES), 8), (3,), (4,))]
    return KeyedFrames(base, keys, keys, *zeros)


def expected(timeline: KeyedFrames, carrier: Carrier, weights: MotionWeights) -> ExpectedMotion:
    """The network's answer; where windows overlap, their mean, in which the middle of a window weighs most."""
    count = len(timeline.knots)
    sums, total = np.zeros((count, layout.LEFT)), np.full(count, 1e-9)
    for first, end in windows_of(timeline.knots):
        found = _window(timeline, slice(first, end), carrier, weights)
        weight = 1e-3 + np.minimum(np.arange(1, end - first + 1), np.arange(end - first, 0, -1))
        sums[first:end] += weight[:, None] * found
        total[first:end] += weight
    mean = sums / total[:, None]
    widths = (3, 3, 3 * len(TURNING) - 3, 2, 3, len(TURNING), len(POINTS))
    shift, turn, turns, contacts, *spreads = np.split(mean, np.cumsum(widths)[:-1], axis=1)
    near = np.minimum(_distance(timeline.keys), weights.tempers.shape[1] - 1)
    root, turned, points = (
        factor[near, None] * np.exp(np.clip(spread, -8.0, 1.5))
        for factor, spread in zip(weights.tempers, spreads, strict=True)
    )
    given = timeline.keys[:, None]
    return ExpectedMotion(
        Change(shift, turn, turns.reshape(count, -1, 3)),
        1.0 / (1.0 + np.exp(-contacts)),
        *(np.where(given, 0.0, spread) for spread in (root, turned, points)),
    )


def windows_of(knots: Bool[Array, "frames"]) -> list[tuple[int, int]]:
    """Windows, as first frames and ends, that begin and end at knots; every gap is inside one."""
    at = np.flatnonzero(knots)
    gaps = np.flatnonzero(np.diff(at) > 1)  # by the knot before
    found, done = [], 0
    while done < len(gaps):
        gap = gaps[done]
        earliest = max(at[gap] - LONGEST // 3, at[gap + 1] - LONGEST + 1)
        first = min(max(gap - PAST + 1, int(np.searchsorted(at, earliest))), gap)
        within = int(np.searchsorted(at, at[first] + LONGEST)) - 1  # the last knot that fits
        done = max(int(np.searchsorted(gaps, within)), done + 1)
        last = max(min(gaps[done - 1] + PAST, within), gap + 1)
        found.append((int(at[first]), int(at[last]) + 1))
    return found


def _window(
    timeline: KeyedFrames, part: slice, carrier: Carrier, weights: MotionWeights
) -> Float[Array, "frames answers"]:
    """The answer for one window: the residual in the world and in joints' own axes, then the other outputs.

    It is the mean of the network's answer and of that to the window in a mirror, which errs less.
    """
    knots, keys = timeline.knots[part], timeline.keys[part]
    count, at = len(knots), np.arange(len(knots))
    asked = np.flatnonzero(~keys)
    origin = max(asked[0] - 1, 0) if len(asked) else 0
    roots, turns = timeline.base.roots[part], timeline.base.turns[part]
    yaw = rotations.normalize(
        turns[origin, 0] * np.array([1.0, 0.0, 1.0, 0.0]) + np.array([1e-12, 0.0, 0.0, 0.0])
    )
    floor = roots[origin] * np.array([1.0, 0.0, 1.0])
    into = rotations.conjugate(yaw)
    seen = Frames(rotations.rotate(into, roots - floor), turns.copy())
    seen.turns[:, 0] = rotations.multiply(into, turns[:, 0])
    places, axes = carrier.placed(seen)
    points = places[:, _POINTS]

    before, after = _neighbours(knots)
    gap = np.maximum(after - before, 1)
    time = (at - before) / gap, np.log(gap) / 4, (at - before) / 30, (after - at) / 30, keys, knots & ~keys
    speed = np.zeros_like(points)
    speed[1:] = RATE * np.diff(points, axis=0)
    handles, path = timeline.handles[part].copy(), timeline.path[part].copy()
    handles[..., 1:4] = rotations.rotate(into, handles[..., 1:4])
    handles[..., [0, 4]] *= 0.2
    path[:, 1:] = rotations.rotate(into, path[:, [1, 0, 2]] * np.array([1.0, 0.0, 1.0]))[:, [0, 2]]
    path[:, 0] *= 0.2
    steps = np.array([carrier.body.offsets[JOINTS.index(name)] for name in BONES])
    lengths = np.log(np.maximum(np.linalg.norm(steps, axis=-1), 1e-3) / weights.typical)
    inputs = np.concatenate(
        [seen.roots, (points - seen.roots[:, None]).reshape(count, -1),
         np.concatenate([axes[..., 0], axes[..., 1]], -1).reshape(count, -1), speed.reshape(count, -1),
         np.stack(time, -1), handles.reshape(count, -1), path, timeline.contacts[part],
         np.tile(lengths, (count, 1))], axis=-1,
    )  # fmt: skip
    (order, signs), (back, flips) = layout.MIRRORED_INPUTS, layout.MIRRORED_OUTPUTS
    mirrored = evaluated(weights, inputs[:, order] * signs)[:, back] * flips
    output = 0.5 * (evaluated(weights, inputs) + mirrored).astype(np.float64)

    width = 3 + 3 * len(TURNING)
    residual = _zeroed(output[:, :width], keys)
    vectors = residual[:, 3:].reshape(count, -1, 3)
    own = rotations.quaternion_from_expmap(vectors)
    above = own[:, _PARENT]
    above[:, _PARENT == 0] = rotations.IDENTITY  # the root's turn is in F, and carries all
    local = turns[:, AT[1:]]
    changed = rotations.multiply(rotations.multiply(rotations.conjugate(above[:, 1:]), local), own[:, 1:])
    turned = rotations.expmap_from_quaternion(rotations.multiply(rotations.conjugate(local), changed))
    world = [rotations.rotate(yaw, residual[:, :3]), rotations.rotate(yaw, vectors[:, 0])]
    return np.concatenate([*world, turned.reshape(count, -1), output[:, width:]], axis=-1)


def _neighbours(chosen: Bool[Array, "frames"]) -> tuple[Int[Array, "frames"], Int[Array, "frames"]]:
    """The nearest chosen frame before (or at) each frame, and after; the ends where there is none."""
    at = np.flatnonzero(chosen)
    if not len(at):
        return np.zeros(len(chosen), int), np.full(len(chosen), len(chosen) - 1)
    every = np.arange(len(chosen))
    after = np.searchsorted(at, every)
    before = np.where(chosen, after, after - 1)
    return (
        np.where(before >= 0, at[np.maximum(before, 0)], 0),
        np.where(after < len(at), at[np.minimum(after, len(at) - 1)], len(chosen) - 1),
    )


def _zeroed(
    values: Float[Array, "frames values"], keys: Bool[Array, "frames"]
) -> Float[Array, "frames values"]:
    """Values without the line through those at keys, so that they are zero there."""
    at = np.flatnonzero(keys)
    if not len(at):
        return values
    lines = np.stack([np.interp(np.arange(len(values)), at, column) for column in values[at].T], axis=-1)
    return values - lines


def _distance(keys: Bool[Array, "frames"]) -> Int[Array, "frames"]:
    """Frames to the nearest key."""
    at, every = np.flatnonzero(keys), np.arange(len(keys))
    if not len(at):
        return np.full(len(keys), len(keys))
    after = np.minimum(np.searchsorted(at, every), len(at) - 1)
    return np.minimum(abs(at[after] - every), abs(every - at[np.maximum(after - 1, 0)]))
