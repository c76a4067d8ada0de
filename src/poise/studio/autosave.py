"""Scenes are saved while they are edited: a killed studio, or a new tab, finds them again.

An edit is on disk within about a second. On a full disk, posing continues and saving is retried every second.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable
from pathlib import Path
from threading import Condition, Lock, Thread

from poise.errors import PoiseError
from poise.formats.files import make_folder, replacing
from poise.motion.cache import cache_folder
from poise.studio.messages import Kept
from poise.studio.parts import Parts
from poise.studio.scene_files import SceneFiles, encoded, read_kept
from poise.studio.state import State

MOST_KEPT = 50
KEPT_FOR = 7 * 86400.0  # seconds before the newest
EVERY = 0.5  # seconds between two saves, so that an edit waits less than a second
_LOG = logging.getLogger("poise.studio")


class Autosave:
    """A folder of scenes, each under a name derived from the session's secret token."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or cache_folder() / "studio" / "scenes"
        self.parts = Parts(self._folder / "parts")
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

    def take_of(self, token: str) -> Path:
        """The path beside which a session's performance is stored until it is part of its scene."""
        return self._path(token).with_suffix(".take")

    def close(self) -> None:
        """Save pending scenes, and stop."""
        with self._news:
            self._closed = True
            self._news.notify()
        self.flush()

    def has(self, token: str) -> bool:
        """Whether a scene was saved for a token."""
        return token in self._waiting or self._path(token).is_file()

    def waits_for(self, token: str) -> bool:
        """Whether the newest scene of a token is not on disk yet."""
        return token in self._waiting or self._writing.locked()

    def find(self, token: str) -> Path | None:
        """The saved scene of a token."""
        self.flush()
        path = self._path(token)
        return path if path.is_file() else None

    def kept(self, tokens: Iterable[str]) -> list[Kept]:
        """The scenes of these tokens that can be resumed, the newest first."""
        found = []
        for token in dict.fromkeys(tokens):
            path = self._path(token)
            try:
                age = time.time() - path.stat().st_mtime
                found.append(Kept(token=token, age=max(age, 0.0), words=read_kept(path).words))
            except (OSError, PoiseError):
                continue
        return sorted(found, key=lambda kept: kept.age)

    def tidy(self) -> None:
        """Remove old scenes except the newest, and parts that no other scene needs."""
        if not self._folder.is_dir():
            return
        written = {path: path.stat().st_mtime for path in self._folder.glob("*.scene")}
        newest, needed = max(written.values(), default=0.0), list[str]()  # a clock may have jumped
        for number, path in enumerate(sorted(written, key=lambda path: -written[path])):
            if number >= MOST_KEPT or newest - written[path] > KEPT_FOR:
                path.unlink(missing_ok=True)
                continue
            try:
                needed += read_kept(path).parts
            except PoiseError:
                return  # written perhaps by a newer Poise, with unknown parts
        self.parts.tidy(needed)

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
            make_folder(self._folder)
            content = encoded(files.saved(state))
            with replacing(self._path(token), "wb") as file:
                file.write(content)
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

    def _path(self, token: str) -> Path:
        return self._folder / f"{hashlib.sha256(token.encode()).hexdigest()[:32]}.scene"
