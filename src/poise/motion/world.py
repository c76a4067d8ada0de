"""World-space quantities of a motion: joint positions, heading, velocities and accelerations."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.types import Array

_UP = np.array([0.0, 1.0, 0.0])


def joint_positions(motion: Motion) -> Float[Array, "frames joints 3"]:
    """World positions of all joints, in metres."""
    return joint_transforms(motion)[0]


def joint_transforms(
    motion: Motion,
) -> tuple[Float[Array, "frames joints 3"], Float[Array, "frames joints 3 3"]]:
    """World positions and rotations of all joints."""
    from poise.skeleton.kinematics import world_transforms

    return world_transforms(motion.skeleton, motion.root_positions, motion.rotations)


def facing_directions(motion: Motion) -> Float[Array, "frames 3"]:
    """The horizontal unit vector of each frame's heading."""
    angles = headings(motion)
    return np.stack([np.sin(angles), np.zeros_like(angles), np.cos(angles)], axis=-1)


def headings(motion: Motion) -> Float[Array, "frames"]:
    """The heading: the angle from +Z about +Y (towards +X), unwrapped over the frames.

    The body faces perpendicular to the mean line from right to left through hips and shoulders, without them along
    the root's own +Z. Frames in which that line is vertical (someone lying on a side) are interpolated.
    """
    pairs = [(f"left_{part}", f"right_{part}") for part in ("thigh", "upper_arm")]
    known = [pair for pair in pairs if all(role in motion.skeleton.roles for role in pair)]
    left = rotations.rotate(motion.rotations[:, 0], np.array([1.0, 0.0, 0.0]))
    if known:
        positions, index = joint_positions(motion), motion.skeleton.index
        lines = [positions[:, index(a)] - positions[:, index(b)] for a, b in known]
        total: Array = sum(
            line / np.maximum(np.linalg.norm(line, axis=-1, keepdims=True), 1e-9) for line in lines
        )
        left = total / len(lines)
    forward = np.cross(left, _UP)
    clear = np.linalg.norm(forward, axis=-1) > 0.1
    if not np.any(clear):
        return np.zeros(len(motion))
    frames = np.arange(len(motion))
    angles = np.unwrap(np.arctan2(forward[clear, 0], forward[clear, 2]))
    return np.interp(frames, frames[clear], angles)


def velocities(motion: Motion) -> Float[Array, "frames joints 3"]:
    """Velocity of every joint's world position, in metres per second."""
    return derivative(joint_positions(motion), motion.fps)


def accelerations(motion: Motion) -> Float[Array, "frames joints 3"]:
    """Acceleration of every joint's world position, in metres per second squared."""
    return second_derivative(joint_positions(motion), motion.fps)


def angular_velocities(motion: Motion) -> Float[Array, "frames joints 3"]:
    """Angular velocity of every joint relative to its parent, in its own axes, in radians per second."""
    q = motion.rotations
    if len(q) < 2:
        return np.zeros((len(q), q.shape[1], 3))
    before, after = np.maximum(np.arange(len(q)) - 1, 0), np.minimum(np.arange(len(q)) + 1, len(q) - 1)
    turn = rotations.expmap_from_quaternion(rotations.multiply(rotations.conjugate(q[before]), q[after]))
    return turn * (motion.fps / (after - before))[:, None, None]


def derivative(values: Float[Array, "frames *n"], fps: float) -> Float[Array, "frames *n"]:
    """Central differences, of second order at the ends too; zero for a single frame."""
    if len(values) < 2:
        return np.zeros_like(values)
    slopes: Array = np.gradient(values, 1.0 / fps, axis=0, edge_order=2 if len(values) > 2 else 1)
    return slopes


def second_derivative(values: Float[Array, "frames *n"], fps: float) -> Float[Array, "frames *n"]:
    """Second differences, of second order at the ends too; zero for fewer than three frames."""
    if len(values) < 3:
        return np.zeros_like(values)
    inside = values[2:] - 2.0 * values[1:-1] + values[:-2]
    first, last = inside[:1], inside[-1:]
    if len(values) > 3:
        first, last = 2.0 * inside[:1] - inside[1:2], 2.0 * inside[-1:] - inside[-2:-1]
    return np.concatenate([first, inside, last]) * fps**2
