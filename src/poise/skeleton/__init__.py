"""Skeletons, poses and the compiled kinematic core."""

from poise.skeleton.skeleton import JointLimits, Pose, Skeleton

__all__ = ["JointLimits", "Pose", "Skeleton"]
