"""Bodies and poses as the bytes that the page takes: little-endian, float32 where not said otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.mannequin import TONES, build_mannequin
from poise.skeleton.skeleton import Pose, Skeleton
from poise.studio import messages

Array = np.ndarray


def packed(values: Any, dtype: str = "<f4") -> bytes:
    """An array as little-endian bytes."""
    return np.ascontiguousarray(values, dtype=dtype).tobytes()


def world_of(
    skeleton: Skeleton, root_positions: Float[Array, "*frames 3"], turns: Float[Array, "*frames joints 4"]
) -> bytes:
    """Per frame and joint, the position and the rotation (wxyz) in the world."""
    positions, matrices = world_transforms(skeleton, root_positions, turns)
    return packed(np.concatenate([positions, rotations.quaternion_from_matrix(matrices)], axis=-1))


def world_of_pose(pose: Pose) -> bytes:
    """The same for one pose."""
    return world_of(pose.skeleton, pose.root_position, pose.rotations)


def body_of(pose: Pose) -> messages.Body:
    """Skeleton and mannequin; the pose, of someone standing, tells where soles and face point."""
    skeleton = pose.skeleton
    mesh = build_mannequin(skeleton, rotations=pose.rotations[None])
    roles = {joint: role for role, joint in skeleton.roles.items()}
    joints = [
        messages.Joint(name=name, parent=int(parent), role=roles.get(name), end=bool(end))
        for name, parent, end in zip(skeleton.names, skeleton.parents, skeleton.is_end_site, strict=True)
    ]
    return messages.Body(
        joints=joints,
        height=skeleton.height,
        vertices=packed(mesh.vertices),
        normals=packed(mesh.normals),
        vertex_joints=packed(mesh.joints, "<u2"),
        vertex_tones=packed(mesh.tones, "u1"),
        palette=list(TONES.values()),
        triangles=packed(mesh.triangles, "<u4"),
    )
