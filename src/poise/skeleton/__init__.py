"""Skeletons, poses, body proportions, and the compiled kinematic core."""

from poise.lazy import lazily
from poise.skeleton.limits import human_limits, limits_by_hand, limits_from_rotations
from poise.skeleton.mass import Masses, segment_masses
from poise.skeleton.measure import segment_lengths, standing_height
from poise.skeleton.neutral import Neutral, neutral_pose
from poise.skeleton.retarget import retarget_pose
from poise.skeleton.roles import MAIN_ROLES, ROLES, guess_roles
from poise.skeleton.skeleton import JointLimits, Pose, Skeleton

__all__ = [
    "MAIN_ROLES",
    "ROLES",
    "JointLimits",
    "Masses",
    "Neutral",
    "Pose",
    "Skeleton",
    "guess_roles",
    "human_limits",
    "limits_by_hand",
    "limits_from_rotations",
    "neutral_pose",
    "retarget_pose",
    "segment_lengths",
    "segment_masses",
    "standing_height",
]

__getattr__ = lazily(
    __name__,
    {
        "pose_space": "PoseSpace",
    },
)
