"""Websockets and the sessions that they resume: decode messages, let a worker thread answer, send the replies.

Three tasks read, answer and send, so that neither the socket nor the solver waits for the other. Messages wait in a
mailbox in order; of streaming ones only the newest waits, so that none is stale.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from poise.apps.warm_up import Pace
from poise.errors import PoiseError
from poise.studio import messages
from poise.studio.autosave import Autosave
from poise.studio.models import ModelStore
from poise.studio.session import Answer, Session
from poise.studio.uploads import Uploads

MOST_UNSENT, MOST_UNSENT_BYTES = 500, 32_000_000  # above either limit a page is disconnected
MOMENTS = (messages.SolvedPose, messages.MotionRange)  # unless they are fine; and those of a performance
HELLO_WITHIN, CLOSE_WITHIN = 10.0, 2.0  # seconds
PROGRESS_AFTER, PROGRESS_EVERY = 1.5, 0.1  # seconds; kernels that only load from the cache show no progress
NORMAL, TOO_SLOW = 1000, 1013  # of websockets
_DECODER: msgspec.msgpack.Decoder[messages.ClientMessage] = msgspec.msgpack.Decoder(messages.ClientMessage)
_ENCODER = msgspec.msgpack.Encoder()
_LOG = logging.getLogger("poise.studio")
MOST_WAITING, MOST_BYTES = 500, 8_000_000
KEPT_FOR = 3600.0  # seconds for which a session is kept after its connection was lost
MOST_LEFT = 50  # sessions without a connection; the longest abandoned is removed first
MOST_LEFT_BYTES = 200_000_000  # of their motions and models; a scene on disk is resumed from there
NEARBY = 60.0  # seconds within which a page is likely to return
_GESTURES: dict[type, Callable[[Any], object]] = {
    messages.Drag: lambda one: (one.handle, one.position is None, one.rotation is None),
    messages.TurnJoints: lambda one: one.joints,
    messages.TakePose: lambda one: (one.pose, one.mirrored, one.joints),
    messages.PutProp: lambda one: one.prop.id,
    messages.DragKey: lambda one: (one.key.handle, one.key.frame),
    messages.MovePoint: lambda one: one.point.joint,
    **dict.fromkeys((messages.DragLatent, messages.HoverLatent, messages.SetFrame), lambda _: None),
    messages.WebcamPicture: lambda _: None,
}
"""The target of a streaming message: two of one gesture differ only in values. A turn never replaces a move."""


class Sessions:
    """Sessions and their connections; used by one event loop. The first new one opens the files."""

    def __init__(self, models: ModelStore, uploads: Uploads, files: Sequence[Path] = ()) -> None:
        self._models, self._uploads, self._autosave = models, uploads, Autosave()
        self._files = list(files)
        self._autosave.tidy()
        self._sessions: dict[str, Session] = {}
        self._connections: dict[str, Connection | None] = {}
        self._left: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, token: str | None, connection: Connection | None) -> tuple[Session, bool]:
        """The session with this token and True, or a new one, for which a scene may be saved; others are closed."""
        self._forget()
        session = self._sessions.get(token or "")
        resumed = session is not None
        if session is None:
            kept = token if token is not None and self._autosave.has(token) else None
            session = Session(self._models, self._uploads, self._autosave, token=kept)
            self._sessions[session.token] = session
            session.openings = [self._uploads.link(path, owner=session.token) for path in self._files]
            self._files = []
        earlier = self._connections.get(session.token)
        if earlier is not None:
            earlier.closing.set()
        self._connections[session.token] = connection
        self._left.pop(session.token, None)
        return session, resumed

    def leave(self, session: Session, connection: Connection) -> None:
        """The connection has ended; the session waits for another."""
        if self._connections.get(session.token) is connection:
            del self._connections[session.token]
            session.outlet = None
            self._left[session.token] = time.monotonic()
            asyncio.get_running_loop().call_later(NEARBY + 1.0, self._forget)

    def __contains__(self, token: str) -> bool:
        return token in self._sessions

    def everyone(self) -> list[Session]:
        """All that are connected."""
        return [self._sessions[token] for token in self._connections]

    def close(self) -> None:
        """End all sessions."""
        for session in self._sessions.values():
            session.close()
        self._autosave.close()

    def _forget(self) -> None:
        """Remove sessions abandoned long ago, and others if they use too much memory; unsaved work is kept."""
        now, held = time.monotonic(), {token: self._sessions[token].held_bytes for token in self._left}
        for token, since in list(self._left.items()):
            if now - since < KEPT_FOR and len(self._left) <= MOST_LEFT:
                large = sum(held.values()) > MOST_LEFT_BYTES and held[token] > 0
                at_work = self._autosave.waits_for(token) or not self._sessions[token].jobs.idle
                if not large or at_work or now - since < NEARBY:
                    continue
            del self._left[token], held[token]
            self._sessions.pop(token).close()


class Connection:
    """A page that talks to its session."""

    def __init__(
        self,
        socket: WebSocket,
        sessions: Sessions,
        workers: ThreadPoolExecutor,
        *,
        preparing: Pace | None = None,
    ) -> None:
        self._socket, self._sessions, self._workers = socket, sessions, workers
        self._preparing = preparing
        self._inbox = Inbox()
        self._unsent: deque[tuple[messages.ServerMessage, bytes]] = deque()
        self.unsent_bytes = 0
        self._end = NORMAL, ""
        self._something = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.closing = asyncio.Event()

    async def run(self) -> None:
        """Run from hello to the end."""
        await self._socket.accept()
        try:
            async with asyncio.timeout(HELLO_WITHIN):
                hello = await self._hello()
            if self._preparing is not None:
                await self._wait_for(self._preparing)
        except (TimeoutError, WebSocketDisconnect):
            return
        session, resumed = self._sessions.open(hello.token, self)
        session.outlet, session.backlog = self.say_from_thread, lambda: self.unsent_bytes

        def greeted() -> Answer:  # a session of an earlier studio resumes its scene
            found = resumed or (session.token == hello.token and session.restore())
            return session.greet(resumed=found, known=hello.known)

        await self._in_worker(session, greeted)
        jobs = (self._read(), self._answer(session), self._send(), self.closing.wait())
        tasks = [asyncio.ensure_future(job) for job in jobs]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._sessions.leave(session, self)
            self._drop()
            with suppress(RuntimeError):  # when the studio itself ends
                self._workers.submit(session.rest)
            with suppress(RuntimeError, WebSocketDisconnect, TimeoutError):  # if the other side closed first
                async with asyncio.timeout(CLOSE_WITHIN):
                    await self._socket.close(*self._end)

    def say(self, *said: messages.ServerMessage) -> None:
        """Queue messages; of pending moments of a gesture or a performance, only the newest is kept."""
        for message in said:
            data, stale = _ENCODER.encode(message), self._stale(message)
            if stale is None:
                self._unsent.append((message, data))
            else:
                self.unsent_bytes -= len(self._unsent[stale][1])
                self._unsent[stale] = message, data
            self.unsent_bytes += len(data)
        self._something.set()
        if len(self._unsent) > MOST_UNSENT or self.unsent_bytes > MOST_UNSENT_BYTES:
            self._drop()
            self._end = TOO_SLOW, "the page does not read what it is sent"
            self.closing.set()

    def _drop(self) -> None:
        self._unsent.clear()
        self.unsent_bytes = 0

    def _stale(self, message: messages.ServerMessage) -> int | None:
        """The index of the last pending message, if it is a moment that this message replaces."""
        for at in range(-1, -1 - min(len(self._unsent), 1 + len(MOMENTS)), -1):
            waiting = self._unsent[at][0]
            if not _is_moment(waiting):
                return None
            if type(waiting) is type(message) and _covers(message, waiting):
                return at
        return None

    def say_from_thread(self, message: messages.ServerMessage) -> None:
        """The same, from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.say, message)

    def _find(self, session: Session, answer: Callable[[], Answer], done: asyncio.Future[None]) -> None:
        """Find an answer and hand it to the loop, before a task that it begins can say anything.

        The loop is woken once, for the messages and the end of the work: every wake-up makes the threads wait for
        each other.
        """
        with session.lock:
            said, error = Answer(), None
            try:
                said = answer()
            except Exception as failure:
                error = failure
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._found, done, said, error)

    def _found(self, done: asyncio.Future[None], said: Answer, error: Exception | None) -> None:
        self.say(*said)
        if done.done():  # the page has gone
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    async def _hello(self) -> messages.Hello:
        while True:
            message, _ = await self._next()
            if isinstance(message, messages.Hello) and message.protocol == messages.PROTOCOL:
                return message
            if isinstance(message, messages.Hello):
                words = f"the page speaks protocol {message.protocol}, the server {messages.PROTOCOL}; reload the page"
            else:
                words = "a connection begins with hello"
            await self._send_now(messages.Refusal(words=words, about=_tag(message), seq=None))

    async def _wait_for(self, pace: Pace) -> None:
        """Wait until the kernels are compiled, which takes half a minute once; the page shows progress."""
        waited = 0.0
        while not pace.over:
            if waited >= PROGRESS_AFTER:
                words = f"First start, compiling: {pace.words}"
                step = messages.Progress(task="prepare", words=words, share=pace.share, curve=[])
                await self._send_now(step)
            await asyncio.sleep(PROGRESS_EVERY)
            waited += PROGRESS_EVERY
        await self._send_now(messages.Progress(task="prepare", words="Ready", share=1.0, curve=[]))

    async def _send_now(self, message: messages.ServerMessage) -> None:
        await self._socket.send_bytes(_ENCODER.encode(message))

    async def _read(self) -> None:
        while True:
            try:
                message, size = await self._next()
            except WebSocketDisconnect:
                return
            try:
                self._inbox.put(message, size)
            except CrowdedError as error:
                self.say(_refusal(str(error), message))

    async def _next(self) -> tuple[messages.ClientMessage, int]:
        """The next valid message and its size; invalid ones are answered with an error."""
        while True:
            event = await self._socket.receive()
            if event["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(event.get("code", 1000))
            data = event.get("bytes")
            try:
                if data is None:
                    raise msgspec.DecodeError("expected a binary message")
                return _DECODER.decode(data), len(data)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
                words = f"a message was not understood: {error}"
                await self._send_now(messages.Refusal(words=words, about=None, seq=None))

    async def _answer(self, session: Session) -> None:
        while True:
            await self._inbox.arrived()
            await self._in_worker(session, partial(self._next_answer, session))

    def _next_answer(self, session: Session) -> Answer:
        message = self._inbox.take()  # by the thread that answers it, so that it is the newest of its gesture
        try:
            return session.answer(message)
        except PoiseError as error:
            return [_refusal(str(error), message)]
        except Exception:
            _LOG.exception("while answering %s", _tag(message))
            words = "something went wrong in the studio; the terminal it runs in says what"
            return [_refusal(words, message)]

    async def _send(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            while self._unsent:
                _, data = self._unsent.popleft()
                self.unsent_bytes -= len(data)
                await self._socket.send_bytes(data)

    async def _in_worker(self, session: Session, answer: Callable[[], Answer]) -> None:
        done = self._loop.create_future()
        self._workers.submit(self._find, session, answer, done)
        await done


def _is_moment(message: messages.ServerMessage) -> bool:
    """Whether the next message of its kind repeats it."""
    if isinstance(message, messages.Performing):
        return message.step == "following"
    return isinstance(message, MOMENTS) and not message.fine


def _covers(message: messages.ServerMessage, older: messages.ServerMessage) -> bool:
    """Whether a message repeats all that an older one of its kind contains."""
    if not (isinstance(message, messages.MotionRange) and isinstance(older, messages.MotionRange)):
        return True
    return message.first <= older.first and older.first + older.frames <= message.first + message.frames


def _refusal(words: str, message: messages.ClientMessage) -> messages.Refusal:
    return messages.Refusal(words=words, about=_tag(message), seq=getattr(message, "seq", None))


def _tag(message: messages.ClientMessage) -> str:
    return str(type(message).__struct_config__.tag)


class CrowdedError(PoiseError):
    """More messages are waiting than a person could have sent."""


class Inbox:
    """Messages of a session that are not yet answered: an event loop puts them in, a thread takes them out."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[messages.ClientMessage, int]] = deque()
        self._bytes = 0
        self._arrived, self._lock = asyncio.Event(), Lock()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, message: messages.ClientMessage, size: int = 0) -> None:
        """Add a message of this size; it replaces the previous one if that is a moment of the same gesture."""
        with self._lock:
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

    def take(self) -> messages.ClientMessage:
        """The next message, of those that have arrived."""
        with self._lock:
            message, size = self._waiting.popleft()
            self._bytes -= size
        return message


def _supersedes(new: messages.ClientMessage, old: messages.ClientMessage) -> bool:
    target = _GESTURES.get(type(new))
    if type(new) is not type(old) or target is None or getattr(old, "last", False):
        return False
    return target(new) == target(old)
