"""All sessions of a studio, by token: a lost connection is resumed; abandoned ones are removed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from poise.studio.autosave import Autosave
from poise.studio.models import ModelStore
from poise.studio.session import Session
from poise.studio.uploads import Uploads

if TYPE_CHECKING:
    from poise.studio.connection import Connection

KEPT_FOR = 3600.0  # seconds after a connection was lost
MOST_LEFT = 50  # sessions without a connection; the longest abandoned is removed first
MOST_LEFT_BYTES = 200_000_000  # of their motions and models; a scene on disk is resumed from there
NEARBY = 60.0  # seconds within which a page is likely to return


class Sessions:
    """Sessions and their connections; used by one event loop. The first new one opens the files."""

    def __init__(self, models: ModelStore, uploads: Uploads, files: Sequence[Path] = ()) -> None:
        self._models, self._uploads, self._autosave = models, uploads, Autosave()
        self._files = list(files)
        self._autosave.tidy()
        self._sessions: dict[str, Session] = {}
        self._connections: dict[str, Connection] = {}
        self._left: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, token: str | None, connection: Connection) -> tuple[Session, bool]:
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
