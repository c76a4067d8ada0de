"""HTTP downloads that resume after an interruption (range requests, RFC 9110 section 14)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from poise.errors import PoiseError
from poise.types import Progress

if TYPE_CHECKING:
    from requests import Response


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
            if start and not _continues_at(response, start):
                self.part.unlink()
                self._continue(url)
                return
            response.raise_for_status()
            self._append(response, start)

    def _append(self, response: Response, start: int) -> None:
        total = self.expected_bytes or start + int(response.headers.get("Content-Length", 0))
        with self.part.open("ab") as file:
            for chunk in response.iter_content(_CHUNK_BYTES):
                file.write(chunk)
                if file.tell() > (self.expected_bytes or _TOO_MANY_BYTES):
                    self._refuse_more(response.url)
                if self.progress is not None:
                    self.progress(file.tell(), total)

    def _refuse_more(self, url: str) -> None:
        self.part.unlink()
        raise DownloadError(
            f"{urlsplit(url).hostname} sent more than the expected {self.expected_bytes or _TOO_MANY_BYTES} bytes of "
            f"{_file_name(url)}; the download was discarded"
        )

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


def _continues_at(response: Response, start: int) -> bool:
    """Whether the response resumes at that byte; a server may also send the whole file, or refuse the range."""
    return response.status_code == 206 and response.headers.get("Content-Range", "").startswith(
        f"bytes {start}-"
    )


def _file_name(url: str) -> str:
    return urlsplit(url).path.rsplit("/", 1)[-1]
