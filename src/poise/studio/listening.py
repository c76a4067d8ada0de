"""The studio's connections: silent or slow ones are closed, and none keeps others out."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from poise.errors import InvalidValueError
from poise.studio.security import Access

PORT, PORTS_TRIED = 8420, 20
MOST_CONNECTIONS = 500
MOST_STRANGERS = 50  # connections of one client that have not made an allowed request; the oldest is closed
HEADERS_WITHIN = 10.0  # seconds until the headers of a request are complete
BODY_EVERY = 30.0  # seconds without anything of its body until a request is given up
MOST_UNREAD = 4  # messages of a page that the studio has not taken yet; more wait in its connection


class PatientProtocol(H11Protocol):
    """HTTP with time-outs, and with a limit for clients that have not made an allowed request."""

    access: Access
    strangers: dict[PatientProtocol, None]  # in the order of their arrival
    everyone: WeakSet[asyncio.Transport]

    @classmethod
    def for_access(cls, access: Access) -> type[PatientProtocol]:
        """The protocol of one server."""
        shared = {"access": access, "strangers": {}, "everyone": WeakSet()}
        return type("StudioProtocol", (cls,), shared)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close the oldest stranger if there are too many connections."""
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._wait(HEADERS_WITHIN)
        self.everyone.add(transport)
        self.strangers[self] = None
        host = self.client and self.client[0]
        alike = [other for other in self.strangers if (other.client and other.client[0]) == host]
        if len(alike) > MOST_STRANGERS:
            alike[0].leave()
        elif sum(not each.is_closing() for each in self.everyone) > MOST_CONNECTIONS:
            next(iter(self.strangers)).leave()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of the headers from the start of a request on, and for every piece of its body."""
        asks = self.cycle is None or self.cycle.response_complete
        super().data_received(data)
        if self.transport.get_protocol() is not self:  # it is a websocket from here on
            self.strangers.pop(self, None)
            self._wait(None)
        elif self.cycle is None or self.cycle.response_complete:
            if asks and self._timer is None:
                self._wait(HEADERS_WITHIN)
        else:
            self._wait(BODY_EVERY if self.cycle.more_body else None)

    def handle_events(self) -> None:
        """Whoever makes an allowed request is no stranger."""
        before = self.scope
        super().handle_events()
        if self in self.strangers and self.scope is not before:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self.headers}
            if self.access.refusal(headers, self.scope["query_string"].decode("latin-1")) is None:
                del self.strangers[self]

    def on_response_complete(self) -> None:
        """From here on uvicorn closes an idle connection."""
        self._wait(None)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._wait(None)
        self.strangers.pop(self, None)
        super().connection_lost(exc)

    def leave(self) -> None:
        """Close the connection at once."""
        self.strangers.pop(self, None)
        self.transport.abort()

    def _wait(self, seconds: float | None) -> None:
        """Close the connection in so many seconds, unless something happens before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        if self.flow.read_paused:  # the studio itself is slow
            self._wait(BODY_EVERY)
        else:
            self.leave()


class PageProtocol(WebSocketsSansIOProtocol):
    """A websocket that is read on while a few messages wait.

    Uvicorn stops reading at each message and starts again when it is taken. These are two calls of the system, and at
    each the event loop gives the interpreter away to a thread that solves.
    """

    def send_receive_event_to_app(self) -> None:
        """Stop reading only if the studio is behind."""
        paused, self.read_paused = self.read_paused, True
        super().send_receive_event_to_app()
        self.read_paused = paused
        if not paused and self.queue.qsize() > MOST_UNREAD:
            self.read_paused = True
            self.transport.pause_reading()


class Door(socket.socket):
    """A listening socket that rejects connections when the system runs out of descriptors.

    The event loop would log each of them at length, many times a second.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._spare = os.open(os.devnull, os.O_RDONLY)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; the event loop ignores an aborted one."""
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._free_spare()  # it is reserved for rejecting a connection
            with suppress(OSError):
                super().accept()[0].close()
            with suppress(OSError):  # another thread has taken it; the next connection tries again
                self._spare = os.open(os.devnull, os.O_RDONLY)
            raise ConnectionAbortedError(str(error)) from error

    def close(self) -> None:
        """Stop listening."""
        self._free_spare()
        super().close()

    def _free_spare(self) -> None:
        """Close the reserved descriptor once: its number may soon belong to another file."""
        spare, self._spare = self._spare, -1
        if spare >= 0:
            os.close(spare)


def listen(host: str, port: int | None) -> socket.socket:
    """A socket listening on the requested port, else on the first free one from the default."""
    tried = [port] if port is not None else [*range(PORT, PORT + PORTS_TRIED), 0]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    problem: OSError | None = None
    for number in tried:
        listener = Door(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # No pose waits for the page's acknowledgement of the previous one; connections inherit it.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listener.bind((host, number))
            listener.listen(128)
        except OSError as error:
            listener.close()
            problem = error
        else:
            return listener
    raise InvalidValueError(f"cannot listen on {host}:{tried[0]}: {problem.strerror if problem else ''}")
