"""Files that people drop on the page: streamed to disk in folders of our own, within a size, gone with the studio."""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from poise.errors import PoiseError, UnknownNameError

LARGEST = 500_000_000  # bytes
MOST = 200  # files at a time; the oldest makes room
LONGEST_NAME = 120
KINDS = (
    ".bvh", ".amc", ".asf", ".c3d", ".trc", ".glb", ".poise", ".scene",
    ".png", ".jpg", ".jpeg", ".webp", ".zip",
)  # fmt: skip


class RefusedUploadError(PoiseError):
    """A file that is not taken; the message says why."""


@dataclass(frozen=True)
class Upload:
    """A file that was taken: its id, the name the person knows it by, where it is, and whose it is."""

    id: str
    name: str
    path: Path
    owner: str


class Uploads:
    """A folder of uploads, each in a folder of its own; the names on disk hold nothing that a name could smuggle in."""

    def __init__(self, *, largest: int = LARGEST) -> None:
        self.largest = largest
        self._folder = tempfile.TemporaryDirectory(prefix="poise-studio-", ignore_cleanup_errors=True)
        self._kept: dict[str, Upload] = {}

    def __getitem__(self, upload: str) -> Upload:
        found = self._kept.get(upload)
        if found is None:
            raise UnknownNameError("uploaded file", upload, self._kept or ["(none has been uploaded)"])
        return found

    async def take(
        self, name: str, chunks: AsyncIterator[bytes], *, owner: str, announced: int | None
    ) -> Upload:
        """Writes what arrives to disk; a file that is too large is refused as soon as that is known."""
        plain = plain_name(name)
        if announced is not None and announced > self.largest:
            raise self._too_large(plain, announced)
        path = self.new_path(plain)
        size = 0
        try:
            with path.open("wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self.largest:
                        raise self._too_large(plain, size)
                    file.write(chunk)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return self.keep(path, name=plain, owner=owner)

    def new_path(self, plain: str) -> Path:
        """A place in a fresh folder for a file of this name."""
        folder = Path(self._folder.name) / secrets.token_hex(8)
        folder.mkdir()
        return folder / plain

    def keep(self, path: Path, *, name: str, owner: str) -> Upload:
        """Remembers a file under an id; beyond the most that are kept the oldest goes."""
        upload = Upload(secrets.token_urlsafe(12), name, path, owner)
        self._kept[upload.id] = upload
        while len(self._kept) > MOST:
            oldest = self._kept.pop(next(iter(self._kept)))
            oldest.path.unlink(missing_ok=True)
        return upload

    def of(self, upload: str, *, owner: str) -> Upload:
        """An upload of this owner; somebody else's is as good as none."""
        found = self[upload]
        if found.owner != owner:
            raise UnknownNameError("uploaded file", upload, ["(none of that name is yours)"])
        return found

    def close(self) -> None:
        """Removes everything."""
        self._folder.cleanup()

    def _too_large(self, name: str, size: int) -> RefusedUploadError:
        return RefusedUploadError(
            f"{name} is too large: {size / 1e6:.0f} MB or more; files may have {self.largest / 1e6:.0f} MB"
        )


def plain_name(name: str) -> str:
    """A name without folders or anything that a file system could take amiss; one that hides a path is refused."""
    if not name or len(name) > LONGEST_NAME or "\0" in name:
        raise RefusedUploadError(f"a file's name has 1 to {LONGEST_NAME} characters")
    if PurePosixPath(name).name != name or PureWindowsPath(name).name != name or name.startswith("."):
        raise RefusedUploadError(f"{name!r} is not a plain file name: no folders, drives or leading dots")
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in KINDS:
        raise RefusedUploadError(
            f"files of the kind {suffix or '(none)'!r} are of no use here; use {' '.join(KINDS)}"
        )
    return re.sub(r"[^\w. ()+-]", "_", name)
