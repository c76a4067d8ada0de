"""A person without markers in front of one camera, live: a picture in, a pose out (`poise perform --webcam`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from poise.capture.people.live import LivePerson
from poise.capture.performance import PerformedFrame, motion_of
from poise.errors import PoiseError
from poise.formats.camera_file import focal_from_fov
from poise.formats.files import make_folder
from poise.motion.motion import Motion
from poise.performer import act
from poise.priors.prior import Prior
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.solvers.solution import MotionSolution, Solution, extended
from poise.types import Array
from poise.vision.live import LiveStep
from poise.vision.people.detector import PersonFinder
from poise.vision.people.following import OnePersonFollower
from poise.vision.people.person import NAMES, VISIBLE, handles_of
from poise.vision.people.photos import watched_in_photo
from poise.vision.people.unknown_camera import level_camera
from poise.vision.people.watched import WatchedPerson
from poise.vision.people.watching import DARK
from poise.vision.sources import VideoRecorder, open_source

Picture = UInt8[Array, "height width 3"]

NOBODY = "nobody is seen: step back until the whole body is in the picture"
TOO_DARK = "it is too dark to find a person: more light"
MEASURING = "measuring the body: keep all of it in the picture"
FOLLOWING = "following"
REHEARSED = 16  # pictures: one second of measurement, and some tracking
BEFORE = np.array([0.0, 0.6, -6.5])  # metres: position of a person relative to the camera
RECENT = 60  # bodies over which rate and latency are measured
RECORDED = "webcam.avi"


@dataclass(eq=False)
class WebcamPerformance:
    """Takes one picture after the other, with its arrival time in seconds.

    `doing` describes the current state; `spent` is the processing time in seconds for detection and solving.
    """

    prior: Prior | None = None
    fov: float | None = None  # vertical, in degrees
    height: float | None = None  # of the person, in metres
    doing: str = NOBODY
    spent: tuple[float, float] = (0.0, 0.0)
    names: tuple[str, ...] = NAMES
    _handles: Handles | None = None
    _finder: PersonFinder = field(default_factory=PersonFinder)

    def __post_init__(self) -> None:
        self._follower = OnePersonFollower(self._finder)
        self._body = LivePerson(prior=self.prior, height=self.height, lens_known=self.fov is not None)

    def rehearse(self) -> None:
        """Track a synthetic walker, so that everything is compiled before the first picture."""
        rehearse(self.prior, lens_known=self.fov is not None)

    @property
    def measured(self) -> MotionSolution | None:
        """The measurement of the first second: the body and the camera's tilt; None before its end."""
        return self._body.measured

    def step(self, picture: Picture, at: float) -> PerformedFrame | None:
        """The pose in a picture; None while nobody is seen, or the person is not measured yet."""
        begun, work = time.perf_counter(), time.thread_time()
        person = self._follower.step(picture)
        found = time.thread_time() - work
        if person is None:
            self.doing = TOO_DARK if picture.mean() < 255.0 * DARK else NOBODY
            return None
        rows, columns = picture.shape[:2]
        focal = None if self.fov is None else focal_from_fov(self.fov, rows)
        solution = self._body.step(watched_in_photo(person, (columns, rows), focal), at)
        self.doing, self.spent = FOLLOWING, (found, time.thread_time() - work - found)
        if solution is None:
            self.doing = MEASURING
            return None
        if self._handles is None:
            self._handles = solution.space.handles(handles_of(solution.space.skeleton)[0])
        return extended(
            PerformedFrame, solution, markers=solution.space.points(solution.q[None], self._handles)[0],
            seen=person.visibility > VISIBLE, microseconds=1e6 * (time.perf_counter() - begun),
        )  # fmt: skip


def rehearse(prior: Prior | None = None, *, lens_known: bool = False) -> Solution | None:
    """Measure and track a synthetic walker, which uses every kernel of tracking."""
    walk, camera = act("walk", seconds=REHEARSED / 10.0, fps=10.0), level_camera((640, 480))
    space = PoseSpace(walk.skeleton)
    handles = space.handles(handles_of(walk.skeleton)[0])
    places = space.points(space.q_from_frames(walk.root_positions, walk.rotations), handles) + BEFORE
    shapes = (places - places.mean(axis=1, keepdims=True)) @ camera.rotation.T
    seen, side = np.full((1, 1, len(NAMES)), 0.9), np.full((1, 1), 300.0)
    live, last = LivePerson(prior=prior, lens_known=lens_known), None
    for number, (pixel, shape) in enumerate(zip(camera.project(places), shapes, strict=True)):
        moment = WatchedPerson([camera], pixel[None, None], seen, shape[None, None], side, 1.0)
        last = live.step(moment, number / 10.0)
    return last


@dataclass(frozen=True, eq=False)
class LiveBody:
    """A pose, the time of its picture (seconds from the first), and its latency."""

    frame: PerformedFrame
    time: float
    seconds: float


@dataclass(eq=False)
class WebcamTake:
    """The performance so far, notes for the user, and the processing times by stage."""

    bodies: list[LiveBody] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spent: list[tuple[float, float]] = field(default_factory=list)
    doing: str = ""

    @property
    def mean_rate(self) -> float:
        """Mean rate of bodies per second."""
        return _rate(self.bodies)

    @property
    def work(self) -> str:
        """The processing time per body, in words."""
        found, solved = 1000.0 * np.median(self.spent, axis=0)
        return f"work per body: {found:.0f} ms to find the person, {solved:.0f} ms to solve the body"

    @property
    def status(self) -> str:
        """The current status in one line."""
        if not self.bodies:
            return self.doing
        middle = 1000.0 * float(np.median([body.seconds for body in self.bodies[-RECENT:]]))
        return f"{self.doing}: {_rate(self.bodies[-RECENT:]):.0f} bodies a second, {middle:.0f} ms from picture to pose"

    def motion(self, name: str = "") -> Motion:
        """All poses at a constant rate: pictures come unevenly, and a pose is held while nobody is seen."""
        if not self.bodies:
            raise PoiseError(f"no pose was recorded: {self.doing}")
        times = np.array([body.time for body in self.bodies])
        fps = float(np.clip(round(1.0 / np.median(np.diff(times))), 1.0, 240.0)) if len(times) > 1 else 30.0
        moments = times[0] + np.arange(round((times[-1] - times[0]) * fps) + 1) / fps
        latest = np.searchsorted(times, moments + 0.5 / fps, side="right") - 1
        return motion_of([self.bodies[k].frame for k in latest], fps, name=name)


def _rate(bodies: Sequence[LiveBody]) -> float:
    span = bodies[-1].time - bodies[0].time if len(bodies) > 1 else 0.0
    return (len(bodies) - 1) / span if span > 0 else 0.0


def perform_webcam(
    place: str,
    performance: WebcamPerformance,
    *,
    record: Path | None = None,
    answer: Callable[[LiveBody], None] = lambda _body: None,
    status: Callable[[str], None] = lambda _words: None,
) -> WebcamTake:
    """Follow a camera (its number or address), or a video in its place, until it ends or Ctrl-C."""
    status("preparing (the first time, this compiles for ten seconds or more)")
    performance.rehearse()
    status(f"opening camera {place}")
    source, take = open_source(place), WebcamTake()
    with LiveStep([source]) as steps:
        recorder = None
        if record is not None:
            recorder = VideoRecorder(make_folder(record) / RECORDED, fps=source.fps, size=source.size)
        try:
            for step in steps:
                picture, arrived = step.pictures[0], step.arrived
                if picture is None or arrived is None:
                    continue
                if recorder is not None:
                    recorder.add(picture)
                frame = performance.step(picture, step.time)
                take.doing = performance.doing
                if frame is not None:
                    take.bodies.append(LiveBody(frame, step.time, time.monotonic() - arrived))
                    take.spent.append(performance.spent)
                    answer(take.bodies[-1])
                status(take.status)
        except KeyboardInterrupt:
            pass
        finally:
            if recorder is not None:
                recorder.close()
    take.notes += steps.notes
    return take
