"""Files that another file names, such as textures, buffers, layers, clips and cameras: the one way to open them.

Whoever sends a file chooses the names in it. So a named file must be in the folder of the file that names it or below,
must be a plain file that is reached without a link, and must not be too large or too slow. The child processes of
`apart` load this module too, so it imports nothing from Poise.
"""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

MOST_BYTES = 500_000_000
MOST_SECONDS = 30.0
_LONGEST_NAME = 1000
_CHUNK = 1 << 22
_ELSEWHERE = re.compile(r"[A-Za-z][\w+.-]*:|[\\/]")  # how a name begins that has a drive, a scheme or a root


class RefusedNameError(ValueError):
    """A name that may not be opened; the message says why."""


def named_file(folder: str | os.PathLike[str], name: str, *, below: str | os.PathLike[str] = "") -> Path:
    """The plain file called `name`, relative to `folder`, if it is within the folder `below` (`folder` itself unless
    given), without links on the way from there; raise a RefusedNameError otherwise. It need not exist.
    """
    shown = repr(name[:60])
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise RefusedNameError(f"{shown} is not a valid name of a file")
    if _ELSEWHERE.match(name):
        raise RefusedNameError(f"{shown} is not beside this file: names must be relative to its folder")
    top = os.path.realpath(below or folder)
    place = os.path.normpath(os.path.join(os.path.realpath(folder), *re.split(r"[\\/]", name)))
    if os.path.commonpath([top, place]) != top:
        raise RefusedNameError(f"{shown} is not beside this file: it is outside of the folder")
    way = Path(top)
    try:
        for part in Path(place).relative_to(top).parts:
            way /= part
            if stat.S_ISLNK(way.lstat().st_mode):
                raise RefusedNameError(f"{shown} leads through a link, {part}; put the file itself there")
        found = way.lstat()
    except FileNotFoundError:
        return Path(place)
    except OSError as error:
        raise RefusedNameError(f"{shown} cannot be read beside this file: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise RefusedNameError(f"{shown} is a folder, a pipe or a device; expected a file")
    if found.st_size > MOST_BYTES:
        raise RefusedNameError(f"{shown} has {found.st_size / 1e6:.0f} MB; at most {MOST_BYTES / 1e6:.0f}")
    return way


def named_bytes(folder: str | os.PathLike[str], name: str) -> bytes:
    """The content of the file called `name`, under the conditions of `named_file`."""
    # A link or a pipe put there since then is not followed and not waited for.
    flags = os.O_RDONLY | sum(getattr(os, one, 0) for one in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    try:
        with open(os.open(named_file(folder, name), flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RefusedNameError(f"{name[:60]!r} is not a file")
            chunks, left, until = [], MOST_BYTES, time.monotonic() + MOST_SECONDS
            while left >= 0 and (chunk := file.read(min(_CHUNK, left + 1))):
                chunks.append(chunk)
                left -= len(chunk)
                if left < 0 or time.monotonic() > until:
                    raise RefusedNameError(f"{name[:60]!r} is larger or slower to read than Poise takes")
            return b"".join(chunks)
    except OSError as error:
        raise RefusedNameError(f"{name[:60]!r} cannot be read: {error.strerror}") from error
