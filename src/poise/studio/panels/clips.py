"""A whole motion put on the timeline: a clip that was opened, a take that was solved, a performance that was kept."""

from __future__ import annotations

from poise.motion.motion import Motion
from poise.studio import messages
from poise.studio.arrays import world_of
from poise.studio.session import Answer, Session
from poise.studio.state import Placed

MOST_FRAMES = 36_000


def put_on_timeline(session: Session, motion: Motion, name: str | None = None) -> Answer:
    """The motion on a timeline of its own, as one step of undo; its skeleton is that of the body shown."""
    session.motion, session.solved = motion, None
    timeline = messages.Timeline(
        fps=motion.fps, frames=len(motion), frame=0, keys=[], pins=[], styles=[], clip=name or motion.name
    )
    answer = session.commit(session.state.with_(timeline=timeline, placed=Placed(motion[0])))
    whole = messages.MotionRange(
        seq=session.seq, fine=True, first=0, frames=len(motion), path_handles=[], paths=b"", unmet=[],
        world=world_of(motion.skeleton, motion.root_positions, motion.rotations),
    )  # fmt: skip
    return [*answer, whole]
