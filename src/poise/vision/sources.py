"""Picture sources: video files, folders of images and live cameras, synchronised.

Pictures nearest in time belong together; `synchronise` finds the time offsets of videos that were not started
together. Every source ends quietly; one that breaks off is noted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import UInt8

from poise.bounds import checked_rate
from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.formats.files import existing_file
from poise.formats.images import check_unpacked_size
from poise.types import Array
from poise.vision.opencv import cv2

Picture = UInt8[Array, "_height _width 3"]  # cameras may differ in size

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
ANSWERS_WITHIN = 5.0  # seconds: time-out for a camera with an address
QUALITY = 97  # percent: JPEG quality of recorded videos


@runtime_checkable
class Source(Protocol):
    """Pictures with the times (seconds) at which they were taken."""

    @property
    def name(self) -> str:
        """The name for messages."""

    @property
    def place(self) -> str | Path | int:
        """The location it was opened from: a file, a folder, a camera's number or address."""

    @property
    def fps(self) -> float:
        """Pictures per second."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""

    @property
    def frames(self) -> int:
        """The number of pictures; 0 for a live camera, which has no end."""

    def read(self) -> tuple[float, Picture] | None:
        """The next picture and its time; None at the end."""

    def reopened(self) -> Source:
        """The same pictures from the start."""

    def close(self) -> None:
        """Release the file or the camera."""


class VideoSource:
    """A video file, or a live camera by its number or address."""

    def __init__(self, place: str | Path | int, *, name: str | None = None) -> None:
        cv, live = cv2(), isinstance(place, int) or "://" in str(place)
        self.place = place
        self._capture = _capture(place) if live else cv.VideoCapture(str(_video_file(str(place))))
        self.name = name or (f"camera {place}" if live else Path(str(place)).name)
        if not self._capture.isOpened():
            raise PoiseError(
                f"{self.name} {_why_not(place) if live else 'is not a video that can be read; convert it to MP4'}"
            )
        self._live, self._count, self._begun = live, 0, time.monotonic()
        self.fps = float(self._capture.get(cv.CAP_PROP_FPS))
        try:
            self.fps = checked_rate(self.fps) if self.fps > 0.0 else 30.0  # 30 if none is stated
        except InvalidValueError as error:
            raise ParseError(f"{error}; convert it to MP4", path=self.name) from error
        self.frames = 0 if live else max(int(self._capture.get(cv.CAP_PROP_FRAME_COUNT)), 0)
        width, height = (
            self._capture.get(side) for side in (cv.CAP_PROP_FRAME_WIDTH, cv.CAP_PROP_FRAME_HEIGHT)
        )
        self.size = int(width), int(height)

    def read(self) -> tuple[float, Picture] | None:
        """The next picture; a live camera waits for it."""
        good, picture = self._capture.read()
        if not good:
            return None
        self._count += 1
        stamp = time.monotonic() - self._begun if self._live else (self._count - 1) / self.fps
        return stamp, picture

    def reopened(self) -> VideoSource:
        """The same video from the start."""
        return VideoSource(self.place, name=self.name)

    def close(self) -> None:
        """Release the file or the camera."""
        self._capture.release()


def _video_file(place: str) -> Path:
    """An existing file that is not a playlist: FFmpeg would open what that names, anywhere."""
    file = existing_file(place)
    with file.open("rb") as opened:
        head = opened.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"#extm3u", b"ffconcat", b"<", b"v=0", b"[playlist]", b"rtsp", b"http")):
        raise ParseError("a playlist, which names other files; name a video itself", path=file)
    return file


def _capture(camera: str | Path | int) -> Any:
    """Open a live camera; with a time-out for an address."""
    cv = cv2()
    if isinstance(camera, int):
        return cv.VideoCapture(camera)
    within = round(1000 * ANSWERS_WITHIN)
    patience = [cv.CAP_PROP_OPEN_TIMEOUT_MSEC, within, cv.CAP_PROP_READ_TIMEOUT_MSEC, within]
    return cv.VideoCapture(str(camera), cv.CAP_FFMPEG, patience)


def _why_not(camera: str | Path | int) -> str:
    """The reason why a live camera cannot be opened, as far as the system reports it."""
    words, device = "does not answer; is it plugged in", Path(f"/dev/video{camera}")
    if not isinstance(camera, int) or sys.platform != "linux":
        return f"{words}, allowed, and free?"
    if not device.exists():
        others = ", ".join(path.name.removeprefix("video") for path in sorted(Path("/dev").glob("video*")))
        return f"{words}? This machine has {f'cameras {others}' if others else 'no camera'}"
    if not os.access(device, os.R_OK | os.W_OK):
        return f"may not be used: permission for {device} is denied; join the group video and log in again"
    return "does not answer: another program uses it, or it gives no pictures"


class ImageFolder:
    """The images of a folder in the order of their names, at a given rate."""

    def __init__(self, folder: str | Path, *, fps: float = 30.0) -> None:
        self.place = folder
        self._paths = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in IMAGES)
        self.name, self.fps, self._next = Path(folder).name, fps, 0
        if not self._paths:
            raise InvalidValueError(f"{folder} holds no images ({', '.join(IMAGES)})")
        self.frames = len(self._paths)
        first = read_picture(self._paths[0])
        self.size = (first.shape[1], first.shape[0])

    def read(self) -> tuple[float, Picture] | None:
        """The next image."""
        if self._next == len(self._paths):
            return None
        picture = read_picture(self._paths[self._next])
        self._next += 1
        return (self._next - 1) / self.fps, picture

    def reopened(self) -> ImageFolder:
        """The same images from the start."""
        return ImageFolder(self.place, fps=self.fps)

    def close(self) -> None:
        """Does nothing: there is nothing to release."""


def open_source(place: str | Path | int) -> Source:
    """Open a source by its name: a folder of images, a camera's number or address, or a video file."""
    if isinstance(place, int) or (isinstance(place, str) and place.isdigit()):
        return VideoSource(int(place))
    return ImageFolder(place) if Path(place).is_dir() else VideoSource(place)


def read_picture(path: str | Path) -> Picture:
    """Read an image file in OpenCV's order: blue, green, red."""
    check_unpacked_size(existing_file(path))
    picture = cv2().imread(str(path))
    if picture is None:
        raise ParseError("not an image that can be read", path=path)
    return np.asarray(picture)


def write_video(path: str | Path, pictures: Iterable[Picture], *, fps: float, size: tuple[int, int]) -> None:
    """Write pictures as a Motion JPEG video in AVI, which keeps every picture and is widely readable."""
    with closing(VideoRecorder(path, fps=fps, size=size)) as writer:
        for picture in pictures:
            writer.add(picture)


class VideoRecorder:
    """A video that is written picture by picture."""

    def __init__(self, path: str | Path, *, fps: float, size: tuple[int, int]) -> None:
        cv, kind = cv2(), cv2().VideoWriter.fourcc(*"MJPG")
        self._path, self._size = Path(path), size
        self._writer = cv.VideoWriter(str(path), cv.CAP_OPENCV_MJPEG, kind, fps, size)
        if not self._writer.isOpened():
            raise PoiseError(f"cannot write the video {path}: check that the folder exists and is writable")
        self._writer.set(cv.VIDEOWRITER_PROP_QUALITY, QUALITY)

    def add(self, picture: Picture) -> None:
        """One more picture."""
        if (picture.shape[1], picture.shape[0]) != self._size:
            raise InvalidValueError(
                f"{self._path.name} has pictures of {self._size[0]}x{self._size[1]}; "
                f"got {picture.shape[1]}x{picture.shape[0]}"
            )
        self._writer.write(picture)

    def close(self) -> None:
        """Finish the file."""
        self._writer.release()


@dataclass(frozen=True)
class Step:
    """One moment of all cameras: the time, and a picture from each (None: that camera gave none)."""

    time: float
    pictures: tuple[Picture | None, ...]
    arrived: float | None = None  # by time.monotonic, if live


class InStep:
    """Several sources as one: at every moment of the slowest, the picture of each that is nearest in time.

    `offsets` are seconds to add to each source's times; the first moment, from which time counts, is that from which
    all have pictures. A source that ends early gives None from there on, and `notes` says so; all ends when the last
    one does.
    """

    def __init__(self, sources: Sequence[Source], *, offsets: Sequence[float] | None = None) -> None:
        if not sources:
            raise InvalidValueError("give at least one video, image folder or camera")
        self.sources = tuple(sources)
        self.fps = min(source.fps for source in sources)
        self._offsets = tuple(offsets) if offsets is not None else (0.0,) * len(sources)
        self.notes: list[str] = []
        rates = {round(source.fps, 2) for source in sources}
        if len(rates) > 1:
            listed = ", ".join(f"{source.name} {source.fps:g}" for source in sources)
            self.notes.append(
                f"the cameras run at different rates ({listed} Hz): pictures nearest in time are used"
            )

    def __enter__(self) -> InStep:
        return self

    def __exit__(self, *error: object) -> None:
        for source in self.sources:
            source.close()

    def __iter__(self) -> Iterator[Step]:
        numbers = range(len(self.sources))
        latest = [self._next(number) for number in numbers]
        following = [self._next(number) for number in numbers]
        begun = max((entry[0] for entry in latest if entry is not None), default=0.0)
        now, count = begun, 0
        while any(entry is not None for entry in latest):
            ended = []
            for number in numbers:  # advance each while its next picture is nearer to this moment
                while (current := latest[number]) is not None:
                    after = following[number]
                    if after is not None and abs(after[0] - now) <= abs(current[0] - now):
                        latest[number], following[number] = after, self._next(number)
                    elif after is None and now - current[0] > 0.5 / self.fps:
                        latest[number] = None
                        ended.append(self.sources[number].name)
                    else:
                        break
            if all(entry is None for entry in latest):
                return
            self.notes += [f"{name} ends at {now - begun:.2f} s; the others continue" for name in ended]
            yield Step(now - begun, tuple(None if entry is None else entry[1] for entry in latest))
            count += 1
            now = begun + count / self.fps

    def _next(self, number: int) -> tuple[float, Picture] | None:
        found = read_or_note(self.sources[number], self.notes)
        return None if found is None else (found[0] + self._offsets[number], found[1])


def read_or_note(source: Source, notes: list[str]) -> tuple[float, Picture] | None:
    """The next picture; a source that breaks off, or whose pictures change size, has ended, and a note says why."""
    try:
        found = source.read()
    except (PoiseError, OSError, cv2().error) as error:
        notes.append(f"{source.name} broke off ({error}); the others continue")
        return None
    if found is not None and (found[1].shape[1], found[1].shape[0]) != source.size:
        notes.append(
            f"{source.name} changes the size of its pictures at {found[0]:.2f} s; the others continue"
        )
        return None
    return found
