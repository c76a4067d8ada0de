"""Opening files for reading with clear errors, and writing them whole or not at all."""

from __future__ import annotations

import glob
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

from poise.errors import ParseError, PoiseError

PART = ".part"
OVERWRITING: ContextVar[bool] = ContextVar("overwriting", default=True)
"""Whether files that were not named may be replaced; the command line asks for leave."""
BEING_MADE_S = 60.0


class FileAccessError(PoiseError, OSError):
    """A file that is missing, is a folder, or may not be read or written."""


def existing_file(path: str | os.PathLike[str]) -> Path:
    """The path of a file that is there, is not a folder and holds at least one byte."""
    found = Path(path)
    if found.is_dir():
        raise FileAccessError(f"{found} is a folder; expected a file")
    if not found.exists():
        raise FileAccessError(f"{found} does not exist{_similar_files(found)}")
    if not found.is_file():
        raise FileAccessError(
            f"{found} is a pipe or a device; expected a file, which can be read more than once"
        )
    try:
        size = found.stat().st_size
        found.open("rb").close()
    except OSError as error:
        raise FileAccessError(f"{found} cannot be read: {error.strerror or error}") from error
    if size == 0:
        raise ParseError("the file is empty", path=found)
    return found


def try_lock(file: int) -> bool:
    """Takes the lock of an open file, held until it is closed or its process dies; whether nobody else has it.

    Systems without such locks say that nobody has.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write ("w" is UTF-8 text with \\n, "wb" bytes) that takes the path's place only once it is complete.

    It is written in the same folder under a temporary name, so a failure half way leaves what was there before. A link
    stays one: what it points to is replaced.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise FileAccessError(f"{path} is a folder; expected the name of a file to write")
    if target.exists() and not target.is_file():
        raise FileAccessError(f"{path} is a pipe or a device; expected the name of a file to write")
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=PART)
    except OSError as error:
        raise FileAccessError(f"cannot write {path}: {error.strerror or error}") from error
    try_lock(handle)
    _remove_what_was_left(target)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(handle, mode, **text) as file:  # type: ignore[call-overload]
            yield file
        os.chmod(temporary, _usual_permissions(target))
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _remove_what_was_left(target: Path) -> None:
    """Parts of the same file whose writers were killed: nobody holds their lock, and they are not just being made."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.*{PART}"):
        try:
            if time.time() - part.stat().st_mtime < BEING_MADE_S:
                continue
            with part.open("r+b") as file:
                is_free = try_lock(file.fileno())
            if is_free:
                part.unlink(missing_ok=True)
        except OSError:
            continue


def _usual_permissions(target: Path) -> int:
    """Those of the file that is replaced, else those a new file gets: mkstemp's own are for the owner alone."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _similar_files(path: Path) -> str:
    if not path.parent.is_dir():
        return f"; nor does the folder {path.parent}"
    twins = (
        sorted(other.name for other in path.parent.glob(f"{path.stem}.*"))[:3]
        if path.stem.isidentifier()
        else []
    )
    return f"; beside it: {', '.join(twins)}" if twins else ""


def make_folder(folder: Path) -> Path:
    """The folder, made if it is not there, its parents too."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileAccessError(f"cannot make the folder {folder}: {error.strerror or error}") from error
    return folder
