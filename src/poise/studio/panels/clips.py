"""Put a whole motion on the timeline: an opened clip, a solved take, or a performance."""

from __future__ import annotations

import numpy as np

from poise.apps.learning import read_motion
from poise.apps.retargeting import retarget as onto
from poise.errors import InvalidValueError, PoiseError
from poise.formats import write
from poise.geometry import rotations
from poise.motion.edit import retarget
from poise.motion.motion import Motion
from poise.priors.abilities import standing_pose
from poise.priors.prior import Prior
from poise.priors.registry import learn
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.skeleton import Pose
from poise.solvers.bearing import heading_of
from poise.studio import messages
from poise.studio.correcting import at_frame
from poise.studio.jobs import Report
from poise.studio.layers import Layers
from poise.studio.models import Entry
from poise.studio.session import Answer, Session
from poise.studio.solving import planted
from poise.studio.state import Placed, empty_timeline
from poise.studio.uploads import Upload, Uploads

MOST_FRAMES = 36_000
HALF_TURN = np.array([0.0, 0.0, 1.0, 0.0])  # about the vertical


def on_a_body(
    session: Session, clip: Motion, *, onto_body: bool, report: Report
) -> tuple[Motion, Prior | None]:
    """A clip on an available body: one with its own skeleton, created if needed, or the one shown."""
    shown = session.state.pose.skeleton
    skeletons = [shown, *(each.skeleton for each in session.models.learned)]
    alike = [skeleton for skeleton in skeletons if clip.skeleton.same_topology(skeleton)]
    if clip.origin.character and not onto_body:
        return clip, _prior_of(clip)
    if alike:
        return retarget(clip, alike[0]), None
    if onto_body:
        standing = standing_pose(session.poser.prior_of(session.state))
        carried = onto(clip, standing, progress=lambda done, all_: report(done / max(all_, 1)))
        return Motion(shown, carried.fps, carried.root_positions, carried.rotations, name=clip.name), None
    prior = _prior_of(clip)
    return retarget(clip, prior.space.skeleton), prior


def drawable(clip: Motion, upload: Upload, uploads: Uploads) -> tuple[Motion, Upload]:
    """The clip of a character, and its file for drawing: a GLB beside one that is not glTF."""
    if not clip.origin.character or clip.origin.format == "gltf":
        return clip, upload
    drawn = write(clip, upload.path.with_name(f"{upload.name}.glb"))
    return read_motion(drawn), uploads.keep(drawn, owner=upload.owner)


def _prior_of(clip: Motion) -> Prior:
    """The universal prior on the body of a clip; if it is not a person, a prior of its own motion."""
    try:
        return UniversalPrior(clip.skeleton)
    except PoiseError:
        return _learned(clip)


def _learned(clip: Motion) -> Prior:
    try:
        return learn([clip], "gaussian")
    except PoiseError as error:
        raise InvalidValueError(f"{error}; put the clip onto the body that is shown instead") from error


def shown_as_itself(session: Session, body: Motion, entry: Entry) -> Answer:
    """A character in its own pose, facing the front, posed by the universal prior, as one step of undo."""
    pose = _from_the_front(body[0])
    state = session.state.with_(
        model=entry.id, weights=(), handles=(), look_at=None, constraints="", photo=None, placed=Placed(pose),
        layers=None, smooth=True, anchors=planted(pose), by_hand=False, timeline=empty_timeline(),
    )  # fmt: skip
    return session.begin_with(state)


def _from_the_front(pose: Pose) -> Pose:
    """A pose rotated about its root if it faces away, as characters of VRM 0 do."""
    heading = heading_of(pose)
    if heading is None or heading[2] > -0.5:
        return pose
    turned = pose.rotations.copy()
    turned[0] = rotations.multiply(HALF_TURN, turned[0])
    return Pose(pose.skeleton, pose.root_position * (-1.0, 1.0, -1.0), turned)


def put_on_timeline(
    session: Session, motion: Motion, name: str | None = None, *, entry: Entry | None = None
) -> Answer:
    """The motion as a recording on its own timeline, as one step of undo; a model here has its skeleton."""
    timeline = messages.Timeline(
        fps=motion.fps, frames=len(motion), frame=0, keys=[], pins=[], styles=[],
        clip=name or motion.name or "recording",
    )  # fmt: skip
    state = session.state
    if entry is not None or not motion.skeleton.same_topology(state.pose.skeleton):
        entry = entry or next(
            each for each in session.models.learned if each.skeleton.same_topology(motion.skeleton)
        )
        state = state.with_(model=entry.id, weights=(), handles=(), look_at=None, constraints="", photo=None)
    state = state.with_(timeline=timeline, layers=Layers(motion), smooth=True)
    return session.begin_with(at_frame(state, 0))
