"""Transfer a motion to another character: `retarget(motion, "character.glb")`.

Rotations are transferred by roles (`motion.carrying`); then standing feet are placed where the scaled feet stood and
stay there, and hands that touch the floor, each other, the legs or the head touch the same place again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.apps.planting import Ground, following, metric_of, planted, standing_ankle
from poise.errors import UnknownNameError
from poise.formats import read_character
from poise.formats.files import replacing
from poise.formats.tables import read_table
from poise.geometry import rotations
from poise.geometry.splines import smoothstep
from poise.motion.carrying import carried, check_person
from poise.motion.contacts import foot_contacts
from poise.motion.motion import Motion
from poise.motion.retarget import retarget as on_other_limbs
from poise.motion.world import joint_transforms
from poise.skeleton.measure import ANKLE
from poise.skeleton.neutral import neutral_pose, stands_at_rest
from poise.skeleton.retarget import size_ratio
from poise.skeleton.roles import MAIN_ROLES, ROLES, SIDES, path
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.constraints import transform
from poise.types import Array, Progress

Character = Motion | Pose | Skeleton | str | os.PathLike[str]

_ALIKE = np.cos(np.radians(8.0))  # largest angle between the bones of two similar rest poses
_NEAR_ZERO = 0.05  # of stature: a floor this close to height 0 is set to 0
_HIGHEST_ANKLE = 0.12  # of stature: with higher ankles, a pose does not stand on height 0
_FLOOR, _LIMB, _HEAD, _HAND = (0.04, 0.07), (0.055, 0.085), (0.09, 0.12), (0.07, 0.11)


def retarget(
    motion: Motion, character: Character, *, progress: Progress = lambda _done, _all: None
) -> Motion:
    """Return the motion on a character: a file (GLB, VRM, BVH, ...), a skeleton, or a pose or motion of it.

    A static character in T, A or I pose is enough. GLB or VRM output is written into the character's own file.
    """
    body = open_character(character)
    origin = replace(motion.origin, character=body.origin.character, warnings=motion.origin.warnings)
    if motion.skeleton == body.skeleton:
        return replace(motion, skeleton=body.skeleton, origin=origin)
    moved = replace(_turned(motion, body), origin=origin)
    if not all(
        f"{side}_foot" in skeleton.roles for side in SIDES for skeleton in (motion.skeleton, body.skeleton)
    ):
        return moved
    return _in_contact(moved, motion, body, progress)


def open_character(character: Character) -> Motion:
    """The character as a motion of one frame or more, with the roles of the file beside it (`NAME.roles.toml`)."""
    if isinstance(character, Motion):
        return character
    if isinstance(character, Pose):
        return Motion.of_poses([character])
    if isinstance(character, Skeleton):
        return Motion.of_poses([Pose.rest(character, root_position=character.offsets[0].tolist())])
    body = read_character(character)
    given = roles_beside(Path(character), body.skeleton)
    return replace(body, skeleton=body.skeleton.with_roles(**given)) if given else body


def roles_beside(path: Path, skeleton: Skeleton) -> dict[str, str]:
    """The roles from the file beside the character's, one `left_hand = "Wrist_L"` per line; empty without one."""
    beside = path.with_name(f"{path.stem}.roles.toml")
    return read_roles(beside, skeleton) if beside.is_file() else {}


def read_roles(path: Path, skeleton: Skeleton) -> dict[str, str]:
    """Read roles from a file, one `left_hand = "Wrist_L"` per line; an unknown role or joint is an error."""
    table = read_table(path)
    found = {role: table.get(role, str) for role in ROLES if table.has(role)}
    table.done()
    for role, joint in found.items():
        if joint not in skeleton.names:
            raise table.error(role, str(UnknownNameError("joint", joint, skeleton.names)))
    return found


def write_roles(path: Path, skeleton: Skeleton) -> Path:
    """Write the roles to a file for editing: as NAME.roles.toml beside the character, every command reads it."""
    lines = [f"{role} = {json.dumps(name)}" for role, name in skeleton.roles.items()]
    missing = [f'# {role} = ""' for role in ROLES if role not in skeleton.roles]
    with replacing(path) as file:
        file.write(
            "\n".join(["# Joint of each role; remove a line to have it guessed.", *lines, *missing, ""])
        )
    return path


# --- turning, then touching ----------------------------------------------------------------------------------------


def _turned(motion: Motion, body: Motion) -> Motion:
    """The rotations on the character: unchanged on a similar rig, else by roles."""
    source, target = motion.skeleton, body.skeleton
    if source.same_topology(target) and _rest_alike(source, target):
        return on_other_limbs(motion, target, keep_floor=False)
    check_person(motion, what="the motion's skeleton")
    check_person(body, what="the character's skeleton")
    return carried(motion, target, usual=rotations.mean(body.rotations))


def _rest_alike(source: Skeleton, target: Skeleton) -> bool:
    """Whether the bones of two rest poses have the same directions, so that equal rotations mean equal poses."""
    ours, theirs = (
        skeleton.offsets[1:] / np.maximum(np.linalg.norm(skeleton.offsets[1:], axis=-1, keepdims=True), 1e-9)
        for skeleton in (source, target)
    )
    main = [joint - 1 for role in MAIN_ROLES if role in target.roles and (joint := target.index(role))]
    return bool(np.all(np.sum(ours * theirs, axis=-1)[main] > _ALIKE))


def _in_contact(moved: Motion, motion: Motion, body: Motion, progress: Progress) -> Motion:
    """Apply contacts of feet and hands, on a floor at the same height, or at height 0 if near it."""
    contacts, ratio = foot_contacts(motion), size_ratio(motion.skeleton, body.skeleton)
    near = abs(contacts.floor) < _NEAR_ZERO * motion.skeleton.height
    floor = 0.0 if near else contacts.floor
    ground = Ground(ratio, standing_ankle(motion, contacts), floor + _ankle_height(body))
    raised = moved.with_frames(_raised(moved, motion, ground), moved.rotations)
    standing = planted(raised, motion, contacts, ground, flat=_up_of_feet(body.skeleton), progress=progress)
    return touched(standing, motion, ratio=ratio, floors=(contacts.floor, floor))


def _raised(moved: Motion, motion: Motion, ground: Ground) -> Float[Array, "frames 3"]:
    """Root positions with the pelvis as high above a standing ankle as the source's, scaled."""
    wanted = ground.placed(motion.positions["pelvis"])[:, 1]
    places = moved.root_positions.copy()
    places[:, 1] += wanted - moved.positions["pelvis"][:, 1]
    return places


def _up_of_feet(skeleton: Skeleton) -> Float[Array, "2 3"] | None:
    """The up direction in each foot's axes when it stands flat, from a standing rest pose."""
    if not stands_at_rest(skeleton):
        return None
    up = neutral_pose(skeleton).local(skeleton.index("pelvis"), np.array([0.0, 1.0, 0.0]))
    return np.stack([up, up])


def _ankle_height(body: Motion) -> float:
    """The height of the ankles when the character stands: that of its file, if it stands on height 0."""
    heights = [body.positions[f"{side}_foot"][0, 1] for side in SIDES]
    stature, height = body.skeleton.height, float(np.mean(heights))
    return height if 0.0 < height < _HIGHEST_ANKLE * stature else ANKLE * stature


# Distances from the wrist, of stature: nearer than the first it touches, farther than the second it does not.


def touched(
    motion: Motion,
    source: Motion,
    *,
    ratio: float,
    floors: tuple[float, float],
    progress: Progress = lambda _done, _all: None,
) -> Motion:
    """The motion with hands where the source's touch something; `floors` are heights in the source and here."""
    theirs, (ours, turns) = joint_transforms(source)[0], joint_transforms(motion)
    goals = {}
    for side in SIDES:
        pulls = list(_pulls(source.skeleton, theirs, motion.skeleton, ours, side, ratio, floors))
        total = sum(weight for weight, _ in pulls)
        if np.any(total > 0):
            pull = sum(weight[:, None] * way for weight, way in pulls) / np.maximum(total, 1.0)[:, None]
            hand = motion.skeleton.index(f"{side}_hand")
            goals[motion.skeleton.names[hand]] = (
                ours[:, hand] + pull, rotations.quaternion_from_matrix(turns[:, hand]),
            )  # fmt: skip
    if not goals:
        return motion
    return following(
        motion,
        lambda frame: [
            c for name, (at, turn) in goals.items() for c in transform(name, at[frame], turn[frame])
        ],
        _arm_metric(motion.skeleton),
        progress,
    )


def _pulls(
    source: Skeleton,
    theirs: Float[Array, "frames _ 3"],
    target: Skeleton,
    ours: Float[Array, "frames joints 3"],
    side: str,
    ratio: float,
    floors: tuple[float, float],
) -> Iterator[tuple[Float[Array, "frames"], Float[Array, "frames 3"]]]:
    """For everything a hand may touch: how much it does, and the way to where it would touch it."""
    stature, other = source.height, next(one for one in SIDES if one != side)
    hand, own = theirs[:, source.index(f"{side}_hand")], ours[:, target.index(f"{side}_hand")]

    def nearness(distance: Array, reach: tuple[float, float]) -> Float[Array, "frames"]:
        near, far = (stature * part for part in reach)
        return smoothstep((far - distance) / (far - near))

    up = np.array([0.0, 1.0, 0.0])
    height = hand[:, 1] - floors[0]
    yield nearness(height, _FLOOR), (ratio * height + floors[1] - own[:, 1])[:, None] * up
    apart = hand - theirs[:, source.index(f"{other}_hand")]
    here = own - ours[:, target.index(f"{other}_hand")]
    yield nearness(np.linalg.norm(apart, axis=-1), _HAND), 0.5 * (ratio * apart - here)
    bones = [(f"{one}_thigh", f"{one}_shin", _LIMB) for one in SIDES] + [("head", "head", _HEAD)]
    for top, end, reach in bones:
        ends = [theirs[:, source.index(role)] for role in (top, end)]
        part = _nearest_part(hand, *ends)
        away = hand - ends[0] - part * (ends[1] - ends[0])
        first, last = (ours[:, target.index(role)] for role in (top, end))
        at = first + part * (last - first)
        yield nearness(np.linalg.norm(away, axis=-1), reach), at + ratio * away - own


def _nearest_part(
    point: Float[Array, "frames 3"], first: Float[Array, "frames 3"], last: Float[Array, "frames 3"]
) -> Float[Array, "frames 1"]:
    """How far along a bone its nearest point to another point is, from 0 to 1."""
    bone = last - first
    along = np.sum((point - first) * bone, axis=-1) / np.maximum(np.sum(bone * bone, axis=-1), 1e-12)
    return np.clip(along, 0.0, 1.0)[:, None]


def _arm_metric(skeleton: Skeleton) -> Float[Array, "freedoms"]:
    arms = [
        path(skeleton, skeleton.index(f"{side}_upper_arm"), skeleton.index(f"{side}_hand")) for side in SIDES
    ]
    return metric_of(skeleton, {joint for arm in arms for joint in arm})
