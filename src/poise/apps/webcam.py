"""A body that follows a person in front of a webcam, for `poise perform --webcam`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from poise.errors import PoiseError
from poise.formats.files import make_folder
from poise.motion.motion import Motion
from poise.performance.perform import PerformedFrame, motion_of
from poise.performance.webcam import WebcamPerformance
from poise.vision.live import LiveStep
from poise.vision.sources import VideoRecorder, open_source

RECENT = 60  # bodies over which rate and latency are measured
RECORDED = "webcam.avi"


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
