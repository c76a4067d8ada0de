"""One camera and a person without markers, live: pictures in, poses out, picture by picture."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import UInt8

from poise.capture.people.landmarks import NAMES, VISIBLE, handles_of
from poise.capture.people.live import LivePerson
from poise.capture.people.take import CapturedPerson
from poise.capture.people.upright import level_camera
from poise.capture.people.watched import WatchedPerson
from poise.formats.camera_file import focal_from_fov
from poise.performance.perform import PerformedFrame
from poise.performer import act
from poise.priors.prior import Prior
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.solvers.solution import Solution, extended
from poise.types import Array
from poise.vision.people.detector import PersonFinder
from poise.vision.people.following import OnePersonFollower
from poise.vision.people.photos import watched_in_photo
from poise.vision.people.watching import DARK

Picture = UInt8[Array, "height width 3"]

NOBODY = "nobody is seen: step back until the whole body is in the picture"
TOO_DARK = "it is too dark to find a person: more light"
MEASURING = "measuring the body: keep all of it in the picture"
FOLLOWING = "following"
REHEARSED = 16  # pictures: one second of measurement, and some tracking
BEFORE = np.array([0.0, 0.6, -6.5])  # metres: position of a person relative to the camera


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
    def measured(self) -> CapturedPerson | None:
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
