"""Synchronise videos that were not started together, by common sights or sounds.

A flash is the largest jump of a picture's light. A clap is where sudden rises of the sounds agree, and motion where as
much moves in all pictures: the lag with the best correlation, which must be clearly better than any other.
"""

from __future__ import annotations

import struct
import wave
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError
from poise.types import Array
from poise.vision.opencv import cv2
from poise.vision.sources import Picture, Source

_RATE = 16_000  # samples a second, of what is written
_PCM, _EXTENSIBLE = 1, 0xFFFE  # format tags
FLASH = 12.0  # grey levels: smallest jump of a picture's mean light in a flash
HEARD_EVERY = 0.002  # seconds between two loudness samples
SUDDEN = 5.0  # standard deviations: smallest sudden rise of a sound
MOVED_EVERY = 0.004  # seconds between two motion samples: finer than the frame rate
SMALL = (96, 72)  # pixels: thumbnails for comparison, which suppress noise
BANDS = 8  # of rows whose motion is compared: head and feet have similar heights in all cameras
STILL = 3.0  # grey levels of difference of a pixel without motion
SYNCS = ("time", "flash", "clap", "motion")
CLEAR = 1.5  # smallest ratio of the best correlation to any other


@dataclass(frozen=True, eq=False)
class TimedSignal:
    """A regularly sampled quantity with several channels: its interval, start and samples."""

    values: Float[Array, "samples channels"]
    every: float
    begins: float = 0.0


def offsets_by(sync: str, sources: Sequence[Source]) -> list[float]:
    """Seconds to add to each source's times, found by one of these methods; the sources are not changed.

    A flash may be a lamp switched on; a clap is any sound that all microphones recorded.
    """
    match sync:
        case "time":
            return [0.0] * len(sources)
        case "flash":
            times = [flash_time(source) for source in sources]
            return [times[0] - at for at in times]
        case "clap":
            what = "a clap: clap once or twice, loud, between the cameras"
            return _offsets(sources, loudness, what, around=0.05)
        case "motion":
            what = "motion that all cameras saw: jump, or throw the arms up, once"
            return _offsets(sources, movement, what, around=0.2)
    raise InvalidValueError(f"synchronise videos by {', '.join(SYNCS)}; got {sync!r}")


def flash_time(source: Source) -> float:
    """The time of a flash: the largest jump of the picture's light."""
    seen = [(at, float(picture.mean())) for at, picture in _pictures(source)]
    jumps = np.diff([light for _, light in seen])
    if len(jumps) == 0 or jumps.max() < FLASH:
        raise InvalidValueError(
            f"{source.name} shows no flash to synchronise by: switch a light on and off before all cameras"
        )
    return seen[int(jumps.argmax()) + 1][0]


def loudness(source: Source) -> TimedSignal:
    """Sudden rises of high frequencies: present in claps, absent in hum and noise."""
    sound = sound_of(Path(str(source.place)))
    length = max(1, round(HEARD_EVERY * sound.rate))
    sharp = np.diff(sound.samples, prepend=0.0)
    power = (sharp[: len(sharp) // length * length].reshape(-1, length) ** 2).mean(axis=1)
    if len(power) < 4:
        raise InvalidValueError(f"{source.name} has too little sound to synchronise by")
    rises = np.diff(np.log(power + np.median(power) + 1e-12))
    sudden = np.convolve(np.maximum(rises - SUDDEN * rises.std(), 0.0), (0.5, 1.0, 0.5), mode="same")
    times = np.arange(1, len(sudden) + 1) * length / sound.rate
    at = np.arange(0.0, times[-1], HEARD_EVERY)
    return TimedSignal(np.interp(at, times, sudden)[:, None], HEARD_EVERY)


def movement(source: Source) -> TimedSignal:
    """Changes of the amount of motion from picture to picture, at several heights."""
    from scipy.interpolate import CubicSpline

    times, moved, last = list[float](), list[Array](), None
    for at, picture in _pictures(source):
        small = cv2().resize(picture, SMALL, interpolation=cv2().INTER_AREA)
        grey = cv2().cvtColor(small, cv2().COLOR_BGR2GRAY).astype(np.float32)
        if last is not None:
            times.append(at - 0.5 / source.fps)
            off = np.maximum(np.abs(grey - last) - STILL, 0.0)
            moved.append(np.sqrt(off.reshape(BANDS, -1).mean(axis=1)))
        last = grey
    if len(times) < 4:
        raise InvalidValueError(f"{source.name} has too few pictures to synchronise by")
    curve = CubicSpline(times, np.stack(moved)).derivative()
    return TimedSignal(curve(np.arange(times[0], times[-1], MOVED_EVERY)), MOVED_EVERY, times[0])


def lag_between(first: TimedSignal, second: TimedSignal, *, around: float) -> tuple[float, float]:
    """Seconds to add to the second's times, and the ratio of its correlation to that of lags not `around` it.

    Both must have the same sampling interval.
    """
    from scipy.signal import correlate, correlation_lags  # only now: it takes a second

    pairs = zip(first.values.T, second.values.T, strict=True)
    product = sum(correlate(a - a.mean(), b - b.mean(), method="fft") for a, b in pairs)
    lags = correlation_lags(len(first.values), len(second.values)) * first.every
    best = int(np.argmax(product))
    others = np.where(np.abs(lags - lags[best]) > around, product, 0.0).max()
    noise = 1e-9 * np.sqrt(np.sum(first.values**2) * np.sum(second.values**2))
    between = 0.0  # the peak, and the maximum of a parabola through it and its neighbours, in samples
    if 0 < best < len(product) - 1:
        before, at, after = product[best - 1 : best + 2]
        bend = before - 2.0 * at + after
        between = float(0.5 * (before - after) / bend) if bend < 0 else 0.0
    shift = lags[best] + first.every * between + first.begins - second.begins
    return float(shift), float(product[best] / max(others, noise, 1e-30))


def _offsets(
    sources: Sequence[Source], measured: Callable[[Source], TimedSignal], what: str, *, around: float
) -> list[float]:
    signals = [measured(source) for source in sources]
    offsets = [0.0]
    for source, signal in zip(sources[1:], signals[1:], strict=True):
        shift, clear = lag_between(signals[0], signal, around=around)
        if clear < CLEAR:
            raise InvalidValueError(f"{sources[0].name} and {source.name} do not agree on {what}")
        offsets.append(shift)
    return offsets


def _pictures(source: Source) -> Iterator[tuple[float, Picture]]:
    again = source.reopened()
    while (entry := again.read()) is not None:
        yield entry
    again.close()


# --- the sound of a video: uncompressed (PCM), from a WAV file beside it or out of an AVI file; both are RIFF ---------


@dataclass(frozen=True, eq=False)
class Sound:
    """Samples between -1 and 1, all channels mixed, and their rate."""

    samples: Float[Array, "samples"]
    rate: float


def sound_of(video: Path) -> Sound:
    """The sound of a video: left.wav for left.mp4 if it exists, else that of an AVI file."""
    beside = video.with_suffix(".wav")
    path = beside if beside.is_file() else video
    if path.is_file() and (found := _read_riff(path)) is not None:
        return found
    raise InvalidValueError(
        f"{video.name} has no sound that can be read: put it beside the video as {beside.name} "
        f"(ffmpeg -i {video.name} {beside.name}), or synchronise by motion",
        settings=("sync",),
    )


def write_clap(path: Path, *, at: float, seconds: float, seed: int = 0) -> None:
    """Write a quiet room with one clap, as a WAV file."""
    rng = np.random.default_rng(seed)
    sound = 0.003 * rng.standard_normal(round(seconds * _RATE))
    clap = 0.5 * np.exp(-np.arange(_RATE // 20) / (0.008 * _RATE)) * rng.standard_normal(_RATE // 20)
    begin = min(max(round(at * _RATE), 0), len(sound))
    heard = min(len(clap), len(sound) - begin)
    sound[begin : begin + heard] += clap[:heard]
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, _RATE, 0, "NONE", ""))
        file.writeframes((32767 * np.clip(sound, -1, 1)).astype("<i2").tobytes())


def _read_riff(path: Path) -> Sound | None:
    """The first sound of a WAV or AVI file; None if it has none, or is another kind of file."""
    kind, streams, layout, parts, wanted, at = b"", -1, b"", list[bytes](), b"data", 0
    end = path.stat().st_size
    with path.open("rb") as file:
        while at + 8 <= end:
            file.seek(at)
            name, size = struct.unpack("<4sI", file.read(8))
            if at == 0 and name != b"RIFF":
                return None
            if name in (b"RIFF", b"LIST"):  # opened: their chunks follow
                at += 12
                continue
            there = min(size, end - at - 8)
            if name == b"strh":
                streams, kind = streams + 1, file.read(4)
            elif name == b"fmt " or (name == b"strf" and kind == b"auds" and not layout):
                layout, wanted = file.read(there), wanted if name == b"fmt " else b"%02dwb" % streams
            elif name == wanted and layout:
                parts.append(file.read(there))
            at += 8 + size + size % 2
    return _decoded(layout, b"".join(parts), path) if len(layout) >= 16 and parts else None


def _decoded(layout: bytes, data: bytes, path: Path) -> Sound:
    tag, channels, rate, _, _, bits = struct.unpack("<HHIIHH", layout[:16])
    if tag == _EXTENSIBLE and len(layout) >= 26:
        (tag,) = struct.unpack("<H", layout[24:26])
    if tag != _PCM or bits not in (8, 16, 24, 32) or not channels or not rate:
        raise ParseError(
            f"its sound is not plain PCM of 8 to 32 bits: ffmpeg -i {path.name} -c:a pcm_s16le {path.stem}.wav",
            path=path,
        )
    width = bits // 8
    whole = len(data) // (width * channels) * width * channels
    values = np.frombuffer(data[:whole], dtype=np.uint8).reshape(-1, width)
    if bits == 8:
        numbers = values[:, 0].astype(np.float64) - 128.0
    else:  # little-endian, shifted to the top of 32 bits so that the sign is right
        raised = np.zeros((len(values), 4), dtype=np.uint8)
        raised[:, 4 - width :] = values
        numbers = raised.view("<i4")[:, 0] / 2.0 ** (32 - bits)
    return Sound(numbers.reshape(-1, channels).mean(axis=1) / 2.0 ** (bits - 1), float(rate))
