"""Public recordings by name: the CMU database in B. Hahne's BVH conversion, downloaded once, verified and cached.

The catalogue beside this file (`cmu_clips.csv`) holds name, size, SHA-256 and description (CMU's own) of each clip.
The checksums were computed from copies of the conversion. They agree with the sizes and checksums that others have
published for the mirror's pinned revision (07_01, 07_04, 13_42, 35_26, 124_01, 124_07). Clips outside the catalogue
can be downloaded too; their checksum is recorded at the first download and verified from then on.
Downloads resume after an interruption (range requests, RFC 9110 section 14).
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
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from poise.errors import MissingExtraError, PoiseError, UnknownNameError
from poise.motion.cache import cache_folder
from poise.types import Progress

if TYPE_CHECKING:
    pass

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
    text = resources.files("poise.library").joinpath("cmu_clips.csv").read_text(encoding="utf-8")
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
    recorded = clip.sha256
    records = cache_folder() / "cmu" / "checksums.txt"  # for clips outside the catalogue, as of sha256sum
    if not recorded and records.exists():
        lines = (line.split() for line in records.read_text(encoding="utf-8").splitlines())
        recorded = {Path(name).stem: digest for digest, name in lines}.get(clip.name, "")
    if clip.path.exists() and _sha256(clip.path) == recorded:
        return clip.path
    try:
        import pooch
        import requests  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("pooch", extra="data", purpose="downloading recordings") from error
    pooch.get_logger().setLevel("WARNING")  # progress and errors are shown by our own messages
    name, folder = clip.path.name, clip.path.parent
    part = folder / f"{name}.part"
    downloader = ResumingDownloader(part, clip.bytes, progress, timeout_s=_TIMEOUT_S)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not recorded:  # without a checksum, a partial file might belong to an older version
            part.unlink(missing_ok=True)
        pooch.retrieve(clip.url, known_hash=recorded or None, fname=name, path=folder, downloader=downloader)
        if not recorded:
            with records.open("a", encoding="utf-8") as file:
                file.write(f"{_sha256(clip.path)}  {name}\n")
    except ValueError as error:
        raise DownloadError(
            f"{clip.name}: the download from {clip.url} does not match the recorded checksum and was discarded; "
            "a proxy or mirror may have changed it"
        ) from error
    except OSError as error:
        raise DownloadError(
            f"cannot write {clip.path}: {error.strerror or error}; set POISE_CACHE to another folder"
        ) from error
    return clip.path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_CHUNK_BYTES = 4096  # largest loss at an interruption
_TOO_MANY_BYTES = 512 * 1024 * 1024


class DownloadError(PoiseError):
    """A failed download: offline, blocked, interrupted, missing or not as expected."""


@dataclass(frozen=True)
class ResumingDownloader:
    """A downloader for pooch. Bytes are collected in `part`, which is kept after an interruption and resumed."""

    part: Path
    expected_bytes: int = 0
    progress: Progress | None = None
    attempts: int = 3
    timeout_s: float = 20.0

    def __call__(self, url: str, output_file: str, _pooch: Any = None) -> None:
        """Download the address to the file, which appears only when complete."""
        import requests

        for attempt in range(1, self.attempts + 1):
            before = self._received()
            try:
                self._continue(url)
                break
            except requests.RequestException as error:
                came_to_nothing = self._received() == before
                if came_to_nothing or attempt == self.attempts:
                    raise DownloadError(self._explain(url, error)) from error
        os.replace(self.part, output_file)

    def _continue(self, url: str) -> None:
        import requests

        start = self._received()
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        with requests.get(url, headers=headers, stream=True, timeout=self.timeout_s) as response:
            resumes = response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            if start and not (response.status_code == 206 and resumes):
                self.part.unlink()  # a server may also send the whole file, or refuse the range
                self._continue(url)
                return
            response.raise_for_status()
            total = self.expected_bytes or start + int(response.headers.get("Content-Length", 0))
            most = self.expected_bytes or _TOO_MANY_BYTES
            with self.part.open("ab") as file:
                for chunk in response.iter_content(_CHUNK_BYTES):
                    file.write(chunk)
                    if file.tell() > most:
                        self.part.unlink()
                        raise DownloadError(
                            f"{urlsplit(response.url).hostname} sent more than the expected {most} bytes of "
                            f"{_file_name(response.url)}; the download was discarded"
                        )
                    if self.progress is not None:
                        self.progress(file.tell(), total)

    def _received(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _explain(self, url: str, error: Exception) -> str:
        import requests

        host, received = urlsplit(url).hostname or url, self._received()
        if isinstance(error, requests.HTTPError) and error.response is not None:
            return f"{host} answered {error.response.status_code} {error.response.reason} for {_file_name(url)} ({url})"
        if received:
            return (
                f"the connection to {host} was interrupted after {received} bytes of {_file_name(url)}; "
                "run the same command again to resume"
            )
        if isinstance(error, requests.Timeout):
            return f"{host} did not answer within {self.timeout_s:g} s; it may be busy, or blocked from here"
        if isinstance(error, requests.ConnectionError):
            return f"cannot reach {host}: this machine is offline, or a firewall or proxy blocks it"
        return f"cannot download {url}: {error}"


def _file_name(url: str) -> str:
    return urlsplit(url).path.rsplit("/", 1)[-1]
