"""Transfer a motion to another character: `retarget(motion, "character.glb")`.

Rotations are transferred by roles (`motion.carrying`); then standing feet are placed where the scaled feet stood and
stay there, and hands that touch the floor, each other, the legs or the head touch the same place again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import minimum_filter1d, uniform_filter1d

from poise.apps.planting import Ground, exact_floor, following, metric_of, planted, standing_ankle
from poise.apps.skin import Sole, TouchingSkin, skin_of
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats import read_character
from poise.formats.files import replacing
from poise.formats.registry import read_motion
from poise.formats.tables import read_table
from poise.geometry import rotations
from poise.motion.carrying import carried, check_person, hips
from poise.motion.contacts import foot_contacts
from poise.motion.edit import retarget as on_other_limbs
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.motion.touching import PALM, PosedBody, hand_touches, palm_goals, palm_handles
from poise.motion.world import joint_transforms
from poise.skeleton.kernels import ROOT_FREEDOMS
from poise.skeleton.measure import ANKLE, length_between
from poise.skeleton.neutral import neutral_pose, stands_at_rest
from poise.skeleton.pose_space import Handle
from poise.skeleton.retarget import size_ratio
from poise.skeleton.roles import MAIN_ROLES, ROLES, SIDES, path
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.constraints import Constraint, transform
from poise.types import Array, Progress, silent

Character = Motion | Pose | Skeleton | str | os.PathLike[str]
Contacts = Literal["none", "feet", "all"]
Held = tuple[Handle, Float[Array, "frames 3"], Float[Array, "frames 4"]]

_ALIKE = np.cos(np.radians(8.0))  # largest angle between the bones of two similar rest poses
_HIGHEST_ANKLE = 0.12  # of stature: with higher ankles, a pose does not stand on height 0
_LEG_ROLES = [f"{side}_{part}" for side in SIDES for part in ("thigh", "shin", "foot")]
_HANDS, _FEET = ([f"{side}_{part}" for side in SIDES] for part in ("hand", "foot"))
# Variances of trunk joints, root rotation and root position in reaching; arms have 1.
_TRUNK, _PELVIS, _ROOT = 0.05, 0.002, 1e-4
_MOST_LEAN = np.radians(15.0)  # of the trunk from the source's, for the sake of hands
_LEAN_EASE = 0.1  # seconds in which the trunk comes to that limit
_STRETCHED = 0.998  # of an arm's length: the farthest that it reaches
_ROUNDS = 8  # of reaching, at most
_STILL = 1e-5  # of stature: a place that changes by less stays


def retarget(
    motion: Motion | str | os.PathLike[str],
    character: Character,
    *,
    contacts: Contacts = "all",
    progress: Progress = silent,
) -> Motion:
    """Return a motion on a character: a file (GLB, VRM, BVH, ...), a skeleton, or a pose or motion of it.

    The motion may be a file, too. A static character in T, A or I pose is enough. GLB or VRM output is written into
    the character's own file. `contacts` are those that are kept: of feet and hands, of feet alone, or none.
    """
    if contacts not in get_args(Contacts):
        raise InvalidValueError(f"contacts are {', '.join(get_args(Contacts))}; got {contacts!r:.40}")
    motion, body = read_motion(motion), open_character(character)
    origin = replace(motion.origin, character=body.origin.character, warnings=motion.origin.warnings)
    if motion.skeleton == body.skeleton:
        return replace(motion, skeleton=body.skeleton, origin=origin)
    source, target = motion.skeleton, body.skeleton
    ours, theirs = (
        skeleton.offsets[1:] / np.maximum(np.linalg.norm(skeleton.offsets[1:], axis=-1, keepdims=True), 1e-9)
        for skeleton in (source, target)
    )
    main = [joint - 1 for role in MAIN_ROLES if role in target.roles and (joint := target.index(role))]
    # Equal rotations mean equal poses where the bones of both rest poses have the same directions.
    if source.same_topology(target) and np.all(np.sum(ours * theirs, axis=-1)[main] > _ALIKE):
        moved = on_other_limbs(motion, target, keep_floor=False)
    else:
        check_person(motion, what="the motion's skeleton")
        check_person(body, what="the character's skeleton")
        moved = carried(motion, target, usual=rotations.mean(body.rotations))
    moved, shared = replace(moved, origin=origin), set(source.roles) & set(target.roles)
    if not shared.issuperset(_LEG_ROLES):
        return moved
    feet, ratio = foot_contacts(motion), size_ratio(source, target)
    floor = exact_floor(motion, feet.floor)
    skin = skin_of(body)
    soles = skin.soles if skin is not None and stands_at_rest(target) else ()
    ground = Ground(ratio, standing_ankle(motion, feet), floor + _ankle(body, soles), floor, soles)
    raised = moved.with_frames(_raised(moved, motion, ground), moved.rotations)
    if contacts == "none":
        return raised
    flat = None
    if stands_at_rest(target):  # the up direction in each foot's axes when it stands flat
        flat = np.tile(neutral_pose(target).local(target.index("pelvis"), np.array([0.0, 1.0, 0.0])), (2, 1))
    standing = planted(raised, motion, feet, ground, flat=flat, progress=progress)
    if contacts == "feet" or not shared.issuperset(MAIN_ROLES):
        return standing
    palms = _palms(standing, skin, ratio * PALM * source.height)
    return touched(standing, motion, palms, ratio=ratio, floors=(feet.floor, floor))


def _ankle(body: Motion, soles: Sequence[Sole]) -> float:
    """The height of the ankles of a body that stands: by its skin, or by its pose in its file, or as a person's."""
    skeleton = body.skeleton
    if soles:
        rest = Motion.of_poses([Pose.rest(skeleton)])
        up = neutral_pose(skeleton).local(skeleton.index("pelvis"), np.array([0.0, 1.0, 0.0]))
        flat = rotations.quaternion_between(up, np.array([0.0, 1.0, 0.0]))[None]
        return float(np.mean([sole.depth(rest, flat) for sole in soles]))
    height = float(np.mean([body.positions[f"{side}_foot"][0, 1] for side in SIDES]))
    stands = 0.0 < height < _HIGHEST_ANKLE * skeleton.height  # on height 0, in its file
    return height if stands else ANKLE * skeleton.height


def spans(motion: Motion, contacts: Contacts = "all") -> list[tuple[str, list[tuple[float, float]]]]:
    """What touches what in a motion, and from when to when, in seconds: what retargeting it keeps."""
    roles, found = motion.skeleton.roles, list[tuple[str, Array]]()
    if contacts == "none" or not set(_LEG_ROLES) <= set(roles):
        return []
    feet = foot_contacts(motion)
    found += [(f"{side} foot on the floor", feet.feet[:, k]) for k, side in enumerate(SIDES)]
    if contacts == "all" and set(MAIN_ROLES) <= set(roles):
        touches = hand_touches(motion, ratio=1.0, floors=(feet.floor, feet.floor))
        found += [(f"{SIDES[one.hand]} hand on {one.thing}", one.touching) for one in touches]
    return [
        (what, [(run.start / motion.fps, run.stop / motion.fps) for run in runs(when)])
        for what, when in found
        if when.any()
    ]


def _raised(moved: Motion, motion: Motion, ground: Ground) -> Float[Array, "frames 3"]:
    """Root positions with the hips where the legs reach from the scaled ankles, in the directions of the source's."""
    theirs, ours = (joint_transforms(one)[0] for one in (motion, moved))
    reached = np.zeros_like(moved.root_positions)
    for side in SIDES:
        ankle, knee, hip = (f"{side}_{part}" for part in ("foot", "shin", "thigh"))
        reached += 0.5 * ground.placed(theirs[:, motion.skeleton.index(ankle)])
        for low, high in ((ankle, knee), (knee, hip)):
            way = theirs[:, motion.skeleton.index(high)] - theirs[:, motion.skeleton.index(low)]
            lengths = [length_between(one.skeleton, high, low) for one in (motion, moved)]
            reached += 0.5 * lengths[1] / lengths[0] * way
    return np.asarray(moved.root_positions + reached - hips(ours, moved.skeleton))


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
    text = "\n".join(["# Joint of each role; remove a line to have it guessed.", *lines, *missing, ""])
    with replacing(path) as file:
        file.write(text)
    return path


def touched(
    motion: Motion, source: Motion, palms: Sequence[Handle], *, ratio: float, floors: tuple[float, float]
) -> Motion:
    """The motion with palms where the source's touch something; `floors` are heights in the source and here.

    The trunk and the root help arms that are too short, until the trunk leans too far from the source's; then the hands
    come as near as the arms allow. The feet stay. What is touched moves with the body, so the places are read again
    from the changed body until they stay.
    """
    touches = hand_touches(source, ratio=ratio, floors=floors)
    start, metric, limbs = PosedBody.of(motion, palms), *_reaching_metrics(motion.skeleton)
    feet, turns = _held(motion, _FEET), [turn for _, _, turn in _held(motion, _HANDS)]

    def reached(found: Motion, metric: Float[Array, "freedoms"], *, stretched: bool = False) -> Motion:
        goals = start.palms
        for _ in range(_ROUNDS):
            before, goals = goals, palm_goals(touches, start, PosedBody.of(found, palms), motion.fps)
            frames = np.flatnonzero(np.abs(goals - before).max(axis=(0, 2)) > _STILL * motion.skeleton.height)
            if not len(frames):
                break
            hands: Iterable[Held] = zip(palms, goals, turns, strict=True)
            held = [*feet, *(_within_reach(found, hands) if stretched else hands)]
            found = _followed(found, frames, held, metric)
        return found

    helped = reached(motion, metric)
    leaning = _leaning_less(helped, motion, source)
    return helped if leaning is helped else reached(leaning, limbs, stretched=True)


def _within_reach(motion: Motion, palms: Iterable[Held]) -> Iterator[Held]:
    """The goals of the palms (left, right), as far towards them as the arms can reach without the trunk."""
    positions, skeleton = joint_transforms(motion)[0], motion.skeleton
    for side, (palm, place, turn) in zip(SIDES, palms, strict=True):
        shoulder = positions[:, skeleton.index(f"{side}_upper_arm")]
        way = place - rotations.rotate(turn, np.array(palm.offset)) - shoulder  # to the wrist
        length = length_between(skeleton, f"{side}_upper_arm", f"{side}_hand")
        part = np.minimum(_STRETCHED * length / np.maximum(np.linalg.norm(way, axis=-1), 1e-9), 1.0)
        yield palm, place + (part - 1.0)[:, None] * way, turn


def _leaning_less(found: Motion, motion: Motion, source: Motion) -> Motion:
    """As much of the way from `motion` to `found` as keeps the trunk near the source's."""

    def trunk(body: Motion) -> Float[Array, "frames 3"]:
        places = joint_transforms(body)[0]
        way = places[:, body.skeleton.index("head")] - hips(places, body.skeleton)
        upward: Array = way / np.maximum(np.linalg.norm(way, axis=-1, keepdims=True), 1e-9)
        return upward

    true, straight, bent = trunk(source), trunk(motion), trunk(found)
    least = np.minimum(np.cos(_MOST_LEAN), np.sum(true * straight, axis=-1))
    part, step = np.ones(len(found)), 0.5
    for _ in range(16):
        way = straight + part[:, None] * (bent - straight)
        near = np.sum(true * way, axis=-1) >= least * np.linalg.norm(way, axis=-1)
        part, step = np.clip(part + np.where(near, step, -step), 0.0, 1.0), 0.5 * step
    if np.all(part == 1.0):
        return found
    width = 2 * round(_LEAN_EASE * motion.fps) + 1
    part = uniform_filter1d(minimum_filter1d(part, width, mode="nearest"), width, mode="nearest")
    roots = motion.root_positions + part[:, None] * (found.root_positions - motion.root_positions)
    return found.with_frames(roots, rotations.slerp(motion.rotations, found.rotations, part[:, None]))


def misses(motion: Motion, source: Motion) -> list[float]:
    """How far each palm is from where it should touch, per frame in which the source's touches, in metres."""
    ratio, floor = size_ratio(source.skeleton, motion.skeleton), foot_contacts(source).floor
    palms = _palms(motion, skin_of(motion), ratio * PALM * source.skeleton.height)
    here, found = PosedBody.of(motion, palms), []
    for touch in hand_touches(source, ratio=ratio, floors=(floor, exact_floor(source, floor))):
        gap = np.linalg.norm(touch.place(here) - here.palms[touch.hand], axis=-1)
        found += gap[touch.touching].tolist()
    return found


def _palms(motion: Motion, skin: TouchingSkin | None, usual: float) -> list[Handle]:
    """The palms of a body: in the middle of the skin of its hands, or at the usual distance from the wrists."""
    lengths = (usual, usual) if skin is None or skin.palms is None else skin.palms
    return palm_handles(motion.skeleton, lengths, motion.rotations)


def _followed(
    motion: Motion, frames: Int[Array, "some"], held: Sequence[Held], metric: Float[Array, "freedoms"]
) -> Motion:
    """The motion with these handles at their places, in some of its frames."""
    if not len(frames):
        return motion

    def constraints(at: int) -> list[Constraint]:
        return [one for on, place, turn in held for one in transform(on, place[frames[at]], turn[frames[at]])]

    part = following(motion[frames], constraints, metric)
    roots, turns = motion.root_positions.copy(), motion.rotations.copy()
    roots[frames], turns[frames] = part.root_positions, part.rotations
    return motion.with_frames(roots, rotations.continuous(turns))


def _held(motion: Motion, roles: Sequence[str]) -> list[Held]:
    """The joints with these roles as they are in the world."""
    positions, turns = joint_transforms(motion)
    joints = [motion.skeleton.index(role) for role in roles]
    return [
        (Handle(role), positions[:, joint], rotations.quaternion_from_matrix(turns[:, joint]))
        for role, joint in zip(roles, joints, strict=True)
    ]


def _reaching_metrics(skeleton: Skeleton) -> tuple[Float[Array, "freedoms"], Float[Array, "freedoms"]]:
    """Arms move first, then the trunk, then the pelvis; the legs follow. And without trunk and pelvis."""

    def between(top: str, end: str) -> set[int]:
        ends = [[skeleton.index(role.format(side)) for role in (top, end)] for side in SIDES]
        return {joint for first, last in ends for joint in path(skeleton, first, last)}

    limbs = between("{}_upper_arm", "{}_hand") | between("{}_thigh", "{}_foot")
    trunk = between("pelvis", "{}_upper_arm") - limbs
    metric = metric_of(skeleton, limbs, root=_ROOT) + _TRUNK * metric_of(skeleton, trunk)
    metric[3:ROOT_FREEDOMS] = _PELVIS
    return metric, metric_of(skeleton, limbs)
