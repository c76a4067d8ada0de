"""The lock of a library: only its holder may change it; a dying process releases it.

It is SQLite's own lock on a separate file: it works on every system and does not block readers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from poise.errors import PoiseError
from poise.formats.files import FileAccessError

FILE = "changing.lock"


class BusyError(PoiseError):
    """Another process is changing the same library."""


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the lock of a library; raise at once if another process holds it."""
    with closing(sqlite3.connect(folder / FILE, timeout=0.0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise FileAccessError(f"the library in {folder} cannot be changed: {error}") from error
            raise BusyError(
                f"the library in {folder} is being changed by another process ({error}); "
                "wait until it has finished, then try again"
            ) from error
        yield
