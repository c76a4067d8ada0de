"""Penetration between parts of a body, modelled as capsules."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.skeleton.roles import MAIN_ROLES, SIDES, path
from poise.skeleton.skeleton import Skeleton, kept_for_body
from poise.types import Array

_RADII = {"torso": 0.065, "head": 0.05, "forearm": 0.018, "thigh": 0.035, "shin": 0.025}  # of stature
_LIMBS = {f"{side}_{a}": (f"{side}_{a}", f"{side}_{b}") for side in SIDES for a, b in (
    ("forearm", "hand"), ("thigh", "shin"), ("shin", "foot"))}  # fmt: skip
_PAIRS = (
    *((f"{side}_forearm", other) for side in SIDES for other in ("torso", "head", "left_thigh", "right_thigh")),
    ("left_forearm", "right_forearm"), ("left_shin", "right_shin"),
    ("left_shin", "right_thigh"), ("right_shin", "left_thigh"),
)  # fmt: skip


def depths(
    skeleton: Skeleton, positions: Float[Array, "frames joints 3"]
) -> dict[tuple[str, str], Float[Array, "frames"]]:
    """Penetration depth of each pair of parts in metres, negative if apart; the body must have the main roles."""
    ends, touching = _pairs(skeleton)
    return dict(zip(_PAIRS, _depths(ends, touching, positions), strict=True))


def pairs_within(
    skeleton: Skeleton, positions: Float[Array, "joints 3"], distance: float
) -> list[tuple[str, str]]:
    """The pairs of parts whose surfaces are closer than this, in metres, or penetrate."""
    ends, touching = _pairs(skeleton)
    deep = _depths(ends, touching, positions[None])[:, 0].tolist()
    return [pair for pair, depth in zip(_PAIRS, deep, strict=True) if depth > -distance]


def nearest_bone(skeleton: Skeleton, positions: Float[Array, "joints 3"], limb: str, part: str) -> str:
    """The joint of the part's bone that is nearest to a limb: only a torso has several."""
    if part != "torso":
        return part
    names, begins, ends = _trunk(skeleton)
    here, there = (np.tile(positions[skeleton.index(role)], (len(names), 1)) for role in _LIMBS[limb])
    tips = np.einsum("bj,jx->bx", ends, positions)
    return names[int(apart(here, there, positions[begins], tips).argmin())]


def between(skeleton: Skeleton, a: str, b: str) -> float:
    """The distance between the axes of two parts that touch."""
    return skeleton.height * (_radius(a) + _radius(b))


@compiled
def apart(a: Array, b: Array, c: Array, d: Array) -> Array:
    """The distances of segments a-b and c-d, a row each."""
    found = np.empty(len(a))
    for row in range(len(a)):
        found[row] = _apart(a[row], b[row], c[row], d[row])
    return found


@compiled
def nearest_parts(a: Array, b: Array, c: Array, d: Array) -> tuple[float, float]:
    """How far along the segments a-b and c-d, from 0 to 1, their closest points are.

    Ericson 2005, "Real-Time Collision Detection", 5.1.9.
    """
    own = others = across = along = along_other = 0.0
    for i in range(3):
        one, two, gap = b[i] - a[i], d[i] - c[i], a[i] - c[i]
        own += one * one
        others += two * two
        across += one * two
        along += one * gap
        along_other += two * gap
    own, others = max(own, 1e-12), max(others, 1e-12)
    slant = own * others - across * across
    s = min(max((across * along_other - along * others) / slant, 0.0), 1.0) if slant > 1e-12 else 0.0
    t = min(max((across * s + along_other) / others, 0.0), 1.0)
    return min(max((across * t - along) / own, 0.0), 1.0), t


@compiled
def _apart(a: Array, b: Array, c: Array, d: Array) -> float:
    s, t = nearest_parts(a, b, c, d)
    square = 0.0
    for i in range(3):
        square += (a[i] + s * (b[i] - a[i]) - c[i] - t * (d[i] - c[i])) ** 2
    return math.sqrt(square)


@compiled
def _depths(ends: Array, touching: Array, positions: Array) -> Array:
    """The depths of all pairs in all frames; both ends of both parts are means of two joints."""
    found, points = np.empty((len(touching), len(positions))), np.empty((4, 3))
    for frame in range(len(positions)):
        at = positions[frame]
        for pair in range(len(touching)):
            for end in range(4):
                first, second = ends[0, end, pair], ends[1, end, pair]
                for i in range(3):
                    points[end, i] = 0.5 * (at[first, i] + at[second, i])
            found[pair, frame] = touching[pair] - _apart(points[0], points[1], points[2], points[3])
    return found


def _radius(segment: str) -> float:
    return _RADII[segment.split("_")[-1]]


@kept_for_body
def _trunk(skeleton: Skeleton) -> tuple[list[str], Int[Array, "bones"], Float[Array, "bones joints"]]:
    """The joints from pelvis to chest, with the weights of all joints in the ends of their bones."""
    chest = skeleton.index("chest" if "chest" in skeleton.roles else "pelvis")
    joints = path(skeleton, skeleton.index("pelvis"), chest)
    ends = np.zeros((len(joints), len(skeleton)))
    for row, joint in zip(ends, joints, strict=True):
        grown = [child for child in skeleton.children[joint] if skeleton.children[child]]
        row[grown or list(skeleton.children[joint])] = 1.0
    names = [skeleton.names[joint] for joint in joints]
    return names, np.array(joints), ends / ends.sum(axis=1, keepdims=True)


@kept_for_body
def _pairs(skeleton: Skeleton) -> tuple[Int[Array, "2 4 pairs"], Float[Array, "pairs"]]:
    """For every pair, the ends of both parts, each the mean of two joints; and the distance at which they touch."""
    joint = {role: skeleton.index(role) for role in MAIN_ROLES}
    shoulders = (joint["left_upper_arm"], joint["right_upper_arm"])
    ends = {"torso": ((joint["pelvis"],) * 2, shoulders), "head": ((joint["head"],) * 2,) * 2}
    ends |= {name: ((joint[a],) * 2, (joint[b],) * 2) for name, (a, b) in _LIMBS.items()}
    table = [[ends[pair[part]][end] for pair in _PAIRS] for part in (0, 1) for end in (0, 1)]
    return np.array(table).transpose(2, 0, 1), np.array([between(skeleton, *pair) for pair in _PAIRS])
