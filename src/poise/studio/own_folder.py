"""A temporary folder that goes with its process: what a killed one left is removed by the next."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from poise.formats.files import try_lock

PREFIX = "poise-studio-"
LOCK = ".lock"


class OwnFolder:
    """A folder in the system's place for temporary files, under a lock that dies with the process."""

    def __init__(self) -> None:
        _remove_what_was_left()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try_lock(self._lock)

    def close(self) -> None:
        """Removes it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


def _remove_what_was_left() -> None:
    """Folders of processes that are no more; without a lock file one is just being made, or not ours."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder / LOCK, os.O_RDWR)
        except OSError:
            continue
        is_free = try_lock(lock)
        os.close(lock)
        if is_free:
            shutil.rmtree(folder, ignore_errors=True)
