"""Features y(q) of a pose (Grochow et al. 2004, section 4), which a style models, and those of its training frames.

Joint angles are the exponential maps of q; vertical orientation is the second row of the root's rotation matrix, since
our up axis is Y (the paper's is Z). Velocity and acceleration of both are differences to previous frames. The paper
takes them per frame; here they are scaled to frames of 1/30 s, so that recordings of any frame rate agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array

REFERENCE_SECONDS = 1.0 / 30.0  # frame duration that is the unit of time of velocity and acceleration
STILL_SHARE = 0.01  # of the typical deviation of its kind: a feature that varies less counts as still
STILL_DEVIATION = 1e-4  # the same threshold in the feature's own unit

Q = Float[Array, "size"]


@dataclass(frozen=True, eq=False)
class Features:
    """The choice of features: y = [angles, up], then optionally their velocity and acceleration."""

    space: PoseSpace
    up: bool = True
    velocity: bool = True
    acceleration: bool = False

    @property
    def pose_count(self) -> int:
        """The number of features that depend on one frame alone: y[:pose_count]."""
        return self.space.size - ROOT_SIZE + (3 if self.up else 0)

    @property
    def dimension(self) -> int:
        """D, the length of y."""
        return self.pose_count * (1 + self.velocity + self.acceleration)

    @property
    def groups(self) -> Int[Array, "features"]:
        """Per feature its kind: 0 angle, 1 up, 2 and 3 their velocities, 4 and 5 their accelerations."""
        ups = 3 if self.up else 0
        one = np.repeat([0, 1], [self.pose_count - ups, ups])
        wanted = [0, *([2] if self.velocity else []), *([4] if self.acceleration else [])]
        return np.concatenate([one + first for first in wanted])

    def of_frames(self, q: Float[Array, "frames size"], fps: float) -> Float[Array, "frames features"]:
        """Features along one clip, extrapolated before its first frame with the first known velocity."""
        pose = self.of_poses(q)
        rate = frame_rate(fps)
        velocity, acceleration = np.zeros_like(pose), np.zeros_like(pose)
        velocity[1:] = np.diff(pose, axis=0) * rate
        acceleration[2:] = np.diff(pose, n=2, axis=0) * rate**2
        if len(pose) > 1:
            velocity[0] = velocity[1]
        if len(pose) > 2:
            acceleration[:2] = acceleration[2]
        return self._wanted(pose, velocity, acceleration)

    def of_pose(
        self,
        q: Q,
        previous: Q | None = None,
        before_previous: Q | None = None,
        *,
        fps: float = 1.0 / REFERENCE_SECONDS,
    ) -> Float[Array, "features"]:
        """Features of a pose after the previous frames; without those, it is at rest."""
        rate, now = frame_rate(fps), self.of_poses(q)
        velocity, acceleration = np.zeros_like(now), np.zeros_like(now)
        if previous is not None:
            before = self.of_poses(previous)
            velocity = (now - before) * rate
            if before_previous is not None:
                acceleration = (now - 2.0 * before + self.of_poses(before_previous)) * rate**2
        return self._wanted(now, velocity, acceleration)

    def jacobian(
        self,
        q: Q,
        previous: Q | None = None,
        before_previous: Q | None = None,
        *,
        fps: float = 1.0 / REFERENCE_SECONDS,
    ) -> Float[Array, "features freedoms"]:
        """dy/dd of `of_pose`, d the tangent of q; previous frames are constants (section 4)."""
        maps = self.space.size - ROOT_SIZE
        pose = np.zeros((self.pose_count, self.space.freedoms))
        pose[:maps, ROOT_FREEDOMS:] = np.eye(maps)
        if self.up:  # R exp(d): the change of row r is r x d
            pose[maps:, 3:ROOT_FREEDOMS] = rotations.skew(rotations.matrix_from_quaternion(q[3:7])[1])
        rate = frame_rate(fps)
        velocity = pose * (rate if previous is not None else 0.0)
        known = previous is not None and before_previous is not None
        acceleration = pose * (rate**2 if known else 0.0)
        return self._wanted(pose.T, velocity.T, acceleration.T).T

    def of_poses(self, q: Float[Array, "*frames size"]) -> Float[Array, "*frames pose"]:
        """The features that depend on a pose alone: y[:pose_count]."""
        if q.shape[-1] != self.space.size:
            raise InvalidValueError(f"pose vectors must have {self.space.size} numbers; got {q.shape[-1]}")
        angles = q[..., ROOT_SIZE:]
        if not self.up:
            return angles
        return np.concatenate([angles, rotations.matrix_from_quaternion(q[..., 3:7])[..., 1, :]], axis=-1)

    def _wanted(self, pose: Array, velocity: Array, acceleration: Array) -> Array:
        parts = [pose, *([velocity] if self.velocity else []), *([acceleration] if self.acceleration else [])]
        return np.concatenate(parts, axis=-1)


def frame_rate(fps: float) -> float:
    """Frames per unit of time of velocities and accelerations."""
    if not (np.isfinite(fps) and fps > 0):
        raise InvalidValueError(f"features need a positive frame rate; got {fps}")
    return fps * REFERENCE_SECONDS


class TrainingFeatures:
    """Features y of frames: those of the pose, and possibly others."""

    features: Features
    y: Float[Array, "frames features"]

    @cached_property
    def mean(self) -> Float[Array, "features"]:
        """The mean of every feature (mu of Grochow et al. 2004, Eq. 2)."""
        return np.asarray(self.y.mean(axis=0))

    @cached_property
    def floors(self) -> Float[Array, "features"]:
        """The deviation below which a feature counts as still: a share of the typical one of its kind."""
        deviations, groups = self.y.std(axis=0), self.features.groups
        squares = np.bincount(groups, deviations[: len(groups)] ** 2) / np.maximum(np.bincount(groups), 1)
        floors = np.full(len(deviations), STILL_DEVIATION)
        floors[: len(groups)] = np.maximum(STILL_SHARE * np.sqrt(squares[groups]), STILL_DEVIATION)
        return floors

    @cached_property
    def varying(self) -> Bool[Array, "features"]:
        """Mask of the features that vary; only these are learned."""
        return np.asarray(self.y.std(axis=0) > self.floors)

    @cached_property
    def centred(self) -> Float[Array, "frames varying"]:
        """The varying features minus their mean."""
        return np.ascontiguousarray((self.y - self.mean)[:, self.varying])

    def all_scales(self, scales: Float[Array, "varying"]) -> Float[Array, "features"]:
        """Scales of all features; a still one counts as if it varied by its floor, so that it is stiff but finite."""
        every = 1.0 / self.floors
        every[self.varying] = scales
        return every
