"""Props: boxes, chairs, shelves, meshes and pictures in the scene, and the handles that are glued to them."""

from __future__ import annotations

import msgspec
import numpy as np

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.studio import messages
from poise.studio.messages import Key, Prop, SceneHandle
from poise.studio.session import Answer, Handler, Session
from poise.studio.solving import replanted, vec3
from poise.studio.state import MOST_PROPS, State

FILES = {
    "mesh": (".glb",),
    "picture": (".png", ".jpg", ".jpeg", ".webp", ".bmp"),
    "video": (".mp4", ".m4v", ".mov", ".webm"),
}


class PropsPanel:
    """The props of the scene."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        return {messages.PutProp: self.put, messages.RemoveProp: self.remove}

    def put(self, message: messages.PutProp) -> Answer:
        """A moment of a prop's move; the last one is a step of undo."""
        session, prop = self._session, self._checked(message.prop)
        state = placed(session.state, prop)
        if not any(handle.glued == prop.id and handle.pinned for handle in state.handles):
            return session.commit(state) if message.last else [session.show(state, fine=False)]
        solved = session.poser.solve(state, fine=message.last)
        if not message.last:
            return [session.show(state, solved, fine=False)]
        state = state.with_(placed=solved.placed)
        answer = session.commit(state.with_(anchors=replanted(state)), solved)
        for key in [] if message.ease is None else keys_of_glued(state, prop, message.ease):
            answer += session.answer(messages.PutKey(key=key, gesture=message.gesture))
        return answer

    def remove(self, message: messages.RemoveProp) -> Answer:
        """Remove a prop; what was glued to it stays."""
        state = self._session.state
        left = tuple(prop for prop in state.props if prop.id != message.id)
        if len(left) == len(state.props):
            raise UnknownNameError(
                "prop", message.id, [prop.id for prop in state.props] or ["(there is none yet)"]
            )
        free = tuple(
            msgspec.structs.replace(handle, glued=None) if handle.glued == message.id else handle
            for handle in state.handles
        )
        return self._session.commit(state.with_(props=left, handles=free))

    def _checked(self, prop: Prop) -> Prop:
        """A prop with a unit rotation, and a file if its kind needs one."""
        suffixes = FILES.get(prop.kind)
        if suffixes is not None:
            found = self._session.uploads.find(prop.upload or "", owner=self._session.token).path
            if found.suffix.lower() not in suffixes:
                raise InvalidValueError(f"a {prop.kind} is a {' or '.join(suffixes)} file; got {found.name}")
        turn = rotations.normalize(np.array(prop.rotation)).tolist()
        return msgspec.structs.replace(prop, rotation=tuple(turn), upload=prop.upload if suffixes else None)


def placed(state: State, prop: Prop) -> State:
    """Replace the prop with this id, or add it; glued handles move along."""
    old = next((each for each in state.props if each.id == prop.id), None)
    if old is None:
        if len(state.props) >= MOST_PROPS:
            raise InvalidValueError(f"a scene has at most {MOST_PROPS} props")
        return state.with_(props=(*state.props, prop))
    props = tuple(prop if each is old else each for each in state.props)
    handles = tuple(
        _carried(handle, old, prop) if handle.glued == prop.id else handle for handle in state.handles
    )
    return state.with_(props=props, handles=handles)


def keys_of_glued(state: State, prop: Prop, ease: int) -> list[Key]:
    """Keys of the handles that are glued to a prop, where they are now; those that were there keep their curves."""
    frame = state.timeline.frame
    known = {key.handle: key for key in state.timeline.keys if key.frame == frame}
    return [
        msgspec.structs.replace(
            known.get(handle.id, Key(handle=handle.id, frame=frame, ease=ease)),
            position=handle.position,
            rotation=handle.rotation,
        )
        for handle in state.handles
        if handle.glued == prop.id and handle.pinned
    ]


def _carried(handle: SceneHandle, old: Prop, new: Prop) -> SceneHandle:
    turn = rotations.multiply(np.array(new.rotation), rotations.conjugate(np.array(old.rotation)))
    position, rotation = handle.position, handle.rotation
    if position is not None:
        position = vec3(rotations.rotate(turn, np.subtract(position, old.position)) + np.array(new.position))
    if rotation is not None:
        w, x, y, z = rotations.multiply(turn, np.array(rotation)).tolist()
        rotation = w, x, y, z
    return msgspec.structs.replace(handle, position=position, rotation=rotation)
