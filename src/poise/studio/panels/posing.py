"""Posing by handles: make, drag, pin and soften them, feet, look-at, undo, reset; and props that they are glued to."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.motion.edit import mirror
from poise.motion.motion import Motion
from poise.priors.abilities import standing_pose
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Pose
from poise.skeleton.symmetry import ACROSS, mirror_joints, reflections
from poise.studio import messages
from poise.studio.hands import swapped
from poise.studio.messages import LOOK_AT, Prop, SceneHandle, Vec3
from poise.studio.session import Answer, Panel
from poise.studio.solving import LEVER, following, place_of, planted, replanted, turn_of, vec3
from poise.studio.state import MOST_PROPS, Placed, State, handles_on

FILES = {
    "mesh": (".glb",),
    "picture": (".png", ".jpg", ".jpeg", ".webp", ".bmp"),
    "video": (".mp4", ".m4v", ".mov", ".webm"),
}


class PosingPanel(Panel):
    """Handles and what they do."""

    def put_handle(self, message: messages.PutHandle) -> Answer:
        """Put or change a handle: a new one is at the body; a changed one pulls at once if it is pinned."""
        state = self._session.state
        handle = self._checked(message.handle)
        known = any(old.id == handle.id for old in state.handles)
        if handle.position is None and handle.rotation is None:
            handle = handle.with_(position=place_of(handle, state.pose))
        state = state.with_handle(handle)
        if not known and message.handle.position is None:
            return self._session.commit(state, ease=message.ease, handles=[handle.id])
        return self._solved(state, message.ease, [handle.id])

    def drag(self, message: messages.Drag) -> Answer:
        """A moment of a drag; the last one is a step of undo."""
        state = self._moved(message)
        moved = _way_of(self._session.state, state, message.handle)
        solved = self._session.poser.drag(state, message.handle, moved=moved, last=message.last)
        state = state if solved.anchors is None else state.with_(anchors=solved.anchors)
        if not message.last:
            return [self._session.show(state, solved, fine=False)]
        state = state.with_(
            placed=solved.placed
        )  # moved feet stand here now, unpinned handles follow the body
        handles = [each if each.pinned else following(each, state.pose) for each in state.handles]
        anchors = replanted(state, dragged=message.handle)
        state = state.with_(anchors=anchors, handles=tuple(handles))
        moved_too = [message.handle, *message.along] if message.handle != LOOK_AT else message.along
        return self._session.commit(state, solved, ease=message.ease, handles=moved_too)

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
        return self._solved(self._session.state.with_(look_at=message.target), message.ease)

    def set_hands(self, message: messages.SetHands) -> Answer:
        """Shape the hands of the pose; where keys of handles make the motion, in all of it."""
        state = self._session.state.with_(hands=message.hands)
        if state.layers is None or state.is_posed or state.is_recording:
            return self._session.commit(state.with_(by_hand=state.layers is not None), ease=message.ease)
        return self._session.commit(state)

    def set_constraints(self, message: messages.SetConstraints) -> Answer:
        """Set other constraints; they hold at once."""
        return self._solved(self._session.state.with_(constraints=message.text))

    def mirror(self, message: messages.Mirror) -> Answer:
        """Mirror in the sagittal plane through the root."""
        return self._session.commit(mirrored(self._session.state), ease=message.ease)

    def undo(self, _: messages.Undo) -> Answer:
        """Cancel a running drag; else undo one step."""
        history = self._session.history
        under_way = self._session.state is not history.now
        return self._session.put_back(history.now if under_way else history.back())

    def redo(self, _: messages.Redo) -> Answer:
        """One step forward."""
        return self._session.put_back(self._session.history.forward())

    def reset(self, _: messages.Reset) -> Answer:
        """The model's own pose, with the handles that have keys or pins on the timeline."""
        session = self._session
        session.solved = None
        pose = standing_pose(session.poser.prior_of(session.state))
        needed = handles_on(session.state.timeline)
        handles = tuple(following(handle, pose) for handle in session.state.handles if handle.id in needed)
        changed = session.state.with_(placed=Placed(pose), handles=handles, anchors=planted(pose))
        return session.commit(changed.with_(look_at=None, constraints="", hands=messages.Hands()))

    def _solved(self, state: State, ease: int | None = None, handles: Iterable[str] = ()) -> Answer:
        return self._session.settle(state, self._session.poser.solve(state), ease=ease, handles=handles)

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
        if message.position is not None:  # other handles move like this one
            way = np.subtract(message.position, place_or(handle, state))
            for other in map(state.handle, message.along):
                place = vec3(np.add(place_or(other, state), way))
                state = state.with_handle(other.with_(position=place))
        return state.with_handle(self._checked(handle.with_(**given)))

    def _checked(self, handle: SceneHandle) -> SceneHandle:
        """A handle on a joint of this body, by the joint's own name, with a unit rotation."""
        skeleton = self._session.state.pose.skeleton
        if handle.id == LOOK_AT:
            raise InvalidValueError(f"the name {LOOK_AT} is reserved for the point that the head looks at")
        joint, offset = Handle(handle.joint, handle.offset).on(skeleton)
        handle = handle.with_(joint=skeleton.names[joint], offset=offset)
        if handle.rotation is None:
            return handle
        if skeleton.is_end_site[joint]:
            raise InvalidValueError(f"{handle.joint} is the end of a bone and does not turn; use its parent")
        turn = rotations.normalize(np.array(handle.rotation)).tolist()
        return handle.with_(rotation=tuple(turn))

    def _head(self) -> None:
        if "head" not in self._session.state.pose.skeleton.roles:
            raise InvalidValueError("this skeleton has no head that could look at something")


def mirrored(state: State) -> State:
    """Swap left and right about the root, including handles."""
    pose, skeleton = state.pose, state.pose.skeleton
    shift = np.array([2.0 * pose.root_position[0], 0.0, 0.0])
    image = mirror(Motion.of_poses([pose]))
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
        return handle.with_(
            joint=skeleton.names[other], offset=vec3(carries[other] @ np.array(handle.offset)),
            position=across(handle.position), rotation=rotation,
        )  # fmt: skip

    return state.with_(
        placed=Placed(body), handles=tuple(of(handle) for handle in state.handles), look_at=across(state.look_at),
        anchors=planted(body), hands=swapped(state.hands),
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


def place_or(handle: SceneHandle, state: State) -> Vec3:
    """The target position of a handle, or its position on the body."""
    return handle.position or place_of(handle, state.pose)


class PropsPanel(Panel):
    """The props of the scene."""

    def put(self, message: messages.PutProp) -> Answer:
        """A moment of a prop's move; the last one is a step of undo."""
        session, prop = self._session, self._checked(message.prop)
        state = placed(session.state, prop)
        if not any(handle.glued == prop.id and handle.pinned for handle in state.handles):
            return session.commit(state) if message.last else [session.show(state, fine=False)]
        solved = session.poser.solve(state, fine=message.last)
        if not message.last:
            return [session.show(state, solved, fine=False)]
        glued = [handle.id for handle in state.handles if handle.glued == prop.id and handle.pinned]
        return session.settle(state, solved, ease=message.ease, handles=glued)

    def remove(self, message: messages.RemoveProp) -> Answer:
        """Remove a prop; what was glued to it stays."""
        state = self._session.state
        left = tuple(prop for prop in state.props if prop.id != message.id)
        if len(left) == len(state.props):
            raise UnknownNameError(
                "prop", message.id, [prop.id for prop in state.props] or ["(there is none yet)"]
            )
        free = [each.with_(glued=None) if each.glued == message.id else each for each in state.handles]
        return self._session.commit(state.with_(props=left, handles=tuple(free)))

    def _checked(self, prop: Prop) -> Prop:
        """A prop with a unit rotation, and a file if its kind needs one."""
        suffixes = FILES.get(prop.kind)
        if suffixes is not None:
            found = self._session.path(prop.upload or "")
            if found.suffix.lower() not in suffixes:
                raise InvalidValueError(f"a {prop.kind} is a {' or '.join(suffixes)} file; got {found.name}")
        turn = rotations.normalize(np.array(prop.rotation)).tolist()
        return prop.with_(rotation=tuple(turn), upload=prop.upload if suffixes else None)


def placed(state: State, prop: Prop) -> State:
    """Replace the prop with this id, or add it; glued handles move along."""
    old = next((each for each in state.props if each.id == prop.id), None)
    props = {each.id: each for each in (*state.props, prop)}
    if len(props) > MOST_PROPS:
        raise InvalidValueError(f"a scene has at most {MOST_PROPS} props")
    handles = [
        _carried(each, old, prop) if old is not None and each.glued == prop.id else each
        for each in state.handles
    ]
    return state.with_(props=tuple(props.values()), handles=tuple(handles))


def _carried(handle: SceneHandle, old: Prop, new: Prop) -> SceneHandle:
    turn = rotations.multiply(np.array(new.rotation), rotations.conjugate(np.array(old.rotation)))
    position, rotation = handle.position, handle.rotation
    if position is not None:
        position = vec3(rotations.rotate(turn, np.subtract(position, old.position)) + np.array(new.position))
    if rotation is not None:
        w, x, y, z = rotations.multiply(turn, np.array(rotation)).tolist()
        rotation = w, x, y, z
    return handle.with_(position=position, rotation=rotation)
