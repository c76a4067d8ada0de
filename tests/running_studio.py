"""A real studio in a thread of its own, and a page that talks to it, as tests need them."""

from __future__ import annotations

import json
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from websockets.sync.client import ClientConnection, connect

from bodies import person
from poise.formats import gltf
from poise.skeleton.skeleton import Pose
from poise.studio import messages as said
from poise.studio.listening import listen
from poise.studio.models import ModelStore
from poise.studio.security import Access
from poise.studio.server import Studio, server_of
from poise.studio.session import Session

DECODER: msgspec.msgpack.Decoder[said.ServerMessage] = msgspec.msgpack.Decoder(said.ServerMessage)
PATIENCE = 120.0  # seconds: machines may be busy, and kernels compiled on the way
Said = TypeVar("Said")


class Page:
    """What a page does, without a browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.numbers = iter(range(1, 10**9))

    def say(self, message: said.ClientMessage) -> None:
        self.socket.send(msgspec.msgpack.encode(message))

    def hear(self) -> said.ServerMessage:
        data = self.socket.recv(timeout=PATIENCE)
        assert isinstance(data, bytes)
        return DECODER.decode(data)

    def hear_until(self, kind: type[Said]) -> Said:
        """The next message of a kind; a refusal on the way is a failure."""
        while True:
            message = self.hear()
            if isinstance(message, kind):
                return message
            assert not isinstance(message, said.Refusal), message.words

    def hello(self, token: str | None = None) -> said.Welcome:
        self.say(said.Hello(protocol=said.PROTOCOL, token=token))
        welcome = self.hear_until(said.Welcome)
        self.hear_until(said.SolvedPose)
        return welcome


class Running:
    """A studio that listens."""

    def __init__(self, studio: Studio, port: int) -> None:
        self.studio, self.port = studio, port
        self.address = f"http://127.0.0.1:{port}"

    @contextmanager
    def page(self, **options: Any) -> Iterator[Page]:
        with connect(
            f"ws://127.0.0.1:{self.port}/ws",
            **{"max_size": None, "open_timeout": PATIENCE, "ping_interval": None} | options,
        ) as socket:
            yield Page(socket)


@contextmanager
def running(models: ModelStore, *, access: Access | None = None, **options: Any) -> Iterator[Running]:
    listener = listen("127.0.0.1", 0)
    studio = Studio(models, access=access, **options)
    server = server_of(studio)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield Running(studio, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def wait_until(holds: Callable[[], bool]) -> None:
    """Until something holds; a failure where it never does."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


class Heard:
    """What a session says unasked."""

    def __init__(self, session: Session) -> None:
        self.messages: list[said.ServerMessage] = []
        session.outlet = self.messages.append

    def wait_for(self, kind: type[Said], which: Callable[[Said], bool] = lambda _: True) -> Said:
        """The first of a kind that comes, within a while; a refusal is a failure."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for message in list(self.messages):
                assert not isinstance(message, said.Refusal), message.words
                if isinstance(message, kind) and which(message):
                    return message
            time.sleep(0.01)
        raise AssertionError(f"no {kind.__name__} came")

    def refusal(self) -> said.Refusal:
        """The first refusal that comes."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for message in list(self.messages):
                if isinstance(message, said.Refusal):
                    return message
            time.sleep(0.01)
        raise AssertionError("nothing was refused")


def kept(session: Session, path: Path) -> str:
    """A file as if the session's page had sent it; its id."""
    target = session.uploads.folder(session.token) / path.name
    target.write_bytes(path.read_bytes())
    return session.uploads.keep(target, owner=session.token).id


SCRIPT = """
duration = 1.0
fps = 20
floor = true
[handles.right_hand]
keys = [{ time = 0.0, at = [-0.3, 1.0, 0.2] }, { time = 1.0, at = [-0.3, 1.3, 0.3], ease = "out" }]
[handles.head]
keys = [{ time = 0.5, rotation = [0, 20, 0] }]
[[pins]]
handle = "left_foot"
from = 0.2
"""
"""A keyframe script."""


def foreign(path: Path) -> Path:
    """A character with a mesh that another program wrote, with its back to us."""
    skeleton, away = person(), np.tile([1.0, 0.0, 0.0, 0.0], (26, 1))
    away[0] = (0.0, 0.0, 1.0, 0.0)
    gltf.write(Pose(skeleton, np.array(skeleton.offsets[0]), away), path)
    data = path.read_bytes()
    size = struct.unpack_from("<I", data, 12)[0]
    content = json.loads(data[20 : 20 + size])
    del content["scenes"][0]["extras"]
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    body = struct.pack("<I4s", len(text), b"JSON") + text + data[20 + size :]
    path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body)
    return path
