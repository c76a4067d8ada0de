"""Starts a studio: models, access, a socket to listen on, and the browser."""

from __future__ import annotations

import logging
import secrets
import socket
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen
from threading import Thread, Timer

from poise.apps.warm_up import KERNELS, warm_up
from poise.errors import PoiseError
from poise.studio.defaults import Step, embedded, from_files
from poise.studio.memory import give_memory_back
from poise.studio.models import ModelStore
from poise.studio.security import Access, is_loopback
from poise.studio.server import PAGE, Studio, listen, server_of

OPEN_AFTER = 0.3  # seconds
FIRST = ("kinematics", "solver", "people")
"""The kernels of the model that a new studio begins with."""
SWITCH_INTERVAL = 5e-4  # seconds that a solving thread may keep the interpreter from the socket's


@dataclass(frozen=True, eq=False)
class Ready:
    """A studio that listens and waits to be served."""

    studio: Studio
    listener: socket.socket
    address: str
    unfinished: bool  # whether some models are still to be learned

    def serve(self, *, open_browser: bool = False) -> None:
        """Until interrupted."""
        if open_browser:
            opening = Timer(OPEN_AFTER, webbrowser.open, [self.address])
            opening.daemon = True
            opening.start()
        sys.setswitchinterval(SWITCH_INTERVAL)
        logging.getLogger("asyncio").setLevel(
            logging.ERROR
        )  # a page that went away is no cause for a warning
        with _rest_prepared() if self.unfinished else nullcontext():
            server_of(self.studio).run(sockets=[self.listener])


def models_of(files: Sequence[Path], *, step: Step) -> ModelStore:
    """The models that were named, else the embedded ones; everything compiled that the first drag will need."""
    give_memory_back()
    models = from_files(files, step=step) if files else embedded(step=step)
    if not (PAGE / "index.html").is_file():
        raise PoiseError(
            "the studio's page is not built; run `make page` in the source folder, or install a release"
        )
    warm_up(FIRST if not files else KERNELS)
    return models


@contextmanager
def _rest_prepared() -> Iterator[None]:
    """Everything else is compiled and learned beside the studio, which is used already."""
    Thread(target=warm_up, daemon=True, name="poise-warm-up").start()
    learning = Popen([sys.executable, "-m", "poise.studio.defaults"], stdout=DEVNULL, stderr=DEVNULL)
    try:
        yield
    finally:
        learning.kill()
        learning.wait()


@contextmanager
def prepared(models: ModelStore, *, host: str, port: int | None, token: str | None) -> Iterator[Ready]:
    """A studio on an address; off loopback it asks for a token, which is part of the address shown."""
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(16)
    listener = listen(host, port)
    with listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/"
        if token is not None:
            address += f"?token={token}"
        unfinished = not all(entry.source.ready for entry in models.learned)
        yield Ready(Studio(models, access=Access(host, token)), listener, address, unfinished)
