"""Training data of a style from clips: features of every kept frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.priors.latent.features import REFERENCE_SECONDS, Features
from poise.priors.latent.training import TrainingFeatures
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array

FEWEST_FRAMES = 200  # below this number no frame is skipped
MOST_FRAMES = 20_000  # above this number more frames are skipped


@dataclass(frozen=True, eq=False)
class TrainingPoses(TrainingFeatures):
    """Features of the kept frames of all clips, one clip after the other."""

    features: Features
    y: Float[Array, "poses features"]

    def __post_init__(self) -> None:
        if len(self.y) < 2 or not np.any(self.varying):
            raise InvalidValueError("a style needs at least two frames with motion")


def thinned(motions: Sequence[Motion]) -> list[Motion]:
    """The clips at about 30 frames a second; all frames of short data, fewer of very long."""
    count = sum(len(motion) for motion in motions)
    most, fewest = max(1, count // FEWEST_FRAMES), -(-count // MOST_FRAMES)
    return [motion[:: max(fewest, min(_stride(motion), most))] for motion in motions if len(motion)]


def training_poses(
    space: PoseSpace, motions: Sequence[Motion], features: Features
) -> tuple[TrainingPoses, Float[Array, "poses maps"]]:
    """Features of every frame of the clips, and their exponential maps."""
    clips = [(space.q_from_frames(motion.root_positions, motion.rotations), motion.fps) for motion in motions]
    y = np.concatenate([features.of_frames(q, fps) for q, fps in clips])
    return TrainingPoses(features, y), np.concatenate([q[:, ROOT_SIZE:] for q, _ in clips])


def _stride(motion: Motion) -> int:
    return max(1, round(motion.fps * REFERENCE_SECONDS))
