"""From clips to what learning works on: a pose space, features of every kept frame, and which of them vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.priors.poses import common_frames
from poise.priors.style.features import REFERENCE_SECONDS, Features
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace

Array = np.ndarray

FEWEST_FRAMES = 200  # below which no frame is skipped
MOST_FRAMES = 20_000  # above which more are
STILL_SHARE = 0.01  # of the typical deviation of its kind: a feature that varies by less is still
STILL_DEVIATION = 1e-4  # and so is one that varies by less than this, in its own unit


@dataclass(frozen=True, eq=False)
class TrainingPoses:
    """Features of the kept frames of all clips, one clip after the other."""

    features: Features
    y: Float[Array, "poses features"]

    def __post_init__(self) -> None:
        if len(self.y) < 2 or not np.any(self.varying):
            raise InvalidValueError("a style is learned from at least two frames in which something moves")

    @cached_property
    def mean(self) -> Float[Array, "features"]:
        """mu of Eq. 2."""
        return np.asarray(self.y.mean(axis=0))

    @cached_property
    def floors(self) -> Float[Array, "features"]:
        """The deviation below which a feature is still, and with which it then counts."""
        return deviation_floors(self.features, self.y.std(axis=0))

    @cached_property
    def varying(self) -> Bool[Array, "features"]:
        """Which features vary: only these are learned from."""
        return np.asarray(self.y.std(axis=0) > self.floors)

    @cached_property
    def centred(self) -> Float[Array, "poses varying"]:
        """The varying features, their mean subtracted."""
        return np.ascontiguousarray((self.y - self.mean)[:, self.varying])

    def all_scales(self, scales: Float[Array, "varying"]) -> Float[Array, "features"]:
        """Scales of all features; a still one counts as if it varied by its floor, so that it is stiff and finite."""
        every = 1.0 / self.floors
        every[self.varying] = scales
        return every


def deviation_floors(features: Features, deviations: Float[Array, "features"]) -> Float[Array, "features"]:
    """Per feature, a share of the typical deviation of its kind (angle, up, their velocities, ...)."""
    groups = features.groups
    squares = np.bincount(groups, deviations**2, minlength=6) / np.maximum(
        np.bincount(groups, minlength=6), 1
    )
    return np.asarray(np.maximum(STILL_SHARE * np.sqrt(squares[groups]), STILL_DEVIATION))


def pose_space_of(motions: Sequence[Motion]) -> PoseSpace:
    """The pose space of clips of one topology; the first clip's limb lengths are kept."""
    return PoseSpace.of_rotations(*common_frames(motions))


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
