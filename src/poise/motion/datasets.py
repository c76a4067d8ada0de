"""Public recordings by name: the CMU database in B. Hahne's BVH conversion, downloaded once, verified and cached.

The catalogue beside this file (`cmu_clips.csv`) holds name, size, SHA-256 and description (CMU's own) of each clip.
The checksums were computed from copies of the conversion. They agree with the sizes and checksums that others have
published for the mirror's pinned revision (07_01, 07_04, 13_42, 35_26, 124_01, 124_07). Clips outside the catalogue
can be downloaded too; their checksum is recorded at the first download and verified from then on.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import cast

from poise.errors import MissingExtraError, UnknownNameError
from poise.motion.cache import cache_folder
from poise.motion.download import DownloadError, ResumingDownloader
from poise.types import Progress

MIRROR = (
    "https://raw.githubusercontent.com/una-dinosauria/cmu-mocap/09a07f54f3bbb58797325f009282d0b2048a2871/data"
)
LICENCE = (
    "CMU Graphics Lab Motion Capture Database (mocap.cs.cmu.edu), BVH conversion by B. Hahne (2010). Free for research "
    "and commercial projects; the recordings themselves may not be resold. Please acknowledge: The data used in this "
    "project was obtained from mocap.cs.cmu.edu. The database was created with funding from NSF EIA-0196217."
)
_CLIP_NAME = re.compile(r"\d{2,3}_\d{2}")
_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class RemoteClip:
    """A recording that can be downloaded. Without a checksum (`sha256` empty) the first download sets it."""

    name: str
    description: str = "(not in the catalogue)"
    bytes: int = 0
    sha256: str = ""

    @property
    def subject(self) -> str:
        """The number of the performer, as the database writes it."""
        return self.name.split("_")[0]

    @property
    def url(self) -> str:
        """The address: on the mirror, or in the folder of the same layout that POISE_DATA_URL names."""
        base = os.environ.get("POISE_DATA_URL") or MIRROR
        return f"{base.rstrip('/')}/{int(self.subject):03d}/{self.name}.bvh"

    @property
    def path(self) -> Path:
        """The path of the downloaded file."""
        return cache_folder() / "cmu" / f"{self.name}.bvh"


@cache
def catalogue() -> tuple[RemoteClip, ...]:
    """The clips whose checksums are known, by subject and number."""
    text = resources.files("poise.motion").joinpath("cmu_clips.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(
        RemoteClip(row["name"], row["description"], int(row["bytes"]), row["sha256"]) for row in rows
    )


def find(name: str) -> tuple[RemoteClip, ...]:
    """The clip of this name ("07_01"), or every catalogued clip of a subject ("07")."""
    of_subject = tuple(clip for clip in catalogue() if name.zfill(2) == clip.subject)
    exact = tuple(clip for clip in catalogue() if name == clip.name)
    found = exact or of_subject
    if not found and _CLIP_NAME.fullmatch(name):
        return (RemoteClip(name),)
    if not found:
        subjects = dict.fromkeys(clip.subject for clip in catalogue())
        raise UnknownNameError("clip (such as 07_01) or subject", name, subjects)
    return found


def fetch(clip: RemoteClip, *, progress: Progress | None = None) -> Path:
    """Return the clip's path in the cache; download it if it is missing or changed."""
    recorded = clip.sha256 or _recorded_checksums().get(clip.name, "")
    if clip.path.exists() and _sha256(clip.path) == recorded:
        return clip.path
    try:
        _download(clip, recorded, progress)
    except OSError as error:
        raise DownloadError(
            f"cannot write {clip.path}: {error.strerror or error}; set POISE_CACHE to another folder"
        ) from error
    return clip.path


def _download(clip: RemoteClip, sha256: str, progress: Progress | None) -> None:
    pooch = _pooch()
    part = clip.path.with_name(clip.path.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    if not sha256:  # without a checksum, a partial file might belong to an older version
        part.unlink(missing_ok=True)
    downloader = ResumingDownloader(part, clip.bytes, progress, timeout_s=_TIMEOUT_S)
    try:
        pooch.retrieve(
            clip.url,
            known_hash=sha256 or None,
            fname=clip.path.name,
            path=clip.path.parent,
            downloader=downloader,
        )
    except ValueError as error:
        raise DownloadError(
            f"{clip.name}: the download from {clip.url} does not match the recorded checksum and was discarded; "
            "a proxy or mirror may have changed it"
        ) from error
    if not sha256:
        _record_checksum(clip)


def _pooch() -> ModuleType:
    try:
        import pooch
        import requests  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("pooch", extra="data", purpose="downloading recordings") from error
    pooch.get_logger().setLevel("WARNING")  # progress and errors are shown by our own messages
    return cast(ModuleType, pooch)


def _record_file() -> Path:
    return cache_folder() / "cmu" / "checksums.txt"


def _recorded_checksums() -> dict[str, str]:
    """SHA-256 by clip, for clips outside the catalogue, in the format of sha256sum."""
    if not _record_file().exists():
        return {}
    lines = _record_file().read_text(encoding="utf-8").splitlines()
    return {Path(name).stem: digest for digest, name in (line.split() for line in lines)}


def _record_checksum(clip: RemoteClip) -> None:
    with _record_file().open("a", encoding="utf-8") as file:
        file.write(f"{_sha256(clip.path)}  {clip.path.name}\n")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
