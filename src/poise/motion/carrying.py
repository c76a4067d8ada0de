"""Transfer motions to another rig by roles, for any joints, axes and rest pose.

Every joint gets the world rotation relative to its neutral pose that its counterpart has relative to its own (W' = W
N^-1 N'). Trunk joints between two roles interpolate the other body at the same fraction of the chain; fingers are
matched by name; joints without a counterpart (twist bones, props, faces) keep their rest rotation.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.errors import SkeletonError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.neutral import neutral_pose, stands_at_rest
from poise.skeleton.retarget import scaled_places
from poise.skeleton.roles import MAIN_ROLES, SIDES, TRUNK_ROLES, path, subtree
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

Counterpart = tuple[int, int, float]  # two joints of the source, and the interpolation fraction between them

_SAMPLES = 200  # frames from which a rig's neutral pose is estimated
_UPRIGHT = 0.3  # smallest vertical component of the mean direction from pelvis to head


def carried(motion: Motion, target: Skeleton, *, usual: Float[Array, "joints 4"] | None = None) -> Motion:
    """The motion on another rig, with its travel scaled; `usual` is a pose of the target that shows its axes."""
    source = motion.skeleton
    ours = neutral_pose(source, motion.rotations[:: max(1, len(motion) // _SAMPLES)])
    theirs = neutral_pose(target, None if usual is None else usual[None])
    positions, world = joint_transforms(motion)
    deltas = world @ ours.world.transpose(0, 2, 1)
    turned, partners = np.empty((len(deltas), len(target), 3, 3)), counterparts(source, target)
    for joint, parent in enumerate(target.parents.tolist()):  # rotations in the world
        if joint in partners:
            first, second, part = partners[joint]
            turn = deltas[:, first]
            if part != 0.0:
                start, end = (rotations.quaternion_from_matrix(deltas[:, one]) for one in (first, second))
                turn = rotations.matrix_from_quaternion(rotations.slerp(start, end, np.full(len(turn), part)))
            turned[:, joint] = turn @ theirs.world[joint]
        elif parent < 0:  # a root below the pelvis turns with the body about the vertical but does not tilt
            pelvis = rotations.quaternion_from_matrix(deltas[:, source.index("pelvis")])
            angles = 2.0 * np.unwrap(np.arctan2(pelvis[:, 2], pelvis[:, 0]), period=np.pi)
            heading = rotations.quaternion_from_expmap(np.multiply.outer(angles, np.array([0.0, 1.0, 0.0])))
            turned[:, joint] = rotations.matrix_from_quaternion(heading) @ theirs.world[joint]
        else:
            turned[:, joint] = turned[:, parent] @ theirs.world[parent].T @ theirs.world[joint]
    local = turned.copy()
    local[:, 1:] = np.swapaxes(turned[:, target.parents[1:]], -1, -2) @ turned[:, 1:]
    local[:, target.is_end_site] = np.eye(3)
    quaternions = rotations.continuous(rotations.canonical(rotations.quaternion_from_matrix(local)))
    # The hips of the target follow the source's path, scaled.
    own = hips(world_transforms(target, np.zeros_like(positions[:, 0]), quaternions)[0], target)
    places = np.asarray(scaled_places(hips(positions, source), source, target) - own)
    origin = replace(motion.origin, character="")
    return Motion(target, motion.fps, places, quaternions, name=motion.name, origin=origin)


def check_person(motion: Motion, *, what: str = "its skeleton") -> None:
    """Raise a SkeletonError that says why a body cannot be transferred by roles."""
    skeleton = motion.skeleton
    which = f"{what} ({len(skeleton)} joints below {skeleton.names[0]!r})"
    missing = [role for role in MAIN_ROLES if role not in skeleton.roles]
    if missing:
        raise SkeletonError(f"{which} is not recognised as a person: it lacks {', '.join(missing)}")
    if not stands_at_rest(skeleton):
        positions = joint_transforms(motion)[0]
        trunk = positions[:, skeleton.index("head")] - positions[:, skeleton.index("pelvis")]
        mean = trunk.mean(axis=0)
        if float(mean[1] / max(float(np.linalg.norm(mean)), 1e-12)) < _UPRIGHT:
            raise SkeletonError(f"{which} is upright neither in its rest pose nor in its motion")


def counterparts(source: Skeleton, target: Skeleton) -> dict[int, Counterpart]:
    """For each target joint with a counterpart, the source joints that its rotation comes from."""
    shared = [role for role in target.roles if role in source.roles]
    found = {target.index(role): source.index(role) for role in shared}
    fingers = finger_joints(source)
    single = {joint: fingers[key] for key, joint in finger_joints(target).items() if key in fingers} | found
    named = {name: joint for joint, name in enumerate(source.names) if not source.is_end_site[joint]}
    taken = set(single.values())
    for joint, name in enumerate(target.names):
        if joint and joint not in single and named.get(name, 0) and named[name] not in taken:
            single[joint] = named[name]
    partners: dict[int, Counterpart] = {}
    for top, end in itertools.pairwise(role for role in TRUNK_ROLES if role in shared):
        ours = path(target, target.index(top), target.index(end))
        others = path(source, source.index(top), source.index(end))
        if len(others) > 1:  # those around the same fraction of the chain
            shares = _shares(source, others)
            for joint, share in zip(ours[1:-1], _shares(target, ours)[1:-1], strict=True):
                after = min(int(np.searchsorted(shares, share, side="right")), len(others) - 1)
                width = shares[after] - shares[after - 1]
                part = (share - shares[after - 1]) / width if width > 0 else 0.0
                partners[joint] = others[after - 1], others[after], float(part)
    return partners | {joint: (other, other, 0.0) for joint, other in single.items()}


def _shares(skeleton: Skeleton, joints: list[int]) -> Float[Array, "joints"]:
    """The fraction of a path's length at each of its joints, from 0 to 1."""
    lengths = np.linalg.norm(skeleton.offsets[joints], axis=-1)
    lengths[0] = 0.0
    way = np.cumsum(lengths)
    return way / way[-1] if way[-1] > 0 else np.linspace(0.0, 1.0, len(joints))


def hips(positions: Float[Array, "frames joints 3"], skeleton: Skeleton) -> Float[Array, "frames 3"]:
    """The middle between the hip joints, from which legs are measured: rigs put the joint of the pelvis elsewhere."""
    return np.mean([positions[:, skeleton.index(f"{side}_thigh")] for side in SIDES], axis=0)


# --- the fingers of a skeleton: the joint of each segment, by the usual names ----------------------------------------


_FINGERS = {
    "thumb": "thumb", "index": "index", "mid": "middle", "ring": "ring", "pinky": "little", "little": "little",
}  # fmt: skip
_PALM = re.compile(r"inhand|metacarpal|meta\b|palm|carpal", re.IGNORECASE)


def finger_joints(skeleton: Skeleton) -> dict[tuple[str, str, int], int]:
    """Joint by side, finger (thumb, index, middle, ring, little) and segment, counted from the hand outwards."""
    found: dict[tuple[str, str, int], int] = {}
    for side in SIDES:
        if f"{side}_hand" not in skeleton.roles:
            continue
        counted: dict[str, int] = {}
        for joint in subtree(skeleton, skeleton.index(f"{side}_hand"))[1:]:
            name = skeleton.names[joint]
            finger = next((finger for word, finger in _FINGERS.items() if word in name.lower()), "")
            in_palm = finger != "thumb" and _PALM.search(name)
            if finger and not in_palm and not skeleton.is_end_site[joint]:
                counted[finger] = counted.get(finger, 0) + 1
                found[side, finger, counted[finger]] = joint
    return found
