"""Scenes kept on disk while they are worked on: a studio that was killed finds them again when it is started anew."""

from __future__ import annotations

import hashlib
import logging
import time
from pathlib import Path

from poise.errors import PoiseError
from poise.formats.files import make_folder, replacing
from poise.motion.cache import cache_folder
from poise.studio.models import ModelStore
from poise.studio.scene_files import opened, saved
from poise.studio.state import State

MOST_KEPT = 50
KEPT_FOR = 7 * 86400.0  # seconds
EVERY = 1.0  # seconds between two savings of one scene
_LOG = logging.getLogger("poise.studio")


class Autosave:
    """A folder of scenes, each under a name that only whoever knows the session's token can tell."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or cache_folder() / "studio" / "scenes"
        self._saved: dict[str, float] = {}

    def keep(self, token: str, state: State, *, at_once: bool = False) -> None:
        """Saves a scene, unless that was done a moment ago; a full disk is no reason to stop posing."""
        now = time.monotonic()
        if not at_once and now - self._saved.get(token, -EVERY) < EVERY:
            return
        self._saved[token] = now
        try:
            make_folder(self._folder)
            with replacing(self._path(token), "wb") as file:
                file.write(saved(state))
        except OSError as error:
            _LOG.warning("a scene could not be kept: %s", error)

    def find(self, token: str, models: ModelStore, now: State) -> State | None:
        """The scene of a session that this studio does not know, if an earlier one kept it and it can be opened."""
        path = self._path(token)
        if not path.is_file():
            return None
        try:
            return opened(path, models, now)
        except PoiseError:
            return None

    def tidy(self) -> None:
        """Removes scenes of long ago, and all but the newest."""
        if not self._folder.is_dir():
            return
        paths = sorted(self._folder.glob("*.scene"), key=lambda path: -path.stat().st_mtime)
        for number, path in enumerate(paths):
            if number >= MOST_KEPT or time.time() - path.stat().st_mtime > KEPT_FOR:
                path.unlink(missing_ok=True)

    def _path(self, token: str) -> Path:
        return self._folder / f"{hashlib.sha256(token.encode()).hexdigest()[:32]}.scene"
