"""Performance animation: a few markers or sensors in, frame by frame, a whole body out (Chai and Hodgins 2005).

A performance is a follower, a guide and a constraint for every visible marker. A local model has its own guide for it,
which also uses velocities and fills in missing markers; other priors use their ordinary guide. Missing markers are
normal. Visible markers that cannot be met are reported: every frame is a `Solution`.

Inertial sensors give orientations of some segments instead, which the pose meets by the most likely change. A local
model predicts the performer's velocity; the position is integrated from it, and drifts. Other priors do not predict
it, and the body stays in place. A marker set that determines a whole body is followed by `tracking` instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from poise.capture.feeds import LiveFrame
from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.priors.abilities import marker_guide, sensor_guide
from poise.priors.local.control import Sensors
from poise.priors.local.control_guide import ControlGuide, Seen
from poise.priors.prior import Prior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import Handle, Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import Constraint, Orientation, Position, Projection
from poise.solvers.problem import Root as SolverRoot
from poise.solvers.solution import MotionSolution, Residual, Solution, Status, extended
from poise.solvers.solve import Follower, Solver
from poise.types import Array

SIX = ("pelvis", "head", "left_forearm", "right_forearm", "left_shin", "right_shin")
Root = Literal["solved", "torso"]

NOISE = 2e-4  # metres: tolerance of markers; exact ones would bend the body to fit noise


@dataclass(frozen=True, eq=False)
class Glimpse:
    """A marker seen by a single camera: its index and its pixel."""

    marker: int
    camera: Camera
    pixel: tuple[float, float]


@dataclass(eq=False, kw_only=True, repr=False)
class PerformedFrame(Solution):
    """The pose of one frame of markers or sensors; its time is that of the whole frame."""

    markers: Float[Array, "markers 3"]  # marker positions of the pose, including unseen ones
    seen: Bool[Array, "markers"]


class FollowedFrames:
    """Base of all that follows a performer: names of markers or sensors, a follower, and frames from either."""

    channels: Sequence[str]  # the data of each marker or sensor in a frame
    largest: float  # larger numbers are codes for "not seen" (FLT_MAX, 9999999) or errors
    names: tuple[str, ...]
    prior: Prior
    space: PoseSpace
    fps: float

    def step(self, values: Array, *, at: float | None = None) -> PerformedFrame:
        """The pose for one frame, NaN for what is not seen; `at` is its time in seconds if frames are uneven."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget previous frames: the next one is a cold start."""
        raise NotImplementedError

    def observe(self, values: Array, *, at: float | None = None) -> Array:
        """Record a frame without solving it."""
        del at
        return self._checked(values)

    def heard(self, frame: LiveFrame) -> dict[str, Array]:
        """The values of a feed's frame, by label."""
        return dict(frame.places)

    def run(
        self,
        take: Markers,
        *,
        stride: int = 1,
        progress: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> list[PerformedFrame]:
        """All frames, or every `stride`-th, of a recording that has at least these markers."""
        columns = [take.index(name) for name in self.names]
        self.reset()
        self.fps = take.fps
        frames = []
        for number, points in enumerate(take.points[:, columns]):
            if number % stride:
                self.observe(points)
            else:
                frames.append(self.step(points))
            progress(number + 1, len(take))
        return frames

    def _checked(self, values: Array) -> Array:
        values, size = np.asarray(values, dtype=np.float64), len(self.channels)
        if values.shape != (len(self.names), size):
            raise InvalidValueError(
                f"a frame must be ({len(self.names)}, {size}): {self.channels} for each of {', '.join(self.names)}; "
                f"got {values.shape}"
            )
        with np.errstate(invalid="ignore"):
            plausible = (np.abs(values) < self.largest).all(axis=1, keepdims=True)
        return np.where(plausible, values, np.nan)


class GuidedFrames(FollowedFrames):
    """Base of performances: a guide, the frames it has seen, and the pose that is held without observations."""

    def __init__(
        self, prior: Prior, handles: Handles, *, fps: float, root: SolverRoot, guide: ControlGuide | None
    ) -> None:
        self.prior, self.space, self.handles, self.fps = prior, prior.space, handles, fps
        self._control = guide
        self._follower = Follower(partial(Solver, prior, root=root, guide=guide))
        self._standing = self.space.standing(prior.mean) if guide is None else guide.standing

    def reset(self) -> None:
        """Forget previous frames: the next one is a cold start."""
        self._follower.restart()
        if self._control is not None:
            self._control.reset()

    def observe(self, values: Array, *, at: float | None = None) -> Array:
        """Record a frame without solving it: the next one's velocities follow from it."""
        values = self._checked(values)
        if self._control is not None:
            self._control.recent.note(values, step=1.0 / self.fps, at=at)
        return values

    @property
    def _last(self) -> Float[Array, "size"]:
        return self._standing if self._follower.last is None else self._follower.last

    def _waiting(self, seen: Array, begun: float) -> PerformedFrame:
        """Without observations: the last pose, or a standing one."""
        if self._control is not None:
            self._control.recent.forget()
        self._follower.restart(self.space, self._follower.last)
        note = ("nothing was observed",)
        held = Solution(self._last, self.space, tuple, Status.REACHED, 0, 0.0, self.prior, note)
        return self._frame(held, seen, begun)

    def _frame(self, solution: Solution, seen: Array, begun: float) -> PerformedFrame:
        points = self.space.points(solution.q[None], self.handles)[0]
        took = 1e6 * (time.perf_counter() - begun)
        return extended(PerformedFrame, solution, markers=points, seen=seen, microseconds=took)


class Performance(GuidedFrames):
    """A model, a marker set and a body: `step` takes markers and returns a pose."""

    channels, largest = "xyz", 1e4

    def __init__(
        self,
        prior: Prior,
        markers: Mapping[str, Handle],
        *,
        skeleton: Skeleton | None = None,
        fps: float = 120.0,
        noise: float | None = None,
        root: Root = "solved",
        progress: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`noise` is the standard deviation of markers in metres; with 0, they are met exactly if possible.

        Options that are None take the model's defaults: 0.2 mm, or those of the published method.
        """
        body = prior if skeleton is None else prior.on_body(skeleton)
        self.names, self._places = tuple(markers), tuple(markers.values())
        if not self.names:
            raise InvalidValueError("a performance needs at least one marker; got none")
        handles = body.space.handles(self._places)
        self.guide = marker_guide(body, handles, progress=progress)
        if root == "torso" and self.guide is None:
            raise InvalidValueError(
                "only a local model can take the root from the torso; leave `root` at its default"
            )
        own = None if self.guide is None else self.guide.noise
        self._noise = (own or NOISE if noise is None else noise) or None
        given: SolverRoot = "solved" if root == "solved" else "given"
        super().__init__(body, handles, fps=fps, root=given, guide=self.guide)

    def step(
        self,
        markers: Float[Array, "markers 3"],
        *,
        glimpses: Sequence[Glimpse] = (),
        guesses: Float[Array, "markers 3"] | None = None,
        at: float | None = None,
    ) -> PerformedFrame:
        """The pose for one frame of markers, NaN if not seen; `at` is its time if frames are uneven.

        `guesses` are possible positions of unplaced markers: they select similar examples, but are not constraints.
        """
        begun = time.perf_counter()
        points = self._checked(markers)
        seen = np.isfinite(points).all(axis=1)
        likely = self.observe(points if guesses is None else np.where(seen[:, None], points, guesses), at=at)
        glimpses = [glimpse for glimpse in glimpses if not seen[glimpse.marker]]
        if not np.any(seen) and not glimpses:
            return self._waiting(seen, begun)
        if self.guide is not None:
            mostly_pixels = len(glimpses) > np.sum(seen)
            self.guide.show(likely, _pictured(points, seen, glimpses) if mostly_pixels else None)
        if glimpses:
            solution = self._follower.step(self._constraints(points, seen, glimpses))
        else:
            solver = self._follower.kept(seen.tobytes(), lambda: self._constraints(points, seen))
            solution = self._follower.solve(solver, targets=points[seen])
        return self._frame(solution, seen, begun)

    def exchange(self, first: int, second: int) -> None:
        """Two markers had swapped labels until now: exchange their recorded past."""
        if self.guide is not None:
            self.guide.recent.exchange(first, second)

    def _constraints(self, points: Array, seen: Array, glimpses: Sequence[Glimpse] = ()) -> list[Constraint]:
        noise, found = self._noise, list[Constraint]()
        for k in np.flatnonzero(seen).tolist():
            found.append(Position(self._places[k], points[k], tolerance=noise, name=self.names[k]))
        for k, camera, pixel in ((one.marker, one.camera, one.pixel) for one in glimpses):
            pixels = None if noise is None else max(noise * camera.focal_length / 3.0, 0.5)
            found.append(Projection(self._places[k], camera, pixel, tolerance=pixels, name=self.names[k]))
        return found


class OrientationPerformance(GuidedFrames):
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

    def heard(self, frame: LiveFrame) -> dict[str, Array]:
        """The rotations of a feed's frame, by label."""
        return dict(frame.turns)

    def _checked(self, values: Array) -> Array:
        """The orientations of the segments themselves, from those of the sensors."""
        turned = super()._checked(values)
        lengths = np.linalg.norm(turned, axis=1, keepdims=True)
        usable = np.isfinite(lengths) & (lengths > 1e-6)
        turned = np.where(usable, turned / np.where(usable, lengths, 1.0), np.nan)
        return rotations.multiply(turned, self._worn)

    def _constraints(self, turned: Array, heard: Array) -> list[Orientation]:
        """Constraints: the root has its sensor's orientation, the other segments follow theirs."""
        names, noise = self.names, self._noise
        return [Orientation(names[k], turned[k], tolerance=noise) for k in np.flatnonzero(heard) if k > 0]


def motion_of(frames: Sequence[Solution], fps: float, name: str = "") -> Motion:
    """The frames of a performance as a motion."""
    if not frames:
        raise InvalidValueError("the performance has no frames yet; call step() first")
    return MotionSolution(frames, fps, name).motion


@dataclass
class Shortfall:
    """Unmet constraints of a performance so far: the number of frames, and the worst."""

    frames: int = 0
    unmet: int = 0
    worst: Residual | None = None
    worst_at: int = 0

    def add(self, frame: Solution) -> None:
        """Add a frame."""
        self.frames, self.unmet = self.frames + 1, self.unmet + bool(frame.unmet)
        for residual in frame.unmet:
            if self.worst is None or residual.excess > self.worst.excess:
                self.worst, self.worst_at = residual, self.frames

    def __str__(self) -> str:
        if self.worst is None:
            return "all observations are met"
        return (
            f"observations are not met in {self.unmet} of {self.frames} frames; "
            f"the worst is {self.worst}, in frame {self.worst_at}"
        )


def shortfall_of(frames: Sequence[Solution]) -> Shortfall:
    """The unmet constraints of a performance's frames."""
    found = Shortfall()
    for frame in frames:
        found.add(frame)
    return found


def _pictured(
    points: Float[Array, "markers 3"], seen: Bool[Array, "markers"], glimpses: Sequence[Glimpse]
) -> Seen:
    """Marker positions, and the rays of those seen by one camera."""
    placed = np.flatnonzero(seen)
    rays = np.array([glimpse.camera.ray(np.array(glimpse.pixel)) for glimpse in glimpses])
    across = np.eye(3) - rays[:, :, None] * rays[:, None]
    return Seen(
        np.concatenate([placed, [glimpse.marker for glimpse in glimpses]]).astype(np.int64),
        np.concatenate([points[placed], [glimpse.camera.centre for glimpse in glimpses]]),
        np.concatenate([np.tile(np.eye(3), (len(placed), 1, 1)), across]),
    )


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
