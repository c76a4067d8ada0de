"""Root features of a motion model: its height and its steps over the floor, relative to the body.

The root's rotation is split into a yaw about the vertical and the smallest tilt from upright (swing and twist), so
that the world's up in the root's frame and the yaw determine the rotation. From frame to frame the root steps left and
forward and turns. Steps are per 1/30 s, so that recordings of any frame rate agree.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.priors.latent.features import REFERENCE_SECONDS
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array

ROOT_FEATURES = 4  # height, step to the left, step forward, turn
_UP = np.array([0.0, 1.0, 0.0])


def yaws(quaternions: Float[Array, "*frames 4"]) -> Float[Array, "*frames"]:
    """The yaw about the vertical of each rotation, in radians from -pi to pi."""
    angle = 2.0 * np.arctan2(quaternions[..., 2], quaternions[..., 0])
    return np.asarray(np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi)


def yaw_slope(quaternion: Float[Array, "4"]) -> Float[Array, "3"]:
    """d yaw / d w, where w rotates the root in its own frame."""
    w, x, y, z = quaternion
    in_w, in_y = -0.5 * np.array([x, y, z]), 0.5 * np.array([z, w, -x])
    return np.asarray(2.0 * (w * in_y - y * in_w) / max(w * w + y * y, 1e-12))


def rotation_from(up: Float[Array, "*frames 3"], yaw: Float[Array, "*frames"]) -> Float[Array, "*frames 4"]:
    """The root rotation with this world up direction in its frame and this yaw."""
    tilt = rotations.quaternion_between(up, np.broadcast_to(_UP, up.shape))
    turn = rotations.quaternion_from_expmap(np.multiply.outer(yaw, _UP))
    return rotations.multiply(turn, tilt)


def root_features(q: Float[Array, "frames size"], fps: float) -> Float[Array, "frames 4"]:
    """Height and step of every frame; the last frame repeats the previous step."""
    yaw = yaws(q[:, 3:7])
    steps = np.zeros((len(q), 3))
    if len(q) > 1:
        steps[:-1, :2] = _seen_from(yaw[:-1], np.diff(q[:, [0, 2]], axis=0))
        steps[:-1, 2] = np.remainder(np.diff(yaw) + np.pi, 2.0 * np.pi) - np.pi
        steps[-1] = steps[-2]
    return np.column_stack([q[:, 1], steps * (fps * REFERENCE_SECONDS)])


def root_path(
    features: Float[Array, "frames 4"], fps: float, *, at: tuple[float, float] = (0.0, 0.0), yaw: float = 0.0
) -> tuple[Float[Array, "frames 3"], Float[Array, "frames"]]:
    """Root positions and yaws from the steps, starting at a position and a yaw."""
    steps = features[:-1, 1:] / (fps * REFERENCE_SECONDS)
    turned = yaw + np.concatenate([[0.0], np.cumsum(steps[:, 2])])
    gone = np.cumsum(_to_world(turned[:-1], steps[:, :2]), axis=0)
    ground = np.asarray(at) + np.concatenate([np.zeros((1, 2)), gone])
    return np.column_stack([ground[:, 0], features[:, 0], ground[:, 1]]), turned


def poses_from_features(
    space: PoseSpace,
    features: Float[Array, "frames features"],
    fps: float,
    *,
    at: tuple[float, float] = (0.0, 0.0),
    yaw: float = 0.0,
) -> Float[Array, "frames size"]:
    """Pose vectors from exponential maps, the world's up and root features, starting at a position and a yaw."""
    maps = space.size - ROOT_SIZE
    q = np.empty((len(features), space.size))
    q[:, ROOT_SIZE:] = features[:, :maps]
    q[:, :3], turned = root_path(features[:, -ROOT_FEATURES:], fps, at=at, yaw=yaw)
    up = features[:, maps : maps + 3]
    q[:, 3:ROOT_SIZE] = rotation_from(up / np.linalg.norm(up, axis=1, keepdims=True), turned)
    return q


def root_jacobians(
    first: Float[Array, "size"], second: Float[Array, "size"], fps: float
) -> tuple[Float[Array, "4 6"], Float[Array, "4 6"]]:
    """Jacobians of a frame's root features by the root's degrees of freedom at that frame and at the next."""
    rate = fps * REFERENCE_SECONDS
    own, after = np.zeros((ROOT_FEATURES, ROOT_FREEDOMS)), np.zeros((ROOT_FEATURES, ROOT_FREEDOMS))
    yaw = float(yaws(first[3:7]))
    sine, cosine = np.sin(yaw), np.cos(yaw)
    gone = second[[0, 2]] - first[[0, 2]]
    turn = np.array([[cosine, -sine], [sine, cosine]])
    own[0, 1] = 1.0
    own[1:3, [0, 2]], after[1:3, [0, 2]] = -rate * turn, rate * turn
    in_yaw = rate * (np.array([[-sine, -cosine], [cosine, -sine]]) @ gone)
    slope = yaw_slope(first[3:7])
    own[1:3, 3:] = np.outer(in_yaw, slope)
    own[3, 3:], after[3, 3:] = -rate * slope, rate * yaw_slope(second[3:7])
    return own, after


def _seen_from(yaw: Float[Array, "n"], ground: Float[Array, "n 2"]) -> Float[Array, "n 2"]:
    """World steps (x, z) as steps left and forward of a body with that yaw."""
    sine, cosine = np.sin(yaw), np.cos(yaw)
    x, z = ground.T
    return np.stack([cosine * x - sine * z, sine * x + cosine * z], axis=-1)


def _to_world(yaw: Float[Array, "n"], steps: Float[Array, "n 2"]) -> Float[Array, "n 2"]:
    sine, cosine = np.sin(yaw), np.cos(yaw)
    left, forward = steps.T
    return np.stack([cosine * left + sine * forward, cosine * forward - sine * left], axis=-1)
