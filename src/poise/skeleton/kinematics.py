"""Forward kinematics of motions: joint positions and rotations in the world, compiled."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.skeleton import kernels
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.roles import BoneTree
from poise.types import Array


def world_transforms(
    skeleton: BoneTree, root_positions: Float[Array, "*frames 3"], rotations: Float[Array, "*frames joints 4"]
) -> tuple[Float[Array, "*frames joints 3"], Float[Array, "*frames joints 3 3"]]:
    """Positions and rotation matrices of every joint in the world, for one frame or many."""
    roots = np.ascontiguousarray(root_positions, dtype=np.float64)
    turns = np.ascontiguousarray(rotations, dtype=np.float64)
    frames, count = roots.shape[:-1], len(skeleton)
    if roots.shape != (*frames, 3) or turns.shape != (*frames, count, 4):
        raise InvalidValueError(
            f"{count} joints need root positions (frames, 3) and rotations (frames, {count}, 4); "
            f"got {roots.shape} and {turns.shape}"
        )
    positions, matrices = np.empty((*frames, count, 3)), np.empty((*frames, count, 3, 3))
    kernels.forward_rotations(
        skeleton.parents,
        skeleton.offsets,
        roots.reshape(-1, 3),
        turns.reshape(-1, count, 4),
        positions.reshape(-1, count, 3),
        matrices.reshape(-1, count, 3, 3),
    )
    return positions, matrices


def turns_in_world(
    skeleton: BoneTree, rotations: Float[Array, "*frames joints 4"]
) -> Float[Array, "*frames joints 4"]:
    """Every joint's rotation in the world as a quaternion (w >= 0), for one frame or many."""
    turns, shape = np.ascontiguousarray(rotations, dtype=np.float64), (-1, len(skeleton), 4)
    found = np.empty(turns.shape)
    world_turns(skeleton.parents, turns.reshape(shape), found.reshape(shape))
    return found


# --- compiled rotations of whole bodies as quaternions: from pose vectors, and from relative to world ----------------


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
