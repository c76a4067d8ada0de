"""A whole motion put on the timeline: a clip that was opened, a take that was solved, a performance that was kept."""

from __future__ import annotations

from poise.apps.retargeting import retarget as onto
from poise.errors import InvalidValueError, PoiseError
from poise.motion.motion import Motion
from poise.motion.retarget import retarget
from poise.priors.abilities import standing_pose
from poise.priors.prior import Prior
from poise.priors.registry import learn
from poise.studio import messages
from poise.studio.correcting import at_frame
from poise.studio.jobs import Report
from poise.studio.layers import Layers
from poise.studio.session import Answer, Session

MOST_FRAMES = 36_000


def on_a_body(
    session: Session, clip: Motion, *, onto_body: bool, report: Report
) -> tuple[Motion, Prior | None]:
    """A clip on a body that is here: one of its own skeleton, learned from it where there is none, or the one shown."""
    shown = session.state.pose.skeleton
    skeletons = [shown, *(each.skeleton for each in session.models.learned)]
    alike = [skeleton for skeleton in skeletons if clip.skeleton.same_topology(skeleton)]
    if alike:
        return retarget(clip, alike[0]), None
    if onto_body:
        standing = standing_pose(session.poser.prior_of(session.state))
        carried = onto(clip, standing, progress=lambda done, all_: report(done / max(all_, 1)))
        return Motion(shown, carried.fps, carried.root_positions, carried.rotations, name=clip.name), None
    try:
        prior = learn([clip], "gaussian")
    except PoiseError as error:
        raise InvalidValueError(f"{error}; put the clip onto the body that is shown instead") from error
    return retarget(clip, prior.space.skeleton), prior


def put_on_timeline(session: Session, motion: Motion, name: str | None = None) -> Answer:
    """The motion as a recording on a timeline of its own, as one step of undo; a model here has its skeleton."""
    timeline = messages.Timeline(
        fps=motion.fps, frames=len(motion), frame=0, keys=[], pins=[], styles=[],
        clip=name or motion.name or "recording",
    )  # fmt: skip
    state = session.state
    if not motion.skeleton.same_topology(state.pose.skeleton):
        entry = next(each for each in session.models.learned if each.skeleton.same_topology(motion.skeleton))
        state = state.with_(model=entry.id, weights=(), handles=(), look_at=None, constraints="", photo=None)
    state = state.with_(timeline=timeline, layers=Layers(motion), smooth=True)
    return session.begin_with(at_frame(state, 0))
