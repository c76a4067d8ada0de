"""Bodies and poses as bytes for the page: little-endian, float32 by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.formats.gltf.meshes import read_skins
from poise.motion.hands import in_shape, shown_joints
from poise.motion.motion import Motion
from poise.pictures.mannequin import TONES, build_mannequin
from poise.pictures.skin import BodySkin, skin_of
from poise.skeleton.kinematics import turns_in_world, world_transforms
from poise.skeleton.neutral import stands_at_rest
from poise.skeleton.skeleton import Pose, Skeleton, kept_for_body
from poise.skeleton.surfaces import surfaces_of
from poise.studio import messages
from poise.studio.hands import shaped, shaped_motion
from poise.studio.messages import Hands
from poise.studio.state import State
from poise.types import Array

AS_THEY_ARE = Hands()


def packed(values: Any, dtype: str = "<f4") -> bytes:
    """An array as little-endian bytes."""
    return np.ascontiguousarray(values, dtype=dtype).tobytes()


def world_of(motion: Motion) -> bytes:
    """Per frame and joint, and per joint of made fingers, the position and the rotation (wxyz) in the world."""
    count, motion = shown_joints(motion.skeleton), in_shape(motion, {})
    positions, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    turns = turns_in_world(motion.skeleton, motion.rotations)
    return packed(np.concatenate([positions, turns], axis=-1)[:, :count])


def world_of_pose(pose: Pose, hands: Hands = AS_THEY_ARE) -> bytes:
    """The same for one pose, with its fingers."""
    count, pose = shown_joints(pose.skeleton), shaped(pose, hands)
    turns = turns_in_world(pose.skeleton, pose.rotations)
    return packed(np.concatenate([pose.world[0], turns], axis=-1)[:count])


def motion_range(state: State, first: int, end: int, *, seq: int, fine: bool) -> messages.MotionRange:
    """Frames of a state's motion, with the paths of the handles that have keys."""
    layers = state.layers
    assert layers is not None
    part, count = shaped_motion(state, first, end), shown_joints(layers.base.skeleton)
    positions, matrices = world_transforms(part.skeleton, part.root_positions, part.rotations)
    turns, ways = turns_in_world(part.skeleton, part.rotations), []
    handles = [state.handle(name) for name in dict.fromkeys(key.handle for key in state.timeline.keys)]
    for handle in handles:
        joint = part.skeleton.index(handle.joint)
        ways.append(positions[:, joint] + matrices[:, joint] @ np.array(handle.offset))
    return messages.MotionRange(
        seq=seq, fine=fine, first=first, frames=end - first,
        world=packed(np.concatenate([positions, turns], axis=-1)[:, :count]),
        path_handles=[handle.id for handle in handles], paths=packed(np.array(ways).reshape(-1, 3)),
        unmet=[frame for frame in layers.unmet if first <= frame < end],
    )  # fmt: skip


def skins_of(character: Path) -> list[messages.Skin]:
    """The skins of the meshes in a character's file."""
    return [
        messages.Skin(node=skin.node, joints=packed(skin.joints, "<u2"), matrices=packed(skin.matrices))
        for skin in read_skins(character)
    ]


def body_of(pose: Pose) -> messages.BodyShown:
    """Skeleton and mannequin; the pose, of a standing person, shows the directions of soles and face."""
    skeleton, placed, pose = pose.skeleton, shown_joints(pose.skeleton), shaped(pose, AS_THEY_ARE)
    whole = pose.skeleton
    mesh = _skin_at_rest(whole) if stands_at_rest(whole) else _skin(whole, pose.rotations[None])
    roles = {joint: role for role, joint in skeleton.roles.items()}
    joints = [
        messages.Joint(name=name, parent=int(parent), role=roles.get(name), end=bool(end))
        for name, parent, end in zip(skeleton.names, skeleton.parents, skeleton.is_end_site, strict=True)
    ]
    return messages.BodyShown(
        joints=joints,
        surfaces=list(surfaces_of(skeleton)),
        placed=placed,
        height=skeleton.height,
        vertices=packed(mesh.vertices),
        normals=packed(mesh.normals),
        vertex_joints=packed(mesh.joints, "<u2"),
        vertex_weights=packed(mesh.weights),
        vertex_tones=packed(mesh.tones, "u1"),
        palette=list(TONES.values()),
        triangles=packed(mesh.triangles, "<u4"),
        inverses=packed(mesh.inverses[:placed]),
    )


@kept_for_body
def _skin_at_rest(skeleton: Skeleton) -> BodySkin:
    return _skin(skeleton, None)


def _skin(skeleton: Skeleton, rotations: Float[Array, "frames joints 4"] | None) -> BodySkin:
    return skin_of(build_mannequin(skeleton, rotations=rotations), skeleton, rotations)
