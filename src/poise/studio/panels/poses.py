"""The whole body: turn joints, copy, paste, mirror and keep poses; mirror, reverse or close ranges of a motion."""

from __future__ import annotations

import numpy as np

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.splines import smoothstep
from poise.motion.edit import mirror, place
from poise.motion.motion import Motion
from poise.motion.world import headings
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.skeleton import Pose
from poise.studio import messages
from poise.studio.arrays import world_of_pose
from poise.studio.correcting import at_frame, corrected, posed
from poise.studio.hands import swapped
from poise.studio.layers import joined
from poise.studio.messages import CLIPBOARD
from poise.studio.pose_to_pose import range_edited, standing_as
from poise.studio.session import Answer, Panel, Session
from poise.studio.solving import between
from poise.studio.state import State
from poise.studio.timeline_script import contacts_of


class PosesPanel(Panel):
    """The body as a whole, without handles."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._store = session.autosave.store
        self._copied: State | None = None
        self._taken: tuple[State, Pose] | None = None  # the result of the last pose, and the state before it

    def turn(self, message: messages.TurnJoints) -> Answer:
        """Rotate joints from their state at the start of the gesture."""
        before = self._session.history.now.pose
        return self._posed(turned(before, message.joints, np.array(message.turn)), message.last, message.ease)

    def copy(self, _: messages.CopyPose) -> Answer:
        """Remembers the pose."""
        self._copied = self._session.state
        return []

    def take(self, message: messages.TakePose) -> Answer:
        """Blend from the previous pose to another; right after another pose, from the one before it."""
        now = self._session.history.now
        before = self._taken[1] if self._taken and self._taken[0] is now else now.pose
        skeleton = before.skeleton
        copied = self._copied if message.pose == CLIPBOARD else None
        if message.pose == CLIPBOARD and copied is None:
            raise InvalidValueError("no pose was copied; copy one first")
        goal = self._store.pose(message.pose).pose(skeleton) if copied is None else copied.pose
        if not goal.skeleton.same_topology(skeleton):
            raise InvalidValueError("the pose that was copied is of another skeleton than this body")
        goal = standing_as(before, goal, mirrored=message.mirrored)
        if copied is not None and message.last and not message.joints:
            hands = swapped(copied.hands) if message.mirrored else copied.hands
            self._session.state = self._session.state.with_(hands=hands)
        answer = self._posed(partly(before, goal, message.share, message.joints), message.last, message.ease)
        if message.last:
            self._taken = self._session.history.now, before
        return answer

    def ask(self, _: messages.AskPoses) -> Answer:
        """The library."""
        return [self._poses()]

    def keep(self, message: messages.KeepPose) -> Answer:
        """One more in the library."""
        self._store.add_pose(message.name, self._session.state.pose)
        return [self._poses()]

    def drop(self, message: messages.DropPose) -> Answer:
        """One less."""
        self._store.drop_pose(message.pose)
        return [self._poses()]

    def export(self, _: messages.ExportPoses) -> Answer:
        """The library as a file."""
        session = self._session
        path = session.uploads.exports(session.token) / "library.poses"
        self._store.write_poses(path)
        return [session.offered(path)]

    def open(self, message: messages.OpenPoses) -> Answer:
        """Add the poses of a file."""
        self._store.read_poses(self._session.path(message.upload))
        return [self._poses()]

    def _posed(self, pose: Pose, last: bool, ease: int | None) -> Answer:
        """Show a pose; at the end of the gesture it is a step of undo, and a key if requested."""
        session = self._session
        session.solved = None
        state = posed(session.state, pose)
        return session.commit(state, ease=ease) if last else [session.show(state, fine=False)]

    def _poses(self) -> messages.KeptPoses:
        skeleton, kept = self._session.state.pose.skeleton, self._store.poses
        shown = [
            messages.KeptPose(id=each.id, name=each.name, world=world_of_pose(each.pose(skeleton)))
            for each in kept
            if each.fits(skeleton)
        ]
        return messages.KeptPoses(poses=shown, others=len(kept) - len(shown))


def turned(pose: Pose, joints: list[str], turn: np.ndarray) -> Pose:
    """Rotate joints in the world; along a chain the rotations accumulate, as when a spine curls."""
    skeleton = pose.skeleton
    numbers = {skeleton.index(joint) for joint in joints}
    if ends := [skeleton.names[number] for number in numbers if skeleton.is_end_site[number]]:
        raise InvalidValueError(f"{ends[0]} is the end of a bone and does not turn; use its parent")
    _, matrices = world_transforms(skeleton, pose.root_position, pose.rotations)
    turns, turn = pose.rotations.copy(), rotations.normalize(turn)
    for number in numbers:
        parent = skeleton.parents[number]
        above = rotations.quaternion_from_matrix(matrices[parent] if parent >= 0 else np.eye(3))
        own = rotations.multiply(rotations.multiply(rotations.conjugate(above), turn), above)
        turns[number] = rotations.multiply(own, turns[number])
    return Pose(skeleton, pose.root_position, turns)


def partly(pose: Pose, goal: Pose, share: float, joints: list[str]) -> Pose:
    """A fraction of the way from one pose to another, in all joints or in some."""
    whole = between(pose, goal, share)
    if not joints:
        return whole
    chosen = np.zeros((len(pose.rotations), 1), dtype=np.bool_)
    chosen[[pose.skeleton.index(joint) for joint in joints]] = True
    root = whole.root_position if chosen[0, 0] else pose.root_position
    return Pose(pose.skeleton, root, np.where(chosen, whole.rotations, pose.rotations))


class RangesPanel(Panel):
    """Operations on ranges of frames."""

    def edit(self, message: messages.EditRange) -> Answer:
        """Change a range of the motion as one step of undo."""
        session, state, motion = self._session, self._session.state, self._session.motion
        if motion is None:
            raise InvalidValueError("there is no motion yet: key a handle, or open a clip")
        first, last = message.first, message.last
        if not first < last < len(motion):
            raise InvalidValueError(
                f"a range lies within frames 0 to {len(motion) - 1}; got {first} to {last}"
            )
        if state.is_posed:
            return self._session.rekeyed(range_edited(state, first, last, message.edit))
        if message.edit == "cycle":
            state = _cycle(state, first, last)
        else:
            part = motion[first : last + 1]
            if message.edit == "reverse":
                other = part.with_frames(part.root_positions[::-1], part.rotations[::-1])
            else:
                x, _, z = part.root_positions[0].tolist()
                other = place(mirror(part), at=(x, z), heading=float(headings(part[:1])[0]))
            ends = first == 0, last + 1 == len(motion)
            state = _with_range(state, _eased(part, other, state.timeline.eased(message.ease), ends), first)
        return session.begin_with(at_frame(state, state.timeline.frame))

    def contacts(self, _: messages.AskContacts) -> Answer:
        """Standing feet and holding hands, as ranges."""
        motion = self._session.motion
        found = [] if motion is None else contacts_of(motion)
        return [messages.ContactsFound(contacts=found)]


def _cycle(state: State, first: int, last: int) -> State:
    """The last frame gets the first one's pose at its own position, and the range is blended to it."""
    assert state.motion is not None
    frame, start, end = state.timeline.frame, state.motion[first], state.motion[last]
    state = state.with_(timeline=state.timeline.with_(frame=last))
    closed = corrected(posed(state, standing_as(end, start)), (last - first) // 2)
    return closed.with_(timeline=closed.timeline.with_(frame=frame))


def _with_range(state: State, part: Motion, first: int) -> State:
    """Replace a part of the motion; its own keys, and keys that made it, are applied to it."""
    assert state.layers is not None
    assert state.motion is not None
    span = first, first + len(part)
    old = state.timeline
    timeline = old.with_(
        clip=old.clip or "from keys",
        keys=[key for key in old.keys if old.clip and not span[0] <= key.frame < span[1]],
        poses=[key for key in old.poses if not span[0] <= key.frame < span[1]],
        pins=[pin for pin in old.pins if old.clip and (pin.last < span[0] or pin.first >= span[1])],
        styles=[],
    )  # fmt: skip
    layers = state.layers.making(joined(state.motion, [part], first), span)
    return state.with_(timeline=timeline, layers=layers, smooth=True)


def _eased(part: Motion, other: Motion, ease: int, ends: tuple[bool, bool]) -> Motion:
    """Blend from one motion to another and back, over some frames; not at the ends of the whole motion."""
    frames = np.arange(len(part))
    ins = np.ones(len(part)) if ends[0] else smoothstep((frames + 1) / (ease + 1))
    outs = np.ones(len(part)) if ends[1] else smoothstep((len(part) - frames) / (ease + 1))
    share = np.minimum(ins, outs)
    roots = part.root_positions + share[:, None] * (other.root_positions - part.root_positions)
    return part.with_frames(roots, rotations.slerp(part.rotations, other.rotations, share[:, None]))
