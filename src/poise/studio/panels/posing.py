"""Posing by handles: make, drag, pin and soften them, feet on the floor, look-at, mirror, undo, redo, reset."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion.edit import mirror
from poise.motion.motion import Motion
from poise.priors.abilities import standing_pose
from poise.skeleton.skeleton import Pose
from poise.skeleton.symmetry import ACROSS, mirror_joints, reflections
from poise.studio import messages
from poise.studio.messages import LOOK_AT, SceneHandle, Vec3
from poise.studio.session import Answer, Handler, Session
from poise.studio.solving import LEVER, following, place_of, planted, replanted, turn_of, vec3
from poise.studio.state import Placed, State, handles_on


class PosingPanel:
    """Handles and what they do."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        return {
            messages.PutHandle: self.put_handle,
            messages.Drag: self.drag,
            messages.SetFeet: self.set_feet,
            messages.SetBearing: self.set_bearing,
            messages.SetLookAt: self.set_look_at,
            messages.SetConstraints: self.set_constraints,
            messages.Mirror: self.mirror,
            messages.Undo: self.undo,
            messages.Redo: self.redo,
            messages.Reset: self.reset,
        }

    def put_handle(self, message: messages.PutHandle) -> Answer:
        """Put or change a handle: a new one is at the body; a changed one pulls at once if it is pinned."""
        state = self._session.state
        handle = self._checked(message.handle)
        known = any(old.id == handle.id for old in state.handles)
        if handle.position is None and handle.rotation is None:
            handle = msgspec.structs.replace(handle, position=place_of(handle, state.pose))
        state = state.with_handle(handle)
        return (
            self._solved(state)
            if known or message.handle.position is not None
            else self._session.commit(state)
        )

    def drag(self, message: messages.Drag) -> Answer:
        """A moment of a drag; the last one is a step of undo."""
        state = self._moved(message)
        moved = _way_of(self._session.state, state, message.handle)
        solved = self._session.poser.drag(state, message.handle, moved=moved, last=message.last)
        state = state if solved.anchors is None else state.with_(anchors=solved.anchors)
        if not message.last:
            return [self._session.show(state, solved, fine=False)]
        state = state.with_(placed=solved.placed)
        return self._session.commit(_settled(state, message.handle), solved)

    def set_feet(self, message: messages.SetFeet) -> Answer:
        """Set the feet; planted feet stand where they are now."""
        state = self._session.state
        return self._solved(state.with_(feet=message.feet, anchors=planted(state.pose)))

    def set_bearing(self, message: messages.SetBearing) -> Answer:
        """Set the defaults; the pose stays until something moves."""
        return self._session.commit(self._session.state.with_(bearing=message.bearing))

    def set_look_at(self, message: messages.SetLookAt) -> Answer:
        """Set the gaze target; the head turns at once."""
        self._head()
        return self._solved(self._session.state.with_(look_at=message.target))

    def set_constraints(self, message: messages.SetConstraints) -> Answer:
        """Set other constraints; they hold at once."""
        return self._solved(self._session.state.with_(constraints=message.text))

    def mirror(self, message: messages.Mirror) -> Answer:
        """Mirror in the sagittal plane through the root."""
        del message
        return self._session.commit(mirrored(self._session.state))

    def undo(self, message: messages.Undo) -> Answer:
        """Cancel a running drag; else undo one step."""
        del message
        history = self._session.history
        under_way = self._session.state is not history.now
        return self._session.put_back(history.now if under_way else history.back())

    def redo(self, message: messages.Redo) -> Answer:
        """One step forward."""
        del message
        return self._session.put_back(self._session.history.forward())

    def reset(self, message: messages.Reset) -> Answer:
        """The model's own pose, with the handles that have keys or pins on the timeline."""
        del message
        session = self._session
        session.solved = None
        pose = standing_pose(session.poser.prior_of(session.state))
        needed = handles_on(session.state.timeline)
        handles = tuple(following(handle, pose) for handle in session.state.handles if handle.id in needed)
        changed = session.state.with_(
            placed=Placed(pose), handles=handles, look_at=None, constraints="", anchors=planted(pose)
        )
        return session.commit(changed)

    # --- private ---------------------------------------------------------------------------------------------------

    def _solved(self, state: State) -> Answer:
        solved = self._session.poser.solve(state)
        state = state.with_(placed=solved.placed)
        return self._session.commit(state.with_(anchors=replanted(state)), solved)

    def _moved(self, message: messages.Drag) -> State:
        state = self._session.state
        if message.position is None and message.rotation is None:
            raise InvalidValueError("a drag needs a position, a rotation or both")
        if message.handle == LOOK_AT:
            self._head()
            if message.position is None:
                raise InvalidValueError("the point that the head looks at cannot be turned")
            return state.with_(look_at=message.position)
        handle = state.handle(message.handle)
        changes = {"position": message.position, "rotation": message.rotation}
        given = {name: value for name, value in changes.items() if value is not None}
        if message.position is not None:
            state = _along(state, message.along, np.subtract(message.position, place_or(handle, state)))
        return state.with_handle(self._checked(msgspec.structs.replace(handle, **given)))

    def _checked(self, handle: SceneHandle) -> SceneHandle:
        """A handle on a joint of this body, by the joint's own name, with a unit rotation."""
        skeleton = self._session.state.pose.skeleton
        if handle.id == LOOK_AT:
            raise InvalidValueError(f"the name {LOOK_AT} is reserved for the point that the head looks at")
        joint = skeleton.index(handle.joint)
        handle = msgspec.structs.replace(handle, joint=skeleton.names[joint])
        if handle.rotation is None:
            return handle
        if skeleton.is_end_site[joint]:
            raise InvalidValueError(f"{handle.joint} is the end of a bone and does not turn; use its parent")
        turn = rotations.normalize(np.array(handle.rotation)).tolist()
        return msgspec.structs.replace(handle, rotation=tuple(turn))

    def _head(self) -> None:
        if "head" not in self._session.state.pose.skeleton.roles:
            raise InvalidValueError("this skeleton has no head that could look at something")


def mirrored(state: State) -> State:
    """Swap left and right about the root, including handles."""
    pose, skeleton = state.pose, state.pose.skeleton
    clip = Motion(skeleton, 30.0, pose.root_position[None], pose.rotations[None])
    shift = np.array([2.0 * pose.root_position[0], 0.0, 0.0])
    image = mirror(clip)
    body = Pose(skeleton, image.root_positions[0] + shift, image.rotations[0])
    partner, carries = mirror_joints(skeleton), reflections(skeleton, pose.rotations[None])

    def across(point: Vec3 | None) -> Vec3 | None:
        return None if point is None else vec3(ACROSS @ np.array(point) + shift)

    def of(handle: SceneHandle) -> SceneHandle:
        other = int(partner[skeleton.index(handle.joint)])
        rotation = None
        if handle.rotation is not None:
            turn = ACROSS @ rotations.matrix_from_quaternion(np.array(handle.rotation)) @ carries[other].T
            rotation = tuple(rotations.quaternion_from_matrix(turn).tolist())
        return msgspec.structs.replace(
            handle, joint=skeleton.names[other], offset=vec3(carries[other] @ np.array(handle.offset)),
            position=across(handle.position), rotation=rotation,
        )  # fmt: skip

    return state.with_(
        placed=Placed(body), handles=tuple(of(handle) for handle in state.handles), look_at=across(state.look_at),
        anchors=planted(body),
    )  # fmt: skip


def _way_of(before: State, after: State, handle: str) -> float:
    """The distance in metres by which a handle or gaze target is moved; a rotation counts by what it moves nearby."""
    if handle == LOOK_AT:
        if before.look_at is None or after.look_at is None:
            return LEVER
        return min(math.dist(before.look_at, after.look_at), LEVER)
    old, new = before.handle(handle), after.handle(handle)
    start = place_or(old, before)
    way = 0.0 if new.position is None else math.dist(new.position, start)
    if new.rotation is None:
        return way
    turns = np.array([old.rotation or turn_of(old.joint, before.pose), new.rotation])
    return way + LEVER * float(rotations.geodesic_distance(*turns))


def _along(state: State, others: list[str], way: np.ndarray) -> State:
    """Move other handles like one of them."""
    for handle in map(state.handle, others):
        state = state.with_handle(
            msgspec.structs.replace(handle, position=vec3(np.add(place_or(handle, state), way)))
        )
    return state


def place_or(handle: SceneHandle, state: State) -> Vec3:
    """The target position of a handle, or its position on the body."""
    return handle.position or place_of(handle, state.pose)


def _settled(state: State, dragged: str) -> State:
    """After a drag: moved feet stand at their new positions, unpinned handles follow the body."""
    followed = tuple(handle if handle.pinned else following(handle, state.pose) for handle in state.handles)
    return state.with_(anchors=replanted(state, dragged=dragged), handles=followed)
