"""Motions from outside on the timeline: clips, takes of markers with gaps to fill, a person in a video."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from poise.apps.retargeting import retarget as onto
from poise.apps.retargeting import roles_beside
from poise.apps.video import capture as solve_video
from poise.apps.video import watch_videos
from poise.capture.markers import Filled, fill_gaps, solve, template
from poise.capture.matching import MatchedTake, read_take
from poise.errors import InvalidValueError, PoiseError
from poise.formats import read_motion, write
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.motion.edit import retarget
from poise.motion.motion import Motion
from poise.priors.abilities import standing_pose
from poise.priors.prior import Prior
from poise.priors.registry import learn
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.retarget import size_ratio
from poise.skeleton.skeleton import Pose
from poise.solvers.bearing import heading_of
from poise.studio import messages
from poise.studio.arrays import packed
from poise.studio.correcting import at_frame
from poise.studio.jobs import Done, Report
from poise.studio.layers import Layers
from poise.studio.models import Entry
from poise.studio.panels.posing import FILES
from poise.studio.session import Answer, Panel, Session
from poise.studio.solving import planted, vec3
from poise.studio.state import Placed, State, empty_timeline
from poise.types import Array

MOST_FRAMES = 36_000
STEPS = {
    "fitting the body": (0.0, 0.3), "solving what is well seen": (0.3, 0.5), "learning the style": (0.5, 0.6)
}  # fmt: skip
SOLVING = (0.6, 0.95)
HALF_TURN = np.array([0.0, 0.0, 1.0, 0.0])  # about the vertical


def check_length(name: str, frames: int) -> None:
    """Refuse a motion that is longer than a timeline."""
    if frames > MOST_FRAMES:
        raise InvalidValueError(f"{name} has {frames} frames; the studio shows up to {MOST_FRAMES}")


def on_a_body(
    session: Session, clip: Motion, *, onto_body: bool, report: Report
) -> tuple[Motion, Prior | None]:
    """A clip on an available body: one with its own skeleton, created if needed, or the one shown.

    A character that is shown stays: clips land on it, unless they are characters themselves.
    """
    shown = session.state.pose.skeleton
    onto_body = onto_body or (session.shows_character and not clip.origin.character)
    skeletons = [shown, *(each.skeleton for each in session.models.learned if not onto_body)]
    alike = [skeleton for skeleton in skeletons if clip.skeleton.same_topology(skeleton)]
    if clip.origin.character and not onto_body:
        return clip, _prior_of(clip)
    if alike:
        return retarget(clip, alike[0]), None
    if onto_body:
        return carried(clip, standing_pose(session.poser.prior_of(session.state)), report), None
    prior = _prior_of(clip)
    return retarget(clip, prior.space.skeleton), prior


def carried(motion: Motion, body: Pose, report: Report) -> Motion:
    """A motion on the body of a pose."""
    made = onto(motion, body, progress=lambda done, all_: report(done / max(all_, 1)))
    return Motion(body.skeleton, made.fps, made.root_positions, made.rotations, name=motion.name)


def on_shown_body(session: Session, motion: Motion, report: Report) -> Motion:
    """A motion of the performer's body on the one that is shown."""
    shown = session.state.pose.skeleton
    if motion.skeleton.same_topology(shown):
        return motion
    return carried(motion, standing_pose(session.poser.prior_of(session.state)), report)


def _prior_of(clip: Motion) -> Prior:
    """The universal prior on the body of a clip; if it is not a person, a prior of its own motion."""
    with suppress(PoiseError):
        return UniversalPrior(clip.skeleton)
    try:
        return learn([clip], "gaussian")
    except PoiseError as error:
        raise InvalidValueError(f"{error}; put the clip onto the body that is shown instead") from error


def put_on_timeline(
    session: Session,
    motion: Motion,
    name: str | None = None,
    *,
    entry: Entry | None = None,
    video: messages.Video | None = None,
) -> Answer:
    """The motion as a recording on its own timeline, as one step of undo; a model here has its skeleton."""
    timeline = messages.Timeline(
        fps=motion.fps, frames=len(motion), frame=0, keys=[], pins=[], styles=[],
        clip=name or motion.name or "recording",
    )  # fmt: skip
    state = session.state
    if entry is not None or not motion.skeleton.same_topology(state.pose.skeleton):
        skeleton = motion.skeleton
        entry = entry or next(one for one in session.models.learned if one.skeleton.same_topology(skeleton))
        state = state.with_(model=entry.id, weights=(), handles=(), look_at=None, constraints="", photo=None)
    state = state.with_(timeline=timeline, layers=Layers(motion), smooth=True, video=video)
    return session.begin_with(at_frame(state, 0))


def on_another_body(state: State, entry: Entry, pose: Pose, motion: Motion | None) -> State:
    """A state on the body of a model, in a pose or with its motion on that body; keys of whole poses stay.

    What else made or changed the motion is in it.
    """
    old, video = state.timeline, state.video
    if motion is None or video is None:
        video = None
    else:
        x, y, z = size_ratio(state.pose.skeleton, pose.skeleton) * np.array(video.position)
        video = video.with_(position=(x, y, z))
    state = state.with_(
        model=entry.id, weights=(), handles=(), look_at=None, constraints="", photo=None, video=video,
        placed=Placed(pose), layers=None, smooth=True, anchors=planted(pose), by_hand=False,
        timeline=empty_timeline(),
    )  # fmt: skip
    if motion is None:
        return state
    bodies = [key.with_(handles=[]) for key in old.poses]
    timeline = old.with_(keys=[], pins=[], styles=[], poses=bodies, clip=old.clip or "from keys")
    return at_frame(state.with_(timeline=timeline, layers=Layers(motion)), old.frame)


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


def filmed(upload: str, camera: Camera, size: tuple[int, int], ratio: float) -> messages.Video:
    """A video with its camera, where the filmed body is `ratio` as large."""
    width, height = size
    w, x, y, z = rotations.quaternion_from_matrix(camera.rotation.T @ np.diag([1.0, -1.0, -1.0])).tolist()
    fov = np.degrees(2.0 * np.arctan2(height / 2.0, camera.intrinsics[1, 1]))
    place = vec3(ratio * camera.centre)
    return messages.Video(
        upload=upload, size=(width, height), fov=float(fov), position=place, rotation=(w, x, y, z)
    )


class CapturePanel(Panel):
    """One take."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._opened: Opened | None = None

    def open(self, message: messages.OpenTake) -> Answer:
        """Open a take; its labels are matched to a body in the background."""
        session = self._session
        path = session.path(message.upload)

        def work(report: Report) -> Done:
            report(0.0)
            take = read_take(path, template())
            check_length(path.name, len(take))

            def opened() -> Answer:
                self._opened = Opened(take, np.zeros(take.markers.points.shape[:2]))
                return [self._told()]

            return Done(opened)

        return [session.jobs.start("openTake", f"opening {path.name}", work)]

    def open_clip(self, message: messages.OpenClip) -> Answer:
        """Open a recorded motion to play and correct; if no model has its skeleton, one is learned from it."""
        session = self._session
        upload = session.uploads.find(message.upload, owner=session.token)
        path = upload.path

        def work(report: Report) -> Done:
            report(0.0)
            clip, file = read_motion(path), upload
            if clip.origin.character and clip.origin.format != "gltf" and not message.onto_body:
                drawn = write(clip, path.with_name(f"{upload.name}.glb"))  # what the page can draw
                clip, file = read_motion(drawn), session.uploads.keep(drawn, owner=upload.owner)
            given = roles_beside(path, clip.skeleton) if clip.origin.character else {}
            clip = replace(clip, skeleton=clip.skeleton.with_roles(**given)) if given else clip
            check_length(path.name, len(clip))
            motion, prior = on_a_body(session, clip, onto_body=message.onto_body, report=report)
            still = prior is not None and motion.origin.character is not None and len(motion) == 1
            kept = self._motion_on(motion, report) if still else None

            def take() -> Answer:
                if prior is None:
                    return put_on_timeline(session, motion, path.name)
                character = file if motion.origin.character else None
                entry = session.models.add(prior, path.stem, character=character)
                if character is None or len(motion) > 1:
                    return [session.listed(), *put_on_timeline(session, motion, path.name, entry=entry)]
                return [session.listed(), *self._dressed(entry, motion, kept)]

            return Done(take)

        return [session.jobs.start("openClip", f"opening {path.name}", work)]

    def _motion_on(self, character: Motion, report: Report) -> Motion | None:
        """The motion of the timeline on a character; None without one, or if it cannot be carried over."""
        session = self._session
        if session.motion is None:
            return None
        try:
            return carried(session.motion, character[0], report)
        except PoiseError as error:
            session.post(messages.Remark(words=f"The motion was not carried over to the character: {error}"))
            return None

    def _dressed(self, entry: Entry, character: Motion, motion: Motion | None) -> Answer:
        """A character with the motion of the timeline, or in its own pose, facing the front."""
        session, pose = self._session, character[0]
        heading = heading_of(pose)
        if heading is not None and heading[2] <= -0.5:  # it faces away, as characters of VRM 0 do
            turned = pose.rotations.copy()
            turned[0] = rotations.multiply(HALF_TURN, turned[0])
            pose = Pose(pose.skeleton, pose.root_position * (-1.0, 1.0, -1.0), turned)
        return session.begin_with(on_another_body(session.state, entry, pose, motion))

    def open_video(self, message: messages.OpenVideo) -> Answer:
        """Solve the largest person in a video in the background and put it on the timeline, on the shown body.

        The video can be seen beside the body and over it.
        """
        session = self._session
        path = session.path(message.upload)

        def work(report: Report) -> Done:
            take = watch_videos([str(path)], progress=lambda _, done, total: report(0.7 * done / total))
            check_length(path.name, take.people.frames)
            found = solve_video(
                take, person=1, progress=lambda _, done, total: report(0.7 + 0.2 * done / total)
            )
            motion = on_shown_body(session, found.motion, lambda share: report(0.9 + 0.1 * share))
            ratio = size_ratio(found.motion.skeleton, motion.skeleton)
            video = None
            if path.suffix.lower() in FILES["video"]:
                video = filmed(message.upload, found.cameras[0], take.cameras[0].size, ratio)
            else:
                words = f"Browsers do not play {path.name}; as MP4 it is shown beside the body and over it."
                session.post(messages.Remark(words=words))
            named = replace(motion, name=path.stem)
            return Done(lambda: put_on_timeline(session, named, video=video))

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
            first = end = message.first
            while first > 0 and hidden[first - 1, marker]:
                first -= 1
            while end < len(hidden) and hidden[end, marker]:
                end += 1
            hidden[first:end, marker] = 0
        self._opened = replace(opened, hidden=hidden, filled=None)
        return [self._told()]

    def fill(self, _: messages.FillTake) -> Answer:
        """Solve the body through the take and fill its gaps, in the background."""
        opened, session = self._take(), self._session

        def work(report: Report) -> Done:
            def progress(what: str, done: int, total: int) -> None:
                low, high = STEPS.get(what, SOLVING)
                report(low + (high - low) * done / max(total, 1))

            seen = replace(opened.take.markers, points=opened.seen)
            capture = solve(replace(opened.take, markers=seen), progress=progress)
            filled = fill_gaps(capture)
            motion = on_shown_body(session, capture.motion, report)

            def take() -> Answer:
                if self._opened is not opened:
                    return []
                self._opened = replace(opened, filled=filled)
                return [self._told(), *put_on_timeline(session, motion)]

            return Done(take)

        return [session.jobs.start("fillTake", f"filling {opened.take.markers.name}", work)]

    def _take(self) -> Opened:
        if self._opened is None:
            raise InvalidValueError("open a take first")
        return self._opened

    def _told(self) -> messages.Take:
        opened = self._take()
        markers, filled = opened.take.markers, opened.filled
        return messages.Take(
            name=markers.name, fps=markers.fps, frames=len(markers), markers=list(markers.labels),
            positions=packed(opened.seen), filled=b"" if filled is None else packed(filled.points),
            deviations=b"" if filled is None else packed(np.where(filled.measured, 0.0, filled.sigmas)),
        )  # fmt: skip
