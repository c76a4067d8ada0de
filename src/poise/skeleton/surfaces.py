"""Palms, fingertips and soles: the points of a body that touch things, by role, with the way their skin faces.

They come from the neutral pose, in which palms face down unless the thumbs say otherwise. Where bones do not say it, a
hand is 0.108 of stature long (Drillis and Contini 1966); its palm's middle is half-way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from poise.skeleton.neutral import FORWARD, LEFT, UP, neutral_pose
from poise.skeleton.roles import SIDES, side_and_part
from poise.skeleton.skeleton import Skeleton, kept_for_body
from poise.types import Array

Vec3 = tuple[float, float, float]
HAND, SHORTEST, LONGEST = 0.108, 0.07, 0.14  # of stature: from wrist to fingertips, usual and plausible
PALM, THICK = (
    0.5,
    0.012,
)  # of the hand's length: the middle of the palm; of stature: from the bones to its skin
BALL = 0.4  # of the way from ankle to toes: the middle of a sole


@dataclass(frozen=True)
class Touchpoint:
    """A point of the skin: its joint and offset there, and the way it faces, both in the joint's frame."""

    joint: str
    offset: Vec3
    facing: Vec3


@kept_for_body
def surfaces_of(skeleton: Skeleton) -> Mapping[str, Touchpoint]:
    """The surfaces of a body: palms and fingertips of its hands, soles of its feet."""
    found: dict[str, Touchpoint] = {}
    for side, out in zip(SIDES, (LEFT, -LEFT), strict=True):
        if f"{side}_hand" in skeleton.roles:
            found |= _of_hand(skeleton, side, out)
        if f"{side}_foot" in skeleton.roles:
            found[f"{side}_sole"] = _sole(skeleton, side)
    return found


def _of_hand(skeleton: Skeleton, side: str, out: Array) -> dict[str, Touchpoint]:
    neutral, hand, height = neutral_pose(skeleton), skeleton.index(f"{side}_hand"), skeleton.height
    below = [joint for joint in range(hand + 1, len(skeleton)) if _is_below(skeleton, joint, hand)]
    ways = {joint: neutral.positions[joint] - neutral.positions[hand] for joint in below}
    tip = max(ways, key=lambda joint: float(ways[joint] @ out), default=hand)
    length = float(ways[tip] @ out) if ways else 0.0
    if not SHORTEST * height <= length <= LONGEST * height:
        tip, length = hand, HAND * height
    facing = _palm_faces(skeleton, {joint: ways[joint] for joint in below}, side, out)
    palm = PALM * length * out + THICK * height * facing
    beyond = length * out if tip == hand else np.zeros(3)
    return {
        f"{side}_{name}": Touchpoint(
            skeleton.names[joint], _vec3(neutral.local(joint, at)), _vec3(neutral.local(joint, facing))
        )
        for name, joint, at in (("palm", hand, palm), ("fingertips", tip, beyond))
    }


def _palm_faces(skeleton: Skeleton, ways: Mapping[int, Array], side: str, out: Array) -> Array:
    """The way a palm faces in the neutral pose: down, unless the thumb is elsewhere than in front."""
    thumbs = [way for joint, way in ways.items() if "thumb" in side_and_part(skeleton.names[joint])[1]]
    if thumbs:
        aside = max(thumbs, key=lambda way: float(np.linalg.norm(way)))
        aside = aside - (aside @ out) * out
        if np.linalg.norm(aside) > THICK * skeleton.height:
            facing = np.cross(out, aside) if side == "left" else np.cross(aside, out)
            return np.asarray(facing / np.linalg.norm(facing))
    return -UP


def _sole(skeleton: Skeleton, side: str) -> Touchpoint:
    neutral, foot = neutral_pose(skeleton), skeleton.index(f"{side}_foot")
    ahead = 0.0
    if (toes := f"{side}_toes") in skeleton.roles:
        ahead = float((neutral.positions[skeleton.index(toes)] - neutral.positions[foot]) @ FORWARD)
    depth = float(neutral.positions[foot, 1] - neutral.positions[:, 1].min())
    at = BALL * ahead * FORWARD - depth * UP
    return Touchpoint(skeleton.names[foot], _vec3(neutral.local(foot, at)), _vec3(neutral.local(foot, -UP)))


def _is_below(skeleton: Skeleton, joint: int, top: int) -> bool:
    while joint > top:
        joint = int(skeleton.parents[joint])
    return joint == top


def _vec3(way: Array) -> Vec3:
    x, y, z = (float(value) for value in way)
    return x, y, z
