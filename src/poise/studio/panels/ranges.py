"""Ranges of the motion: mirror, reverse or close to a cycle; and contacts of feet and hands."""

from __future__ import annotations

import msgspec
import numpy as np

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.splines import smoothstep
from poise.motion.edit import mirror, place
from poise.motion.motion import Motion
from poise.motion.world import headings
from poise.studio import messages
from poise.studio.correcting import at_frame, keyed, posed
from poise.studio.layers import joined
from poise.studio.panels.poses import standing_as
from poise.studio.session import Answer, Handler, Session
from poise.studio.state import State
from poise.studio.timeline_script import contacts_of


class RangesPanel:
    """Operations on ranges of frames."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def answers(self) -> dict[type, Handler]:
        """The handlers by message."""
        return {
            messages.EditRange: self.edit,
            messages.AskContacts: self.contacts,
        }

    def edit(self, message: messages.EditRange) -> Answer:
        """Change a range of the motion as one step of undo."""
        session, state = self._session, self._session.state
        motion = self._motion()
        first, last = message.first, message.last
        if not first < last < len(motion):
            raise InvalidValueError(
                f"a range lies within frames 0 to {len(motion) - 1}; got {first} to {last}"
            )
        if message.edit == "cycle":
            state = _cycle(state, first, last)
        else:
            part = motion[first : last + 1]
            other = _reversed(part) if message.edit == "reverse" else _mirrored(part)
            state = _with_range(
                state, _eased(part, other, message.ease, (first == 0, last + 1 == len(motion))), first
            )
        return session.begin_with(at_frame(state, state.timeline.frame))

    def contacts(self, message: messages.AskContacts) -> Answer:
        """Standing feet and holding hands, as ranges."""
        del message
        motion = self._session.motion
        found = [] if motion is None else contacts_of(motion)
        return [messages.ContactsFound(contacts=found)]

    def _motion(self) -> Motion:
        state = self._session.state
        if state.motion is None:
            raise InvalidValueError("there is no motion yet: key a handle, or open a clip")
        return state.motion


def _cycle(state: State, first: int, last: int) -> State:
    """The last frame gets the first one's pose at its own position, and the range is blended to it."""
    assert state.motion is not None
    frame, start, end = state.timeline.frame, state.motion[first], state.motion[last]
    state = state.with_(timeline=msgspec.structs.replace(state.timeline, frame=last))
    closed = keyed(posed(state, standing_as(end, start)), end, (last - first) // 2)
    return closed.with_(timeline=msgspec.structs.replace(closed.timeline, frame=frame))


def _with_range(state: State, part: Motion, first: int) -> State:
    """Replace a part of the motion; its own keys, and keys that made it, are applied to it."""
    assert state.layers is not None
    assert state.motion is not None
    span = first, first + len(part)
    old = state.timeline
    timeline = msgspec.structs.replace(
        old, clip=old.clip or "from keys",
        keys=[key for key in old.keys if old.clip and not span[0] <= key.frame < span[1]],
        poses=[key for key in old.poses if not span[0] <= key.frame < span[1]],
        pins=[pin for pin in old.pins if old.clip and (pin.last < span[0] or pin.first >= span[1])],
        styles=[],
    )  # fmt: skip
    layers = state.layers.making(joined(state.motion, [part], first), span)
    return state.with_(timeline=timeline, layers=layers, smooth=True)


def _reversed(part: Motion) -> Motion:
    return part.with_frames(part.root_positions[::-1], part.rotations[::-1])


def _mirrored(part: Motion) -> Motion:
    x, _, z = part.root_positions[0].tolist()
    return place(mirror(part), at=(x, z), heading=float(headings(part[:1])[0]))


def _eased(part: Motion, other: Motion, ease: int, ends: tuple[bool, bool]) -> Motion:
    """Blend from one motion to another and back, over some frames; not at the ends of the whole motion."""
    frames = np.arange(len(part))
    ins = np.ones(len(part)) if ends[0] else smoothstep((frames + 1) / (ease + 1))
    outs = np.ones(len(part)) if ends[1] else smoothstep((len(part) - frames) / (ease + 1))
    share = np.minimum(ins, outs)
    roots = part.root_positions + share[:, None] * (other.root_positions - part.root_positions)
    return part.with_frames(roots, rotations.slerp(part.rotations, other.rotations, share[:, None]))
