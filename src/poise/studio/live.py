"""Sources of a live performance: markers over UDP, or cameras and videos; each runs until it is stopped."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Condition
from typing import ClassVar

import numpy as np

from poise.capture import setup
from poise.capture.feeds import fitted, markers_of, open_feed
from poise.capture.performance import PerformedFrame
from poise.capture.streams import Stream, serve_udp
from poise.errors import InvalidValueError, PoiseError
from poise.priors.prior import Prior
from poise.skeleton.skeleton import Pose
from poise.vision.colours import Colours

Follow = Callable[[PerformedFrame, float], None]
"""Called with every pose and the arrival time (perf_counter) of its data."""
GoOn = Callable[[], bool]

WAITS = 0.1  # seconds between checks whether a webcam is still wanted
UNHEARD = 3  # frames without a known label after which the labels are reported


@dataclass
class LiveSource(ABC):
    """A source to follow. `notes` for the user grow while it runs."""

    notes: list[str] = field(default_factory=list, kw_only=True)
    by_markers: ClassVar[bool] = True
    taken: float | None = field(
        default=None, kw_only=True
    )  # time of the newest picture by the clock of its source

    @property
    @abstractmethod
    def name(self) -> str:
        """The name for the user."""

    @abstractmethod
    def prepare(self, prior: Prior) -> Sequence[str]:
        """Prepare to follow with a model; return the names of its markers."""

    @abstractmethod
    def run(self, follow: Follow, go_on: GoOn) -> None:
        """Run until its end, or until stopped."""


@dataclass
class UdpMarkers(LiveSource):
    """Frames of markers as lines of text on a UDP port; 0 is any free port."""

    host: str
    port: int
    mapping: Path | None = None

    @property
    def name(self) -> str:
        """The port."""
        return f"UDP port {self.port}"

    def prepare(self, prior: Prior) -> Sequence[str]:
        """Prepare for the markers of the mapping, else for hands, feet, shoulders, waist and forehead."""
        self._performance = setup.set_up(prior, None, mapping=self.mapping)
        return self._performance.names

    def run(self, follow: Follow, go_on: GoOn) -> None:
        """Answer every datagram that was not overtaken by the next."""
        stream, heard = Stream(self._performance), 0

        def answered(arrived: float) -> None:
            nonlocal heard
            if stream.frames:
                follow(stream.frames[-1], arrived)
            heard += len(stream.frames)
            bad = stream.skipped
            self.notes[:] = [f"{bad} lines could not be read: {stream.trouble}"] if bad else []
            if heard >= UNHEARD and not stream.labelled:
                wanted = ", ".join(stream.performance.names)
                self.notes.append(
                    f"what arrives has none of these labels: {wanted}; a mapping file says which is which"
                )
            stream.frames.clear()

        def ready(bound: int) -> None:
            self.port = bound

        try:
            serve_udp(
                stream, self.port, host=self.host, go_on=go_on, ready=ready, answered=answered, newest=True
            )
        except OSError as error:
            raise PoiseError(
                f"cannot listen on {self.host}:{self.port}: {error.strerror or error}"
            ) from error


@dataclass
class FeedMarkers(LiveSource):
    """Another program's live protocol, such as `vmc:39539`."""

    take: str
    mapping: Path | None = None

    @property
    def name(self) -> str:
        """The feed as it was named."""
        return self.take

    def prepare(self, prior: Prior) -> Sequence[str]:
        """Prepare for the markers of the mapping, else for those of such a feed."""
        self._performance = setup.set_up(prior, None, mapping=self.mapping, markers=markers_of(self.take))
        return self._performance.names

    def run(self, follow: Follow, go_on: GoOn) -> None:
        """Every frame as it comes."""
        stream = Stream(self._performance)
        said: list[str] = []
        feed = open_feed(self.take, go_on=go_on, ready=said.append)
        for frame in fitted(feed, self._performance.space.skeleton):
            arrived = time.perf_counter()
            stream.take(frame)
            if stream.frames:
                follow(stream.frames.pop(), arrived)
            self.notes[:] = (
                said
                if stream.labelled
                else [*said, f"none of these came: {', '.join(self._performance.names)}"]
            )


@dataclass
class PagePictures(LiveSource):
    """Pictures of the page's webcam over its websocket; only the newest counts."""

    name, by_markers = "webcam", False

    def __post_init__(self) -> None:
        self._news = Condition()
        self._newest: tuple[bytes, float, float] | None = None

    def put(self, jpeg: bytes, taken: float) -> None:
        """Set the newest picture, and its time by the page's clock (milliseconds)."""
        with self._news:
            self._newest = jpeg, taken, time.perf_counter()
            self._news.notify()

    def prepare(self, prior: Prior) -> Sequence[str]:
        """Load the networks that detect people, and compile the tracking."""
        from poise.capture.webcam import WebcamPerformance

        self._performance, self._space = WebcamPerformance(prior), prior.space
        self._performance.rehearse()
        return self._performance.names

    def run(self, follow: Follow, go_on: GoOn) -> None:
        """Follow every picture that was not overtaken by the next."""
        from poise.capture.webcam import FOLLOWING
        from poise.vision.opencv import cv2

        while go_on():
            with self._news:
                self._news.wait_for(lambda: self._newest is not None, timeout=WAITS)
                newest, self._newest = self._newest, None
            if newest is None:
                continue
            jpeg, taken, arrived = newest
            picture = cv2().imdecode(np.frombuffer(jpeg, np.uint8), cv2().IMREAD_COLOR) if jpeg else None
            if picture is None:
                raise InvalidValueError("a picture of the webcam cannot be read; expected JPEG")
            frame = self._performance.step(np.asarray(picture), taken / 1000.0)
            doing = self._performance.doing
            self.notes[:] = [] if doing == FOLLOWING else [doing]
            if frame is None:
                continue
            self.taken, space, pose = taken, self._space, frame.pose
            # On the model's own body: the studio's timeline has one size.
            ratio = space.skeleton.height / pose.skeleton.height
            root = ratio * np.asarray(pose.root_position)
            q = space.q_from_pose(Pose(space.skeleton, root, pose.rotations))
            follow(replace(frame, q=q, space=space, markers=ratio * frame.markers), arrived)


@dataclass
class CameraViews(LiveSource):
    """Videos in real time, or live cameras; the room is empty for the first second."""

    rig: Path
    places: Sequence[str | Path]
    live: bool
    sync: str = "time"
    colours: Colours = field(default_factory=Colours)

    @property
    def name(self) -> str:
        """What the pictures come from."""
        kind = "camera" if self.live else "video"
        return f"{len(self.places)} {kind}{'s' if len(self.places) > 1 else ''}"

    def prepare(self, prior: Prior) -> Sequence[str]:
        """Open the cameras first, which fails fast; then models for the markers that these cameras can distinguish."""
        from poise.apps.camera_takes import MORE, NINE, open_cameras
        from poise.capture.cameras import NOISE
        from poise.vision.rig import load_rig

        self._cameras = open_cameras(load_rig(self.rig), self.places)
        self.notes += self._cameras.notes
        names = NINE if len(self._cameras.rig) > 1 else MORE
        self._performance = setup.set_up(prior, None, noise=NOISE, markers=names)
        return self._performance.names

    def run(self, follow: Follow, go_on: GoOn) -> None:
        """Follow every moment; videos no faster than they were filmed."""
        from poise.apps.camera_takes import perform_take
        from poise.capture.cameras import WatchedMoment

        begun: float | None = None

        def answer(watched: WatchedMoment) -> None:
            nonlocal begun
            if watched.frame is not None:
                follow(watched.frame, time.perf_counter() - watched.seconds)
            if not self.live:
                begun = time.monotonic() - watched.time if begun is None else begun
                time.sleep(max(0.0, begun + watched.time - time.monotonic()))

        take = perform_take(
            self._cameras, self._performance, live=self.live, sync=self.sync, colours=self.colours, answer=answer,
            go_on=go_on,
        )  # fmt: skip
        self.notes[:] = take.notes
