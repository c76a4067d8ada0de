"""A session's mailbox: messages in order; of streaming ones only the newest waits, so that none is stale."""

from __future__ import annotations

import asyncio
from collections import deque

from poise.errors import PoiseError
from poise.studio import messages

MOST_WAITING, MOST_BYTES = 500, 8_000_000
STREAMS = (
    messages.Drag,
    messages.TurnJoints,
    messages.TakePose,
    messages.PutProp,
    messages.DragLatent,
    messages.HoverLatent,
    messages.MovePoint,
    messages.DragKey,
    messages.SetFrame,
    messages.WebcamPicture,
)


class CrowdedError(PoiseError):
    """More messages are waiting than a person could have sent."""


class Inbox:
    """Messages of a session that are not yet answered; used by one event loop."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[messages.ClientMessage, int]] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, message: messages.ClientMessage, size: int = 0) -> None:
        """Add a message of this size; it replaces the previous one if that is a moment of the same gesture."""
        if self._waiting and _supersedes(message, self._waiting[-1][0]):
            self._bytes -= self._waiting.pop()[1]
            self.dropped += 1
        elif len(self._waiting) >= MOST_WAITING or self._bytes + size > MOST_BYTES:
            raise CrowdedError(f"{len(self._waiting)} messages are already waiting; this one was dropped")
        self._waiting.append((message, size))
        self._bytes += size
        self._arrived.set()

    async def arrived(self) -> None:
        """Waits until there is a message."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()

    async def take(self) -> messages.ClientMessage:
        """The next message, once there is one."""
        await self.arrived()
        message, size = self._waiting.popleft()
        self._bytes -= size
        return message


def _supersedes(new: messages.ClientMessage, old: messages.ClientMessage) -> bool:
    if type(new) is not type(old) or not isinstance(new, STREAMS) or getattr(old, "last", False):
        return False
    return _gesture(new) == _gesture(old)


def _gesture(message: messages.ClientMessage) -> object:
    """The target of a streaming message: two of one gesture differ only in values. A turn never replaces a move."""
    match message:
        case messages.Drag():
            return message.handle, message.position is None, message.rotation is None
        case messages.TurnJoints():
            return tuple(message.joints)
        case messages.TakePose():
            return message.pose, message.mirrored, tuple(message.joints)
        case messages.PutProp():
            return message.prop.id
        case messages.DragKey():
            return message.key.handle, message.key.frame
        case messages.MovePoint():
            return message.point.joint
        case _:
            return None
