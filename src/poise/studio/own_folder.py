"""A temporary folder that belongs to its process: one left by a killed process is removed by the next."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from poise.formats.files import try_lock

PREFIX = "poise-studio-"
LOCK = ".lock"


class OwnFolder:
    """A folder among the system's temporary files, with a lock that is released when the process dies."""

    def __init__(self) -> None:
        _remove_what_was_left()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try_lock(self._lock)

    def close(self) -> None:
        """Remove it with its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


def _remove_what_was_left() -> None:
    """Remove folders of dead processes; one without a lock file is just being created, or not ours."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder / LOCK, os.O_RDWR)
        except OSError:
            continue
        is_free = try_lock(lock)
        os.close(lock)
        if is_free:
            shutil.rmtree(folder, ignore_errors=True)
