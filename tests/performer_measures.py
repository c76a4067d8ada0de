"""What the performer's tests measure: soles, slides, bends and jolts of a performance."""

import numpy as np

from poise.geometry import rotations
from poise.motion.world import joint_transforms
from poise.performer import ActedMotion, Body

Array = np.ndarray


def sole(performance: ActedMotion, body: Body, side: str) -> dict[str, Array]:
    """World positions of one foot's heel, base of the toes (the joint and the sole below it) and tip of the toes."""
    motion, name = performance.motion, side.capitalize()
    positions, matrices = joint_transforms(motion)
    foot, toes = motion.skeleton.index(f"{name}Foot"), motion.skeleton.index(f"{name}ToeBase")
    below = np.array([0.0, body.toe_tip[1], 0.0])
    return {
        "heel": positions[:, foot] + matrices[:, foot] @ body.heel,
        "ball": positions[:, toes],
        "ball of the sole": positions[:, toes] + matrices[:, foot] @ below,
        "toe tip": positions[:, toes] + matrices[:, toes] @ body.toe_tip,
    }


def deepest_sink(performance: ActedMotion, body: Body) -> float:
    """How far below the floor the lowest part of either foot ever is, in metres."""
    heights = [
        points[:, 1]
        for side in ("left", "right")
        for name, points in sole(performance, body, side).items()
        if name != "ball"
    ]
    return -float(np.min(heights))


def longest_slide(performance: ActedMotion, body: Body) -> float:
    """How far, along the floor, a heel or base of toes moves from where it touched down while it touches, in metres."""
    slides = [0.0]
    for side in ("left", "right"):
        points = sole(performance, body, side)
        for part in ("heel", "ball"):
            slides += [_span(points[part][frames]) for frames in runs(performance.contacts[f"{side}_{part}"])]
    return max(slides)


def runs(flags: Array) -> list[Array]:
    """The frame numbers of each unbroken run of true values."""
    frames = np.flatnonzero(flags)
    return [run for run in np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1) if len(run)]


def knee_bends(performance: ActedMotion) -> Array:
    """Signed bends of both knees in radians, per frame; the axis must be the hinge's."""
    motion = performance.motion
    joints = [motion.skeleton.index(name) for name in ("LeftLeg", "RightLeg")]
    return rotations.expmap_from_quaternion(motion.rotations[:, joints])


def elbow_bends(performance: ActedMotion) -> Array:
    """Signed bends of both elbows in radians, per frame: how far the forearm is turned towards the crease."""
    motion = performance.motion
    bends = []
    for side, out in (("Left", 1.0), ("Right", -1.0)):
        forearm = rotations.matrix_from_quaternion(
            motion.rotations[:, motion.skeleton.index(f"{side}ForeArm")]
        )
        along = out * forearm[:, :, 0]
        bends.append(np.arctan2(along[:, 2], out * along[:, 0]))
    return np.stack(bends, axis=-1)


def strongest_jolt(performance: ActedMotion) -> float:
    """The largest acceleration of any joint, in metres a second squared."""
    positions = joint_transforms(performance.motion)[0]
    return float(np.linalg.norm(np.diff(positions, n=2, axis=0), axis=-1).max() * performance.motion.fps**2)


def _span(points: Array) -> float:
    return float(np.linalg.norm((points - points[0])[:, [0, 2]], axis=-1).max())
