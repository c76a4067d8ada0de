"""Kinematics of many frames at once, in PyTorch: unit quaternions, forward kinematics, positions of points."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from poise.priors.motion.layout import PARENT, TURNING, nearest
from poise.priors.universal.layout import JOINTS, PARENTS, POINTS

FEET = (("LeftToeBase", "LeftFoot"), ("RightToeBase", "RightFoot"))  # points that stand, per side
_STILL = {"LeftHandIndex1": (0.0, 0.0, -0.12), "RightHandIndex1": (0.0, 0.0, 0.12)}  # always slightly bent


def _carried(point: str) -> tuple[int, int, tuple[int, ...]]:
    """The point before a point, the turning joint that carries it, and the joints whose offsets lie between."""
    between = [JOINTS.index(point)]
    while JOINTS[PARENTS[between[0]]] not in TURNING:
        between.insert(0, PARENTS[between[0]])
    carrier = PARENTS[between[0]]
    before = JOINTS[nearest(carrier, POINTS)]
    return POINTS.index(before), TURNING.index(JOINTS[carrier]), tuple(between)


CARRIED = tuple(_carried(point) for point in POINTS[1:])  # of each point but the first, the hips
PLACED = tuple(  # the point at whose position each turning joint lies
    POINTS.index(name if name in POINTS else {"LowerBack": "Hips", "Neck": "Spine1"}.get(
        name, "LeftHand" if name[0] == "L" else "RightHand")) for name in TURNING
)  # fmt: skip


def levers_of(offsets: np.ndarray) -> np.ndarray:
    """(..., points, 3) of a body's joint offsets: from the point before, in the axes of the joint that carries it."""
    found = np.zeros((*offsets.shape[:-2], len(POINTS), 3), offsets.dtype)
    for number, (_, _, between) in enumerate(CARRIED, start=1):
        bend = np.eye(3)
        for joint in between:
            found[..., number, :] += offsets[..., joint, :] @ bend.T
            if JOINTS[joint] in _STILL:
                angle = _STILL[JOINTS[joint]][2]
                cos, sin = np.cos(angle), np.sin(angle)
                bend = bend @ np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
    return found


def times(a: Tensor, b: Tensor) -> Tensor:
    """Products of quaternions."""
    w, x, y, z = a.unbind(-1)
    s, i, j, k = b.unbind(-1)
    return torch.stack(
        [w * s - x * i - y * j - z * k, w * i + x * s + y * k - z * j,
         w * j - x * k + y * s + z * i, w * k + x * j - y * i + z * s], dim=-1,
    )  # fmt: skip


def inverse(q: Tensor) -> Tensor:
    """Conjugates of unit quaternions."""
    return torch.cat([q[..., :1], -q[..., 1:]], dim=-1)


def turned(q: Tensor, v: Tensor) -> Tensor:
    """Vectors turned by unit quaternions."""
    w, axis = q[..., :1], q[..., 1:]
    across = 2.0 * cross(axis, v)
    return v + w * across + cross(axis, across)


def cross(a: Tensor, b: Tensor) -> Tensor:
    """Cross products."""
    x, y, z = a.unbind(-1)
    i, j, k = b.unbind(-1)
    return torch.stack([y * k - z * j, z * i - x * k, x * j - y * i], dim=-1)


def exponential(v: Tensor) -> Tensor:
    """Quaternions of rotation vectors."""
    half = 0.5 * (v.square().sum(-1, keepdim=True) + 1e-12).sqrt()
    return torch.cat([half.cos(), 0.5 * v * (half.sin() / half)], dim=-1)


def logarithm(q: Tensor) -> Tensor:
    """Rotation vectors of unit quaternions, the short way."""
    q = torch.where(q[..., :1] < 0, -q, q)
    sine = (q[..., 1:].square().sum(-1, keepdim=True) + 1e-16).sqrt()
    return q[..., 1:] * (2.0 * torch.atan2(sine, q[..., :1]) / sine)


def angle(a: Tensor, b: Tensor) -> Tensor:
    """Angles between rotations, smooth at zero: from the chord, which is a little shorter than the arc."""
    return 2.0 * (2.0 * (1.0 - (a * b).sum(-1).abs()).clamp_min(0.0) + 1e-5).sqrt()


def slerped(a: Tensor, b: Tensor, share: Tensor) -> Tensor:
    """Rotations on the shortest way from `a` to `b`."""
    return times(a, exponential(share * logarithm(times(inverse(a), b))))


def columns(q: Tensor) -> Tensor:
    """The first two columns of the rotations' matrices."""
    w, x, y, z = q.unbind(-1)
    return torch.stack(
        [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y),
         2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)], dim=-1,
    )  # fmt: skip


def heading(q: Tensor) -> Tensor:
    """The turn about the vertical (y) that is nearest to each rotation."""
    yaw = torch.zeros_like(q)
    size = (q[..., 0].square() + q[..., 2].square() + 1e-12).sqrt()
    yaw[..., 0], yaw[..., 2] = q[..., 0] / size, q[..., 2] / size
    return yaw


def _levels() -> list[tuple[list[int], list[int]]]:
    """Turning joints level by level, each with the place of its parent in the level above."""
    found, level = [], [0]
    while below := [joint for joint, parent in enumerate(PARENT) if parent in level]:
        found.append((below, [level.index(PARENT[joint]) for joint in below]))
        level = below
    return found


LEVELS = _levels()
_BACK = [joint for joints, _ in LEVELS for joint in joints]
BACK = [0, *(1 + _BACK.index(joint) for joint in range(1, len(TURNING)))]


def world_turns(local: Tensor) -> Tensor:
    """World rotations of the turning joints from local ones, (..., joints, 4)."""
    level, found = local[..., :1, :], [local[..., :1, :]]
    for joints, above in LEVELS:
        level = times(level[..., above, :], local[..., joints, :])
        found.append(level)
    return torch.cat(found, dim=-2)[..., BACK, :]


def local_turns(world: Tensor) -> Tensor:
    """Local rotations from world ones."""
    below = times(inverse(world[..., PARENT[1:], :]), world[..., 1:, :])
    return torch.cat([world[..., :1, :], below], dim=-2)


CARRIERS = [0, *(carrier for _, carrier, _ in CARRIED)]


def places(root: Tensor, world: Tensor, levers: Tensor) -> Tensor:
    """World positions of the points, (..., points, 3)."""
    steps = turned(world[..., CARRIERS, :], levers)
    found = [root]
    for number, (before, _, _) in enumerate(CARRIED, start=1):
        found.append(found[before] + steps[..., number, :])
    return torch.stack(found, dim=-2)
