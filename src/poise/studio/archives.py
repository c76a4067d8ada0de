"""Unpack zip archives of clips safely: an archive's own claims are not trusted.

A zip bomb claims little and unpacks to much, or contains nested archives; an entry's name may point outside the target
folder. Bytes are counted as they are unpacked, names must be plain, and nested archives stay closed. Nothing is added
to a person's files before all of it is unpacked.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from pathlib import PurePosixPath

from poise.studio.uploads import ARCHIVE, Arriving, RefusedUploadError, Upload, Uploads, plain_name

MOST_ENTRIES = 500
MOST_TIMES = 200  # largest ratio of unpacked to packed size; motion capture text packs to a tenth
FREE = 10_000_000  # bytes that even a tiny archive may contain
_CHUNK = 1 << 20
DAMAGED = (  # exceptions from reading a damaged archive
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError),
    *(NotImplementedError, RuntimeError, OSError, ValueError, KeyError, IndexError, OverflowError),
)


def unpack(archive: Arriving, uploads: Uploads) -> list[Upload]:
    """The files of an archive, stored as if uploaded one by one; the archive itself is not stored."""
    most = min(uploads.largest, FREE + MOST_TIMES * archive.size)
    taken: list[Arriving] = []
    try:
        with zipfile.ZipFile(archive.path) as content:
            for entry, name in _checked(content, archive.name):
                taken.append(uploads.arriving(name, owner=archive.owner))
                most -= _unpack_one(content, entry, taken[-1], most)
        return [uploads.keep_arrived(arrived) for arrived in taken]
    except RefusedUploadError:
        raise
    except DAMAGED as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged"
        raise RefusedUploadError(f"{archive.name} cannot be unpacked: {words}") from error
    finally:
        for arrived in (archive, *taken):
            uploads.give_up(arrived)


def _checked(content: zipfile.ZipFile, archive: str) -> list[tuple[zipfile.ZipInfo, str]]:
    """The file entries and their names; raise if a name is unsafe."""
    entries = [entry for entry in content.infolist() if not entry.is_dir()]
    if not 1 <= len(entries) <= MOST_ENTRIES:
        raise RefusedUploadError(
            f"{archive} holds {len(entries)} files; an archive may have 1 to {MOST_ENTRIES}"
        )
    found = []
    for entry in entries:
        inside = PurePosixPath(entry.filename)
        if inside.is_absolute() or ".." in inside.parts or "\\" in entry.filename or ":" in entry.filename:
            raise RefusedUploadError(f"{archive} holds {entry.filename!r}, which points outside of it")
        if inside.suffix.lower() == ARCHIVE:
            raise RefusedUploadError(f"{archive} holds another archive, {inside.name}; unpack it first")
        found.append((entry, plain_name(inside.name)))
    return found


def _unpack_one(content: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Arriving, most: int) -> int:
    with content.open(entry) as source, target.path.open("wb") as file:
        while chunk := source.read(_CHUNK):
            if target.size + len(chunk) > most:
                raise RefusedUploadError(
                    f"{entry.filename} unpacks to far more than an archive of its size should; it was refused"
                )
            target.grow(len(chunk))
            file.write(chunk)
    return target.size
