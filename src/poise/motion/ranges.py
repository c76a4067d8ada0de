"""What the joints of recordings do: those that never move, and limits that contain all of their rotations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.skeleton.limits import limits_from_rotations
from poise.skeleton.retarget import check_same_topology
from poise.skeleton.skeleton import JointLimits
from poise.types import Array

STILL = 0.001  # radians


def still_joints(motions: Motion | Sequence[Motion], *, threshold: float = STILL) -> tuple[str, ...]:
    """Names of the joints, without end sites, whose rotation varies by at most the threshold over all frames."""
    clips = [motions] if isinstance(motions, Motion) else list(motions)
    skeleton = clips[0].skeleton
    still = still_mask(clips, threshold=threshold) & ~skeleton.is_end_site
    return tuple(name for name, is_still in zip(skeleton.names, still, strict=True) if is_still)


def still_mask(motions: Sequence[Motion], *, threshold: float = STILL) -> Bool[Array, "joints"]:
    """Per joint, whether no exponential-map component about the first frame's rotation exceeds the threshold."""
    first = motions[0].rotations[0]
    lowest, highest = np.zeros((len(first), 3)), np.zeros((len(first), 3))
    for motion in motions:
        check_same_topology(motions[0].skeleton, motion.skeleton)
        relative = rotations.multiply(rotations.conjugate(first), motion.rotations)
        turns = rotations.expmap_from_quaternion(relative)
        lowest, highest = np.minimum(lowest, turns.min(axis=0)), np.maximum(highest, turns.max(axis=0))
    still: Array = (highest - lowest).max(axis=-1) <= threshold
    return still


# --- joint limits learned from motions -------------------------------------------------------------------------------


_MARGIN = np.radians(5.0)


def limits_from_motion(motions: Motion | Sequence[Motion], *, margin: float = _MARGIN) -> JointLimits:
    """Limits that contain every frame of the motions plus a margin in radians, about each joint's mean rotation."""
    clips = [motions] if isinstance(motions, Motion) else list(motions)
    if not clips:
        raise InvalidValueError("limits from data need at least one motion; got none")
    for clip in clips[1:]:
        check_same_topology(clips[0].skeleton, clip.skeleton)
    return limits_from_rotations([clip.rotations for clip in clips], margin=margin)
