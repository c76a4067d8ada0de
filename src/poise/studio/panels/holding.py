"""Pins over a recording: every frame of theirs is changed in the background so that handles stay in place."""

from __future__ import annotations

from poise.errors import InvalidValueError
from poise.studio import messages
from poise.studio.correcting import at_frame, keys_at, recorrected
from poise.studio.jobs import Done, Report
from poise.studio.messages import Timeline
from poise.studio.session import Answer, Session
from poise.studio.solving import Poser
from poise.studio.state import State


def hold(session: Session, state: State) -> messages.Progress:
    """Start changing the frames whose pins differ from those of the current state; one step of undo."""
    timeline, old, began = state.timeline, session.state.timeline, session.state.layers
    frames = [frame for frame in range(timeline.frames) if keys_at(old, frame) != keys_at(timeline, frame)]

    def work(report: Report) -> Done:
        held = recorrected(
            state.with_(timeline=old),
            timeline,
            frames,
            Poser(session.models),
            lambda done: report(done / len(frames)),
        )
        return Done(lambda: take(held))

    def take(held: State) -> Answer:
        if session.state.layers is not began:
            raise InvalidValueError("the motion was changed while a handle was being held; hold it again")
        frame = session.state.timeline.frame
        return session.begin_with(at_frame(held.with_(timeline=_at(timeline, frame)), frame))

    return session.jobs.start("hold", "holding handles over the recording", work)


def _at(timeline: Timeline, frame: int) -> Timeline:
    timeline.frame = frame
    return timeline
