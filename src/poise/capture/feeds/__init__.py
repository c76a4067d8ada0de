"""Live protocols of other programs: vmc:PORT, slimevr:PORT, openxr:PORT, rokoko:PORT, natnet:HOST, qtm:HOST, lsl:NAME.

A feed is a generator of frames, one module each. It waits at most `POLL` seconds for the next frame before it asks
whether to continue.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise

import numpy as np

from poise.bounds import FARTHEST
from poise.errors import InvalidValueError, PoiseError
from poise.skeleton.measure import leg_length
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

GoOn = Callable[[], bool]
Ready = Callable[[str], None]
"""Called with a description of where the feed listens, or what it is connected to."""

POLL = 0.2  # seconds
LONGEST = 1e12  # seconds: clocks may start anywhere
DAMAGED = (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, struct.error)
"""Exceptions from reading malformed bytes; such a packet is skipped."""
LARGEST = 65_535  # bytes of a datagram
BODY = (*(f"{side}_{part}" for side in SIDES for part in ("hand", "foot", "upper_arm")), "pelvis", "head")
"""The roles that are followed of a feed with a whole body."""
TRACKERS = ("slimevr", "openxr")  # feeds of oriented trackers by our roles
FEEDS = {  # name (that of its module), and what follows the colon
    "vmc": "a port, or HOST:PORT; 39539",
    "slimevr": "a port, or HOST:PORT; 9000",
    "openxr": "a port, or HOST:PORT; 39541",
    "rokoko": "a port, or HOST:PORT; 14043",
    "natnet": "the host of Motive; 127.0.0.1",
    "qtm": "the host of QTM; 127.0.0.1",
    "lsl": "the name of the stream",
}


@dataclass(frozen=True, eq=False)
class LiveFrame:
    """One moment: positions in metres (Y up) and, if the protocol has them, world rotations (wxyz), by label."""

    places: Mapping[str, Array]
    turns: Mapping[str, Array] = field(default_factory=dict)
    seconds: float | None = None


def is_feed(take: str) -> bool:
    """Whether a take is the name of a feed."""
    return take.partition(":")[0] in FEEDS and ":" in take


def open_feed(
    take: str, *, go_on: GoOn = lambda: True, ready: Ready = lambda _where: None
) -> Iterator[LiveFrame]:
    """The plausible values of a feed's frames; network errors are raised as a PoiseError.

    Positions that are not finite or too far away become NaN; zero quaternions and impossible times are left out.
    """
    name, _, where = take.partition(":")
    feed: Callable[[str, GoOn, Ready], Iterator[LiveFrame]] = import_module(f"{__name__}.{name}").frames
    try:
        for frame in feed(where, go_on, ready):
            here = {label: bool(np.all(np.abs(at) <= FARTHEST)) for label, at in frame.places.items()}
            places = {label: at if here[label] else np.full(3, np.nan) for label, at in frame.places.items()}
            sizes = {
                label: float(np.linalg.norm(turn)) for label, turn in frame.turns.items() if here.get(label)
            }
            turns = {label: frame.turns[label] / size for label, size in sizes.items() if 0.1 < size < 10.0}
            known = frame.seconds is not None and abs(frame.seconds) < LONGEST
            yield LiveFrame(places, turns, frame.seconds if known else None)
    except OSError as error:
        raise PoiseError(f"{take}: {error.strerror or error}; {name}: takes {FEEDS[name]}") from error


def of_trackers(take: str) -> bool:
    """Whether a take is a feed of oriented trackers."""
    return take.partition(":")[0] in TRACKERS and is_feed(take)


def markers_of(take: str) -> tuple[str, ...] | None:
    """The labels to follow if a feed has a whole body by our roles; None if labels are the user's own."""
    return BODY if take.partition(":")[0] in ("vmc", "rokoko") else None


def fitted(frames: Iterator[LiveFrame], skeleton: Skeleton) -> Iterator[LiveFrame]:
    """The frames with positions scaled to a body, if whole legs are visible: for characters of another size."""
    ratio: float | None = None
    for frame in frames:
        if ratio is None:
            legs = [
                [frame.places.get(f"{side}_{part}") for part in ("thigh", "shin", "foot")] for side in SIDES
            ]
            pairs = [(a, b) for leg in legs for a, b in pairwise(leg) if a is not None and b is not None]
            bones = float(sum(np.linalg.norm(a - b) for a, b in pairs))
            ratio = 2.0 * leg_length(skeleton) / bones if len(pairs) == 4 and bones > 0 else None
        yield replace(frame, places={name: (ratio or 1.0) * place for name, place in frame.places.items()})


def address(where: str, port: int, *, host: str = "127.0.0.1") -> tuple[str, int]:
    """Host and port from PORT, HOST, HOST:PORT or nothing."""
    first, _, last = where.rpartition(":")
    if where and not last.isdigit() and not first:
        return last, port
    if last and not (last.isdigit() and int(last) < 65536):
        raise InvalidValueError(f"a port must be a number up to 65535; got {last!r}")
    return first or host, int(last) if last else port


def listening(where: str, port: int, go_on: GoOn, ready: Ready) -> Iterator[bytes]:
    """The datagrams that arrive at a port of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(address(where, port))
        host, bound = server.getsockname()[:2]
        ready(f"listening on {host}:{bound}")
        server.settimeout(POLL)
        while go_on():
            try:
                yield server.recv(LARGEST)
            except TimeoutError:
                continue
