"""Where markers and sensors come from: a C3D, TRC or CSV file, or live from standard input, UDP or another program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.capture.feeds import is_feed
from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats import read
from poise.formats.files import existing_file
from poise.motion.markers import Markers
from poise.types import Array

UDP = "udp:"
TAKES = (".c3d", ".trc", ".csv")
UNLABELLED = "*"


def is_take(source: str) -> bool:
    """Whether a source is a take, and not a library or a model."""
    return is_live(source) or Path(source).suffix.lower() in TAKES


def is_live(source: str) -> bool:
    """Whether a take is live: from standard input, over UDP, or from a feed."""
    return source == "-" or source.startswith(UDP) or is_feed(source)


def udp_address(text: str) -> tuple[str, int]:
    """Host and port from udp:PORT or udp:HOST:PORT; by default only this machine."""
    host, _, port = text.removeprefix(UDP).rpartition(":")
    if not port.isdigit() or not 0 <= int(port) < 65536:
        raise InvalidValueError(f"a port must be a number up to 65535, as in udp:9000; got {text!r}")
    return host or "127.0.0.1", int(port)


def read_markers(path: Path, *, fps: float = 60.0, **options: Any) -> Markers:
    """The markers of a file; `fps` is for a CSV file without times, `options` are the reader's (units, up)."""
    if path.suffix.lower() == ".csv":
        labels, points, rate = read_columns(path, fps, "xyz")
        return Markers(tuple(labels), points, rate, name=path.stem)
    if existing_file(path).read_bytes()[1:2] == b"\x50":  # a C3D file, whatever its name
        options["keep_unlabelled"] = True
    recording = read(path, **options)
    if not isinstance(recording, Markers):
        raise InvalidValueError(
            f"{path.name} holds the motion of a skeleton; this needs markers (C3D, TRC or CSV)"
        )
    return recording


def read_orientations(
    path: Path, names: Sequence[str], *, fps: float, channels: Sequence[str] = "wxyz"
) -> tuple[Float[Array, "frames sensors channels"], float]:
    """Quaternions, or other channels, from columns pelvis.w, pelvis.x, pelvis.y, pelvis.z, ..., and the frame rate."""
    labels, values, rate = read_columns(path, fps, channels)
    if missing := [name for name in names if name not in labels]:
        raise ParseError(
            f"no columns for the sensor {missing[0]!r}; there are {', '.join(labels)}", path=path
        )
    return values[:, [labels.index(name) for name in names]], rate


def of_subject(recording: Markers, subject: str | None) -> Markers:
    """The markers of one person, by the prefix of their labels ("Anna:LFHD"), and unprefixed ones."""
    prefixes = [label.partition(":")[0] if ":" in label else "" for label in recording.labels]
    people = tuple(dict.fromkeys(prefix for prefix in prefixes if prefix))
    if subject is None and len(people) > 1:
        raise InvalidValueError(
            f"{recording.name}: the markers of {len(people)} people ({', '.join(people)}); choose one",
            settings=("subject",),
        )
    if subject is not None and subject not in people:
        raise UnknownNameError("subject", subject, people or ("(labels have no prefix)",))
    wanted = subject if subject is not None else (people[0] if people else "")
    labels = recording.labels
    own = [k for k, prefix in enumerate(prefixes) if prefix == wanted or labels[k].startswith(UNLABELLED)]
    return picked(recording, own, [labels[k].removeprefix(f"{wanted}:") for k in own])


def picked(recording: Markers, numbers: list[int], labels: list[str]) -> Markers:
    """Some of the markers, with these labels."""
    residuals = None if recording.residuals is None else recording.residuals[:, numbers]
    return replace(recording, labels=tuple(labels), points=recording.points[:, numbers], residuals=residuals)


def read_columns(
    path: Path, fps: float, channels: Sequence[str]
) -> tuple[list[str], Float[Array, "frames labels channels"], float]:
    """Columns label.x, label.y, label.z (or other channels) with an optional time; and the frame rate."""
    lines = existing_file(path).read_text(encoding="utf-8-sig").splitlines()
    header = [name.strip() for name in lines[0].split(",")] if lines else []
    last = f".{channels[0]}"
    labels = [name.removesuffix(last) for name in header if name.endswith(last)]
    columns = [f"{label}.{channel}" for label in labels for channel in channels]
    if not labels or not set(columns) <= set(header):
        named = ",".join(f"left_hand.{channel}" for channel in channels)
        raise ParseError(f"expected a header such as time,{named}", path=path, line=1)
    rows = np.empty((len(lines) - 1, len(header)))
    for number, line in enumerate(lines[1:]):
        cells = line.split(",")
        try:
            rows[number] = [float(cell) if cell.strip() else np.nan for cell in cells]
        except ValueError:
            raise ParseError(
                f"expected {len(header)} numbers; got {line[:60]!r}", path=path, line=number + 2
            ) from None
    values = rows[:, [header.index(name) for name in columns]].reshape(len(rows), len(labels), len(channels))
    times = rows[:, header.index("time")] if "time" in header and len(rows) > 1 else None
    return labels, values, fps if times is None else 1.0 / float(np.median(np.diff(times)))
