"""Scenes are saved while they are edited: a killed studio, or a new tab, finds them again.

An edit is on disk within about a second. On a full disk, posing continues and saving is retried every second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Condition, Lock, Thread

from poise.errors import PoiseError
from poise.studio.messages import Kept
from poise.studio.scene_files import SceneFiles, decoded, encoded
from poise.studio.state import State
from poise.studio.store import Store

EVERY = 0.5  # seconds between two saves, so that an edit waits less than a second
_LOG = logging.getLogger("poise.studio")


class Autosave:
    """Writes the newest states of sessions into a store, each under its session's secret token."""

    def __init__(self, folder: Path | None = None) -> None:
        self.store = Store(folder)
        self._waiting: dict[str, tuple[SceneFiles, State]] = {}
        self._news, self._writing = Condition(), Lock()
        self._closed = self._troubled = False
        self._thread: Thread | None = None

    def keep(self, token: str, files: SceneFiles, state: State) -> None:
        """Schedule a scene for saving; of several states the newest is saved."""
        with self._news:
            self._waiting[token] = (files, state)
            if self._thread is None:
                self._thread = Thread(target=self._write_on, name="poise-autosave", daemon=True)
                self._thread.start()
            self._news.notify()

    def flush(self) -> bool:
        """Save pending scenes now; return whether all could be saved."""
        with self._writing:
            with self._news:
                waiting, self._waiting = self._waiting, {}
            written = [self._write(token, files, state) for token, (files, state) in waiting.items()]
        return all(written)

    def close(self) -> None:
        """Save pending scenes, and stop."""
        with self._news:
            self._closed = True
            self._news.notify()
        self.flush()
        self.store.close()

    def has(self, token: str) -> bool:
        """Whether a scene was saved for a token."""
        try:
            return token in self._waiting or self.store.scene(token) is not None
        except PoiseError as error:
            _LOG.warning("scenes that were kept cannot be read: %s", error)
            return False

    def waits_for(self, token: str) -> bool:
        """Whether the newest scene of a token is not on disk yet."""
        return token in self._waiting or self._writing.locked()

    def find(self, token: str) -> bytes | None:
        """The saved scene of a token."""
        self.flush()
        found = self.store.scene(token)
        return None if found is None else found[-1]

    def kept(self, tokens: Iterable[str]) -> list[Kept]:
        """The scenes of these tokens that can be resumed, the newest first."""
        found = []
        for token in dict.fromkeys(tokens):
            with suppress(PoiseError):
                if (scene := self.store.scene(token)) is not None:
                    number, saved, content = scene
                    age = max(time.time() - saved, 0.0)  # the clock may have been set back
                    found.append((number, Kept(token=token, age=age, words=decoded(content).words)))
        return [kept for _, kept in sorted(found, key=lambda each: -each[0])]

    def tidy(self) -> None:
        """Remove the oldest scenes if there are too many."""
        try:
            self.store.tidy()
        except PoiseError as error:
            _LOG.warning("scenes that were kept cannot be tidied: %s", error)

    def _write_on(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
            self.flush()
            time.sleep(EVERY)

    def _write(self, token: str, files: SceneFiles, state: State) -> bool:
        try:
            with self.store.writing():
                self.store.put_scene(token, encoded(files.saved(state)))
            self._troubled = False
            return True
        except (OSError, PoiseError) as error:
            with self._news:
                self._waiting.setdefault(token, (files, state))
            if not self._troubled:
                _LOG.warning("a scene could not be kept; it is tried again: %s", error)
            self._troubled = True
        except Exception:  # other scenes can still be saved
            _LOG.exception("while keeping a scene")
        return False
