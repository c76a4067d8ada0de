"""Finds the T-pose that some conversions (CMU's to BVH) put before a recording, and leaves it out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.skeleton.roles import SIDES

Array = np.ndarray

_STRAIGHT = np.cos(np.radians(20.0))  # how well limbs keep to the axes of the letter T
_LEAST_JUMP = np.radians(
    2.0
)  # mean over joints; people cannot turn all joints this far in one frame of a recording
_JUMP_OVER_USUAL = 4.0
_FRAMES_LOOKED_AT = 30


def without_added_tpose(motion: Motion) -> Motion:
    """The motion without its first frame if that is a T-pose from which the second frame jumps away."""
    if not (len(motion) > 1 and stands_in_tpose(motion) and jumps_after_first_frame(motion)):
        return motion
    note = "the first frame is a T-pose that is not part of the motion; it was left out (keep_first=True keeps it)"
    origin = replace(motion.origin, dropped_first_frame=True, warnings=(*motion.origin.warnings, note))
    return replace(motion[1:], origin=origin)


def stands_in_tpose(motion: Motion, frame: int = 0) -> bool:
    """Whether the arms point sideways and away from each other and the legs down, all straight."""
    from poise.skeleton.kinematics import world_transforms

    roles = motion.skeleton.roles
    if any(
        f"{side}_{part}" not in roles for side in SIDES for part in ("upper_arm", "hand", "thigh", "foot")
    ):
        return False
    points, _ = world_transforms(motion.skeleton, motion.root_positions[frame], motion.rotations[frame])
    arms = [_direction(motion, points, f"{side}_upper_arm", f"{side}_hand") for side in SIDES]
    legs = [_direction(motion, points, f"{side}_thigh", f"{side}_foot") for side in SIDES]
    level = all(abs(arm[1]) < np.sqrt(1 - _STRAIGHT**2) for arm in arms)
    return bool(level and arms[0] @ arms[1] < -_STRAIGHT and all(-leg[1] > _STRAIGHT for leg in legs))


def jumps_after_first_frame(motion: Motion) -> bool:
    """Whether the joints turn much further from the first frame to the second than between those that follow."""
    turns = motion.rotations[: _FRAMES_LOOKED_AT + 2, ~motion.skeleton.is_end_site]
    steps = np.mean(rotations.geodesic_distance(turns[:-1], turns[1:]), axis=-1)
    usual = float(np.median(steps[1:])) if len(steps) > 1 else 0.0
    return bool(steps[0] > max(_LEAST_JUMP, _JUMP_OVER_USUAL * usual))


def _direction(motion: Motion, points: Float[Array, "joints 3"], upper: str, lower: str) -> Float[Array, "3"]:
    """The way from one role's joint to another's, shortened by as much as the limb between them is bent."""
    top, end = motion.skeleton.index(upper), motion.skeleton.index(lower)
    way, length, joint = points[end] - points[top], 0.0, end
    while joint != top:
        parent = int(motion.skeleton.parents[joint])
        length += float(np.linalg.norm(points[joint] - points[parent]))
        joint = parent
    return way / max(length, 1e-12)
