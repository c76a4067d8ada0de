"""A motion on another character: `retarget(motion, "character.glb")`.

Rotations go over by roles (`motion.carrying`); then feet that stand are put where the scaled feet stood and stay there,
and hands that touch the floor, each other, the legs or the head touch the same place again.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.apps.planting import Ground, planted, standing_ankle
from poise.apps.touching import touched
from poise.errors import UnknownNameError
from poise.formats import read_character
from poise.formats.files import replacing
from poise.formats.tables import read_table
from poise.geometry import rotations
from poise.motion.carrying import carried, check_person
from poise.motion.contacts import foot_contacts
from poise.motion.motion import Motion
from poise.motion.retarget import retarget as on_other_limbs
from poise.skeleton.measure import ANKLE
from poise.skeleton.neutral import neutral_pose, stands_at_rest
from poise.skeleton.retarget import size_ratio
from poise.skeleton.roles import MAIN_ROLES, ROLES, SIDES
from poise.skeleton.skeleton import Pose, Skeleton
from poise.types import Array, Progress

Character = Motion | Pose | Skeleton | str | os.PathLike[str]

_ALIKE = np.cos(np.radians(8.0))  # bones of two rest poses point the same way
_NEAR_ZERO = 0.05  # of stature: a floor this near to height 0 is at height 0
_HIGHEST_ANKLE = 0.12  # of stature: above it, a pose does not stand on height 0


def retarget(
    motion: Motion, character: Character, *, progress: Progress = lambda _done, _all: None
) -> Motion:
    """The motion on a character: a file (GLB, VRM, BVH, ...), a skeleton, or a pose or motion of it.

    A static character in T, A or I pose is enough. As GLB or VRM, the motion goes into the character's own file.
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
    """The roles that a file beside the character's gives, `left_hand = "Wrist_L"` a line; empty without one."""
    beside = path.with_name(f"{path.stem}.roles.toml")
    return read_roles(beside, skeleton) if beside.is_file() else {}


def read_roles(path: Path, skeleton: Skeleton) -> dict[str, str]:
    """Roles from a file, `left_hand = "Wrist_L"` a line; an unknown role or joint is an error that lists close ones."""
    table = read_table(path)
    found = {role: table.get(role, str) for role in ROLES if table.has(role)}
    table.done()
    for role, joint in found.items():
        if joint not in skeleton.names:
            raise table.error(role, str(UnknownNameError("joint", joint, skeleton.names)))
    return found


def write_roles(path: Path, skeleton: Skeleton) -> Path:
    """The roles as a file to correct: beside the character, as NAME.roles.toml, every command reads it."""
    lines = [f"{role} = {json.dumps(name)}" for role, name in skeleton.roles.items()]
    missing = [f'# {role} = ""' for role in ROLES if role not in skeleton.roles]
    with replacing(path) as file:
        file.write(
            "\n".join(
                ["# Which joint plays which part; take out a line to have it guessed.", *lines, *missing, ""]
            )
        )
    return path


# --- turning, then touching ----------------------------------------------------------------------------------------


def _turned(motion: Motion, body: Motion) -> Motion:
    """Every rotation on the character: the same ones on a rig that is alike, else by roles."""
    source, target = motion.skeleton, body.skeleton
    if source.same_topology(target) and _rest_alike(source, target):
        return on_other_limbs(motion, target, keep_floor=False)
    check_person(motion, what="the motion's skeleton")
    check_person(body, what="the character's skeleton")
    return carried(motion, target, usual=rotations.mean(body.rotations))


def _rest_alike(source: Skeleton, target: Skeleton) -> bool:
    """Whether the bones of two rest poses point the same ways, so that the same rotations mean the same pose."""
    ours, theirs = (
        skeleton.offsets[1:] / np.maximum(np.linalg.norm(skeleton.offsets[1:], axis=-1, keepdims=True), 1e-9)
        for skeleton in (source, target)
    )
    main = [joint - 1 for role in MAIN_ROLES if role in target.roles and (joint := target.index(role))]
    return bool(np.all(np.sum(ours * theirs, axis=-1)[main] > _ALIKE))


def _in_contact(moved: Motion, motion: Motion, body: Motion, progress: Progress) -> Motion:
    """Feet and hands where they touch, on a floor at the same height or, near it, at height 0."""
    contacts, ratio = foot_contacts(motion), size_ratio(motion.skeleton, body.skeleton)
    near = abs(contacts.floor) < _NEAR_ZERO * motion.skeleton.height
    floor = 0.0 if near else contacts.floor
    ground = Ground(ratio, standing_ankle(motion, contacts), floor + _ankle_height(body))
    raised = moved.with_frames(_raised(moved, motion, ground), moved.rotations)
    standing = planted(raised, motion, contacts, ground, flat=_up_of_feet(body.skeleton), progress=progress)
    return touched(standing, motion, ratio=ratio, floors=(contacts.floor, floor))


def _raised(moved: Motion, motion: Motion, ground: Ground) -> Float[Array, "frames 3"]:
    """Root places with the pelvis as high above a standing ankle as the source's, scaled."""
    wanted = ground.placed(motion.positions["pelvis"])[:, 1]
    places = moved.root_positions.copy()
    places[:, 1] += wanted - moved.positions["pelvis"][:, 1]
    return places


def _up_of_feet(skeleton: Skeleton) -> Float[Array, "2 3"] | None:
    """The direction that is up in the axes of each foot when it stands flat, as it does in a rest pose that stands."""
    if not stands_at_rest(skeleton):
        return None
    up = neutral_pose(skeleton).local(skeleton.index("pelvis"), np.array([0.0, 1.0, 0.0]))
    return np.stack([up, up])


def _ankle_height(body: Motion) -> float:
    """How high the ankles are above the floor when the character stands: as in its file, if that stands on height 0."""
    heights = [body.positions[f"{side}_foot"][0, 1] for side in SIDES]
    stature, height = body.skeleton.height, float(np.mean(heights))
    return height if 0.0 < height < _HIGHEST_ANKLE * stature else ANKLE * stature
