"""Zip archives of clips, taken apart with suspicion: what an archive says of itself is not believed.

A bomb claims little and unpacks to much, or holds archives in archives; an entry's name may point outside the folder it
is unpacked into. Bytes are counted as they come out, names must be plain, and archives in archives stay closed.
"""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath

from poise.studio.uploads import ARCHIVE, RefusedUploadError, Upload, Uploads, plain_name

MOST_ENTRIES = 500
MOST_TIMES = 200  # the archive's own size that its content may have; motion capture as text packs to a tenth
FREE = 10_000_000  # bytes that even a tiny archive may hold
_CHUNK = 1 << 20


def unpack(archive: Upload, uploads: Uploads) -> list[Upload]:
    """The files of an archive, kept as if they had been uploaded one by one; the archive itself is not kept."""
    most = min(uploads.largest, FREE + MOST_TIMES * archive.size)
    taken: list[Path] = []
    try:
        with zipfile.ZipFile(archive.path) as content:
            for entry, name in _checked(content, archive.name):
                most -= _unpack_one(content, entry, uploads.folder(archive.owner) / name, most)
                taken.append(uploads.folder(archive.owner) / name)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        _remove(taken)
        raise RefusedUploadError(f"{archive.name} cannot be unpacked: {error}") from error
    except RefusedUploadError:
        _remove(taken)
        raise
    finally:
        archive.path.unlink(missing_ok=True)
    return [uploads.keep(path, owner=archive.owner) for path in taken]


def _checked(content: zipfile.ZipFile, archive: str) -> list[tuple[zipfile.ZipInfo, str]]:
    """The entries that are files, and the names they will have; one bad name spoils the archive."""
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


def _unpack_one(content: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, most: int) -> int:
    size = 0
    with content.open(entry) as source, path.open("wb") as file:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > most:
                file.close()
                path.unlink(missing_ok=True)
                raise RefusedUploadError(
                    f"{entry.filename} unpacks to far more than its archive has a right to; it was refused"
                )
            file.write(chunk)
    return size


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
