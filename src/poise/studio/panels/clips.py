"""A whole motion put on the timeline: a clip that was opened, a take that was solved, a performance that was kept."""

from __future__ import annotations

from poise.motion.motion import Motion
from poise.studio import messages
from poise.studio.correcting import at_frame
from poise.studio.layers import Layers
from poise.studio.session import Answer, Session

MOST_FRAMES = 36_000


def put_on_timeline(session: Session, motion: Motion, name: str | None = None) -> Answer:
    """The motion as a recording on a timeline of its own, as one step of undo; a model here has its skeleton."""
    timeline = messages.Timeline(
        fps=motion.fps, frames=len(motion), frame=0, keys=[], pins=[], styles=[],
        clip=name or motion.name or "recording",
    )  # fmt: skip
    state = session.state
    if not motion.skeleton.same_topology(state.pose.skeleton):
        entry = next(each for each in session.models.learned if each.skeleton.same_topology(motion.skeleton))
        state = state.with_(model=entry.id, weights=(), handles=(), look_at=None, photo=None)
    state = state.with_(timeline=timeline, layers=Layers(motion), smooth=True)
    return session.begin_with(at_frame(state, 0))
