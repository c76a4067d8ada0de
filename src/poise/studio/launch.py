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
from poise.formats.files import existing_file
from poise.studio.defaults import MODEL, embedded
from poise.studio.memory import give_memory_back
from poise.studio.models import ModelStore
from poise.studio.security import Access, is_loopback
from poise.studio.server import PAGE, Studio, listen, server_of
from poise.studio.uploads import plain_name

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
    ahead: bool

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
        with _rest_prepared() if self.ahead else nullcontext():
            server_of(self.studio).run(sockets=[self.listener])


def sorted_out(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Models among files, and others that the page opens; a file that is missing, or of no use, is refused."""
    for path in files:
        plain_name(existing_file(path).name)
    models = [path for path in files if path.suffix.lower() == MODEL]
    return models, [path for path in files if path not in models]


def models_of(named: Sequence[Path]) -> ModelStore:
    """The models that were named, before the embedded ones; everything compiled that the first drag will need."""
    give_memory_back()
    models = embedded(named=named)
    if not (PAGE / "index.html").is_file():
        raise PoiseError(
            "the studio's page is not built; run `make page` in the source folder, or install a release"
        )
    warm_up(KERNELS if named else FIRST)
    return models


@contextmanager
def _rest_prepared() -> Iterator[None]:
    """Everything else is compiled and learned beside the studio, which is used already."""
    Thread(target=warm_up, daemon=True, name="poise-warm-up").start()
    learning = Popen([sys.executable, "-m", "poise.studio.defaults"], stdout=DEVNULL, stderr=DEVNULL)
    Thread(
        target=learning.wait, daemon=True, name="poise-learning"
    ).start()  # else it stays as a defunct process
    try:
        yield
    finally:
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
    ahead: bool = False,
) -> Iterator[Ready]:
    """A studio on an address, with files to open; off loopback it asks for a token, which is part of the address shown.

    `ahead` says that embedded models are learned beside it before they are asked for.
    """
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(16)
    listener = listen(host, port)
    with listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/"
        if token is not None:
            address += f"?token={token}"
        yield Ready(Studio(models, access=Access(host, token), files=files), listener, address, ahead)
