"""An OSC server that keeps what it hears, as tests of live streams need one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pythonosc.dispatcher import Dispatcher
from pythonosc.osc_server import BlockingOSCUDPServer

from poise.capture.feeds.humanoid import BONES


class Receiver:
    """What came, by address."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, tuple[Any, ...]]] = []
        dispatcher = Dispatcher()
        dispatcher.set_default_handler(lambda address, *values: self.heard.append((address, values)))
        self.server = BlockingOSCUDPServer(("127.0.0.1", 0), dispatcher)
        self.port = self.server.server_address[1]

    def bones(self, count: int = len(BONES)) -> list[tuple[Any, ...]]:
        return [values for address, values in self.heard if address == "/VMC/Ext/Bone/Pos"][-count:]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens."""
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield receiver
    receiver.server.shutdown()
    thread.join()
    receiver.server.server_close()
