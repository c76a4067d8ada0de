"""What people's joints reach: angles between parts of the body by role, and the ranges learned and published for them.

A part's angles are those of its rotation relative to another part, from the neutral pose (`skeleton.neutral`): its
twist about its own length, and its swing, as a vector, about the two other axes of the body (left, up, forward). They
do not depend on how many joints a spine or a neck has, or on the rig's axes. Right limbs are mirrored to the left.

`ranges.json` is written by `tools/limits.py`: ranges of the recordings of the CMU Graphics Lab Motion Capture Database,
and those of the American Academy of Orthopaedic Surgeons (1965), "Joint motion: method of measuring and recording", and
of Norkin and White (2016), "Measurement of joint motion", appendix B. The ankle's is the one under load, as in a lunge.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from poise.geometry import rotations
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose, Skeleton, kept_for_body
from poise.types import Array

SLACK = 10.0  # degrees: what is beyond a range by less may be an unknown zero of the rig
_LENGTHWISE = {"upper_arm": 0, "forearm": 0, "hand": 0}  # the axis of twist; of all others up

# The part that each is measured from, what it is called, and what turning about left, up and forward is called, of
# left limbs: in the negative and in the positive direction. Nothing is said where a rig's rest pose does not show zero.
MOVEMENTS: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "spine": ("pelvis", "chest", (("bent back", "bent forward"), ("turned",) * 2, ("bent sideways",) * 2)),
    "neck": ("chest", "head", (("bent back", "bent forward"), ("turned",) * 2, ("tilted",) * 2)),
    "upper_arm": ("chest", "arm", (("", ""), ("drawn across", "drawn back"), ("lowered", "raised"))),
    "forearm": ("upper_arm", "elbow", (("", ""), ("bent", "bent backwards"), ("", ""))),
    "hand": ("forearm", "wrist", (("", ""), ("", ""), ("", ""))),
    "thigh": ("pelvis", "hip", (("bent forward", "stretched back"), ("", ""), ("drawn across", "spread"))),
    "shin": ("thigh", "knee", (("bent forwards", "bent"), ("", ""), ("", ""))),
    "foot": ("shin", "ankle", (("bent up", "stretched"), ("turned",) * 2, ("", ""))),
    "toes": ("foot", "toes", (("bent up", "bent down"), ("", ""), ("", ""))),
}
_OWN = {"spine": "chest", "neck": "head"}  # the joint at the end of a part that is a chain


@dataclass(frozen=True)
class Overbent:
    """A part that is bent or turned further than people reach, in degrees."""

    part: str
    movement: str
    angle: float
    reach: float

    def __str__(self) -> str:
        return f"{self.part} {self.movement} by {self.angle:.0f} degrees; people reach {self.reach:.0f}"


@cache
def table() -> dict[str, Any]:
    """The table of ranges: "parts" with "learned", "published" and "limit", each (left, up, forward) in degrees."""
    found: dict[str, Any] = json.loads(files("poise.skeleton").joinpath("ranges.json").read_text("utf-8"))
    return found


def limit_of(part: str) -> Float[Array, "3 2"]:
    """A left or central part's range about left, up and forward, in degrees."""
    return np.array(table()["parts"][part]["limit"], dtype=np.float64)


def measured(
    skeleton: Skeleton, world: Float[Array, "*frames joints 3 3"]
) -> dict[tuple[str, str], Float[Array, "*frames 3"]]:
    """By part and side, the angles about left, up and forward in degrees, from the joints' rotations in the world.

    It is empty for a body whose rest pose does not show the zeros of its joints.
    """
    parts = _parts(skeleton)
    if parts is None:
        return {}
    relative = np.swapaxes(world[..., parts.base, :, :], -1, -2) @ world[..., parts.own, :, :]
    q = rotations.quaternion_from_matrix(parts.before @ relative @ parts.after) * parts.mirrored
    twist = q * parts.lengthwise
    length = np.linalg.norm(twist, axis=-1, keepdims=True)
    twist = np.where(length > 1e-9, twist / np.maximum(length, 1e-9), rotations.IDENTITY)
    both = np.stack([rotations.multiply(q, rotations.conjugate(twist)), twist])
    angles = np.degrees(rotations.expmap_from_quaternion(both).sum(axis=0))
    return {name: angles[..., number, :] for number, name in enumerate(parts.names)}


def beyond_people(pose: Pose) -> list[Overbent]:
    """What people cannot do in a pose, the worst first."""
    found, angles_of = list[Overbent](), measured(pose.skeleton, pose.world[1])
    for (part, side), angles in angles_of.items():
        limit = limit_of(part)
        if part == "foot":
            # An ankle bends up less with a straight knee: the calf's long muscle spans both.
            knee, coupled = angles_of.get(("shin", side), np.full(3, 90.0))[0], table()["ankle_up_by_knee"]
            limit[0, 0] = -np.interp(knee, coupled["knee"], coupled["up"])
        ends = zip(limit.tolist(), MOVEMENTS[part][2], angles.tolist(), strict=True)
        for (low, high), (to_low, to_high), angle in ends:
            word, reach = (to_low, low) if angle < 0.0 else (to_high, high)
            if word and not low - SLACK <= angle <= high + SLACK:
                name = f"{side} {MOVEMENTS[part][1]}".strip()
                found.append(Overbent(name, word, abs(angle), abs(reach)))
    return sorted(found, key=lambda each: each.reach - each.angle)


class _Parts(NamedTuple):
    """The parts that a body has: their joints, and the joints they are measured from, with the neutral axes of both."""

    names: tuple[tuple[str, str], ...]
    own: Int[Array, "parts"]
    base: Int[Array, "parts"]
    before: Float[Array, "parts 3 3"]
    after: Float[Array, "parts 3 3"]
    lengthwise: Float[Array, "parts 4"]  # what of a quaternion is twist
    mirrored: Float[Array, "parts 4"]  # a right limb's rotations about up and forward are negated


@kept_for_body
def _parts(skeleton: Skeleton) -> _Parts | None:
    neutral, one = neutral_pose(skeleton), {"pelvis", "chest", "head"}
    names, joints = list[tuple[str, str]](), list[list[int]]()
    for part, (base, _, _) in MOVEMENTS.items():
        for side in ("",) if part in _OWN else SIDES:
            roles = [role if role in one else f"{side}_{role}" for role in (_OWN.get(part, part), base)]
            if neutral.twist_known and all(role in skeleton.roles for role in roles):
                names.append((part, side))
                joints.append([skeleton.index(role) for role in roles])
    if not names:
        return None
    own, base_of = np.array(joints, dtype=np.int64).T
    lengthwise = np.eye(4)[[1 + _LENGTHWISE.get(part, 1) for part, _ in names]] + np.eye(4)[0]
    mirrored = np.array([[1.0, 1.0, -1.0, -1.0] if side == "right" else [1.0] * 4 for _, side in names])
    after = np.swapaxes(neutral.world[own], -1, -2)
    return _Parts(tuple(names), own, base_of, neutral.world[base_of], after, lengthwise, mirrored)
