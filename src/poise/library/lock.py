"""One at a time: whoever changes a library holds its lock, which a process that dies lets go of.

The lock is SQLite's own, on a file of its own: it works on every system, and readers are not kept waiting by it.
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
    """Somebody else is changing the same thing."""


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the lock of a library; if somebody holds it already, that is an error, at once."""
    with closing(sqlite3.connect(folder / FILE, timeout=0.0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise FileAccessError(f"the library in {folder} cannot be changed: {error}") from error
            raise BusyError(
                f"the library in {folder} is being changed by another process ({error}); "
                "wait until that has ended, then try again"
            ) from error
        yield
