"""Live cameras: each is read by its own thread, and only its newest picture counts.

Processing that takes longer than a picture's time misses pictures, but is never late: older ones are dropped and
counted. A silent camera is left out until it sends again; one that breaks off, for good. A video file is played at its
own pace, like a camera. Only the thread that reads a camera releases it: doing so while another reads ends the
process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from jaxtyping import UInt8

from poise.types import Array
from poise.vision.sources import InStep, Source, Step, read_or_note

Picture = UInt8[Array, "height width 3"]

SILENT = 0.5  # seconds without a picture after which the others do not wait for a camera
HANGS = 2.0  # seconds: time-out for releasing a camera
POLL = 0.05  # seconds between checks for silent cameras


class LiveStep(InStep):
    """The newest picture of each camera at every moment; None, with a note, from one that is silent or gone."""

    dropped = 0  # pictures that were skipped for lack of time

    def __iter__(self) -> Iterator[Step]:
        begun, news = time.monotonic(), threading.Condition()
        self._readers = [_Reader(source, begun, news, self.notes) for source in self.sources]
        for reader in self._readers:
            reader.start()
        while not all(reader.ended and reader.newest is None for reader in self._readers):
            with news:
                news.wait_for(lambda: all(reader.is_ready for reader in self._readers), timeout=POLL)
                if not all(reader.is_ready for reader in self._readers):
                    continue
                taken = [reader.take() for reader in self._readers]
            arrivals = [entry[0] for entry in taken if entry is not None]
            if arrivals:
                pictures = tuple(None if entry is None else entry[1] for entry in taken)
                yield Step(max(arrivals) - begun, pictures, arrived=max(arrivals))

    def __exit__(self, *error: object) -> None:
        for reader in getattr(self, "_readers", ()):
            reader.stop()
            self.dropped += reader.dropped
        if self.dropped:
            self.notes.append(
                f"{self.dropped} pictures came faster than poses could be found, and were left out"
            )
        if not hasattr(self, "_readers"):  # no readers were started
            super().__exit__(*error)


class _Reader(threading.Thread):
    """Reads one camera continuously and keeps its newest picture with its arrival time."""

    def __init__(self, source: Source, begun: float, news: threading.Condition, notes: list[str]) -> None:
        super().__init__(daemon=True, name=source.name)
        self._source, self._begun, self._news, self._notes = source, begun, news, notes
        self.newest: tuple[float, Picture] | None = None
        self._heard, self._stopped, self._is_silent = begun, False, False
        self.ended, self.dropped = False, 0

    @property
    def is_ready(self) -> bool:
        """Whether nobody needs to wait for it: it has a new picture, has ended, or is silent."""
        return self.newest is not None or self.ended or time.monotonic() - self._heard > SILENT

    def take(self) -> tuple[float, Picture] | None:
        """Its newest picture; None if there is none since the last call."""
        found, self.newest = self.newest, None
        if found is None and not self.ended and not self._is_silent:
            self._notes.append(f"{self.name} is silent; the others continue")
        self._is_silent = found is None
        return found

    def stop(self) -> None:
        """Stop reading; a camera that hangs is released when it answers, or at the end of the process."""
        self._stopped = True
        self.join(timeout=HANGS)
        if self.is_alive():
            self._notes.append(f"{self.name} does not respond; it was not released")

    def run(self) -> None:
        """Read until the camera ends or breaks off, or a stop is requested; then release it."""
        try:
            while not self._stopped and (entry := read_or_note(self._source, self._notes)) is not None:
                if self._source.frames:  # a file has no pace of its own
                    time.sleep(max(0.0, self._begun + entry[0] - time.monotonic()))
                with self._news:
                    self.dropped += self.newest is not None
                    self._heard = time.monotonic()
                    self.newest = (self._heard, entry[1])
                    self._news.notify_all()
            with self._news:
                self.ended = True
                if not self._stopped:
                    taken = "" if self._source.frames else ": it was unplugged, or another program took it"
                    self._notes.append(f"{self.name} gives no more pictures{taken}")
                self._news.notify_all()
        finally:
            self._source.close()
