"""The sound of a video: uncompressed (PCM), from a WAV file beside it or out of an AVI file itself; both are RIFF."""

from __future__ import annotations

import struct
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError
from poise.types import Array

_RATE = 16_000  # samples a second, of what is written
_PCM, _EXTENSIBLE = 1, 0xFFFE  # format tags


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
    kind, streams, layout, parts = b"", -1, b"", list[bytes]()
    wanted = b"data"
    with path.open("rb") as file:
        for name, size in _chunks(file, path.stat().st_size):
            if name == b"strh":
                streams, kind = streams + 1, file.read(4)
            elif name == b"fmt " or (name == b"strf" and kind == b"auds" and not layout):
                layout, wanted = file.read(size), wanted if name == b"fmt " else b"%02dwb" % streams
            elif name == wanted and layout:
                parts.append(file.read(size))
    return _decoded(layout, b"".join(parts), path) if len(layout) >= 16 and parts else None


def _chunks(file: BinaryIO, end: int) -> Iterator[tuple[bytes, int]]:
    """Yield names and sizes of a RIFF file's chunks, with lists opened; the file is at the chunk's first byte."""
    at = 0
    while at + 8 <= end:
        file.seek(at)
        name, size = struct.unpack("<4sI", file.read(8))
        if at == 0 and name != b"RIFF":
            return
        if name in (b"RIFF", b"LIST"):
            at += 12
            continue
        yield name, min(size, end - at - 8)
        at += 8 + size + size % 2


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
