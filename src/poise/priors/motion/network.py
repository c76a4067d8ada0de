"""The motion network: the weights that come with Poise, and its evaluation in NumPy over a motion of any length.

It is a transformer encoder over windows of frames around the gaps, which overlap, each in its own frame F.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import PoiseError
from poise.geometry import rotations
from poise.priors.motion import layout
from poise.priors.motion.carrying import AT, Carrier, Change, Frames
from poise.priors.motion.layout import HANDLES, TURNING
from poise.priors.universal.layout import BONES, JOINTS, POINTS
from poise.priors.universal.network import read_arrays
from poise.types import Array

FILE = Path(__file__).with_name("motion.safetensors")  # by tools/motion/train.py
HEAD = 40  # width of an attention head
LONGEST_WAVE = 200.0  # frames: the longest wave of the rotary positions
_EPSILON = 1e-5
RATE = 30.0  # frames a second inside
LONGEST = 96  # frames of a window
# `tracked` of the weights that ship, whose file is older: by `tools/motion/calibrate.py --only tracked`
TRACKED = (2.04, 1.89, 1.92, 1.57, 1.52, 1.1)
PAST = 10  # frames in a row before the first gap of a window
_POINTS = [JOINTS.index(name) for name in POINTS]
_BONES = [POINTS.index(name) for name in BONES]
_PARENT = np.array([0, *layout.PARENT[1:]])


@dataclass(frozen=True, eq=False)
class MotionWeights:
    """All learned arrays; matrices are (inputs, outputs)."""

    first: tuple[Array, Array]
    blocks: tuple[dict[str, tuple[Array, Array]], ...]  # norm, mix, out, inner, up, down: weight and bias
    norm: tuple[Array, Array]
    last: tuple[Array, Array]
    typical: Float[Array, "bones"]  # lengths of the typical body's bones
    tempers: Float[Array, "kinds steps"]  # on deviations of roots, turns, points, by frames to a key
    tracked: Float[
        Array, "counts"
    ]  # on deviations of points under tracked points, by how many are seen, from one
    places: Float[Array, "turning 3"]  # deviations of positions over the training clips' windows, for L2P
    header: dict[str, Any]


@cache
def shipped() -> MotionWeights:
    """The trained weights, read once; POISE_MOTION_WEIGHTS names another file."""
    path = Path(os.environ.get("POISE_MOTION_WEIGHTS", FILE))
    if not path.exists():
        raise PoiseError(f"the motion prior's weights are missing: there is no {path}; install Poise again")
    arrays, header = read_arrays(path, "motion")
    return from_arrays(({"tracked": np.array(TRACKED)} if path == FILE else {}) | arrays, header)


def from_arrays(arrays: dict[str, Array], header: dict[str, Any]) -> MotionWeights:
    """Create the weights from the contents of a file."""

    def layer(name: str) -> tuple[Array, Array]:
        weight, bias = (arrays[f"{name}.{part}"].astype(np.float32) for part in ("weight", "bias"))
        return np.ascontiguousarray(weight.T), bias

    count = sum(name.endswith("mix.weight") for name in arrays)
    parts = ("norm", "mix", "out", "inner", "up", "down")
    return MotionWeights(
        first=layer("first"),
        blocks=tuple({part: layer(f"blocks.{k}.{part}") for part in parts} for k in range(count)),
        norm=layer("norm"),
        last=layer("last"),
        typical=arrays["typical"],
        tempers=arrays.get("tempers", np.ones((3, 1))),
        tracked=arrays.get("tracked", np.ones(len(HANDLES))),
        places=arrays.get("places", np.zeros((0, 3))),
        header=header,
    )


def evaluated(
    weights: MotionWeights, inputs: Float[Array, "frames inputs"]
) -> Float[Array, "frames outputs"]:
    """The outputs for one window, in their units."""
    waves = LONGEST_WAVE ** -np.linspace(0.0, 1.0, HEAD // 2)
    angle = np.arange(len(inputs))[:, None] * waves
    rotary = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    x = (inputs / layout.SIZES).astype(np.float32) @ weights.first[0] + weights.first[1]
    for block in weights.blocks:
        mixed = (_normed(x, block["norm"]) @ block["mix"][0] + block["mix"][1]).reshape(len(x), 3, -1, HEAD)
        asked, keys, values = mixed.transpose(1, 2, 0, 3)
        turned = _rotated(keys, rotary).transpose(0, 2, 1)
        scores = _rotated(asked, rotary) @ turned / np.float32(np.sqrt(HEAD))
        np.exp(scores - scores.max(axis=-1, keepdims=True), out=scores)
        seen = (scores / scores.sum(axis=-1, keepdims=True)) @ values
        x = x + seen.transpose(1, 0, 2).reshape(len(x), -1) @ block["out"][0] + block["out"][1]
        hidden = _normed(x, block["inner"]) @ block["up"][0] + block["up"][1]
        cubic = hidden + np.float32(0.044715) * hidden * hidden * hidden
        gate = 1.0 + np.tanh(np.float32(0.7978845608) * cubic)
        x = x + (np.float32(0.5) * hidden * gate) @ block["down"][0] + block["down"][1]
    return (_normed(x, weights.norm) @ weights.last[0] + weights.last[1]) * layout.SCALES


def _normed(x: Array, layer: tuple[Array, Array]) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + np.float32(_EPSILON))
    return centred / spread * layer[0] + layer[1]


def _rotated(x: Array, rotary: tuple[Array, Array]) -> Array:
    cos, sin = rotary
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


# --- over windows -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KeyedFrames:
    """What is given, at 30 frames a second, on the canonical body."""

    base: Frames  # interpolated between the knots
    knots: Bool[Array, "frames"]  # frames that the base runs through; the first and the last are
    keys: Bool[Array, "frames"]  # knots that are given wholly
    handles: Float[Array, "frames handles 8"]  # position given, its offset from the base; the same of turns
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
    zeros = [np.zeros((len(keys), *shape)) for shape in ((len(HANDLES), 8), (3,), (4,))]
    return KeyedFrames(base, keys, keys, *zeros)


def expected(
    timeline: KeyedFrames,
    carrier: Carrier,
    weights: MotionWeights,
    windows: Sequence[tuple[int, int]] | None = None,
) -> ExpectedMotion:
    """The network's answer; where windows overlap, their mean, in which the middle of a window weighs most.

    Windows are those around the gaps between knots, unless they are given.
    """
    count = len(timeline.knots)
    sums, total = np.zeros((count, layout.LEFT)), np.full(count, 1e-9)
    for first, end in windows or windows_of(timeline.knots):
        found = _window(timeline, slice(first, end), carrier, weights)
        weight = 1e-3 + np.minimum(np.arange(1, end - first + 1), np.arange(end - first, 0, -1))
        sums[first:end] += weight[:, None] * found
        total[first:end] += weight
    near = np.minimum(_distance(timeline.keys), weights.tempers.shape[1] - 1)
    return _motion_of(sums / total[:, None], np.where(timeline.keys, 0.0, weights.tempers[:, near]))


def followed(timeline: KeyedFrames, carrier: Carrier, weights: MotionWeights) -> ExpectedMotion:
    """The network's answer for the last two frames of one window, in which only handles are given."""
    found = _window(timeline, slice(None), carrier, weights)[-2:]
    factors = np.ones((3, len(found)))
    seen = int(timeline.handles[-1, :, 0].sum())
    factors[2] = weights.tracked[max(seen, 1) - 1]
    return _motion_of(found, factors)


def _motion_of(
    answers: Float[Array, "frames answers"], tempers: Float[Array, "kinds frames"]
) -> ExpectedMotion:
    """Answers of windows by their parts, with these factors on the deviations."""
    widths = (3, 3, 3 * len(TURNING) - 3, 2, 3, len(TURNING), len(POINTS))
    shift, turn, turns, contacts, *spreads = np.split(answers, np.cumsum(widths)[:-1], axis=1)
    deviations = [
        factor[:, None] * np.exp(np.clip(spread, -8.0, 1.5))
        for factor, spread in zip(tempers, spreads, strict=True)
    ]
    change = Change(shift, turn, turns.reshape(len(answers), -1, 3))
    return ExpectedMotion(change, 1.0 / (1.0 + np.exp(-contacts)), *deviations)


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
    upright = turns[origin, 0] * np.array([1.0, 0.0, 1.0, 0.0])
    yaw = rotations.normalize(upright + np.array([1e-12, 0.0, 0.0, 0.0]))
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
    residual = output[:, :width]
    if len(given := np.flatnonzero(keys)):  # zero at keys
        residual = residual - lines(at, given, residual[given])
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


def lines(
    at: Float[Array, "frames"] | Int[Array, "frames"],
    knots: Int[Array, "knots"],
    values: Float[Array, "knots columns"],
) -> Float[Array, "frames columns"]:
    """The lines through values at knots, at other places."""
    return np.stack([np.interp(at, knots, column) for column in values.T], axis=-1)


def _distance(keys: Bool[Array, "frames"]) -> Int[Array, "frames"]:
    """Frames to the nearest key."""
    at, every = np.flatnonzero(keys), np.arange(len(keys))
    if not len(at):
        return np.full(len(keys), len(keys))
    after = np.minimum(np.searchsorted(at, every), len(at) - 1)
    return np.minimum(abs(at[after] - every), abs(every - at[np.maximum(after - 1, 0)]))
