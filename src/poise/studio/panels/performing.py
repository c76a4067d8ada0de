"""Live: the body follows a performer, whom the timeline records, and every pose shown is sent over OSC."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import numpy as np

from poise.apps.streaming import VmcSender, address_from_text
from poise.capture.feeds import is_feed
from poise.capture.journal import Journal, cut_off, journal_of
from poise.capture.performance import PerformedFrame, Shortfall, motion_of
from poise.capture.sources import UDP, udp_address
from poise.errors import InvalidValueError, PoiseError
from poise.motion.edit import retarget
from poise.motion.motion import Motion
from poise.priors.abilities import made_for_performing, standing_pose
from poise.priors.prior import Prior
from poise.studio import messages
from poise.studio.arrays import packed
from poise.studio.live import CameraViews, FeedMarkers, LiveSource, PagePictures, UdpMarkers
from poise.studio.models import Entry
from poise.studio.panels.clips import MOST_FRAMES, carried, put_on_timeline
from poise.studio.panels.styles import StylesPanel
from poise.studio.session import Answer, Panel, Session
from poise.studio.state import Placed, State
from poise.vision.colours import Colours

MOST_FPS = 240.0
RECENT = 120  # frames over which latency and rate are measured
TOLD_EVERY = 0.25  # seconds between status messages while no frame arrives
UNSEEN_FOR = 10.0  # seconds without a page after which a performance ends
_LOG = logging.getLogger("poise.studio")


class PerformingPanel(Panel):
    """At most one performance."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._now: LivePerformance | None = None
        self._webcam: PagePictures | None = None
        session.on_close.append(self._end)
        session.on_greet.append(lambda: brought_back(session, session.token))

    def perform(self, message: messages.Perform) -> Answer:
        """Start following in a separate thread."""
        session = self._session
        if self._now is not None:
            raise InvalidValueError("a performance is running; stop it first")
        source, prior = self._source(message), session.models[message.model].prior
        wearer = session.shown_by(session.state) if session.shows_character else None
        switched: Answer = []
        if session.state.model != message.model:
            switched = StylesPanel(session).choose(messages.ChooseModel(model=message.model, clear=True))
        self._now = LivePerformance(session, source, prior, wearer=wearer, ended=self._forget)
        return [*switched, self._now.report("preparing")]

    def stop(self, _: messages.StopPerforming) -> Answer:
        """Ask the thread to end; it reports when it has."""
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
        path = self._session.path
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
        colours, live = Colours.from_text(message.hue), not message.videos
        return CameraViews(path(message.rig), places, live=live, sync=message.sync, colours=colours)


class LivePerformance:
    """A running performance: follows its source, reports its status, and leaves a motion at the end."""

    def __init__(
        self,
        session: Session,
        source: LiveSource,
        prior: Prior,
        *,
        wearer: Entry | None,
        ended: Callable[[], None],
    ) -> None:
        self._session, self._source, self._prior, self._ended = session, source, prior, ended
        self._wearer = wearer  # the character that the performance lands on
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
        late = np.percentile(self._latencies, (50, 95)).tolist() if self._latencies else (None, None)
        span = self._times[-1] - self._times[0] if len(self._times) > 1 else 0.0
        last = self._frames[-1] if self._frames else None
        places = b"" if last is None else packed(np.where(last.seen[:, None], last.markers, np.nan))
        remarks = [str(self._shortfall)] if self._shortfall.unmet else []
        if self._source.by_markers and not made_for_performing(self._prior):
            remarks.insert(0, f"a model of kind local follows better than one of kind {self._prior.kind}")
        return messages.Performing(
            source=self._source.name, step=step, frames=self._count,
            rate=(len(self._times) - 1) / span if span > 0 else 0.0,
            latency=late[0], slowest=late[1], markers=self._names, places=places, taken=self._source.taken,
            notes=[*self._source.notes, *remarks],
        )  # fmt: skip

    def _run(self) -> None:
        """Follow to the end; then put the performance on the timeline, as one step of undo."""
        session = self._session
        try:
            try:
                self._names = list(self._source.prepare(self._prior))
                self._source.run(self._follow, self._go_on)
            except PoiseError as error:
                session.post(messages.Refusal(words=str(error), about="perform", seq=None))
            except Exception:
                _LOG.exception("while following %s", self._source.name)
                words = "the performance went wrong; the terminal that the studio runs in says how"
                session.post(messages.Refusal(words=words, about="perform", seq=None))
            if self._frames and not session.closed:
                fps = float(np.clip(round(self.report("over").rate), 1.0, MOST_FPS))
                kept = motion_of(list(self._frames), fps, name="performance")
                with session.lock:
                    session.post(*self._landed(kept))
                self._journal.close(saved=session.autosave.flush())  # kept until it is saved
            self._journal.close()
        finally:
            self._ended()
            session.post(self.report("over"))

    def _landed(self, motion: Motion) -> Answer:
        """The performance on the timeline, on the character that was shown before it."""
        session, wearer = self._session, self._wearer
        if wearer is None or motion.skeleton.same_topology(wearer.skeleton):
            return put_on_timeline(session, motion)
        try:
            motion = carried(motion, standing_pose(wearer.prior), lambda _: None)
        except PoiseError as error:
            words = f"The performance was not carried over to {wearer.name}: {error}"
            return [messages.Remark(words=words), *put_on_timeline(session, motion)]
        return put_on_timeline(session, motion, entry=wearer)

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


def brought_back(session: Session, token: str) -> Answer:
    """Recover an interrupted performance and put it on the timeline."""
    path = journal_of(session.autosave.store.take_of(token))
    try:
        motion = cut_off(path)
    except PoiseError as error:
        _LOG.warning("a performance that was cut off cannot be brought back: %s", error)
        return []
    if motion is None:
        return []
    skeletons = (entry.skeleton for entry in session.models.learned)
    alike = next((known for known in skeletons if known.same_topology(motion.skeleton)), None)
    if alike is None:
        return []
    answer = put_on_timeline(session, retarget(motion[-MOST_FRAMES:], alike), "performance that was cut off")
    if session.autosave.flush():
        path.unlink(missing_ok=True)
    return answer


class StreamingPanel(Panel):
    """The receiver of poses."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._sender: VmcSender | None = None
        self._to = "", 0
        session.on_pose.append(self._send)
        session.on_close.append(self._stop)

    def stream_out(self, message: messages.StreamOut) -> Answer:
        """Start or stop sending."""
        session, state = self._session, self._session.state
        self._stop()
        if message.to is not None:
            self._to = address_from_text(message.to)
            self._start(state)
            session.streaming = "{}:{}".format(*self._to)
            self._send(state)
        return [session.scene()]

    def _start(self, state: State) -> None:
        (host, port), samples = self._to, state.pose.rotations[None]
        self._sender = VmcSender(state.pose.skeleton, host=host, port=port, samples=samples)

    def _stop(self) -> None:
        if self._sender is not None:
            self._sender.close()
        self._sender, self._session.streaming = None, None

    def _send(self, state: State) -> None:
        """Send one pose; a missing receiver does not disturb the user."""
        if self._sender is None:
            return
        if self._sender.skeleton is not state.pose.skeleton:
            self._sender.close()
            self._start(state)
        try:
            self._sender.send(state.pose)
        except OSError as error:
            _LOG.info("a pose could not be sent: %s", error)
