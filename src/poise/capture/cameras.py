"""A performer in front of cameras: pictures in, poses out, frame by frame (Chai and Hodgins 2005, sections 4.1 and 6).

Markers are searched where the body's last poses predict them; a marker seen by two cameras has a position, one seen by
a single camera is a pixel that the pose must explain. The body then gives the positions of hidden markers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from poise.capture.performance import Glimpse, Performance, PerformedFrame
from poise.errors import InvalidValueError
from poise.priors.abilities import examples_of
from poise.priors.local.examples import LAG
from poise.types import Array
from poise.vision.sources import Step
from poise.vision.tracker import MarkerFinder, Moment, Wearer

NOISE = 0.004  # metres: standard deviation of markers placed by cameras
CARRIED_ON = 0.8  # share of the last frame's velocity in a prediction
LAYOUTS = 120  # library poses that a first frame is compared with
SHAPES = 300  # library poses for detecting swapped labels
SHAPES_ALONE = 600  # the same for one camera, which sees no depth
LIVELY = 1.2  # metres per second relative to the root: speed of the liveliest markers
CALMEST = 0.2  # of that, for the calmest
GUESSED_FOR = 0.1  # seconds for which the position of a marker seen by one of several cameras is guessed
LOST_FOR = 1.0  # seconds with hardly a marker after which the performer is searched again
FEWEST = 3  # smallest number of markers in a usable frame


@dataclass(frozen=True, eq=False)
class WatchedMoment:
    """One moment: what the cameras saw, the pose (None before the performer is found), and its duration.

    `vision_work` is this thread's processing time for the pictures; the others are wall-clock times.
    """

    time: float
    moment: Moment
    frame: PerformedFrame | None
    vision_work: float
    vision_seconds: float
    seconds: float


class CameraPerformance:
    """Cameras and a performance: takes the pictures of one moment after the other."""

    def __init__(self, tracker: MarkerFinder, performance: Performance) -> None:
        if tracker.labels != performance.names:
            raise InvalidValueError(
                f"the cameras look for {', '.join(tracker.labels)}; the performance has {', '.join(performance.names)}"
            )
        self.tracker, self.performance = tracker, performance
        examples = examples_of(performance.prior)
        self._layouts, _ = examples.every(max(1, len(examples) // LAYOUTS)).markers(performance.handles)
        # The wearer: marker positions in the library's poses, and their movement relative to the root.
        some = examples.every(max(1, len(examples) // (SHAPES if len(tracker.rig) > 1 else SHAPES_ALONE)))
        now, before = some.markers(performance.handles)
        roots = (some.q[:, :3] - some.before[:, :3])[:, None]
        speeds = np.sqrt(np.mean(np.sum((now - before - roots) ** 2, axis=-1), axis=0)) / LAG
        tracker.get_to_know(Wearer(now, np.clip(speeds / LIVELY, CALMEST, 1.5)))
        self._last: PerformedFrame | None = None
        self._before: Array | None = None
        self._last_time, self._seen_time = 0.0, 0.0
        self._placed_time = np.full(len(tracker.labels), -np.inf)

    def step(self, pictures: Sequence[UInt8[Array, "height width 3"] | None], at: float) -> WatchedMoment:
        """The pose at this moment (seconds)."""
        begun, work = time.perf_counter(), time.thread_time()
        if self._last is not None and at - self._seen_time > LOST_FOR:
            self._last = self._before = None
            self.performance.reset()
        if self._last is None:
            moment = self.tracker.begin(pictures, self._layouts)
        else:
            moment = self.tracker.step(pictures, self._expected(at), seconds=max(at - self._last_time, 1e-3))
        seen, work = time.perf_counter() - begun, time.thread_time() - work
        frame = self._posed(moment, at)
        return WatchedMoment(at, moment, frame, work, seen, time.perf_counter() - begun)

    def watch(
        self, steps: Sequence[Step], progress: Callable[[int, int], None] = lambda _done, _all: None
    ) -> list[WatchedMoment]:
        """All moments of a recording."""
        found = []
        for number, step in enumerate(steps):
            found.append(self.step(step.pictures, step.time))
            progress(number + 1, len(steps))
        return found

    def _posed(self, moment: Moment, at: float) -> PerformedFrame | None:
        sighting, rig = moment.sighting, self.tracker.rig
        if np.sum(sighting.is_seen) >= FEWEST:
            self._seen_time = at
        elif self._last is None:
            return None
        for pair in moment.exchanged:
            self.performance.exchange(*pair)
        expected = None if self._last is None else self._expected(at)
        glimpses, guesses = list[Glimpse](), None if expected is None else np.full_like(expected, np.nan)
        for camera, pixels in zip(rig.cameras, sighting.pixels, strict=True):
            lone = np.flatnonzero(np.isfinite(pixels[:, 0]) & ~sighting.is_placed)  # seen by a single camera
            for marker, (x, y) in zip(lone.tolist(), camera.straightened(pixels[lone]).tolist(), strict=True):
                glimpses.append(Glimpse(marker, camera.pinhole, (x, y)))
            if guesses is not None and expected is not None:  # on its ray, nearest to the body's
                rays, centre = camera.rays(pixels[lone]), camera.pinhole.centre
                along = np.sum((expected[lone] - centre) * rays, axis=1, keepdims=True)
                guesses[lone] = centre + along * rays
        if guesses is not None:
            self._placed_time = np.where(sighting.is_placed, at, self._placed_time)
            guesses[at - self._placed_time > GUESSED_FOR] = np.nan  # not for long: depths from guesses drift
        self._before = None if self._last is None else self._last.markers
        frame = self.performance.step(sighting.points, glimpses=glimpses, guesses=guesses, at=at)
        self._last, self._last_time = frame, at
        return frame

    def _expected(self, at: float) -> Float[Array, "markers 3"]:
        """The body's predicted marker positions."""
        assert self._last is not None
        if self._before is None:
            return self._last.markers
        frames = (at - self._last_time) * self.performance.fps
        moved = self._last.markers - self._before
        return np.asarray(self._last.markers + CARRIED_ON * min(frames, 3.0) * moved)
