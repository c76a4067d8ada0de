"""Live performance: the body follows a performer by markers or pictures, and the timeline records it."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import numpy as np

from poise.capture.feeds import is_feed
from poise.capture.journal import Journal, cut_off, journal_of
from poise.capture.performance import PerformedFrame, Shortfall, motion_of
from poise.capture.sources import UDP, udp_address
from poise.errors import InvalidValueError, PoiseError
from poise.motion.edit import retarget
from poise.priors.abilities import made_for_performing
from poise.priors.prior import Prior
from poise.studio import messages
from poise.studio.arrays import packed
from poise.studio.live import CameraViews, FeedMarkers, LiveSource, PagePictures, UdpMarkers
from poise.studio.panels.clips import MOST_FRAMES, put_on_timeline
from poise.studio.panels.styles import StylesPanel
from poise.studio.session import Answer, Handler, Session
from poise.studio.state import Placed
from poise.vision.colours import Colours

MOST_FPS = 240.0
RECENT = 120  # frames over which latency and rate are measured
TOLD_EVERY = 0.25  # seconds between status messages while no frame arrives
UNSEEN_FOR = 10.0  # seconds without a page after which a performance ends
_LOG = logging.getLogger("poise.studio")


class PerformingPanel:
    """At most one performance."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._now: LivePerformance | None = None
        self._webcam: PagePictures | None = None
        session.on_close.append(self._end)
        session.on_greet.append(lambda: brought_back(session, session.token))

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        return {
            messages.Perform: self.perform,
            messages.StopPerforming: self.stop,
            messages.WebcamPicture: self.see,
        }

    def perform(self, message: messages.Perform) -> Answer:
        """Start following in a separate thread."""
        session = self._session
        if self._now is not None:
            raise InvalidValueError("a performance is running; stop it first")
        source, prior = self._source(message), session.models[message.model].prior
        switched: Answer = []
        if session.state.model != message.model:
            switched = StylesPanel(session).choose(messages.ChooseModel(model=message.model))
        self._now = LivePerformance(session, source, prior, ended=self._forget)
        return [*switched, self._now.report("preparing")]

    def stop(self, message: messages.StopPerforming) -> Answer:
        """Ask the thread to end; it reports when it has."""
        del message
        if self._now is None:
            raise InvalidValueError("there is no performance to stop")
        self._end()
        return []

    def see(self, message: messages.WebcamPicture) -> Answer:
        """Pass on a picture of the page's webcam; one after the end is ignored."""
        if self._webcam is not None:
            self._webcam.put(message.jpeg, message.taken)
        return []

    def _end(self) -> None:
        if self._now is not None:
            self._now.stopped = True

    def _forget(self) -> None:
        """Drop an ended performance: the models that it was prepared with take megabytes."""
        with self._session.lock:
            self._now = self._webcam = None

    def _source(self, message: messages.Perform) -> LiveSource:
        session = self._session

        def path(upload: str) -> Path:
            return session.uploads.find(upload, owner=session.token).path

        ways = [message.stream is not None, bool(message.videos), bool(message.cameras), message.webcam]
        if sum(ways) != 1:
            raise InvalidValueError(
                "a performance comes from a stream, from videos, from cameras or from a webcam: one of them"
            )
        self._webcam = PagePictures() if message.webcam else None
        if self._webcam is not None:
            return self._webcam
        if message.stream is not None:
            mapping = path(message.mapping) if message.mapping else None
            if is_feed(message.stream.strip()):
                return FeedMarkers(message.stream.strip(), mapping)
            host, port = udp_address(UDP + message.stream.strip().removeprefix(UDP))
            return UdpMarkers(host, port, mapping)
        if message.rig is None:
            raise InvalidValueError(
                "pictures need the file of their cameras, as poise cameras calibrate writes it"
            )
        files: list[str | Path] = [path(video) for video in message.videos]
        places = files or [str(number) for number in message.cameras]
        colours = Colours.from_text(message.hue)
        return CameraViews(
            path(message.rig), places, live=not message.videos, sync=message.sync, colours=colours
        )


class LivePerformance:
    """A running performance: follows its source, reports its status, and leaves a motion at the end."""

    def __init__(
        self, session: Session, source: LiveSource, prior: Prior, *, ended: Callable[[], None]
    ) -> None:
        self._session, self._source, self._prior, self._ended = session, source, prior, ended
        self.stopped = False
        self._frames: deque[PerformedFrame] = deque(maxlen=MOST_FRAMES)
        self._latencies: deque[float] = deque(maxlen=RECENT)
        self._times: deque[float] = deque(maxlen=RECENT)
        self._names: list[str] = []
        self._watched = time.monotonic()
        self._told = 0.0
        self._count = 0
        self._journal = Journal(session.autosave.store.take_of(session.token))
        self._shortfall = Shortfall()
        Thread(target=self._run, name="poise-performance", daemon=True).start()

    def report(self, step: messages.PerformingStep) -> messages.Performing:
        """Its status."""
        middle, slowest = np.percentile(self._latencies, (50, 95)) if self._latencies else (None, None)
        span = self._times[-1] - self._times[0] if len(self._times) > 1 else 0.0
        last = self._frames[-1] if self._frames else None
        places = b"" if last is None else packed(np.where(last.seen[:, None], last.markers, np.nan))
        return messages.Performing(
            source=self._source.name, step=step, frames=self._count,
            rate=(len(self._times) - 1) / span if span > 0 else 0.0,
            latency=None if middle is None else float(middle), slowest=None if slowest is None else float(slowest),
            markers=self._names, places=places, notes=[*self._source.notes, *self._remarks],
            taken=self._source.taken,
        )  # fmt: skip

    @property
    def _remarks(self) -> list[str]:
        """Notes on the model, and on unmet markers."""
        model = f"a model of kind local follows better than one of kind {self._prior.kind}"
        return [
            *([model] if self._source.by_markers and not made_for_performing(self._prior) else []),
            *([str(self._shortfall)] if self._shortfall.unmet else []),
        ]

    def _run(self) -> None:
        try:
            self._perform()
            self._finish()
        finally:
            self._ended()
            self._session.post(self.report("over"))

    def _perform(self) -> None:
        session = self._session
        try:
            self._names = list(self._source.prepare(self._prior))
            self._source.run(self._follow, self._go_on)
        except PoiseError as error:
            session.post(messages.Refusal(words=str(error), about="perform", seq=None))
        except Exception:
            _LOG.exception("while following %s", self._source.name)
            words = "the performance went wrong; the terminal that the studio runs in says how"
            session.post(messages.Refusal(words=words, about="perform", seq=None))

    def _follow(self, frame: PerformedFrame, arrived: float) -> None:
        """Send a pose as soon as it is known, with markers and latency."""
        session = self._session
        self._frames.append(frame)
        self._count += 1
        self._shortfall.add(frame)
        with session.lock:
            session.solved = None
            state = session.state.with_(placed=Placed(frame.pose, frame.q, frame.space))
            pose = session.show(state, fine=False)
        self._times.append(time.monotonic())
        self._journal.add(frame, self._times[-1])
        session.post(pose, self.report("following"))
        self._latencies.append(1000.0 * (time.perf_counter() - arrived))

    def _go_on(self) -> bool:
        """Whether to continue; sends a status message from time to time."""
        now = time.monotonic()
        if self._session.outlet is not None:
            self._watched = now
        if now - max(self._told, self._times[-1] if self._times else 0.0) > TOLD_EVERY:
            self._told = now
            self._session.post(self.report("waiting"))
        gone = self._session.closed or now - self._watched > UNSEEN_FOR
        if self._count >= MOST_FRAMES:
            self._source.notes.append(
                f"the performance ended at {MOST_FRAMES} frames, as many as the timeline holds"
            )
        return not (self.stopped or gone or self._count >= MOST_FRAMES)

    def _finish(self) -> None:
        """Put the performance on the timeline, as one step of undo; its journal is kept until then."""
        session = self._session
        if self._frames and not session.closed:
            kept = motion_of(list(self._frames), self._fps(), name="performance")
            with session.lock:
                session.post(*put_on_timeline(session, kept))
            self._journal.close(saved=session.autosave.flush())
        self._journal.close()

    def _fps(self) -> float:
        """The frame rate at the end."""
        return float(np.clip(round(self.report("over").rate), 1.0, MOST_FPS))


def brought_back(session: Session, token: str) -> Answer:
    """Recover an interrupted performance and put it on the timeline."""
    path = journal_of(session.autosave.store.take_of(token))
    try:
        motion = cut_off(path)
    except PoiseError as error:
        _LOG.warning("a performance that was cut off cannot be brought back: %s", error)
        return []
    skeletons = (entry.skeleton for entry in session.models.learned)
    alike = next(
        (known for known in skeletons if motion is not None and known.same_topology(motion.skeleton)), None
    )
    if motion is None or alike is None:
        return []
    answer = put_on_timeline(session, retarget(motion[-MOST_FRAMES:], alike), "performance that was cut off")
    if session.autosave.flush():
        path.unlink(missing_ok=True)
    return answer
