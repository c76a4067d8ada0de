"""Performances by a few inertial sensors: how some segments are turned in, frame by frame, a whole body out.

The same follower and the same solver as for markers: the pose is brought to how the sensors are turned by the most
likely change. A local model says how fast the performer moves: where that leads is where the body is, and it drifts.
Other priors know nothing of it, and the body stays in its place.
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
    """A model and sensors on a body: `step` takes how they are turned and gives a pose."""

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
        """`noise` is how far off sensors may be, in radians; `worn` how each is turned on its segment (`t_pose`)."""
        body = prior if skeleton is None else prior.on_body(skeleton)
        self.names, self._noise = tuple(sensors), noise or None
        self.sensors = Sensors.on(body.space, self.names)
        self.guide = sensor_guide(body, self.names, progress=progress)
        self._worn = np.array([(worn or {}).get(name, rotations.IDENTITY) for name in self.names])
        handles = body.space.handles(list(self.names))
        super().__init__(body, handles, fps=fps, root="given", guide=self.guide)

    def step(self, orientations: Float[Array, "sensors 4"], *, at: float | None = None) -> PerformedFrame:
        """The pose for one frame: a quaternion (wxyz) in the world per sensor, NaN where one is not heard."""
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
        """Take note of a frame without finding its pose; how the segments themselves are turned."""
        turned = self._checked(orientations)
        lengths = np.linalg.norm(turned, axis=1, keepdims=True)
        usable = np.isfinite(lengths) & (lengths > 1e-6)
        turned = np.where(usable, turned / np.where(usable, lengths, 1.0), np.nan)
        return self._note(rotations.multiply(turned, self._worn), at)

    def _constraints(self, turned: Array, heard: Array) -> list[Orientation]:
        """The root is as its sensor is turned; the other segments are to be."""
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
    """How each sensor is turned on its segment, from a T-pose that faces +Z; one that was not heard is as it is."""
    world = neutral_pose(skeleton, samples).world
    worn = {}
    for name, turned in zip(sensors, orientations, strict=True):
        segment = rotations.quaternion_from_matrix(world[skeleton.index(name)])
        known = np.all(np.isfinite(turned))
        worn[name] = rotations.multiply(rotations.conjugate(turned), segment) if known else rotations.IDENTITY
    return worn
