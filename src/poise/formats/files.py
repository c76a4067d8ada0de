"""Open files for reading with clear errors, and write them atomically."""

from __future__ import annotations

import glob
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from poise.errors import ParseError, PoiseError

try:
    import fcntl
except ImportError:  # Windows, on which open files cannot be removed or replaced
    fcntl = None  # type: ignore[assignment]
    msvcrt: Any = import_module("msvcrt")

PART, NOTE = ".part", ".pair"
OVERWRITING: ContextVar[bool] = ContextVar("overwriting", default=True)
"""Whether files that were not named may be replaced; the command line asks for permission."""
ATTEMPTS = 5
_LOCKED = 1 << 30


class FileAccessError(PoiseError, OSError):
    """A file that is missing, is a folder, or may not be read or written."""


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Return the path if it is an existing, non-empty file; raise otherwise."""
    found = Path(path)
    try:
        is_there, is_folder = found.exists(), found.is_dir()
    except OSError as error:  # a name that is too long, or a folder without access
        raise FileAccessError(f"{str(found)[:200]} cannot be read: {error.strerror or error}") from error
    if is_folder:
        raise FileAccessError(f"{found} is a folder; expected a file. Name a file in it")
    if not is_there:
        hint = f"; nor does the folder {found.parent}"
        if found.parent.is_dir():
            same = found.parent.glob(f"{found.stem}.*") if found.stem.isidentifier() else ()
            twins = sorted(other.name for other in same)[:3]
            hint = f"; beside it: {', '.join(twins)}" if twins else "; check its name"
        raise FileAccessError(f"{found} does not exist{hint}")
    if not found.is_file():
        raise FileAccessError(f"{found} is a pipe or a device; expected a regular file")
    try:
        size = found.stat().st_size
        found.open("rb").close()
    except OSError as error:
        raise FileAccessError(f"{found} cannot be read: {error.strerror or error}") from error
    if size == 0:
        raise ParseError("the file is empty; write or download it again", path=found)
    return found


def not_a_link(path: Path) -> Path:
    """Return the path of something in a folder that Poise wrote; raise if it is a link to elsewhere."""
    if path.is_symlink():
        raise FileAccessError(f"{path} is a link; expected the original in its place")
    return path


def try_lock(file: int) -> bool:
    """Try to lock an open file until it is closed or its process dies; return whether that succeeded."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:  # a byte far behind the content, since a locked one can be read by nobody else
            here = os.lseek(file, 0, os.SEEK_CUR)
            os.lseek(file, _LOCKED, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            os.lseek(file, here, os.SEEK_SET)
    except OSError:
        return False
    return True


@contextmanager
def alone_with(path: str | os.PathLike[str]) -> Iterator[None]:
    """Wait until no other process reads and rewrites the files of this folder, and keep them waiting.

    On systems without such locks nobody waits.
    """
    if fcntl is None:
        yield
        return
    try:
        folder = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
    except OSError as error:
        raise FileAccessError(f"cannot use {path}: {error.strerror or error}") from error
    try:
        with suppress(OSError):  # a disk without locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file for writing ("w" is UTF-8 text with \\n, "wb" bytes) that replaces `path` only once it is complete.

    It is written in the same folder under a temporary name, so a failure keeps the previous file. For a link, its
    target is replaced.
    """
    with _Part(path, mode) as part:
        yield part.file
        part.finish()
        os.replace(part.path, part.target)


@contextmanager
def replacing_together(*paths: str | os.PathLike[str]) -> Iterator[list[IO[str]]]:
    """Open text files for writing that are replaced together: all or none, even if the writer is killed in between.

    Once all are on disk, a note lists the replacements. `finish_replacing` completes them from the note; readers and
    writers of these files call it first.
    """
    finish_replacing(*paths)
    with ExitStack() as stack:
        *parts, note = (stack.enter_context(_Part(path, "w")) for path in (*paths, paths[0]))
        yield [part.file for part in parts]
        json.dump([part.path.name for part in parts], note.file)
        for part in (*parts, note):
            part.finish(on_disk=True)
            part.stays = True  # from here on the note says what remains to be done
        os.replace(note.path, note.path.with_suffix(NOTE))
        finish_replacing(*paths)


def finish_replacing(*paths: str | os.PathLike[str]) -> None:
    """Complete the replacements in a note beside the first of these files, left by a killed or active writer."""
    targets = [Path(os.path.realpath(path)) for path in paths]
    for note in targets[0].parent.glob(f".{glob.escape(targets[0].name)}.*{NOTE}"):
        try:
            names = json.loads(note.read_text(encoding="utf-8"))
            for target, name in zip(targets, names, strict=True):
                if fnmatchcase(name, f".{glob.escape(target.name)}.*{PART}") and Path(name).name == name:
                    with suppress(FileNotFoundError):  # already replaced
                        os.replace(target.with_name(name), target)
        except FileNotFoundError:
            continue  # another process has done it
        except (OSError, ValueError, TypeError) as error:
            raise FileAccessError(
                f"{targets[0]} was not completely written: {error}; see {note.name}"
            ) from error
        note.unlink(missing_ok=True)


class _Part:
    """A temporary file beside the one it will replace, locked until it does."""

    def __init__(self, path: str | os.PathLike[str], mode: str) -> None:
        self.target = Path(os.path.realpath(path))
        if os.path.isdir(self.target):
            raise FileAccessError(f"{path} is a folder; expected the name of a file to write")
        if os.path.exists(self.target) and not self.target.is_file():
            raise FileAccessError(f"{path} is a pipe or a device; expected the name of a file to write")
        leftover = f".{glob.escape(self.target.name)}.*{PART}"
        try:
            for part in self.target.parent.glob(leftover):  # of writers that were killed: they are not locked
                with suppress(OSError), part.open("r+b") as file:
                    if try_lock(file.fileno()):
                        part.unlink(missing_ok=True)
            for attempt in range(ATTEMPTS):
                handle, temporary = tempfile.mkstemp(PART, f".{self.target.name}.", self.target.parent)
                if (try_lock(handle) and Path(temporary).exists()) or attempt == ATTEMPTS - 1:
                    break  # after the last attempt: files on this disk cannot be locked
                os.close(handle)  # another writer has taken it for an abandoned one
                Path(temporary).unlink(missing_ok=True)
        except OSError as error:
            raise FileAccessError(f"cannot write {path}: {error.strerror or error}") from error
        self.path, self.stays = Path(temporary), False
        self._lock = os.dup(handle) if fcntl is not None else None
        text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n", "errors": "backslashreplace"}
        self.file: IO[Any] = open(handle, mode, **text)  # type: ignore[call-overload]  # noqa: SIM115 - closed by close

    def finish(self, *, on_disk: bool = False) -> None:
        """Mark the file as complete, with the permissions of the replaced one: mkstemp's are for the owner only."""
        self.file.flush()
        if on_disk:
            os.fsync(self.file.fileno())
        self.file.close()
        os.umask(mask := os.umask(0))
        usual = self.target.stat().st_mode & 0o777 if self.target.exists() else 0o666 & ~mask
        os.chmod(self.path, usual)

    def __enter__(self) -> _Part:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a failed write is not repeated
            self.file.close()
        if not self.stays:
            self.path.unlink(missing_ok=True)  # if it was not moved into place
        if self._lock is not None:
            os.close(self._lock)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder, removed at the end; raise in words if there is no room for it."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    except OSError as error:
        if isinstance(error, PoiseError):
            raise
        raise FileAccessError(f"the temporary folder cannot be used: {error.strerror or error}") from error


def make_folder(folder: Path) -> Path:
    """Return the folder, created with its parents if needed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileAccessError(f"cannot create the folder {folder}: {error.strerror or error}") from error
    return folder
