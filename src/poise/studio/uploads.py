"""Files dropped on the page: streamed to disk in our own folders, limited in size, removed with the studio.

A person's files are side by side, as an AMC needs its ASF. Their names must be plain; anything that hides a path is
refused. The folders are temporary and belong to their process: what a killed one left is removed by the next.

ZIP archives of clips are unpacked without trust in what they claim. A zip bomb claims little and unpacks to much, or
contains nested archives; an entry's name may point outside the target folder. Bytes are counted as they are unpacked,
names must be plain, and nested archives stay closed. Nothing is added before all of it is unpacked.
"""

from __future__ import annotations

import lzma
import os
import re
import secrets
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import RLock

from poise.errors import PoiseError, UnknownNameError
from poise.formats import extensions
from poise.formats.files import try_lock

LARGEST = 500_000_000  # bytes of one file
MOST_BYTES, MOST_FILES = 2_000_000_000, 500  # in total; the oldest are removed for new ones
LONGEST_NAME = 200  # bytes
ARCHIVE = ".zip"
OTHERS = (
    ".poise", ".poses", ".scene", ".png", ".jpg", ".jpeg", ".webp", ".bmp", ".avi", ".mp4", ".mov", ".m4v",
    ".webm", ".mkv", ".toml", ARCHIVE,
)  # fmt: skip
PREFIX = "poise-studio-"
LOCK = ".lock"
MOST_ENTRIES = 500
MOST_TIMES = 200  # largest ratio of unpacked to packed size; motion capture text packs to a tenth
FREE = 10_000_000  # bytes that even a tiny archive may contain
_CHUNK = 1 << 20
DAMAGED = (  # exceptions from reading a damaged archive
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError),
    *(NotImplementedError, RuntimeError, OSError, ValueError, KeyError, IndexError, OverflowError),
)


class RefusedUploadError(PoiseError):
    """A refused file; the message says why."""


@dataclass(frozen=True)
class Upload:
    """An accepted file: its id, name, path, owner and size."""

    id: str
    path: Path
    owner: str
    size: int

    @property
    def name(self) -> str:
        """The original name."""
        return self.path.name

    @property
    def address(self) -> str:
        """Where the page fetches it."""
        return f"files/{self.id}/{self.name}"


@dataclass(eq=False)
class Arriving:
    """A file being uploaded: its future name, its temporary path, and the bytes so far."""

    name: str
    path: Path
    owner: str
    uploads: Uploads
    size: int = 0

    def grow(self, by: int) -> None:
        """Reserve space for more bytes; raise if there is none."""
        self.size += by
        self.uploads.make_room()


class Uploads:
    """A folder with a folder per person; files being uploaded count like complete ones."""

    def __init__(self, *, largest: int = LARGEST, most_bytes: int = MOST_BYTES) -> None:
        self.largest, self._most_bytes = largest, most_bytes
        self._folder = OwnFolder()
        self._kept: dict[str, Upload] = {}
        self._arriving: set[Arriving] = set()
        self._folders: dict[str, Path] = {}
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, upload: str, *, owner: str | None = None) -> Upload:
        """The file with an id; other people's files count as missing."""
        found = self._kept.get(upload)
        if found is None or owner not in (None, found.owner):
            raise UnknownNameError("uploaded file", upload, ["(none of that name is there; upload it again)"])
        return found

    async def take(
        self, name: str, chunks: AsyncIterator[bytes], *, owner: str, announced: int | None
    ) -> Arriving:
        """Write a file to disk under a temporary name; one that is too large is refused as soon as that is known."""
        arriving = self.arriving(name, owner=owner)
        try:
            if announced is not None and announced > self.largest:
                raise self.too_large(arriving.name, announced)
            with arriving.path.open("wb") as file:
                async for chunk in chunks:
                    if arriving.size + len(chunk) > self.largest:
                        raise self.too_large(arriving.name, arriving.size + len(chunk))
                    arriving.grow(len(chunk))
                    file.write(chunk)
        except BaseException:
            self.give_up(arriving)
            raise
        return arriving

    def arriving(self, name: str, *, owner: str) -> Arriving:
        """Reserve a place for an upload."""
        plain = plain_name(name)
        found = Arriving(plain, self.folder(owner) / f".{secrets.token_hex(8)}.part", owner, self)
        with self._lock:
            self._arriving.add(found)
        return found

    def keep_arrived(self, arriving: Arriving) -> Upload:
        """Move a complete file into place."""
        path = self.folder(arriving.owner) / arriving.name
        arriving.path.replace(path)
        self.give_up(arriving)
        return self.keep(path, owner=arriving.owner)

    def give_up(self, arriving: Arriving) -> None:
        """Forget an upload that was aborted or completed."""
        with self._lock:
            self._arriving.discard(arriving)
        arriving.path.unlink(missing_ok=True)

    def folder(self, owner: str) -> Path:
        """The folder of a person's files; its name does not identify the person."""
        with self._lock:
            if owner not in self._folders:
                self._folders[owner] = self._folder.path / secrets.token_hex(8)
                self._folders[owner].mkdir()
            return self._folders[owner]

    def exports(self, owner: str) -> Path:
        """The folder of files written for a person, apart from opened ones: those may be links and have their names."""
        folder = self.folder(owner) / "exports"
        folder.mkdir(exist_ok=True)
        return folder

    def keep(self, path: Path, *, owner: str) -> Upload:
        """Register a file under an id, replacing an earlier one of its name; the oldest files are removed."""
        upload = Upload(secrets.token_urlsafe(12), path, owner, path.stat().st_size)
        with self._lock:
            for earlier in [kept for kept in self._kept.values() if kept.path == path]:
                del self._kept[earlier.id]
            self._kept[upload.id] = upload
            self.make_room(but=upload)
        return upload

    def link(self, path: Path, *, owner: str) -> Upload:
        """Register a file of this machine, with those beside it that it needs; it stays in place."""
        beside = [*path.parent.glob("*.[aA][sS][fF]"), path.with_name(f"{path.stem}.roles.toml")]
        for file in (path, *(each for each in beside if each.is_file())):
            (self.folder(owner) / file.name).symlink_to(file.resolve())
        return self.keep(self.folder(owner) / path.name, owner=owner)

    def make_room(self, *, but: Upload | None = None) -> None:
        """Remove the oldest files until everything fits; raise if that is not enough."""
        with self._lock:
            for oldest in list(self._kept.values()):
                if not self._is_overfull():
                    return
                if oldest is not but:
                    del self._kept[oldest.id]
                    oldest.path.unlink(missing_ok=True)
            if self._is_overfull() and but is None:
                raise RefusedUploadError(
                    f"more than {self._most_bytes / 1e6:.0f} MB come at once; try again later"
                )

    def close(self) -> None:
        """Removes everything."""
        self._folder.close()

    def too_large(self, name: str, size: int) -> RefusedUploadError:
        """The message for a file that is too large."""
        return RefusedUploadError(
            f"{name} is too large: {size / 1e6:.0f} MB or more; a file may have {self.largest / 1e6:.0f} MB"
        )

    def _is_overfull(self) -> bool:
        sizes = [*(kept.size for kept in self._kept.values()), *(each.size for each in self._arriving)]
        return len(self._kept) > MOST_FILES or sum(sizes) > self._most_bytes


def plain_name(name: str) -> str:
    """The name on disk; raise if it is not a plain file name, or of a useless kind."""
    if not name or len(name.encode(errors="replace")) > LONGEST_NAME or not name.isprintable():
        raise RefusedUploadError(f"a file's name has 1 to {LONGEST_NAME} bytes of printable characters")
    if PurePosixPath(name).name != name or PureWindowsPath(name).name != name or name.startswith("."):
        raise RefusedUploadError(f"{name!r} is not a plain file name: no folders, drives or leading dots")
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in (useful := (*extensions(), *OTHERS)):
        raise RefusedUploadError(
            f"files of the kind {suffix or '(none)'} cannot be used here; valid: {' '.join(useful)}"
        )
    return re.sub(r"[^\w. ()+-]", "_", name)


class OwnFolder:
    """A folder among the system's temporary files, with a lock that is released when the process dies."""

    def __init__(self) -> None:
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
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try_lock(self._lock)

    def close(self) -> None:
        """Remove it with its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


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
