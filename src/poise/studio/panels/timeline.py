"""The timeline: keys, pins and styles; the touched range at once, the whole of it smoothed in the background."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from jaxtyping import Float

from poise.apps.keyframing import keyframe_in, plan
from poise.apps.learning import read_motion
from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.motion.retarget import retarget
from poise.priors.prior import Prior
from poise.solvers.trajectory import common_space, frame_by_frame
from poise.studio import messages, timeline_script
from poise.studio.arrays import packed, world_of
from poise.studio.jobs import Done, Report
from poise.studio.messages import Key, Timeline
from poise.studio.models import PLAIN
from poise.studio.panels.clips import put_on_timeline
from poise.studio.session import Answer, Handler, Session
from poise.studio.solving import point_of, points_of, vec3
from poise.studio.state import Placed, State

Array = np.ndarray

MOST_KEYS = 2000
SMOOTHING = "solveTimeline"


@dataclass(frozen=True, eq=False)
class TimelinePlan:
    """A timeline made ready to solve: the priors, and how much of each every frame has."""

    state: State
    priors: Sequence[Prior]
    weights: Float[Array, "frames styles"]


class TimelinePanel:
    """Poses over time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        session.restorers.append(self._restored)

    @property
    def answers(self) -> dict[type, Handler]:
        """Who answers what."""
        return {
            messages.SetTimeline: self.resize,
            messages.SetFrame: self.set_frame,
            messages.PutKey: self.put_key,
            messages.DragKey: self.drag_key,
            messages.RemoveKey: self.remove_key,
            messages.PutPin: self.put_pin,
            messages.RemovePin: self.remove_pin,
            messages.PutStyleKey: self.put_style,
            messages.RemoveStyleKey: self.remove_style,
            messages.SolveTimeline: self.solve,
            messages.OpenClip: self.open_clip,
        }

    def resize(self, message: messages.SetTimeline) -> Answer:
        """Keys beyond the end are cut off."""
        last = message.frames - 1
        old = self._session.state.timeline
        timeline = Timeline(
            fps=message.fps, frames=message.frames, frame=min(old.frame, last),
            keys=[key for key in old.keys if key.frame <= last],
            pins=[_cut(pin, last) for pin in old.pins if pin.first < last],
            styles=[key for key in old.styles if key.frame <= last], clip=None,
        )  # fmt: skip
        self._session.motion = None
        return self._changed(timeline)

    def set_frame(self, message: messages.SetFrame) -> Answer:
        """Shows a frame; not a step of undo."""
        session, motion = self._session, self._session.motion
        self._within(message.frame)
        timeline = msgspec.structs.replace(session.state.timeline, frame=message.frame)
        state = session.state.with_(timeline=timeline)
        if motion is not None:
            state = state.with_(placed=Placed(motion[message.frame]))
            session.solved = None
        pose = session.show(state)
        session.history.amend(session.state)
        return [pose]

    def put_key(self, message: messages.PutKey) -> Answer:
        """A key of a handle, where the body is if it says nothing else."""
        timeline = self._session.state.timeline
        if len(timeline.keys) >= MOST_KEYS:
            raise InvalidValueError(f"a timeline has at most {MOST_KEYS} keys")
        key = self._checked(message.key)
        return self._changed(
            timeline_script.with_key(timeline, key), timeline_script.touched_range(timeline, key)
        )

    def drag_key(self, message: messages.DragKey) -> Answer:
        """A key on its way; frames between its neighbours follow."""
        session = self._session
        key = self._checked(message.key)
        timeline = timeline_script.with_key(session.state.timeline, key)
        span = timeline_script.touched_range(timeline, key)
        if message.last:
            return self._changed(timeline, span)
        session.state = session.state.with_(timeline=timeline)
        return self._solved_range(session.state, span)

    def remove_key(self, message: messages.RemoveKey) -> Answer:
        """One key less."""
        timeline = self._session.state.timeline
        gone = next(
            (key for key in timeline.keys if (key.handle, key.frame) == (message.handle, message.frame)), None
        )
        if gone is None:
            raise InvalidValueError(f"{message.handle} has no key at frame {message.frame}")
        left = [key for key in timeline.keys if key is not gone]
        return self._changed(
            msgspec.structs.replace(timeline, keys=left), timeline_script.touched_range(timeline, gone)
        )

    def put_pin(self, message: messages.PutPin) -> Answer:
        """A range in which a handle stays where it is."""
        timeline, pin = self._session.state.timeline, message.pin
        self._session.state.handle(pin.handle)
        self._within(pin.last)
        if pin.last <= pin.first:
            raise InvalidValueError(f"a pin ends after it begins; got frames {pin.first} to {pin.last}")
        others = [old for old in timeline.pins if old.handle != pin.handle or not _overlap(old, pin)]
        return self._changed(msgspec.structs.replace(timeline, pins=[*others, pin]))

    def remove_pin(self, message: messages.RemovePin) -> Answer:
        """One pin less."""
        timeline = self._session.state.timeline
        left = [pin for pin in timeline.pins if (pin.handle, pin.first) != (message.handle, message.first)]
        if len(left) == len(timeline.pins):
            raise InvalidValueError(f"{message.handle} is not pinned from frame {message.first}")
        return self._changed(msgspec.structs.replace(timeline, pins=left))

    def put_style(self, message: messages.PutStyleKey) -> Answer:
        """Other styles from a frame on."""
        timeline, session = self._session.state.timeline, self._session
        self._within(message.key.frame)
        session.models.blend(message.key.weights)  # or an error that says what cannot be blended
        others = [key for key in timeline.styles if key.frame != message.key.frame]
        styles = sorted([*others, message.key], key=lambda key: key.frame)
        return self._changed(msgspec.structs.replace(timeline, styles=styles))

    def remove_style(self, message: messages.RemoveStyleKey) -> Answer:
        """One change of style less."""
        timeline = self._session.state.timeline
        left = [key for key in timeline.styles if key.frame != message.frame]
        return self._changed(msgspec.structs.replace(timeline, styles=left))

    def solve(self, message: messages.SolveTimeline) -> Answer:
        """All frames together, in the background."""
        del message
        if not _has_something(self._session.state.timeline):
            raise InvalidValueError("there is nothing on the timeline yet: key a handle, or pin one")
        self._smooth()
        return []

    def open_clip(self, message: messages.OpenClip) -> Answer:
        """A recorded motion to look at, and to take handles and keys from."""
        session = self._session
        path = session.uploads.find(message.upload, owner=session.token).path
        clip, skeleton = read_motion(path), session.state.pose.skeleton
        if not clip.skeleton.same_topology(skeleton):
            raise InvalidValueError(
                f"{path.name} has another skeleton than the model; learn a model from it, then open it"
            )
        return put_on_timeline(session, retarget(clip, skeleton), path.name)

    # --- private ---------------------------------------------------------------------------------------------------

    def _checked(self, key: Key) -> Key:
        """A key within the timeline of a handle that is there, at a place."""
        session = self._session
        self._within(key.frame)
        handle = session.state.handle(key.handle)
        if key.position is not None:
            return key
        pose = session.motion[key.frame] if session.motion is not None else session.state.pose
        return msgspec.structs.replace(key, position=vec3(points_of(pose, [point_of(handle)])[0]))

    def _within(self, frame: int) -> None:
        if frame >= self._session.state.timeline.frames:
            raise InvalidValueError(
                f"the timeline has frames 0 to {self._session.state.timeline.frames - 1}; got {frame}"
            )

    def _changed(self, timeline: Timeline, span: tuple[int, int] | None = None) -> Answer:
        """The timeline is another: the touched range at once, the whole of it later, as one step of undo."""
        session = self._session
        state = session.state.with_(timeline=timeline)
        if timeline.keys or timeline.pins:
            state = state.with_(timeline=msgspec.structs.replace(timeline, clip=None))
        solved = self._solved_range(state, span)
        if session.motion is not None:
            state = state.with_(placed=Placed(session.motion[timeline.frame]))
            session.solved = None
        answer = [*session.commit(state), *solved]
        if solved:
            self._smooth()
        return answer

    def _restored(self, before: State, after: State) -> Answer:
        """After undo and redo: the motion that goes with the timeline."""
        same = before.timeline.keys == after.timeline.keys and before.timeline.pins == after.timeline.pins
        if (
            same
            and before.timeline.styles == after.timeline.styles
            and before.timeline.frames == after.timeline.frames
        ):
            return []
        self._session.motion = None
        solved = self._solved_range(after, None)
        if solved:
            self._smooth()
        return solved

    def _solved_range(self, state: State, span: tuple[int, int] | None) -> Answer:
        """Frames of a range solved one after the other; all, where some are not known yet."""
        session, timeline = self._session, state.timeline
        if not _has_something(timeline):
            return []
        first, end = span if span is not None and self._fits(timeline) else (0, timeline.frames)
        ready = self._plan(state)
        _, frames = plan(timeline_script.script_of(state), ready.priors, ready.weights)
        space = common_space(ready.priors).space
        after = session.motion[first] if session.motion is not None and self._fits(timeline) else state.pose
        q = frame_by_frame(ready.priors, frames[first:end], space, after=after)
        self._take(Motion(space.skeleton, timeline.fps, *space.frames_from_q(q)), first, timeline)
        return [self._range(first, end - first, seq=session.seq, fine=False, state=state, unmet=[])]

    def _take(self, part: Motion, first: int, timeline: Timeline) -> None:
        session = self._session
        if session.motion is None or not self._fits(timeline):
            session.motion = part
            return
        roots, turns = session.motion.root_positions.copy(), session.motion.rotations.copy()
        roots[first : first + len(part)], turns[first : first + len(part)] = (
            part.root_positions,
            part.rotations,
        )
        session.motion = session.motion.with_frames(roots, turns)

    def _fits(self, timeline: Timeline) -> bool:
        motion = self._session.motion
        return motion is not None and len(motion) == timeline.frames and motion.fps == timeline.fps

    def _plan(self, state: State) -> TimelinePlan:
        if state.model == PLAIN and not state.timeline.styles:
            raise InvalidValueError("keyframing needs a learned model; choose a style or a gaussian")
        session, lane = self._session, state.timeline
        if state.weights and not lane.styles:
            return TimelinePlan(state, [session.poser.prior_of(state)], np.ones((lane.frames, 1)))
        names, weights = timeline_script.weights_of(lane, state.model)
        skeleton = session.poser.prior_of(state).space.skeleton
        return TimelinePlan(state, [session.models[name].prior.on_body(skeleton) for name in names], weights)

    def _smooth(self) -> None:
        """Solves all frames together, until the timeline changes again."""
        session = self._session
        ready = self._plan(session.state)
        timeline = session.state.timeline

        def work(report: Report) -> Done:
            found = keyframe_in(
                timeline_script.script_of(ready.state), ready.priors, ready.weights,
                progress=lambda done, total: report(done / max(total, 1)),
            )  # fmt: skip

            def take() -> Answer:
                if (
                    session.state.timeline.keys != timeline.keys
                    or session.state.timeline.frames != timeline.frames
                ):
                    return []
                session.motion = found.motion
                unmet = list(found.trajectory.unmet)
                whole = self._range(
                    0, len(found.motion), seq=session.seq, fine=True, state=session.state, unmet=unmet
                )
                return [whole]

            return Done(take)

        session.jobs.start_newest(SMOOTHING, "smoothing the timeline", work)

    def _range(
        self, first: int, count: int, *, seq: int, fine: bool, state: State, unmet: list[int]
    ) -> messages.MotionRange:
        motion = self._session.motion
        assert motion is not None
        span, timeline = slice(first, first + count), state.timeline
        handles = list(dict.fromkeys(key.handle for key in timeline.keys))
        times = np.arange(timeline.frames)[span] / timeline.fps
        ways = [timeline_script.path_of(state, handle).at(times) for handle in handles]
        world = world_of(motion.skeleton, motion.root_positions[span], motion.rotations[span])
        return messages.MotionRange(
            seq=seq, fine=fine, first=first, frames=count, world=world, path_handles=handles,
            paths=packed(np.array(ways).reshape(-1, 3)), unmet=unmet,
        )  # fmt: skip


def _has_something(timeline: Timeline) -> bool:
    return bool(timeline.keys or timeline.pins)


def _cut(pin: messages.Pin, last: int) -> messages.Pin:
    return msgspec.structs.replace(pin, last=min(pin.last, last))


def _overlap(one: messages.Pin, other: messages.Pin) -> bool:
    return one.first <= other.last and other.first <= one.last
