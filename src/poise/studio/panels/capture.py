"""Capture: a take of markers with gaps, hidden by hand or filled by a style of the take; a person in a video."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from poise.apps.video import capture as solve_video
from poise.apps.video import watch_videos
from poise.capture.filling import Filled
from poise.capture.markers import Capture, fill_gaps, solve, template
from poise.capture.matching import MatchedTake, read_take
from poise.errors import InvalidValueError
from poise.motion.markers import Markers
from poise.studio import messages
from poise.studio.arrays import packed
from poise.studio.jobs import Done, Report
from poise.studio.panels.clips import MOST_FRAMES, put_on_timeline
from poise.studio.session import Answer, Handler, Session
from poise.types import Array

STEPS = {
    "fitting the body": (0.0, 0.3),
    "solving what is well seen": (0.3, 0.5),
    "learning the style": (0.5, 0.6),
}
SOLVING = (0.6, 0.95)


@dataclass(frozen=True, eq=False)
class Opened:
    """A take as recorded, its hidden points, and the filled result."""

    take: MatchedTake
    hidden: Float[Array, "frames markers"]
    filled: Filled | None = None

    @property
    def seen(self) -> Float[Array, "frames markers 3"]:
        """Mask of the visible points."""
        return np.where(self.hidden[..., None] > 0, np.nan, self.take.markers.points)

    @property
    def as_seen(self) -> MatchedTake:
        """The take without hidden points."""
        return replace(self.take, markers=replace(self.take.markers, points=self.seen))


class CapturePanel:
    """One take."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._opened: Opened | None = None

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        return {
            messages.OpenTake: self.open,
            messages.OpenVideo: self.open_video,
            messages.HideMarker: self.hide,
            messages.FillTake: self.fill,
        }

    def open(self, message: messages.OpenTake) -> Answer:
        """Open a take; its labels are matched to a body in the background."""
        session = self._session
        path = session.uploads.find(message.upload, owner=session.token).path

        def work(report: Report) -> Done:
            report(0.0)
            take = read_take(path, template())
            if len(take) > MOST_FRAMES:
                raise InvalidValueError(
                    f"{path.name} has {len(take)} frames; the studio shows up to {MOST_FRAMES}"
                )

            def opened() -> Answer:
                self._opened = Opened(take, np.zeros(take.markers.points.shape[:2]))
                return [self._told()]

            return Done(opened)

        return [session.jobs.start("openTake", f"opening {path.name}", work)]

    def open_video(self, message: messages.OpenVideo) -> Answer:
        """Solve the largest person in a video in the background and put it on the timeline."""
        session = self._session
        path = session.uploads.find(message.upload, owner=session.token).path
        if not template().same_topology(session.state.pose.skeleton):
            raise InvalidValueError(
                "a person in a video is solved on the performer's body; choose People as the model"
            )

        def work(report: Report) -> Done:
            take = watch_videos([str(path)], progress=lambda _, done, total: report(0.7 * done / total))
            if take.people.frames > MOST_FRAMES:
                raise InvalidValueError(
                    f"{path.name} has {take.people.frames} frames; the studio shows up to {MOST_FRAMES}"
                )
            found = solve_video(
                take, person=1, progress=lambda _, done, total: report(0.7 + 0.3 * done / total)
            )
            motion = replace(found.motion, name=path.stem)
            return Done(lambda: put_on_timeline(session, motion))

        return [session.jobs.start("openVideo", f"finding the person in {path.name}", work)]

    def hide(self, message: messages.HideMarker) -> Answer:
        """Hide a marker in a range of frames, or show it again."""
        opened = self._take()
        marker = opened.take.markers.index(message.marker)
        if not message.first <= message.last < len(opened.take):
            raise InvalidValueError(
                f"the take has frames 0 to {len(opened.take) - 1}; got {message.first} to {message.last}"
            )
        hidden = opened.hidden.copy()
        if message.hidden:
            hidden[message.first : message.last + 1, marker] = 1
        else:
            first, end = _run_around(hidden[:, marker], message.first)
            hidden[first:end, marker] = 0
        self._opened = replace(opened, hidden=hidden, filled=None)
        return [self._told()]

    def fill(self, message: messages.FillTake) -> Answer:
        """Solve the body through the take and fill its gaps, in the background."""
        del message
        opened, session = self._take(), self._session

        def work(report: Report) -> Done:
            capture = solve(
                opened.as_seen, progress=lambda what, done, total: report(_share(what, done, total))
            )
            filled = fill_gaps(capture)

            def take() -> Answer:
                if self._opened is not opened:
                    return []
                self._opened = replace(opened, filled=filled)
                return [self._told(), *self._body(capture)]

            return Done(take)

        return [session.jobs.start("fillTake", f"filling {opened.take.markers.name}", work)]

    # --- private ---------------------------------------------------------------------------------------------------

    def _take(self) -> Opened:
        if self._opened is None:
            raise InvalidValueError("open a take first")
        return self._opened

    def _told(self) -> messages.Take:
        opened = self._take()
        markers: Markers = opened.take.markers
        filled = opened.filled
        return messages.Take(
            name=markers.name, fps=markers.fps, frames=len(markers), markers=list(markers.labels),
            positions=packed(opened.seen), filled=b"" if filled is None else packed(filled.points),
            deviations=b"" if filled is None else packed(np.where(filled.measured, 0.0, filled.sigmas)),
        )  # fmt: skip

    def _body(self, capture: Capture) -> Answer:
        """Put the performer on the timeline, if the shown body has the same joints."""
        session, motion = self._session, capture.motion
        if not motion.skeleton.same_topology(session.state.pose.skeleton):
            return []
        return put_on_timeline(session, motion)


def _run_around(hidden: Float[Array, "frames"], frame: int) -> tuple[int, int]:
    """The first frame of the hidden range around a frame, and the one after its last."""
    first = end = frame
    while first > 0 and hidden[first - 1]:
        first -= 1
    while end < len(hidden) and hidden[end]:
        end += 1
    return first, end


def _share(what: str, done: int, total: int) -> float:
    low, high = STEPS.get(what, SOLVING)
    return low + (high - low) * done / max(total, 1)
