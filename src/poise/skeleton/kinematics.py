"""Forward kinematics of motions: joint positions and rotations in the world, compiled."""

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.skeleton import kernels
from poise.skeleton.skeleton import Pose, Skeleton
from poise.skeleton.turns import world_turns
from poise.types import Array


def world_transforms(
    skeleton: Skeleton, root_positions: Float[Array, "*frames 3"], rotations: Float[Array, "*frames joints 4"]
) -> tuple[Float[Array, "*frames joints 3"], Float[Array, "*frames joints 3 3"]]:
    """Positions and rotation matrices of every joint in the world, for one frame or many."""
    roots = np.ascontiguousarray(root_positions, dtype=np.float64)
    turns = np.ascontiguousarray(rotations, dtype=np.float64)
    frames, count = roots.shape[:-1], len(skeleton)
    if roots.shape != (*frames, 3) or turns.shape != (*frames, count, 4):
        raise InvalidValueError(
            f"{count} joints need root positions (frames, 3) and rotations (frames, {count}, 4); "
            f"got {roots.shape} and {turns.shape}"
        )
    positions, matrices = np.empty((*frames, count, 3)), np.empty((*frames, count, 3, 3))
    kernels.forward_rotations(
        skeleton.parents,
        skeleton.offsets,
        roots.reshape(-1, 3),
        turns.reshape(-1, count, 4),
        positions.reshape(-1, count, 3),
        matrices.reshape(-1, count, 3, 3),
    )
    return positions, matrices


def turns_in_world(
    skeleton: Skeleton, rotations: Float[Array, "*frames joints 4"]
) -> Float[Array, "*frames joints 4"]:
    """Every joint's rotation in the world as a quaternion (w >= 0), for one frame or many."""
    turns, shape = np.ascontiguousarray(rotations, dtype=np.float64), (-1, len(skeleton), 4)
    found = np.empty(turns.shape)
    world_turns(skeleton.parents, turns.reshape(shape), found.reshape(shape))
    return found


def warm_up() -> None:
    """Compile every function of the core, or load it from the cache."""
    from poise.skeleton.pose_space import PoseSpace

    skeleton = Skeleton(("root", "end"), np.array([-1, 0]), np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    space = PoseSpace(skeleton)
    q = space.q_from_pose(Pose.rest(skeleton))
    space.forward(q)
    handles = space.handles(["end"])
    space.handle_positions(q, handles)
    space.handle_orientations(q, handles)
    space.centre_of_mass(q)
    space.integrate(q, np.zeros(space.freedoms))
    pose = space.pose_from_q(q)
    pose.world, turns_in_world(skeleton, pose.rotations)
