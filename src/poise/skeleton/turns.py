"""Compiled rotations of whole bodies as quaternions: from pose vectors, and from relative to world."""

import math

from poise.compiled import compiled
from poise.skeleton.kernels import ROOT_SIZE
from poise.types import Array


@compiled
def local_turns(qs: Array, references: Array, moving: Array, turns: Array) -> None:
    """Each joint's rotation relative to its parent, of many pose vectors; joints that do not move are left out."""
    for frame in range(len(qs)):
        q, own = qs[frame], turns[frame]
        for i in range(4):
            own[0, i] = q[3 + i]
        for slot in range(len(moving)):
            first = ROOT_SIZE + 3 * slot
            x, y, z = 0.5 * q[first], 0.5 * q[first + 1], 0.5 * q[first + 2]
            half = math.sqrt(x * x + y * y + z * z)
            scale = math.sin(half) / half if half > 0.0 else 1.0
            joint = moving[slot]
            _turn(references[joint], math.cos(half), scale * x, scale * y, scale * z, own[joint])


@compiled
def world_turns(parents: Array, turns: Array, found: Array) -> None:
    """Each joint's rotation in the world, of many frames of rotations relative to the parent."""
    for frame in range(len(turns)):
        own, out = turns[frame], found[frame]
        sign = -1.0 if own[0, 0] < 0.0 else 1.0
        for i in range(4):
            out[0, i] = sign * own[0, i]
        for j in range(1, len(parents)):
            _turn(out[parents[j]], own[j, 0], own[j, 1], own[j, 2], own[j, 3], out[j])


@compiled
def _turn(a: Array, w: float, x: float, y: float, z: float, out: Array) -> None:
    """A quaternion times another, with w >= 0."""
    sign = 1.0 if a[0] * w - a[1] * x - a[2] * y - a[3] * z >= 0.0 else -1.0
    out[0] = sign * (a[0] * w - a[1] * x - a[2] * y - a[3] * z)
    out[1] = sign * (a[0] * x + a[1] * w + a[2] * z - a[3] * y)
    out[2] = sign * (a[0] * y - a[1] * z + a[2] * w + a[3] * x)
    out[3] = sign * (a[0] * z + a[1] * y - a[2] * x + a[3] * w)
