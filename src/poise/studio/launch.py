"""Start a studio: models, access, a socket to listen on, and the browser."""

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
from threading import Event, Lock, Thread, Timer

from poise.apps.warm_up import KERNELS, Pace, pace_of, warm_up
from poise.errors import PoiseError
from poise.formats.files import existing_file
from poise.studio.defaults import MODEL, embedded
from poise.studio.listening import listen
from poise.studio.memory import give_memory_back
from poise.studio.models import ModelStore
from poise.studio.security import Access, is_loopback
from poise.studio.server import PAGE, Studio, server_of
from poise.studio.uploads import plain_name

OPEN_AFTER = 0.3  # seconds
ALONE = 5.0  # seconds that the first page has the machine to itself
FIRST = ("kinematics", "solver", "expectations", "people")
"""The kernels of the model that a new studio starts with."""
SWITCH_INTERVAL = 5e-4  # seconds that a solving thread may hold the interpreter against the socket's


@dataclass(frozen=True, eq=False)
class Ready:
    """A studio that listens and waits to be served."""

    studio: Studio
    listener: socket.socket
    address: str
    ahead: bool

    def serve(self, *, open_browser: bool = False) -> None:
        """Serve until interrupted."""
        if open_browser:
            opening = Timer(OPEN_AFTER, webbrowser.open, [self.address])
            opening.daemon = True
            opening.start()
        sys.setswitchinterval(SWITCH_INTERVAL)
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # a closed page is not worth a warning
        with _rest_prepared(self.studio.preparing) if self.ahead else nullcontext():
            server_of(self.studio).run(sockets=[self.listener])


def sorted_out(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Split files into models and files for the page to open; raise if a file is missing or has a bad name."""
    for path in files:
        plain_name(existing_file(path).name)
    models = [path for path in files if path.suffix.lower() == MODEL]
    return models, [path for path in files if path not in models]


def models_of(named: Sequence[Path]) -> ModelStore:
    """The named models, followed by the built-in ones."""
    give_memory_back()
    models = embedded(named=named)
    if not (PAGE / "index.html").is_file():
        raise PoiseError(
            "the studio's page is not built; run `make page` in the source folder, or `pip install` it from there"
        )
    return models


def compiling(*, everything: bool) -> Pace:
    """Start compiling what the first drag needs, or everything, while the page already opens."""
    names = KERNELS if everything else FIRST
    pace = pace_of(names)
    Thread(target=warm_up, args=(names, pace), daemon=True, name="poise-compile").start()
    return pace


@contextmanager
def _rest_prepared(first: Pace | None = None) -> Iterator[None]:
    """After the first kernels: compile the others and learn the built-in models, while the studio is in use."""
    lock, ended = Lock(), Event()
    running: list[Popen[bytes]] = []

    def prepare() -> None:
        if first is not None:
            first.wait()
        ended.wait(ALONE)
        with lock:
            if ended.is_set():
                return
            learning = [sys.executable, "-m", "poise.studio.defaults"]
            running.append(Popen(learning, stdout=DEVNULL, stderr=DEVNULL))
        # Waited for, so that no zombie process remains.
        Thread(target=running[0].wait, daemon=True, name="poise-learning").start()
        warm_up()

    Thread(target=prepare, daemon=True, name="poise-warm-up").start()
    try:
        yield
    finally:
        with lock:
            ended.set()
        for learning in running:
            learning.kill()
            learning.wait()


@contextmanager
def prepared(
    models: ModelStore,
    *,
    host: str,
    port: int | None,
    token: str | None,
    files: Sequence[Path] = (),
    preparing: Pace | None = None,
    ahead: bool = False,
) -> Iterator[Ready]:
    """A studio on an address, with files to open. Off loopback it requires a token, which is part of the address.

    Pages wait until `preparing` is done, and show its progress. `ahead`: learn the built-in models in the background.
    """
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(16)
    listener = listen(host, port)
    with listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/"
        if token is not None:
            address += f"?token={token}"
        studio = Studio(models, access=Access(host, token), files=files, preparing=preparing)
        yield Ready(studio, listener, address, ahead)
