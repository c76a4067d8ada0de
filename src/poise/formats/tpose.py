"""Detect and drop the T-pose that some conversions (CMU's to BVH) add before a recording."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.skeleton.roles import SIDES, path
from poise.types import Array

_STRAIGHT = np.cos(np.radians(20.0))  # smallest cosine between limbs and the axes of the T
_LEAST_JUMP = np.radians(
    2.0
)  # mean over joints: more than people rotate all joints in one frame of a recording
_JUMP_OVER_USUAL = 4.0
_FRAMES_LOOKED_AT = 30


def without_added_tpose(motion: Motion) -> Motion:
    """The motion without an added T-pose, if there is one; noted in the origin."""
    added = added_frames(motion)
    if added == 0:
        return motion
    blank = {1: "", 2: ", as was the blank frame after it"}.get(
        added, f", as were the {added - 1} blank frames after it"
    )
    note = f"the first frame is a T-pose that is not part of the motion; it was left out{blank}"
    origin = replace(motion.origin, dropped_first_frame=True, warnings=(*motion.origin.warnings, note))
    return replace(motion[added:], origin=origin)


def added_frames(motion: Motion) -> int:
    """The number of added frames: none, or a T-pose and any blank frames (lost data) after it."""
    if len(motion) < 2 or not stands_in_tpose(motion):
        return 0
    first = 1 + _leading_blank_frames(motion[1:])
    return first if first < len(motion) and _jumps(motion, first) else 0


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


def _leading_blank_frames(motion: Motion) -> int:
    """The number of leading frames with only zeros: the root at the origin and no rotation."""
    shown = np.any(motion.root_positions != 0, axis=-1) | np.any(
        motion.rotations[..., 1:] != 0, axis=(-2, -1)
    )
    return int(np.argmax(shown)) if shown.any() else len(motion)


def _jumps(motion: Motion, first: int) -> bool:
    """Whether the joints rotate much further from frame 0 to the `first` frame than between later frames."""
    frames = [0, *range(first, min(first + _FRAMES_LOOKED_AT, len(motion)))]
    turns = motion.rotations[frames][:, ~motion.skeleton.is_end_site]
    steps = np.mean(rotations.geodesic_distance(turns[:-1], turns[1:]), axis=-1)
    usual = float(np.median(steps[1:])) if len(steps) > 1 else 0.0
    return bool(steps[0] > max(_LEAST_JUMP, _JUMP_OVER_USUAL * usual))


def _direction(motion: Motion, points: Float[Array, "joints 3"], upper: str, lower: str) -> Float[Array, "3"]:
    """The direction from one role's joint to another's, shortened according to the bend of the limb between them."""
    joints = path(motion.skeleton, motion.skeleton.index(upper), motion.skeleton.index(lower))
    if not joints:  # roles given by hand contradict the tree
        return np.zeros(3)
    length = float(np.linalg.norm(np.diff(points[joints], axis=0), axis=1).sum())
    return np.asarray(points[joints[-1]] - points[joints[0]]) / max(length, 1e-12)
