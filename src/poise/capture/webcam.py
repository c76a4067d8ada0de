"""A person without markers in front of one camera, live: a picture in, a pose out (`poise perform --webcam`).

The objective is that of a whole take, over a sliding window. During the first second the person is only observed:
their size, the up direction and the floor are estimated. From then on each picture gives the newest pose of a window of
frames that are solved together; its first two frames are fixed and carry the past.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from poise.capture.people.solving import Pixels, Shapes, StandingFeet, Trust, priors_of
from poise.capture.people.take import capture_person, rough_poses
from poise.capture.performance import PerformedFrame, motion_of
from poise.errors import PoiseError
from poise.formats.camera_file import focal_from_fov
from poise.formats.files import make_folder
from poise.motion.motion import Motion
from poise.performer import act
from poise.priors.prior import Prior
from poise.priors.terms import Held, Unknowns
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.solvers.problem import tangent_step
from poise.solvers.sequence import SequenceSolver
from poise.solvers.solution import MotionSolution, Solution, Status, extended
from poise.types import Array
from poise.vision.live import LiveStep
from poise.vision.people.detector import PersonFinder
from poise.vision.people.person import NAMES, VISIBLE, handles_of
from poise.vision.people.unknown_camera import level_camera, with_focal
from poise.vision.people.watched import WatchedPerson, flattened, rough_places, with_sides
from poise.vision.people.watching import DARK, OnePersonFollower, watched_in_photo
from poise.vision.sources import VideoRecorder, open_source

MEASURED = 1.0  # seconds of observation before the first pose ...
FEWEST = 10  # ... and pictures ...
MOST = 12  # ... of which this many are solved, evenly spaced
WINDOW = 12  # frames that are solved together
LEFT = 0.04  # metres that a foot moves across the camera's rays when it leaves the floor
FREE_FOR = 0.2  # seconds for which feet may leave the floor, before contacts are decided
HELD = 2  # of them, that are fixed
ASKED = 2  # newest frames for which the prior is evaluated
HISTORY = 60  # frames used to detect exchanged left and right
FLOOR_WITHIN = 0.3  # seconds in which the floor is moved to standing feet
LONGEST_GAP = 0.5  # seconds of absence after which a person is placed again ...
AWAY = 5.0  # ... and after which one not yet measured is measured again
PLACING = 8  # steps of placing a body
CALM, QUICK, PACE = 4.0, 2.0, 1.5  # One Euro filter: hertz at rest, per unit of speed, of the speed
TRUST = Trust(memory=0.2)  # chosen on the take of two persons, see docs/video.md

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
    shapes = places @ camera.rotation.T  # of which only the form counts
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


class LivePerson:
    """Takes what a camera sees of one person, moment by moment; returns poses once the person is measured."""

    _body: Prior

    def __init__(
        self,
        *,
        prior: Prior | None = None,
        height: float | None = None,
        trust: Trust | None = None,
        lens_known: bool = True,
    ) -> None:
        self._prior, self._height, self._trust = prior or UniversalPrior(), height, trust or TRUST
        self._lens_known = lens_known
        self._seen: deque[WatchedPerson] = deque()
        self._times: deque[float] = deque(maxlen=WINDOW)
        self._window: _Window | None = None
        self._calm: _Calm | None = None
        self._first = 0.0

    @property
    def measured(self) -> MotionSolution | None:
        """The measurement of the first second; None before its end."""
        return self._found if self._window is not None else None

    def step(self, seen: WatchedPerson, at: float) -> Solution | None:
        """The pose at the next moment, in seconds; None while the person is measured."""
        gap = at - self._times[-1] if self._times else 0.0
        if gap > AWAY and self._window is None:
            self._seen.clear()
        if not self._seen:
            self._first = at
        self._seen.append(seen)
        self._times.append(at)
        if self._window is not None:
            again = gap > LONGEST_GAP
            q = self._window.follow(seen, again=again)
            if again or self._calm is None:
                self._calm = _Calm(self._body.space, q)
            q = self._calm.step(q, max(gap, 1e-3))
            return Solution(q, self._body.space, tuple, Status.REACHED, 1, 0.0, self._body)
        if at - self._first >= MEASURED and len(self._seen) >= FEWEST:
            # Estimate the body, its floor and the up direction from the observations so far.
            fps, stride = (len(self._seen) - 1) / (at - self._first), -(-len(self._seen) // MOST)
            some = joined(list(self._seen)[::stride], fps / stride)
            some = some if self._lens_known else with_focal(some)
            self._found = capture_person(
                some, prior=self._prior, known=False, height=self._height, trust=self._trust
            )
            self._body = self._prior.on_body(self._found.motion.skeleton)
            recent = replace(joined(self._seen, fps), cameras=self._found.cameras)
            self._window = _Window(self._body, recent, self._found, self._trust)
            self._seen.clear()
        return None


class _Calm:
    """Smooths poses: degrees of freedom at rest are low-passed, fast ones follow (Casiez et al. 2012, One Euro)."""

    def __init__(self, space: PoseSpace, q: Float[Array, "size"]) -> None:
        self._space, self._q, self._last, self._speed = space, q, q, np.zeros(space.freedoms)

    def step(self, q: Float[Array, "size"], seconds: float) -> Float[Array, "size"]:
        """The next pose, this many seconds after the last."""
        self._speed += _share(PACE, seconds) * (tangent_step(self._last, q) / seconds - self._speed)
        share = _share(CALM + QUICK * np.abs(self._speed), seconds)
        self._last, self._q = q, self._space.integrate(self._q, share * tangent_step(self._q, q))
        return self._q


def _share(hertz: Any, seconds: float) -> Any:
    """The update rate of a low-pass filter with this cut-off."""
    return 1.0 / (1.0 + 1.0 / (2.0 * np.pi * hertz * seconds))


def joined(moments: Sequence[WatchedPerson], fps: float) -> WatchedPerson:
    """Join moments of one camera to one take."""
    columns = zip(*((one.pixels, one.visibility, one.shapes, one.sides) for one in moments), strict=True)
    pixels, visibility, shapes, sides = map(np.concatenate, columns)
    return WatchedPerson(moments[0].cameras, pixels, visibility, shapes, sides, fps)


class _Feet(StandingFeet):
    """Feet whose contacts the window decides, picture by picture."""

    def update(self, now: Unknowns, number: int) -> bool:
        """Nothing."""
        del now, number
        return False


class _Window:
    """The last frames of a take without an end."""

    _q: Float[Array, "frames size"]

    def __init__(self, body: Prior, person: WatchedPerson, found: MotionSolution, trust: Trust) -> None:
        """Starts with the body where it was last seen."""
        self._on_body, looser = handles_of(body.space.skeleton)
        self._raw, self._prior, self.space = _filled(person), body, body.space
        self.person = with_sides(self._raw).frames(slice(-WINDOW, None))
        self._pixels = Pixels(body, self._on_body, looser, self.person, trust)
        self._shapes = Shapes(body, self._on_body, looser, WINDOW, trust)
        self._standing, self._told = _Feet(body, self.person, trust), priors_of(body, WINDOW, every=0)
        smooth = trust.smoothness.term(body.space.freedoms, person.fps)
        self._held = Held(slice(HELD))
        terms = [self._pixels, self._shapes, self._standing, self._told, smooth, self._held]
        self._solver = SequenceSolver(body.space, terms, limits=body.limits)
        # The heights of standing heels and toes.
        q = self.space.q_from_frames(found.motion.root_positions, found.motion.rotations)
        self._levels = np.percentile(self.space.points(q, self._standing.feet)[..., 1], 10.0, axis=0)
        self._floor = 0.0
        self._stood = np.full((WINDOW, 4, 3), np.nan)  # positions of standing heels and toes, frame by frame
        self._place(self._aim())

    def follow(self, seen: WatchedPerson, *, again: bool) -> Float[Array, "size"]:
        """The pose at the next moment; `again` if nothing is known of the previous ones."""
        past = self._raw.frames(slice(1 - HISTORY, None))
        self._raw = _filled(seen) if again else joined([past, seen], 1.0)
        whole = with_sides(replace(self._raw, cameras=self.person.cameras, fps=self.person.fps))
        self.person = whole.frames(slice(-WINDOW, None))
        places = self._aim()
        if again:
            return self._place(places)
        gone_on = self.space.integrate(self._q[-1], tangent_step(self._q[-2], self._q[-1]))
        self._q = np.concatenate([self._q[1:], gone_on[None]])
        for values in (self._told.mean, self._told.pull, self._told.precision):
            values[:-1] = values[1:]
        self._told.ask(self._q, range(WINDOW - ASKED, WINDOW))
        # Decide which heels and toes stand: slow ones, until a step without holding them moves them away.
        lately = slice(-max(2, round(FREE_FOR * self.person.fps)), None)
        self._stood = np.concatenate([self._stood[1:], self._stood[-1:]])
        held, self._stood[lately] = self._stood[lately].copy(), np.nan
        self._step()
        free = self.space.points(self._q[-1:], self._standing.feet)[0]
        slow = self._standing.found(self._q)[-1].reshape(4)
        rays, gaps = free - self.person.cameras[0].centre, held[-1] - free
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        aside = np.linalg.norm(gaps - np.sum(gaps * rays, axis=1, keepdims=True) * rays, axis=1)
        gone = aside > LEFT  # across the camera's rays
        held[:, gone] = np.nan
        lands = slow & ~gone & np.isnan(held[-1, :, 0])
        held[-1, lands] = free[lands]
        self._stood[lately] = held
        if np.any(slow):
            rises = float(np.mean(free[slow, 1] - self._levels[slow])) - self._floor
            self._floor += rises / max(1.0, FLOOR_WITHIN * self.person.fps)
        self._step()
        return self._newest()

    def _aim(self) -> Float[Array, "frames 33 3"]:
        """Take what is seen; return rough positions."""
        places = rough_places(self.person)
        self._pixels.aim(self.person)
        self._shapes.aim(self.person, flattened(self.person.cameras[0], places))
        return places

    def _step(self, rounds: int = 1) -> None:
        """Solve the window, with heels and toes where they stand."""
        self._standing.hold(self._stood)
        self._q = self._solver.solve(Unknowns(self._q), rounds=rounds)[0].q

    def _place(self, places: Float[Array, "frames 33 3"]) -> Float[Array, "size"]:
        """Set all frames to the one seen now, from its rough positions, with a foot on the floor."""
        self._q = np.repeat(rough_poses(self._prior, self._on_body, places[-1:]), WINDOW, axis=0)
        self._stood[:], self._held.frames = np.nan, slice(0)
        self._told.ask(self._q, range(WINDOW))
        self._step(PLACING)
        self._held.frames = slice(HELD)
        lowest = self.space.points(self._q[-1:], self._standing.feet)[0, :, 1] - self._levels
        self._floor = float(np.min(lowest))
        return self._newest()

    def _newest(self) -> Float[Array, "size"]:
        """The newest pose on the floor, which seems to rise or sink if the up direction is inexact."""
        q = self._q[-1].copy()
        q[1] -= self._floor
        return q


def _filled(person: WatchedPerson) -> WatchedPerson:
    """A whole window, padded with its first moment if there is no past."""
    first = person.frames(slice(0, 1))
    return joined([*[first] * (WINDOW - len(person)), person], person.fps)
