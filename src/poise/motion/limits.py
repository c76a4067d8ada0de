"""Joint limits learned from motions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.skeleton.limits import limits_from_rotations
from poise.skeleton.retarget import check_same_topology
from poise.skeleton.skeleton import JointLimits

_MARGIN = np.radians(5.0)


def limits_from_motion(motions: Motion | Sequence[Motion], *, margin: float = _MARGIN) -> JointLimits:
    """Limits that contain every frame of the motions plus a margin in radians, about each joint's mean rotation."""
    clips = [motions] if isinstance(motions, Motion) else list(motions)
    if not clips:
        raise InvalidValueError("limits from data need at least one motion; got none")
    for clip in clips[1:]:
        check_same_topology(clips[0].skeleton, clip.skeleton)
    return limits_from_rotations([clip.rotations for clip in clips], margin=margin)
