"""Joint limits: from recordings, by hand, or a default human set, as boxes on exponential maps about references.

The human set takes its ranges from `ranges.json`, which `skeleton.ranges` describes: published ones, extended a little
where recorded people reach further; the shoulder girdle's are from Kapandji (2007), "The physiology of the joints",
volume 1, and the fingers' from the American Academy of Orthopaedic Surgeons (1965). They are measured from the neutral
pose (`skeleton.neutral`), which is therefore each joint's reference. A box is along the joint's own axes, so for axes
oblique to the body it is the smallest box that contains the anatomical one. If the rest pose does not stand like a
person and no `samples` are given, a limb's twist about its own length is unknown, and its box is widened to contain
every twist.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, SkeletonError
from poise.geometry import rotations
from poise.skeleton.neutral import Neutral, neutral_pose
from poise.skeleton.roles import ARM_ROLES, LEG_ROLES, SIDES, path, subtree
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array

Range = tuple[float, float]

# Degrees about left, up and forward of joints below a left hand: curled down, spread, and a little twisted.
_FINGER = ((-30, 30), (-35, 40), (-110, 75))
_THUMB = ((-60, 60), (-70, 70), (-90, 90))
_HELPER = 30.0  # joints without their own entry
_SPREAD = 2.0  # joints with a common range (the spine's) do not share it evenly
_NEAR = np.radians(40.0)  # a reference further from the neutral pose has another box


@cache
def table() -> dict[str, Any]:
    """The table of ranges: "parts" with "learned", "published" and "limit", each (left, up, forward) in degrees."""
    found: dict[str, Any] = json.loads(files("poise.skeleton").joinpath("ranges.json").read_text("utf-8"))
    return found


def limit_of(part: str) -> Float[Array, "3 2"]:
    """A left or central part's range about left, up and forward, in degrees."""
    return np.array(table()["parts"][part]["limit"], dtype=np.float64)


def human_limits(
    skeleton: Skeleton, *, samples: Float[Array, "frames joints 4"] | None = None
) -> JointLimits:
    """The default human limits by role; `samples` are recorded rotations that show the axes of a bone-aligned rig."""
    return _human_limits(skeleton, neutral_pose(skeleton, samples), spread=_SPREAD)


def _human_limits(skeleton: Skeleton, neutral: Neutral, *, spread: float) -> JointLimits:
    """The limits; joints of the spine and the neck have at most `spread` times their even share of its range."""
    lower, upper = np.full((len(skeleton), 3), -_HELPER), np.full((len(skeleton), 3), _HELPER)
    for joint, ranges in _anatomical_ranges(skeleton, spread).items():
        lower[joint], upper[joint] = _box_in_own_axes(skeleton, neutral, joint, ranges)
    free = path(skeleton, 0, skeleton.index("pelvis")) if "pelvis" in skeleton.roles else [0]
    lower[free], upper[free] = -180.0, 180.0
    return JointLimits(neutral.rotations, np.radians(lower), np.radians(upper))


def within_people(limits: JointLimits, skeleton: Skeleton) -> JointLimits:
    """The limits, narrowed to what people reach, but for fingers and ankles; a chain's joint may use all of its.

    The box about another reference is shifted by it, to first order: joints whose reference is far from the neutral
    pose, as that of hanging arms, keep their own box.
    """
    people = _human_limits(skeleton, neutral_pose(skeleton), spread=float(len(skeleton)))
    away = rotations.multiply(rotations.conjugate(people.references), limits.references)
    shift = rotations.expmap_from_quaternion(away)
    narrow = np.linalg.norm(shift, axis=-1) < _NEAR
    for side in SIDES:
        if f"{side}_hand" in skeleton.roles:
            narrow[subtree(skeleton, skeleton.index(f"{side}_hand"))[1:]] = False
        if f"{side}_foot" in skeleton.roles:  # its heel lifts instead: see `solvers.bearing`
            narrow[skeleton.index(f"{side}_foot")] = False
    lower = np.maximum(limits.lower, np.minimum(people.lower - shift, 0.0))
    upper = np.minimum(limits.upper, np.maximum(people.upper - shift, 0.0))
    return JointLimits(
        limits.references,
        np.where(narrow[:, None], lower, limits.lower),
        np.where(narrow[:, None], upper, limits.upper),
    )


def limits_from_rotations(
    samples: Iterable[Float[Array, "frames joints 4"]], *, margin: float = np.radians(5.0)
) -> JointLimits:
    """Limits that contain every recorded rotation plus a margin in radians, about each joint's mean rotation."""
    recorded = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if not recorded or sum(len(sample) for sample in recorded) == 0:
        raise InvalidValueError("limits from data need at least one frame; got none")
    if len({sample.shape[1:] for sample in recorded}) > 1:
        raise SkeletonError("limits from data need motions of one skeleton; their numbers of joints differ")
    frames = np.concatenate(recorded)
    references = rotations.mean(frames)
    turns = rotations.expmap_from_quaternion(rotations.multiply(rotations.conjugate(references), frames))
    lower, upper = turns.min(axis=0) - margin, turns.max(axis=0) + margin
    return JointLimits(references, np.maximum(lower, -np.pi), np.minimum(upper, np.pi))


def limits_by_hand(
    skeleton: Skeleton,
    ranges: Mapping[str, Sequence[Range]],
    *,
    base: JointLimits | None = None,
) -> JointLimits:
    """Limits in degrees for some joints or roles, three (lower, upper) pairs each; others keep the base's, or are free.

    Without a base, the references are the rest pose, so the pairs are exponential-map components of the joint's
    rotation about its own x, y and z axes.
    """
    count = len(skeleton)
    references = np.tile(rotations.IDENTITY, (count, 1)) if base is None else base.references
    lower = np.full((count, 3), -np.pi) if base is None else base.lower.copy()
    upper = np.full((count, 3), np.pi) if base is None else base.upper.copy()
    for name, pairs in ranges.items():
        joint = skeleton.index(name)
        box = np.asarray(pairs, dtype=np.float64)
        if box.shape != (3, 2) or not np.all(box[:, 0] <= box[:, 1]):
            raise InvalidValueError(
                f"limits of {name!r} need three (lower, upper) pairs in degrees; got {pairs!r}"
            )
        lower[joint], upper[joint] = np.radians(box[:, 0]), np.radians(box[:, 1])
    return JointLimits(references, lower, upper)


def clamped(
    limits: JointLimits, turned: Float[Array, "*frames joints 4"]
) -> Float[Array, "*frames joints 4"]:
    """Clamp the rotations to their boxes, component by component."""
    inside = np.clip(_turns(limits, turned), limits.lower, limits.upper)
    return rotations.multiply(limits.references, rotations.quaternion_from_expmap(inside))


def excess(limits: JointLimits, turned: Float[Array, "*frames joints 4"]) -> Float[Array, "*frames joints"]:
    """Violation of each joint's box in radians: the largest over its three components, zero inside."""
    turns = _turns(limits, turned)
    outside: Array = np.maximum(np.maximum(limits.lower - turns, turns - limits.upper), 0.0)
    return outside.max(axis=-1)


def _turns(limits: JointLimits, turned: Array) -> Array:
    about = rotations.multiply(rotations.conjugate(limits.references), turned)
    return rotations.expmap_from_quaternion(about)


# --- the human set -------------------------------------------------------------------------------------------------


def _anatomical_ranges(skeleton: Skeleton, spread: float) -> dict[int, Float[Array, "3 2"]]:
    """Per joint with its own entry, degrees about left, up and forward."""
    found: dict[int, Array] = {}
    for side in SIDES:
        own: dict[int, Array] = {}
        for part in (*ARM_ROLES, *LEG_ROLES):
            if f"{side}_{part}" in skeleton.roles:
                joint = skeleton.index(f"{side}_{part}")
                for below in subtree(skeleton, joint)[1:] if part == "hand" else []:
                    is_thumb = "thumb" in skeleton.names[below].casefold()
                    own[below] = np.array(_THUMB if is_thumb else _FINGER, dtype=np.float64)
                own[joint] = limit_of(part)
        if side == "right":  # mirroring negates rotations about up and forward, but not about left
            own = {joint: np.stack([r[0], -r[1, ::-1], -r[2, ::-1]]) for joint, r in own.items()}
        found.update(own)
    for first, last, part in (("pelvis", "chest", "spine"), ("chest", "head", "neck")):
        if first in skeleton.roles and last in skeleton.roles:
            joints = path(skeleton, skeleton.index(first), skeleton.index(last))[1:]
            found.update({joint: limit_of(part) * min(1.0, spread / len(joints)) for joint in joints})
    return found


def _box_in_own_axes(
    skeleton: Skeleton, neutral: Neutral, joint: int, ranges: Float[Array, "3 2"]
) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """The smallest box along the joint's axes that contains the anatomical one, for any twist if it is unknown."""
    axes = neutral.world[joint].T  # columns: the body's left, up, forward in the joint's axes
    if not neutral.twist_known:
        bone = skeleton.offsets[list(skeleton.children[joint])].sum(axis=0)
        widest, length = np.abs(ranges).max(axis=-1), np.linalg.norm(bone)
        if length == 0:
            reach = np.full(3, np.linalg.norm(widest))
        else:
            bone = bone / length
            along = float(np.abs(axes.T @ bone) @ widest)
            across = float(np.max(widest * np.sqrt(np.clip(1.0 - (axes.T @ bone) ** 2, 0.0, 1.0))))
            reach = along * np.abs(bone) + across * np.sqrt(np.clip(1.0 - bone**2, 0.0, 1.0))
        reach = np.minimum(reach, 180.0)
        return -reach, reach
    ends = axes[:, :, None] * ranges[None, :, :]
    return ends.min(axis=-1).sum(axis=-1), ends.max(axis=-1).sum(axis=-1)
