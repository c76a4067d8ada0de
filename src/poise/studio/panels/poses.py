"""Whole poses: rotate joints, copy and paste, mirror, and store in a library."""

from __future__ import annotations

import numpy as np

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion.edit import mirror, place
from poise.motion.motion import Motion
from poise.motion.world import headings
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.skeleton import Pose, Skeleton
from poise.studio import messages
from poise.studio.arrays import world_of_pose
from poise.studio.correcting import keyed, posed
from poise.studio.messages import CLIPBOARD
from poise.studio.session import Answer, Handler, Session
from poise.studio.state import State


class PosesPanel:
    """The body as a whole, without handles."""

    def __init__(self, session: Session) -> None:
        self._session, self._store = session, session.autosave.store
        self._copied: Pose | None = None
        self._taken: tuple[State, Pose] | None = None  # the result of the last pose, and the state before it

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        return {
            messages.TurnJoints: self.turn,
            messages.CopyPose: self.copy,
            messages.TakePose: self.take,
            messages.AskPoses: self.ask,
            messages.KeepPose: self.keep,
            messages.DropPose: self.drop,
            messages.ExportPoses: self.export,
            messages.OpenPoses: self.open,
        }

    def turn(self, message: messages.TurnJoints) -> Answer:
        """Rotate joints from their state at the start of the gesture."""
        before = self._session.history.now.pose
        return self._posed(turned(before, message.joints, np.array(message.turn)), message.last, message.ease)

    def copy(self, message: messages.CopyPose) -> Answer:
        """Remembers the pose."""
        del message
        self._copied = self._session.state.pose
        return []

    def take(self, message: messages.TakePose) -> Answer:
        """Blend from the previous pose to another; right after another pose, from the one before it."""
        now = self._session.history.now
        before = self._taken[1] if self._taken and self._taken[0] is now else now.pose
        goal = self._goal(message.pose, before.skeleton)
        goal = standing_as(before, goal, mirrored=message.mirrored)
        answer = self._posed(between(before, goal, message.share, message.joints), message.last, message.ease)
        if message.last:
            self._taken = self._session.history.now, before
        return answer

    def ask(self, message: messages.AskPoses) -> Answer:
        """The library."""
        del message
        return [self._poses()]

    def keep(self, message: messages.KeepPose) -> Answer:
        """One more in the library."""
        self._store.add_pose(message.name, self._session.state.pose)
        return [self._poses()]

    def drop(self, message: messages.DropPose) -> Answer:
        """One less."""
        self._store.drop_pose(message.pose)
        return [self._poses()]

    def export(self, message: messages.ExportPoses) -> Answer:
        """The library as a file."""
        del message
        session = self._session
        path = session.uploads.exports(session.token) / "library.poses"
        self._store.write_poses(path)
        upload = session.uploads.keep(path, owner=session.token)
        return [
            messages.FileReady(name=path.name, address=f"files/{upload.id}/{path.name}", size=upload.size)
        ]

    def open(self, message: messages.OpenPoses) -> Answer:
        """Add the poses of a file."""
        session = self._session
        self._store.read_poses(session.uploads.find(message.upload, owner=session.token).path)
        return [self._poses()]

    # --- private ---------------------------------------------------------------------------------------------------

    def _posed(self, pose: Pose, last: bool, ease: int | None) -> Answer:
        """Show a pose; at the end of the gesture it is a step of undo, and a key if requested."""
        session = self._session
        session.solved = None
        state = posed(session.state, pose)
        if not last:
            return [session.show(state, fine=False)]
        if ease is not None:
            state = keyed(state, session.history.now.pose, ease)
        return session.begin_with(state)

    def _goal(self, name: str, skeleton: Skeleton) -> Pose:
        found = self._copied if name == CLIPBOARD else self._store.pose(name).pose(skeleton)
        if found is None:
            raise InvalidValueError("no pose was copied; copy one first")
        if not found.skeleton.same_topology(skeleton):
            raise InvalidValueError("the pose that was copied is of another skeleton than this body")
        return found

    def _poses(self) -> messages.KeptPoses:
        skeleton = self._session.state.pose.skeleton
        kept = self._store.poses
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


def standing_as(body: Pose, pose: Pose, *, mirrored: bool = False) -> Pose:
    """A pose, or its mirror image, at a body's position and heading."""
    now, other = _clip(body), _clip(pose)
    other = mirror(other) if mirrored else other
    x, _, z = body.root_position.tolist()
    return place(other, at=(x, z), heading=float(headings(now)[0]))[0]


def between(pose: Pose, goal: Pose, share: float, joints: list[str]) -> Pose:
    """A fraction of the way from one pose to another, in all joints or in some."""
    turns = rotations.slerp(pose.rotations, goal.rotations, np.full(len(pose.rotations), share))
    root = pose.root_position + share * (goal.root_position - pose.root_position)
    if not joints:
        return Pose(pose.skeleton, root, turns)
    chosen = np.zeros((len(turns), 1), dtype=np.bool_)
    chosen[[pose.skeleton.index(joint) for joint in joints]] = True
    return Pose(
        pose.skeleton, root if chosen[0, 0] else pose.root_position, np.where(chosen, turns, pose.rotations)
    )


def _clip(pose: Pose) -> Motion:
    return Motion(pose.skeleton, 30.0, pose.root_position[None], pose.rotations[None])
