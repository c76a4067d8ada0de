"""QTM's real-time protocol (Qualisys, version 1.8 and newer): labelled markers in millimetres over TCP.

The up axis is that of the project, by default +Z.
"""

from __future__ import annotations

import socket
import struct
import xml.etree.ElementTree as Tree
from collections.abc import Iterator

import numpy as np

from poise.capture.feeds import DAMAGED, POLL, GoOn, LiveFrame, Ready, address
from poise.errors import PoiseError
from poise.formats.laboratory import matrix_y_up_from

PORT = 22223
_ERROR, _COMMAND, _XML, _DATA = 0, 1, 2, 3
_LONGEST = 64 << 20  # bytes of a packet
_MARKERS = 1  # the component with labelled markers


def frames(where: str, go_on: GoOn, ready: Ready) -> Iterator[LiveFrame]:
    """Frames by the labels of the project."""
    host, port = address(where, PORT)
    with socket.create_connection((host, port), timeout=5.0) as link:
        _answer(link, _COMMAND)
        _say(link, "Version 1.8")
        _answer(link, _COMMAND)
        _say(link, "GetParameters 3D")
        labels, turn = read_settings(_answer(link, _XML))
        ready(f"connected to {host}:{port}")
        _say(link, "StreamFrames AllFrames 3D")
        link.settimeout(POLL)
        for kind, content in _packets(link, go_on):
            try:
                frame = read_frame(content, labels, turn) if kind == _DATA else None
            except DAMAGED:
                continue
            if frame is not None:
                yield frame


def read_settings(xml: bytes) -> tuple[list[str], np.ndarray]:
    """The labels in order, and the rotation from the laboratory's axes to ours."""
    try:
        tree = Tree.fromstring(xml.rstrip(b"\0"))
    except Tree.ParseError as error:
        raise PoiseError(f"QTM's settings cannot be read: {error}") from None
    labels = [label.findtext("Name") or "" for label in tree.iterfind(".//The_3D/Label")]
    up = tree.findtext(".//The_3D/AxisUpwards") or "+Z"
    return labels, matrix_y_up_from(up.upper() if up[0] in "+-" else f"+{up.upper()}")


def read_frame(content: bytes, labels: list[str], turn: np.ndarray) -> LiveFrame | None:
    """The labelled markers of a packet; None if it has none."""
    microseconds, _number, parts = struct.unpack_from("<qII", content)
    at = 16
    for _ in range(parts):
        size, kind = struct.unpack_from("<II", content, at)
        if kind == _MARKERS:
            count = min(struct.unpack_from("<I", content, at + 8)[0], len(labels))
            points = np.frombuffer(content, "<f4", 3 * count, at + 16).reshape(count, 3) / 1000.0
            return LiveFrame(dict(zip(labels, points @ turn.T, strict=False)), seconds=microseconds / 1e6)
        at += max(size, 8)
    return None


def _say(link: socket.socket, words: str) -> None:
    link.sendall(struct.pack("<II", 9 + len(words), _COMMAND) + words.encode() + b"\0")


def _answer(link: socket.socket, wanted: int) -> bytes:
    for kind, content in _packets(link, lambda: True):
        if kind == _ERROR:
            raise PoiseError(f"QTM reports an error: {content.decode(errors='replace').rstrip(chr(0))}")
        if kind == wanted:
            return content
    raise PoiseError("QTM ended the connection")


def _packets(link: socket.socket, go_on: GoOn) -> Iterator[tuple[int, bytes]]:
    """Packets by kind, until the connection ends."""
    waiting = b""
    while go_on():
        while len(waiting) >= 8:
            size, kind = struct.unpack_from("<II", waiting)
            if not 8 <= size <= _LONGEST:
                raise PoiseError(f"QTM sent a packet of {size} bytes; is this its real-time port?")
            if len(waiting) < size:
                break
            yield kind, waiting[8:size]
            waiting = waiting[size:]
        try:
            more = link.recv(65_536)
        except TimeoutError:
            if link.gettimeout() == POLL:
                continue
            raise
        if not more:
            return
        waiting += more
