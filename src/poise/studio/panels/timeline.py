"""The timeline: keys, pins and styles. Keys correct a recording, or make a motion that is solved in the background."""

from __future__ import annotations

from dataclasses import replace

from poise.apps.keyframing_script import read_script
from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Skeleton
from poise.studio import messages, pose_to_pose
from poise.studio.correcting import at_frame, eased, keys_at, meeting, moved, recorrected, removed
from poise.studio.jobs import Done, Report, Steps
from poise.studio.layers import Layers, joined
from poise.studio.messages import Key, Timeline
from poise.studio.panels.clips import check_length
from poise.studio.pose_to_pose import filled, poses_of, prior_on, rekeyed, solved
from poise.studio.session import Answer, Panel, Session
from poise.studio.solving import Poser, place_of
from poise.studio.state import Placed, State
from poise.studio.timeline_script import (
    PUT_IN,
    SMOOTHED,
    Span,
    TimelinePlan,
    about,
    is_made_of_keys,
    locked,
    same_motion,
    state_of,
    stretches,
    touched_range,
    with_key,
    with_pins,
    without_handle,
)

MOST_KEYS = 2000
SOLVING = "solveTimeline"
STRAIGHT = "Between poses this body moves on straight lines: there is no motion prior for it."
FIRST_PASS = 0.4  # of the progress: frames in sequence, before all of them together


class TimelinePanel(Panel):
    """Poses over time."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        session.restorers.append(self._restored)
        self._straight: Skeleton | None = None

    def resize(self, message: messages.SetTimeline) -> Answer:
        """Set the length; keys beyond the end are removed; a recording is cut, or its last frame held."""
        last, session = message.frames - 1, self._session
        state, old = session.state, session.state.timeline
        timeline = Timeline(
            fps=message.fps, frames=message.frames, frame=min(old.frame, last),
            keys=[key for key in old.keys if key.frame <= last],
            pins=[pin.with_(last=min(pin.last, last)) for pin in old.pins if pin.first < last],
            styles=[key for key in old.styles if key.frame <= last], clip=old.clip,
            poses=[key for key in old.poses if key.frame <= last],
        )  # fmt: skip
        if state.is_posed:
            poses = poses_of(state)
            return session.rekeyed(rekeyed(state.with_(timeline=timeline), timeline.poses, poses))
        if state.is_recording and state.layers is not None:
            state = state.with_(timeline=timeline, layers=state.layers.resized(message.frames, message.fps))
            return session.begin_with(at_frame(state, timeline.frame))
        return self._changed(timeline)

    def set_frame(self, message: messages.SetFrame) -> Answer:
        """Show a frame; not a step of undo."""
        session = self._session
        self._within(message.frame)
        timeline = session.state.timeline.with_(frame=message.frame)
        state = session.state.with_(timeline=timeline)
        if state.is_recording or state.is_posed:
            state = at_frame(state, message.frame)
        elif state.motion is not None:
            state = state.with_(placed=Placed(state.motion[message.frame]), by_hand=False)
        if state.motion is not None:
            session.solved = None
        pose = session.show(state)
        session.history.amend(session.state)
        return [session.scene(), pose] if state.timeline.clip and state.handles else [pose]

    def put_key(self, message: messages.PutKey) -> Answer:
        """Set a key of a handle, by default at the body's position."""
        timeline = self._session.state.timeline
        if len(timeline.keys) >= MOST_KEYS:
            raise InvalidValueError(f"a timeline has at most {MOST_KEYS} keys")
        key = self._checked(message.key)
        return self._changed(
            with_key(timeline, key), touched_range(timeline, key.handle, key.frame), key.frame
        )

    def drag_key(self, message: messages.DragKey) -> Answer:
        """Move a key; the frames around it follow."""
        session, key = self._session, self._checked(message.key)
        timeline = with_key(session.state.timeline, key)
        span = touched_range(timeline, key.handle, key.frame)
        if message.last:
            return self._changed(timeline, span, key.frame)
        before = state = session.state
        if state.is_posed:
            session.state = state.with_(timeline=timeline)
            session.preview(lambda state, _begun: state.with_(layers=solved(state)))
            return []
        if state.is_recording:
            session.state = recorrected(state, timeline, [key.frame], session.poser)
            return session.motion_shown(before, fine=False)
        part = about(key.frame, span if self._fits(timeline) else (0, timeline.frames))
        session.state = self._solved(state.with_(timeline=timeline), part)
        return [session.frames_shown(*part, fine=False)]

    def remove_key(self, message: messages.RemoveKey) -> Answer:
        """Remove a key."""
        timeline = self._session.state.timeline
        place = message.handle, message.frame
        left = [key for key in timeline.keys if (key.handle, key.frame) != place]
        if len(left) == len(timeline.keys):
            raise InvalidValueError(f"{message.handle} has no key at frame {message.frame}")
        span = touched_range(timeline, *place)
        return self._changed(timeline.with_(keys=left), span, message.frame)

    def remove_keys(self, message: messages.RemoveKeys) -> Answer:
        """Remove keys of handles or of the whole body."""
        return self._rekeyed(*removed(self._session.state, message.keys))

    def move_keys(self, message: messages.MoveKeys) -> Answer:
        """Move keys to other frames, or copies of them."""
        state = self._session.state
        if state.is_posed:
            return self._session.rekeyed(pose_to_pose.moved(state, message))
        if message.mirrored:
            raise InvalidValueError(
                "only whole poses can be mirrored: key poses, or mirror a range of frames"
            )
        return self._rekeyed(*moved(state, message))

    def ease_keys(self, message: messages.EaseKeys) -> Answer:
        """Change the easing or the tangents of keys."""
        return self._rekeyed(eased(self._session.state, message), [])

    def remove_handle(self, message: messages.RemoveHandle) -> Answer:
        """Apply other keys and pins. The pose stays: what it held is released only when something else is moved."""
        session = self._session
        state = session.state.without_handle(message.id)
        old, timeline = state.timeline, without_handle(state.timeline, message.id)
        if timeline == old:
            return session.commit(state)
        if not state.is_recording:
            return self._changed(timeline, state=state)
        frames = [key.frame for key in old.keys if key.handle == message.id]
        return session.begin_with(recorrected(state, timeline, frames, session.poser))

    def put_pin(self, message: messages.PutPin) -> Answer:
        """Pin a handle in a range of frames."""
        state, pin = self._session.state, message.pin
        handle = state.handle(pin.handle)
        self._within(pin.last)
        if pin.last <= pin.first:
            raise InvalidValueError(f"a pin must end after it begins; got frames {pin.first} to {pin.last}")
        if state.timeline.clip and state.motion is not None and pin.position is None:
            pin = pin.with_(position=place_of(handle, state.motion[pin.first]))
        return self._pinned(state.with_(timeline=with_pins(state.timeline, [pin])))

    def remove_pin(self, message: messages.RemovePin) -> Answer:
        """Remove a pin."""
        timeline = self._session.state.timeline
        left = [pin for pin in timeline.pins if (pin.handle, pin.first) != (message.handle, message.first)]
        if len(left) == len(timeline.pins):
            raise InvalidValueError(f"{message.handle} is not pinned from frame {message.first}")
        return self._pinned(self._session.state.with_(timeline=timeline.with_(pins=left)))

    def lock_contact(self, message: messages.LockContact) -> Answer:
        """Hold a foot or hand at its contact."""
        state = self._session.state
        if state.motion is None:
            raise InvalidValueError("there is no motion yet: key a handle, or open a clip")
        return self._pinned(locked(state, state.motion, message))

    def put_style(self, message: messages.PutStyleKey) -> Answer:
        """Change the styles from a frame on."""
        timeline, session = self._session.state.timeline, self._session
        self._within(message.key.frame)
        if timeline.clip:
            raise InvalidValueError(
                "styles are for motions made of keys of handles, not for recordings or whole poses"
            )
        session.models.blend(message.key.weights)  # raises if they cannot be blended
        others = [key for key in timeline.styles if key.frame != message.key.frame]
        styles = sorted([*others, message.key], key=lambda key: key.frame)
        return self._changed(timeline.with_(styles=styles))

    def remove_style(self, message: messages.RemoveStyleKey) -> Answer:
        """Remove a change of style."""
        timeline = self._session.state.timeline
        left = [key for key in timeline.styles if key.frame != message.frame]
        return self._changed(timeline.with_(styles=left))

    def solve(self, _: messages.SolveTimeline) -> Answer:
        """Solve all frames together, in the background."""
        state = self._session.state
        if state.is_posed:
            self._solve_poses()
            return []
        if state.is_recording or not is_made_of_keys(state.timeline):
            raise InvalidValueError("there is nothing on the timeline to solve: key a handle, or pin one")
        self._solve((0, 0), (0, 0))
        return []

    def open_script(self, message: messages.OpenScript) -> Answer:
        """Open the keys and pins of a keyframe script on the shown body; the motion is solved at once."""
        session = self._session
        script = read_script(session.path(message.upload))
        check_length("the script", len(script.times))
        state = state_of(script, session.state)
        return self._changed(state.timeline, state=state)

    def _pinned(self, state: State) -> Answer:
        """Apply a state whose timeline has other pins."""
        if state.is_recording:
            return [hold(self._session, state)]
        return self._changed(state.timeline, state=state)

    def _rekeyed(self, state: State, frames: list[int]) -> Answer:
        """Apply other keys, with corrections of the whole body: the targets of handles at some frames follow."""
        session, before = self._session, self._session.state
        if before.is_posed:
            poses = state.timeline.poses
            if not poses:
                return self._changed(state.timeline.with_(clip=None), state=state.with_(layers=None))
            state = state.with_(timeline=state.timeline.with_(poses=before.timeline.poses))
            return session.rekeyed(rekeyed(state, poses, poses_of(before)))
        if before.is_recording:
            asked = before.with_(layers=state.layers)
            state = recorrected(asked, state.timeline, frames, session.poser)
        elif not same_motion(before.timeline, state.timeline):
            return self._changed(state.timeline, state=state)
        return session.begin_with(at_frame(state, state.timeline.frame) if state.motion else state)

    def _checked(self, key: Key) -> Key:
        """A key of an existing handle within the timeline, with a position."""
        state = self._session.state
        self._within(key.frame)
        handle = state.handle(key.handle)
        if key.position is not None:
            return key
        pose = state.motion[key.frame] if state.motion is not None else state.pose
        return key.with_(position=place_of(handle, pose))

    def _within(self, frame: int) -> None:
        if frame >= self._session.state.timeline.frames:
            raise InvalidValueError(
                f"the timeline has frames 0 to {self._session.state.timeline.frames - 1}; got {frame}"
            )

    def _fits(self, timeline: Timeline) -> bool:
        layers = self._session.state.layers
        return layers is not None and len(layers) == timeline.frames

    def _changed(
        self,
        timeline: Timeline,
        span: Span | None = None,
        frame: int | None = None,
        *,
        state: State | None = None,
    ) -> Answer:
        """Apply another timeline: some frames at once, the others in the background, as one step of undo."""
        session = self._session
        state = state or session.state
        if state.is_posed:
            poses, keys = poses_of(state), [] if frame is None else keys_at(timeline, frame)
            state = state.with_(timeline=timeline)
            again = [frame] if frame in poses and keys else []
            for at in again:  # a key of a handle at a whole pose changes that
                poses[at] = meeting(state, keys, poses[at], session.poser)
            return session.rekeyed(rekeyed(state, timeline.poses, poses, again))
        if state.is_recording:
            changed = recorrected(state, timeline, [] if frame is None else [frame], session.poser)
            return session.begin_with(at_frame(changed, timeline.frame))
        state = state.with_(timeline=timeline.with_(clip=None), by_hand=False)
        if not is_made_of_keys(timeline):
            if timeline.poses:
                return session.rekeyed(rekeyed(state, timeline.poses, poses_of(state)))
            return session.commit(state.with_(layers=None, smooth=True))
        whole = span if span is not None and self._fits(timeline) else (0, timeline.frames)
        part = about(timeline.frame if frame is None else frame, whole)
        state = self._solved(state, part)
        assert state.motion is not None
        session.solved = None
        answer = session.commit(state.with_(placed=Placed(state.motion[timeline.frame])))
        self._solve(whole, part)
        return [*answer, session.frames_shown(*part, fine=False)]

    def _solved(self, state: State, part: Span) -> State:
        """The state with some frames solved in sequence."""
        session = self._session
        layers = TimelinePlan.of(state, session.models, session.poser).stretch(state.layers, part)
        return state.with_(layers=layers, smooth=False)

    def _restored(self, state: State) -> Answer:
        """After undo and redo: solve what was left unfinished."""
        if state.is_posed and not state.smooth:
            self._solve_poses()
        elif not state.smooth:
            self._solve((0, state.timeline.frames), (0, 0))
        return []

    def _solve_poses(self) -> None:
        """Fill all frames between whole poses in the background, then solve them with what is above the poses."""
        session, state = self._session, self._session.state
        skeleton = state.pose.skeleton
        if prior_on(skeleton) is None and self._straight is not skeleton:
            self._straight = skeleton  # said once
            session.post(messages.Remark(words=STRAIGHT))

        def work(report: Report) -> Steps:
            frames = state.timeline.frames
            everything = {key.frame: key for key in state.timeline.poses}
            base = filled(everything, poses_of(state), state.timeline, (0, frames - 1))
            shown = self._put_in(state.layers, Layers(base), smooth=False)
            yield
            report(FIRST_PASS)
            made = None if shown is None else solved(state.with_(layers=shown))

            def take() -> Answer:
                self._put_in(shown, made, smooth=True)
                return []

            return Done(take)

        session.jobs.start_newest(SOLVING, "moving from pose to pose", work)

    def _put_in(self, old: Layers | None, new: Layers | None, *, smooth: bool) -> Layers | None:
        """Show another motion of the same keys, if it has not changed since."""
        session = self._session
        with session.lock:
            if new is None or old is None or session.state.layers is not old:
                return None
            before = session.state
            session.revise(layers=new, smooth=smooth)
            if smooth:
                session.keep()
            session.post(*session.motion_shown(before))
        return new

    def _solve(self, whole: Span, done: Span) -> None:
        """Solve the rest of a span, and then all frames together, until the timeline changes again."""
        session = self._session
        ready = TimelinePlan.of(session.state, session.models, session.poser)
        timeline = session.state.timeline

        def is_wanted() -> bool:
            return same_motion(session.state.timeline, timeline) and not session.state.is_recording

        def work(report: Report) -> Steps:
            left = stretches(whole, done)
            smoothed = timeline.frames <= SMOOTHED
            each = (FIRST_PASS if smoothed else 1.0) / max(len(left), 1)
            parts: list[Motion] = []
            for number, part in enumerate(left):
                now = session.state.layers
                if now is None or not is_wanted():
                    return Done(list)

                def one_more(frames: int, number: int = number, part: Span = part) -> None:
                    report(each * (number + frames / (part[1] - part[0])))

                after = parts[-1][-1] if parts else now.base[max(part[0] - 1, 0)]
                parts.append(ready.solved(after, part, progress=one_more))
                goes_on = any(first == part[1] for first, _ in left[number + 1 : number + 2])
                if not goes_on or sum(map(len, parts)) >= timeline.frames / PUT_IN:
                    first = part[1] - sum(map(len, parts))
                    with session.lock:
                        now = session.state.layers
                        if now is None or not is_wanted():
                            return Done(list)
                        session.revise(layers=replace(now, base=joined(now.base, parts, first)))
                        session.post(session.frames_shown(first, part[1], fine=False))
                    parts = []
                yield
            if not smoothed:
                return Done(lambda: finished(session.state.layers))
            rest = 1.0 - FIRST_PASS
            found = ready.all_together(lambda done, total: report(FIRST_PASS + rest * done / max(total, 1)))
            return Done(lambda: finished(Layers(found.motion, unmet=found.unmet)))

        def finished(layers: Layers | None) -> Answer:
            """Make the solved frames the motion."""
            if not is_wanted() or layers is None:
                return []
            over = () if session.state.layers is None else session.state.layers.corrections
            session.revise(layers=replace(layers, corrections=over), smooth=True)
            session.keep()
            return session.motion_shown()

        session.jobs.start_newest(SOLVING, "solving the timeline", work)


def hold(session: Session, state: State) -> messages.Progress:
    """Start changing the frames whose pins differ from those of the current state; one step of undo."""
    timeline, old, began = state.timeline, session.state.timeline, session.state.layers
    frames = [frame for frame in range(timeline.frames) if keys_at(old, frame) != keys_at(timeline, frame)]

    def work(report: Report) -> Done:
        poser = Poser(session.models)
        before = state.with_(timeline=old)
        held = recorrected(before, timeline, frames, poser, lambda done: report(done / len(frames)))
        return Done(lambda: take(held))

    def take(held: State) -> Answer:
        if session.state.layers is not began:
            raise InvalidValueError("the motion was changed while a handle was being held; hold it again")
        timeline.frame = session.state.timeline.frame
        return session.begin_with(at_frame(held.with_(timeline=timeline), timeline.frame))

    return session.jobs.start("hold", "holding handles over the recording", work)
