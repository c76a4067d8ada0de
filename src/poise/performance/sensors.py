"""Performances by a few inertial sensors: orientations of some segments in, a whole body out, frame by frame.

The same follower and solver as for markers: the pose meets the sensors' orientations by the most likely change. A
local model predicts the performer's velocity; the position is integrated from it, and drifts. Other priors do not
predict it, and the body stays in place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.performance.perform import FollowedFrames, PerformedFrame
from poise.priors.abilities import sensor_guide
from poise.priors.local.orientations import Sensors
from poise.priors.prior import Prior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import Orientation
from poise.types import Array

SIX = ("pelvis", "head", "left_forearm", "right_forearm", "left_shin", "right_shin")


class OrientationPerformance(FollowedFrames):
    """A model and sensors on a body: `step` takes their orientations and returns a pose."""

    channels, largest = "wxyz", 1e6

    def __init__(
        self,
        prior: Prior,
        sensors: Sequence[str] = SIX,
        *,
        skeleton: Skeleton | None = None,
        fps: float = 120.0,
        noise: float = 0.0,
        worn: Mapping[str, Float[Array, "4"]] | None = None,
        progress: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`noise` is the sensors' standard deviation in radians; `worn` their orientation on segments (`t_pose`)."""
        body = prior if skeleton is None else prior.on_body(skeleton)
        self.names, self._noise = tuple(sensors), noise or None
        self.sensors = Sensors.on(body.space, self.names)
        self.guide = sensor_guide(body, self.names, progress=progress)
        self._worn = np.array([(worn or {}).get(name, rotations.IDENTITY) for name in self.names])
        handles = body.space.handles(list(self.names))
        super().__init__(body, handles, fps=fps, root="given", guide=self.guide)

    def step(self, orientations: Float[Array, "sensors 4"], *, at: float | None = None) -> PerformedFrame:
        """The pose for one frame: a world quaternion (wxyz) per sensor, NaN without data."""
        begun = time.perf_counter()
        turned = self.observe(orientations, at=at)
        heard = np.isfinite(turned).all(axis=1)
        if not np.any(heard):
            return self._waiting(heard, begun)
        start = self._last.copy()
        if heard[0]:
            start[3:ROOT_SIZE] = turned[0]
        if self.guide is not None:
            self.guide.show(turned)
        solution = self._follower.step(self._constraints(turned, heard), start=start)
        return self._frame(solution, heard, begun)

    def observe(
        self, orientations: Float[Array, "sensors 4"], *, at: float | None = None
    ) -> Float[Array, "sensors 4"]:
        """Record a frame without solving it, from the orientations of the segments themselves."""
        turned = self._checked(orientations)
        lengths = np.linalg.norm(turned, axis=1, keepdims=True)
        usable = np.isfinite(lengths) & (lengths > 1e-6)
        turned = np.where(usable, turned / np.where(usable, lengths, 1.0), np.nan)
        return self._note(rotations.multiply(turned, self._worn), at)

    def _constraints(self, turned: Array, heard: Array) -> list[Orientation]:
        """Constraints: the root has its sensor's orientation, the other segments follow theirs."""
        return [
            Orientation(self.names[k], turned[k], tolerance=self._noise)
            for k in np.flatnonzero(heard)
            if k > 0
        ]


def t_pose(
    skeleton: Skeleton,
    sensors: Sequence[str],
    orientations: Float[Array, "sensors 4"],
    *,
    samples: Float[Array, "frames joints 4"] | None = None,
) -> dict[str, Float[Array, "4"]]:
    """The orientation of each sensor on its segment, from a T-pose that faces +Z; identity without data."""
    world = neutral_pose(skeleton, samples).world
    worn = {}
    for name, turned in zip(sensors, orientations, strict=True):
        segment = rotations.quaternion_from_matrix(world[skeleton.index(name)])
        known = np.all(np.isfinite(turned))
        worn[name] = rotations.multiply(rotations.conjugate(turned), segment) if known else rotations.IDENTITY
    return worn
