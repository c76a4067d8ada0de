"""What people's joints reach: angles between parts of the body by role, and the ranges learned and published for them.

A part's angles are those of its rotation relative to another part, from the neutral pose (`skeleton.neutral`): its
twist about its own length, and its swing, as a vector, about the two other axes of the body (left, up, forward). They
do not depend on how many joints a spine or a neck has, or on the rig's axes. Right limbs are mirrored to the left.

An end of a range may depend on another angle: an ankle's on the knee, a hip's on the knee, an arm's twist and swing on
how far it is raised.

`ranges.json` is written by `tools/limits.py`: ranges of the recordings of the CMU Graphics Lab Motion Capture Database,
and those of the American Academy of Orthopaedic Surgeons (1965), "Joint motion: method of measuring and recording", and
of Norkin and White (2016), "Measurement of joint motion", appendix B. The ankle's is the one under load, as in a lunge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from poise.compiled import compiled
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, forward, load, matrix_times, store
from poise.skeleton.limits import limit_of, table
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.roles import SIDES, path
from poise.skeleton.skeleton import Pose, Skeleton, kept_for_body
from poise.types import Array, PoseVector

SLACK = 10.0  # degrees: what is beyond a range by less may be an unknown zero of the rig
_LENGTHWISE = {"upper_arm": 0, "forearm": 0, "hand": 0}  # the axis of twist; of all others up

# The part that each is measured from, what it is called, and what turning about left, up and forward is called, of
# left limbs: in the negative and in the positive direction. Nothing is said where a rig's rest pose does not show zero.
MOVEMENTS: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "spine": ("pelvis", "chest", (("bent back", "bent forward"), ("turned",) * 2, ("bent sideways",) * 2)),
    "neck": ("chest", "head", (("bent back", "bent forward"), ("turned",) * 2, ("tilted",) * 2)),
    "upper_arm": (
        "chest",
        "arm",
        (("turned out", "turned in"), ("drawn across", "drawn back"), ("lowered", "raised")),
    ),
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


def measured(
    skeleton: Skeleton, world: Float[Array, "*frames joints 3 3"]
) -> dict[tuple[str, str], Float[Array, "*frames 3"]]:
    """By part and side, the angles about left, up and forward in degrees, from the joints' rotations in the world.

    It is empty for a body whose rest pose does not show the zeros of its joints.
    """
    if (parts := _parts(skeleton)) is None:
        return {}
    frames = np.ascontiguousarray(world, dtype=np.float64).reshape(-1, len(skeleton), 3, 3)
    angles = _angles_of_frames(frames, parts.measure).reshape(*world.shape[:-3], len(parts.names), 3)
    return {name: angles[..., number, :] for number, name in enumerate(parts.names)}


def excess_of(skeleton: Skeleton, angles: Float[Array, "frames parts 3"]) -> Float[Array, "frames parts 3 2"]:
    """How far measured angles are beyond both ends of their ranges, in degrees; negative inside of them."""
    parts, reach = _parts(skeleton), np.empty((*angles.shape, 2))
    assert parts is not None
    for own, ends in zip(angles, reach, strict=True):
        _reach(own, parts.table, ends)
    return np.stack([reach[..., 0] - angles, angles - reach[..., 1]], axis=-1)


def beyond_people(pose: Pose, *, slack: float = SLACK) -> list[Overbent]:
    """What people cannot do in a pose, the worst first; up to `slack` degrees beyond a range is no fault."""
    if (parts := _parts(pose.skeleton)) is None:
        return []
    angles = _angles_of_frames(pose.world[1][None], parts.measure)[0]
    over = excess_of(pose.skeleton, angles[None])[0]
    found = []
    for part, axis, end in np.argwhere(over > slack).tolist():
        angle, beyond = float(angles[part, axis]), float(over[part, axis, end])
        reach = angle - beyond if end else angle + beyond
        found.append(Overbent(parts.what(part), parts.word(part, axis, end), abs(angle), abs(reach)))
    return sorted(found, key=lambda each: each.reach - each.angle)


class Edge(NamedTuple):
    """An end of a part's range that a pose is near or beyond, in radians, and its change with the pose."""

    name: str
    excess: float
    """How far it is beyond; negative inside of the range."""
    slope: Float[Array, "freedoms"]


def edges(space: PoseSpace, q: PoseVector, *, nearer: float = 0.0) -> list[Edge]:
    """The ends of people's ranges that a pose is beyond, or `nearer` than this in radians."""
    if (parts := _parts(space.skeleton)) is None:
        return []
    moved = _moved(space.skeleton, tuple(space.moving.tolist()))
    which, excess, slopes = _edges(q, *space.tree, parts.measure, parts.table, moved, math.degrees(nearer))
    return [
        Edge(f"{parts.what(part)} {parts.word(part, axis, end)}", over, slope)
        for (part, axis, end), over, slope in zip(which.tolist(), excess.tolist(), slopes, strict=True)
    ]


Measure = tuple[Array, Array, Array, Array, Array, Array]
Table = tuple[Array, Array, Array]
_MOST_KNOTS = 10
_STEP = 1e-6  # radians


class _Parts(NamedTuple):
    """The parts that a body has, how they are measured, and how far people move them."""

    names: tuple[tuple[str, str], ...]
    joints: tuple[frozenset[int], ...]
    """The joints whose rotations move each part."""
    measure: Measure
    """Of each part: its joint, the joint it is measured from, the neutral axes of the second and of the first, its
    axis of twist, and the sign of rotations about up and forward: a right limb's are mirrored."""
    table: Table
    """The least and most angles, infinite where nothing is said; those that depend on another angle, as rows of part,
    axis, end, other part, its axis and number of knots; and per row the knots and the ends there."""

    def what(self, part: int) -> str:
        """The part in words."""
        name, side = self.names[part]
        return f"{side} {MOVEMENTS[name][1]}".strip()

    def word(self, part: int, axis: int, end: int) -> str:
        """What turning it that way is called."""
        return MOVEMENTS[self.names[part][0]][2][axis][end]


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
    own, base_of = np.array(joints, dtype=np.int64).T.copy()
    turning = tuple(frozenset(path(skeleton, base, end)[1:]) for end, base in joints)
    before, after = np.array(neutral.world[base_of]), np.swapaxes(neutral.world[own], -1, -2).copy()
    lengthwise = np.array([_LENGTHWISE.get(part, 1) for part, _ in names], dtype=np.int64)
    signs = np.array([-1.0 if side == "right" else 1.0 for _, side in names])
    return _Parts(tuple(names), turning, (own, base_of, before, after, lengthwise, signs), _table_of(names))


def _table_of(names: list[tuple[str, str]]) -> Table:
    """The ranges of these parts in arrays; nothing is said where a movement has no word."""
    said = [[[bool(word) for word in words] for words in MOVEMENTS[part][2]] for part, _ in names]
    ends = np.where(said, [limit_of(part) for part, _ in names], [-np.inf, np.inf])
    rows, knots = list[list[int]](), list[Array]()
    for number, (part, side) in enumerate(names):
        for each in table()["coupled"]:
            if each["part"] == part and (each["with"][0], side) in names:
                other, count = names.index((each["with"][0], side)), len(each["at"])
                rows.append([number, each["axis"], each["end"], other, each["with"][1], count])
                knots.append(np.pad([each["at"], each["reach"]], ((0, 0), (0, _MOST_KNOTS - count))))
    return ends, np.array(rows, dtype=np.int64).reshape(-1, 6), np.array(knots).reshape(-1, 2, _MOST_KNOTS)


@kept_for_body
def _moved(skeleton: Skeleton, moving: tuple[int, ...]) -> Bool[Array, "parts freedoms"]:
    """The degrees of freedom that each part's angles and the ends of its range depend on."""
    parts = _parts(skeleton)
    assert parts is not None
    joints = [set(own) for own in parts.joints]
    for part, _, _, other, _, _ in parts.table[1].tolist():
        joints[part] |= parts.joints[other]
    found = np.zeros((len(joints), ROOT_FREEDOMS + 3 * len(moving)), dtype=np.bool_)
    for row, own in zip(found, joints, strict=True):
        row[ROOT_FREEDOMS:] = np.repeat([joint in own for joint in moving], 3)
    return found


@compiled
def _angles(matrices: Array, measure: Measure, out: Array) -> None:
    """Each part's twist and swing in degrees, about the body's left, up and forward."""
    own, base, before, after, lengthwise, signs = measure
    turn = np.empty((1, 3, 3))
    for part in range(len(own)):
        a = load(matrices, base[part])
        back = matrix_times(load(before, part), (a[0], a[3], a[6], a[1], a[4], a[7], a[2], a[5], a[8]))
        ahead = matrix_times(load(matrices, own[part]), load(after, part))
        store(turn, 0, matrix_times(back, ahead))
        along = lengthwise[part]
        second, third = (along + 1) % 3, (along + 2) % 3
        trace = turn[0, 0, 0] + turn[0, 1, 1] + turn[0, 2, 2]
        twist = 2.0 * math.atan2(turn[0, third, second] - turn[0, second, third], 1.0 + trace)
        # The swing takes the lengthwise axis to where it points, by the shortest way.
        x, y, z = turn[0, along, along], turn[0, second, along], turn[0, third, along]
        across = math.sqrt(y * y + z * z)
        stretch = math.atan2(across, x) / across if across > 1e-12 else 1.0
        out[part, along], out[part, second], out[part, third] = twist, -z * stretch, y * stretch
        for axis in range(3):
            out[part, axis] = math.degrees(out[part, axis] * (signs[part] if axis > 0 else 1.0))


@compiled
def _angles_of_frames(frames: Array, measure: Measure) -> Array:
    found = np.empty((len(frames), len(measure[0]), 3))
    for frame in range(len(frames)):
        _angles(frames[frame], measure, found[frame])
    return found


@compiled
def _reach(angles: Array, table: Table, out: Array) -> None:
    """The ends of all ranges at these angles."""
    ends, rows, knots = table
    out[:] = ends
    for r in range(len(rows)):
        part, axis, end, other, across, count = rows[r]
        if math.isfinite(ends[part, axis, end]):
            out[part, axis, end] = _between(knots[r], count, angles[other, across])


@compiled
def _between(knots: Array, count: int, at: float) -> float:
    """Linear between the knots, constant beyond them."""
    for k in range(count):
        if at < knots[0, k]:
            if k == 0:
                break
            share = (at - knots[0, k - 1]) / (knots[0, k] - knots[0, k - 1])
            return float(knots[1, k - 1] + share * (knots[1, k] - knots[1, k - 1]))
    return float(knots[1, 0] if at < knots[0, 0] else knots[1, count - 1])


@compiled
def _excess(q: Array, links: Array, rest: Array, measure: Measure, table: Table, out: Array) -> None:
    """How far each angle is beyond each end of its range, in degrees; negative inside."""
    count, parts = len(links), len(out)
    positions, matrices, axes = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3, 3))
    angles, reach = np.empty((parts, 3)), np.empty((parts, 3, 2))
    forward(q, links, rest, positions, matrices, axes)
    _angles(matrices, measure, angles)
    _reach(angles, table, reach)
    for part in range(parts):
        for axis in range(3):
            out[part, axis, 0] = reach[part, axis, 0] - angles[part, axis]
            out[part, axis, 1] = angles[part, axis] - reach[part, axis, 1]


@compiled
def _edges(
    q: Array, links: Array, rest: Array, measure: Measure, table: Table, moved: Array, nearer: float
) -> tuple[Array, Array, Array]:
    """The ends (part, axis, end) that a pose is beyond or near, by how much, and their change with it, in radians."""
    parts, freedoms = moved.shape
    found, ahead = np.empty((parts, 3, 2)), np.empty((parts, 3, 2))
    _excess(q, links, rest, measure, table, found)
    which = np.argwhere(found > -nearer)
    excess, slopes = np.empty(len(which)), np.zeros((len(which), freedoms))
    asked = np.zeros(freedoms, dtype=np.bool_)
    for row in range(len(which)):
        part, axis, end = which[row]
        excess[row] = math.radians(found[part, axis, end])
        asked |= moved[part]
    trial = q.copy()
    for i in range(ROOT_FREEDOMS, freedoms):
        if asked[i]:
            k = i + ROOT_SIZE - ROOT_FREEDOMS
            trial[k] = q[k] + _STEP
            _excess(trial, links, rest, measure, table, ahead)
            trial[k] = q[k]
            for row in range(len(which)):
                part, axis, end = which[row]
                slopes[row, i] = math.radians(ahead[part, axis, end] - found[part, axis, end]) / _STEP
    return which, excess, slopes
