"""Synchronise videos that were not started together, by common sights or sounds.

A flash is the largest jump of a picture's light. A clap is where sudden rises of the sounds agree, and motion where as
much moves in all pictures: the lag with the best correlation, which must be clearly better than any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.types import Array
from poise.vision.opencv import cv2
from poise.vision.sound import sound_of
from poise.vision.sources import Picture, Source

FLASH = 12.0  # grey levels: smallest jump of a picture's mean light in a flash
HEARD_EVERY = 0.002  # seconds between two loudness samples
SUDDEN = 5.0  # standard deviations: smallest sudden rise of a sound
MOVED_EVERY = 0.004  # seconds between two motion samples: finer than the frame rate
SMALL = (96, 72)  # pixels: thumbnails for comparison, which suppress noise
BANDS = 8  # of rows whose motion is compared: head and feet have similar heights in all cameras
STILL = 3.0  # grey levels of difference of a pixel without motion
CLEAR = 1.5  # smallest ratio of the best correlation to any other


@dataclass(frozen=True, eq=False)
class TimedSignal:
    """A regularly sampled quantity with several channels: its interval, start and samples."""

    values: Float[Array, "samples channels"]
    every: float
    begins: float = 0.0


def flash_offsets(sources: Sequence[Source]) -> list[float]:
    """Seconds to add to each source's times so that a flash, or a lamp switched on, is simultaneous in all."""
    times = [flash_time(source) for source in sources]
    return [times[0] - at for at in times]


def clap_offsets(sources: Sequence[Source]) -> list[float]:
    """The same by sound: a clap, or any sound that all microphones recorded."""
    return _offsets(sources, loudness, "a clap: clap once or twice, loud, between the cameras", around=0.05)


def motion_offsets(sources: Sequence[Source]) -> list[float]:
    """The same by motion in front of all cameras."""
    return _offsets(
        sources, movement, "motion that all cameras saw: jump, or throw the arms up, once", around=0.2
    )


SYNCS: dict[str, Callable[[Sequence[Source]], list[float]]] = {
    "time": lambda sources: [0.0] * len(sources),
    "flash": flash_offsets,
    "clap": clap_offsets,
    "motion": motion_offsets,
}


def offsets_by(sync: str, sources: Sequence[Source]) -> list[float]:
    """Seconds to add to each source's times, found by one of these methods; the sources are not changed."""
    if sync not in SYNCS:
        raise InvalidValueError(f"synchronise videos by {', '.join(SYNCS)}; got {sync!r}")
    return SYNCS[sync](sources)


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
    shift = lags[best] + first.every * _between(product, best) + first.begins - second.begins
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


def _between(product: Array, best: int) -> float:
    """The maximum of a parabola through a peak and its neighbours, in samples from the peak."""
    if not 0 < best < len(product) - 1:
        return 0.0
    before, at, after = product[best - 1 : best + 2]
    bend = before - 2.0 * at + after
    return float(0.5 * (before - after) / bend) if bend < 0 else 0.0


def _pictures(source: Source) -> Iterator[tuple[float, Picture]]:
    again = source.reopened()
    while (entry := again.read()) is not None:
        yield entry
    again.close()
