"""Files that people drop on the page: streamed to disk in folders of our own, within a size, gone with the studio.

A person's files lie side by side, as an AMC needs its ASF. Their names are plain ones; anything that hides a path is
refused.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import Lock

from poise.errors import PoiseError, UnknownNameError
from poise.formats import extensions

LARGEST = 500_000_000  # bytes of one file
MOST_BYTES, MOST_FILES = 2_000_000_000, 500  # of all together; the oldest make room
LONGEST_NAME = 120
ARCHIVE = ".zip"
OTHERS = (
    ".poise", ".scene", ".png", ".jpg", ".jpeg", ".webp", ".bmp", ".avi", ".mp4", ".mov", ".mkv", ".toml", ARCHIVE,
)  # fmt: skip


class RefusedUploadError(PoiseError):
    """A file that is not taken; the message says why."""


@dataclass(frozen=True)
class Upload:
    """A file that was taken: its id, its name, where it is, whose it is, and its size."""

    id: str
    path: Path
    owner: str
    size: int

    @property
    def name(self) -> str:
        """The name the person knows it by."""
        return self.path.name


class Uploads:
    """A folder with a folder per person."""

    def __init__(self, *, largest: int = LARGEST, most_bytes: int = MOST_BYTES) -> None:
        self.largest, self._most_bytes = largest, most_bytes
        self._folder = tempfile.TemporaryDirectory(prefix="poise-studio-", ignore_cleanup_errors=True)
        self._kept: dict[str, Upload] = {}
        self._folders: dict[str, Path] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, upload: str, *, owner: str | None = None) -> Upload:
        """The file of an id; somebody else's is as good as none."""
        found = self._kept.get(upload)
        if found is None or owner not in (None, found.owner):
            raise UnknownNameError("uploaded file", upload, ["(none of that name is there; upload it again)"])
        return found

    async def take(
        self, name: str, chunks: AsyncIterator[bytes], *, owner: str, announced: int | None
    ) -> Upload:
        """Writes what arrives to disk; a file that is too large is refused as soon as that is known."""
        plain = plain_name(name)
        if announced is not None and announced > self.largest:
            raise self.too_large(plain, announced)
        path = self.folder(owner) / plain
        part, size = path.with_name(f".{secrets.token_hex(4)}.part"), 0
        try:
            with part.open("wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self.largest:
                        raise self.too_large(plain, size)
                    file.write(chunk)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return self.keep(path, owner=owner)

    def folder(self, owner: str) -> Path:
        """Where a person's files are; its name says nothing of whose it is."""
        with self._lock:
            if owner not in self._folders:
                self._folders[owner] = Path(self._folder.name) / secrets.token_hex(8)
                self._folders[owner].mkdir()
            return self._folders[owner]

    def keep(self, path: Path, *, owner: str) -> Upload:
        """Remembers a file under an id, in the place of an earlier one of its name; the oldest files make room."""
        upload = Upload(secrets.token_urlsafe(12), path, owner, path.stat().st_size)
        with self._lock:
            for earlier in [kept for kept in self._kept.values() if kept.path == path]:
                del self._kept[earlier.id]
            self._kept[upload.id] = upload
            while self._overfull():
                oldest = self._kept.pop(next(iter(self._kept)))
                oldest.path.unlink(missing_ok=True)
        return upload

    def close(self) -> None:
        """Removes everything."""
        self._folder.cleanup()

    def too_large(self, name: str, size: int) -> RefusedUploadError:
        """What to say of a file that is."""
        return RefusedUploadError(
            f"{name} is too large: {size / 1e6:.0f} MB or more; a file may have {self.largest / 1e6:.0f} MB"
        )

    def _overfull(self) -> bool:
        sizes = [kept.size for kept in self._kept.values()]
        return len(sizes) > 1 and (len(sizes) > MOST_FILES or sum(sizes) > self._most_bytes)


def plain_name(name: str) -> str:
    """The name as it will be on disk; one that is no plain file name, or of a kind of no use, is refused."""
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise RefusedUploadError(f"a file's name has 1 to {LONGEST_NAME} printable characters")
    if PurePosixPath(name).name != name or PureWindowsPath(name).name != name or name.startswith("."):
        raise RefusedUploadError(f"{name!r} is not a plain file name: no folders, drives or leading dots")
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in (useful := (*extensions(), *OTHERS)):
        raise RefusedUploadError(
            f"files of the kind {suffix or '(none)'} are of no use here; of use are {' '.join(useful)}"
        )
    return re.sub(r"[^\w. ()+-]", "_", name)
