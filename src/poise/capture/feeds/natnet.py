"""NatNet, OptiTrack's protocol (3.0 and newer, as Motive 2 and 3 speak it): markers of sets and rigid bodies by name.

Motive is asked over its command port for its version and names; frames come to the same socket (unicast), or by
multicast. Motive streams metres with Y up by default.
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from poise.capture.feeds import DAMAGED, LARGEST, POLL, GoOn, LiveFrame, Ready, address
from poise.errors import PoiseError

COMMANDS, DATA, GROUP = 1510, 1511, "239.255.42.99"
_CONNECT, _INFO, _ASK_NAMES, _NAMES, _FRAME, _ALIVE = 0, 1, 4, 5, 7, 10
_ALL = "all"  # a set that Motive adds, with all markers, unnamed
Version = tuple[int, int]


@dataclass
class Names:
    """Motive's names: the markers of each set in order, and rigid bodies by number."""

    sets: dict[str, list[str]] = field(default_factory=dict)
    bodies: dict[int, str] = field(default_factory=dict)


class Packet:
    """Bytes read from the front."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def numbers(self, form: str) -> tuple[float, ...]:
        """Numbers, little-endian."""
        found = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return found

    def count(self) -> int:
        """An integer."""
        return int(self.numbers("i")[0])

    def text(self) -> str:
        """Characters up to a zero."""
        end = self.data.index(b"\0", self.at)
        found, self.at = self.data[self.at : end].decode("utf-8", errors="replace"), end + 1
        return found

    def points(self, count: int) -> np.ndarray:
        """Positions; a count that exceeds the packet is a ValueError."""
        found = np.frombuffer(self.data, "<f4", 3 * count, self.at).reshape(count, 3).astype(np.float64)
        self.at += 12 * count
        return found


def frames(where: str, go_on: GoOn, ready: Ready) -> Iterator[LiveFrame]:
    """Yield frames by the names of markers and rigid bodies."""
    server = address(where, COMMANDS)
    link, group = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    with link, group:
        group.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # without multicast, unicast remains
            group.bind((GROUP, DATA))  # unicast packets do not arrive here
            group.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + bytes(4))
        link.connect(server)
        version, names, asked = None, None, 0
        for data in _both(link, group, go_on):
            if names is None and asked % 10 == 0:
                link.send(_request(_CONNECT, b"Ping\0"))
                link.send(_request(_ASK_NAMES, b"\0"))
            asked += 1
            link.send(_request(_ALIVE, b"\0"))
            try:
                kind, packet = struct.unpack_from("<H", data)[0] if data else -1, Packet(data[4:])
                if kind == _INFO:
                    version = read_version(packet)
                elif kind == _NAMES and version is not None:
                    if names is None:
                        ready(f"connected to {server[0]}:{server[1]}")
                    names = read_names(packet, version)
                elif kind == _FRAME and version is not None and names is not None:
                    yield read_frame(packet, version, names)
            except DAMAGED:
                continue


def read_version(packet: Packet) -> Version:
    """The protocol version, from the server's description."""
    packet.at += 256 + 4  # its name, and its own version
    major, minor = packet.numbers("BB")
    if major < 3:
        raise PoiseError(
            f"the sender uses NatNet {major:.0f}.{minor:.0f}; Poise reads 3.0 and newer (Motive 2.0)"
        )
    return int(major), int(minor)


def read_names(packet: Packet, version: Version) -> Names:
    """Sets of markers and rigid bodies; later sections are skipped."""
    names = Names()
    for _ in range(packet.count()):
        kind = packet.count()
        end = max(packet.count(), 0) + packet.at if version >= (4, 1) else None
        if kind == 0:
            name = packet.text()
            names.sets[name] = [packet.text() for _ in range(packet.count())]
        elif kind == 1:
            name = packet.text()
            names.bodies[packet.count()] = name
            packet.at += 16 if version < (4, 2) else 32  # its parent, and its offset
            markers = packet.count()
            packet.at += 16 * markers
            if version >= (4, 0):
                [packet.text() for _ in range(markers)]
        elif end is None:
            break
        packet.at = packet.at if end is None else end
    return names


def read_frame(packet: Packet, version: Version, names: Names) -> LiveFrame:
    """The first three parts of a frame: sets of markers, markers without a name, rigid bodies."""
    packet.count()
    places: dict[str, np.ndarray] = {}
    turns: dict[str, np.ndarray] = {}
    for _ in range(_part(packet, version)):
        name = packet.text()
        points = packet.points(packet.count())
        if name != _ALL:  # Motive puts unseen markers at the origin
            seen = np.where(np.any(points, axis=-1, keepdims=True), points, np.nan)
            places |= dict(zip(names.sets.get(name, []), seen, strict=False))
    packet.points(_part(packet, version))
    for _ in range(_part(packet, version)):
        number = packet.count()
        x, y, z, qx, qy, qz, qw, _error = packet.numbers("8f")
        tracked = int(packet.numbers("H")[0]) & 1
        if tracked and number in names.bodies:
            places[names.bodies[number]] = np.array([x, y, z])
            turns[names.bodies[number]] = np.array([qw, qx, qy, qz])
    return LiveFrame(places, turns)


def _part(packet: Packet, version: Version) -> int:
    """The number of items in a part of a frame; newer versions follow it by the size in bytes."""
    count = packet.count()
    if version >= (4, 1):
        packet.count()
    return count


def _request(kind: int, content: bytes) -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def _both(link: socket.socket, group: socket.socket, go_on: GoOn) -> Iterator[bytes]:
    """Yield what arrives at either socket; empty bytes from time to time otherwise."""
    while go_on():
        found = select.select([link, group], [], [], POLL)[0]
        if not found:
            yield b""
        for one in found:
            try:
                yield one.recv(LARGEST)
            except ConnectionRefusedError:
                yield b""  # nobody is sending yet
