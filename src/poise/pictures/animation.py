"""Animations: a clip as a GIF or an MP4, seen by a camera that fits the motion or follows it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float
from PIL import Image

from poise.errors import InvalidValueError, MissingExtraError, UnknownNameError
from poise.formats.files import FileAccessError, replacing
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.pictures import labels
from poise.pictures.scene import Floor, PictureView, fitted, render
from poise.pictures.subject import Subject, heading, looked_at, subject_of
from poise.types import Array, Progress

ANIMATIONS = (".gif", ".mp4")
_ELEVATION = np.radians(9.0)
_TURN, _TURN_TRAVEL = np.radians(38.0), np.radians(52.0)
_ROOM = 1.6  # metres that a person may move before the camera follows
_SMOOTH_SECONDS = 0.6  # of the camera's own path
_CODECS = ("vp09", "mp4v")  # the first plays in browsers; the second is in every build of OpenCV
_PALETTE_LOOKS = 6  # frames from which a GIF takes its colours


def animate(
    shown: Motion | Markers,
    path: str | os.PathLike[str],
    *,
    size: tuple[int, int] = (480, 480),
    fps: float | None = None,
    title: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write a clip as .gif or .mp4 at its own speed; return the path.

    `fps` is the rate of the pictures, by default at most 25 for a GIF and 30 for an MP4. `progress` is called after
    every picture with the number done and the total.
    """
    target = Path(path)
    extension = target.suffix.lower()
    if extension not in ANIMATIONS:
        raise UnknownNameError("animation format for the extension", extension, ANIMATIONS)
    show = subject_of(shown)
    rate = min(25.0 if extension == ".gif" else 30.0, show.fps) if fps is None else fps
    if not 0.1 <= rate <= 240.0:
        raise InvalidValueError(f"an animation needs 0.1 to 240 pictures a second; got {rate:g}")
    width, height = size
    if not (64 <= width <= 4096 and 64 <= height <= 4096):
        raise InvalidValueError(
            f"an animation must be 64 to 4096 pixels wide and high; got {width} x {height}"
        )
    even = (width - width % 2, height - height % 2)  # which video needs
    count = max(1, round(show.frames / show.fps * rate))
    frames = [min(show.frames - 1, round(k * show.fps / rate)) for k in range(count)]
    reel = _Reel(show, *_camera(show, even), frames, show.name if title is None else title)
    pictures = reel.pictures(progress)
    if extension == ".gif":
        _write_gif(pictures, reel, target, rate)
    else:
        write_mp4(pictures, even, target, rate)
    return target


@dataclass(frozen=True, eq=False)
class _Reel:
    """The drawn frames and their title, seen by a view for the first position on the camera's way."""

    show: Subject
    view: PictureView
    way: Float[Array, "frames 3"]
    frames: list[int]
    title: str

    def picture(self, frame: int) -> Image.Image:
        """One frame with its labels."""
        at = self.way[frame]
        floor = Floor(self.show.floor, (float(at[0]), float(at[2])), 4.5)
        view = replace(self.view, eye=self.view.eye + (at - self.way[0]))
        image = Image.fromarray(render([self.show.figure(frame)], view, floor=floor))
        scale = max(0.6, min(image.size) / 480)
        time, place = f"{frame / self.show.fps:.2f} s", (38 * scale, image.height - 18 * scale)
        labels.write_title(image, self.title, scale=scale)
        labels.write_key(image, scale=scale)
        labels.write_under(image, time, place, scale=scale)
        return image

    def pictures(self, progress: Progress | None) -> Iterator[Image.Image]:
        """All frames in turn."""
        for done, frame in enumerate(self.frames, start=1):
            yield self.picture(frame)
            if progress is not None:
                progress(done, len(self.frames))


# --- the camera ------------------------------------------------------------------------------------------------------


def _camera(show: Subject, size: tuple[int, int]) -> tuple[PictureView, Float[Array, "frames 3"]]:
    """A view and its way: it fits everything if the motion stays in one place, else it follows the person."""
    way = np.tile(show.centres.mean(axis=0), (show.frames, 1))
    if np.ptp(show.centres[:, [0, 2]], axis=0).max() > _ROOM:
        # The path of the body without its sway: a moving average, three times.
        half = min(max(1, round(_SMOOTH_SECONDS * show.fps / 2)), max(1, (show.frames - 1) // 2))
        kernel, way = np.full(2 * half + 1, 1.0 / (2 * half + 1)), show.centres
        for _ in range(3):
            before, after = 2 * way[0] - way[half:0:-1], 2 * way[-1] - way[-2 : -half - 2 : -1]
            padded = np.concatenate([before, way, after])
            way = np.stack([np.convolve(padded[:, k], kernel, mode="valid") for k in range(3)], axis=-1)
    way = np.where([True, False, True], way, show.floor)
    points = np.concatenate(
        [show.figure(f).vertices - way[f] + way[0] for f in looked_at(show.frames)]
        + [np.array([[x, 0.0, z] for x in (-0.3, 0.3) for z in (-0.3, 0.3)]) + way[0]]
    )
    azimuth, distance = heading(show.centres)
    turned = azimuth - _TURN_TRAVEL if distance > _ROOM else show.facing - _TURN
    margins = (0.05, 0.11, 0.05, 0.09)
    return fitted(points, azimuth=turned, elevation=_ELEVATION, size=size, margins=margins), way


# --- files -----------------------------------------------------------------------------------------------------------


def _write_gif(pictures: Iterator[Image.Image], reel: _Reel, target: Path, rate: float) -> None:
    """All pictures in one palette, taken from a few of them, so that colours do not flicker."""
    chosen = np.linspace(0, len(reel.frames) - 1, min(_PALETTE_LOOKS, len(reel.frames))).astype(np.int64)
    board = labels.arranged([[reel.picture(reel.frames[number])] for number in chosen])
    palette = board.quantize(colors=255, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    flat = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    clock = np.round(100.0 * np.arange(len(flat) + 1) / rate).astype(np.int64)
    durations = (10 * np.maximum(np.diff(clock), 2)).tolist()  # in milliseconds; viewers slow down below 20
    with replacing(target, "wb") as file:
        flat[0].save(
            file, format="GIF", save_all=True, append_images=flat[1:], duration=durations, loop=0, optimize=False
        )  # fmt: skip


def write_mp4(pictures: Iterator[Image.Image], size: tuple[int, int], target: Path, rate: float) -> None:
    """Write pictures of one even size as a film: H.264, which plays everywhere, if PyAV is installed; else VP9."""
    encode = _by_opencv if find_spec("av") is None else _by_av
    with replacing(target, "wb") as file, tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "clip.mp4"  # encoders write to a file name, not to an open file
        encode(pictures, size, part, rate)
        with part.open("rb") as written:
            shutil.copyfileobj(written, file)


def _by_av(pictures: Iterator[Image.Image], size: tuple[int, int], path: Path, rate: float) -> None:
    import av

    with av.open(str(path), "w") as film:
        stream = film.add_stream("libx264", rate=Fraction(rate).limit_denominator(1001))
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for picture in pictures:
            film.mux(stream.encode(av.VideoFrame.from_image(picture)))
        film.mux(stream.encode())


def _by_opencv(pictures: Iterator[Image.Image], size: tuple[int, int], path: Path, rate: float) -> None:
    try:
        import cv2
    except ImportError as error:
        raise MissingExtraError("opencv-python-headless", extra="video", purpose="writing MP4") from error
    for codec in _CODECS:
        writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*codec), rate, size)
        if writer.isOpened():
            break
    else:
        raise FileAccessError(f"cannot write {path.name}: this OpenCV has no video encoder")
    for picture in pictures:
        writer.write(np.asarray(picture)[:, :, ::-1])
    writer.release()
