"""The header of a BVH file: the joint hierarchy, the number of frames and the frame time."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn

from poise.errors import ParseError
from poise.formats.number_rows import finite_number

MOST_JOINTS = 10_000
_MOST_HEADER_BYTES = 1 << 26
_MOST_WORDS_IN_A_NAME = 32
_SHORTEST_FRAME, _LONGEST_FRAME = 1e-6, 1e4  # seconds
_BLOCK = 1 << 16
_LOOK_BACK = 512  # bytes: largest end of the header; its parts are bounded, so that the search is linear
_END_OF_HEADER = re.compile(rb"frame[ \t]{0,99}time[ \t]{0,99}:[ \t]{0,99}[^\s{}]{1,99}(?=\s)", re.IGNORECASE)
_TIMING = re.compile(r"frames\s*:\s*(\d{1,15})\s+frame\s*time\s*:\s*(\S+)", re.IGNORECASE)
_CHANNEL = re.compile(r"([xyz])(position|rotation|scale)", re.IGNORECASE)
_TOKEN = re.compile(r"[{}]|[^\s{}]+")
_STATED_UNIT = re.compile(r"\boffset\s+0e(-?[0-8])\s+0e([01])\s+0e(0|-1)\s", re.IGNORECASE)
_STATED_POWERS = (10.0, 2.54, 0.45)  # an inch is 2.54 cm, and CMU's unit an inch over 0.45
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Channel:
    """One number per row: the position, the rotation or the scale of a joint along or about an axis."""

    kind: str
    axis: str
    column: int


@dataclass
class Node:
    """A joint as in the file; end sites get a name later."""

    name: str
    parent: int
    line: int
    is_end_site: bool = False
    offset: tuple[float, float, float] | None = None
    channels: list[Channel] = field(default_factory=list)

    def order(self) -> str:
        """The axes of its rotation channels, in the order written."""
        return "".join(channel.axis for channel in self.channels if channel.kind == "rotation")


@dataclass(frozen=True)
class Header:
    """The nodes in the file's order (parents first), and the position and layout of the rows."""

    nodes: tuple[Node, ...]
    columns: int
    frames: int
    frame_time: float
    first_row_byte: int
    first_row_line: int
    warnings: tuple[str, ...]
    metres_per_unit: float | None = None
    """Stated by `stating_zeros` as the root's offset; BVH itself has no unit."""


def read_header(file: BinaryIO, *, path: Path) -> Header:
    """The header of a BVH file opened for reading bytes."""
    raw = _header_bytes(file, path=path)
    text = _decode(raw.removeprefix(_BYTE_ORDER_MARK))
    parser = _Parser(text, path=path)
    nodes = parser.hierarchy()
    frames, frame_time = parser.timing()
    renamed = _make_names_unique(nodes)
    return Header(
        nodes=tuple(nodes),
        columns=sum(len(node.channels) for node in nodes),
        frames=frames,
        frame_time=frame_time,
        first_row_byte=len(raw),
        first_row_line=_count_lines(text) + 1,
        warnings=tuple(renamed),
        metres_per_unit=_stated_unit(text),
    )


def stating_zeros(metres: float) -> str | None:
    """Zeros whose exponents state a unit of length, or None for one without a name.

    `0e-2 0e1 0e0` is 10^-2 x 2.54^1 x 0.45^0 m, an inch.
    """
    for exponents in itertools.product(range(-8, 9), (0, 1), (0, -1)):
        if math.isclose(_metres(exponents), metres, rel_tol=1e-9):
            return " ".join(f"0e{exponent}" for exponent in exponents)
    return None


def _stated_unit(text: str) -> float | None:
    found = _STATED_UNIT.search(text)
    return _metres(int(exponent) for exponent in found.groups()) if found else None


def _metres(exponents: Iterable[int]) -> float:
    return math.prod(base**exponent for base, exponent in zip(_STATED_POWERS, exponents, strict=True))


def _header_bytes(file: BinaryIO, *, path: Path) -> bytes:
    """All bytes up to and including the frame time."""
    raw = bytearray()
    while block := file.read(_BLOCK):
        searched = max(len(raw) - _LOOK_BACK, 0)
        raw += block
        found = _END_OF_HEADER.search(raw, searched)
        if found:
            return bytes(raw[: found.end()])
        if len(raw) > _MOST_HEADER_BYTES:
            break
    _Parser(_decode(bytes(raw).removeprefix(_BYTE_ORDER_MARK)), path=path).hierarchy()
    raise ParseError(
        "no 'Frame Time:' followed by a number and rows", path=path, line=_count_lines(_decode(raw)) + 1
    )


def _decode(raw: bytes | bytearray) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _count_lines(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


class _Parser:
    """Parses the header word by word with a stack of open joints, so that depth is unlimited."""

    def __init__(self, text: str, *, path: Path) -> None:
        self._path = path
        self._words = _words(text)
        self._word, self._line = "", 1
        self._nodes: list[Node] = []
        self._open: list[int] = []
        self._columns = 0
        self._advance()

    def hierarchy(self) -> list[Node]:
        """The nodes between HIERARCHY and MOTION."""
        if self._word.lower() != "hierarchy":
            self._fail(f"a BVH file starts with HIERARCHY; got {self._word[:40]!r}")
        self._advance()
        while self._word.lower() != "motion":
            self._statement()
        if self._open:
            node = self._nodes[self._open[-1]]
            self._fail(
                f"the brace of joint {node.name!r}, opened at line {node.line}, is not closed before MOTION"
            )
        if not self._nodes:
            self._fail("no ROOT joint before MOTION")
        return self._nodes

    def timing(self) -> tuple[int, float]:
        """The number of frames and the seconds between them, from the lines below MOTION."""
        words = list(self._words)
        rest = " ".join(word for word, _ in words)
        found = _TIMING.fullmatch(rest)
        if not found:
            self._fail(
                f"MOTION is followed by 'Frames: <count>' and 'Frame Time: <seconds>'; got {rest[:60]!r}"
            )
        line = words[-1][1]
        frame_time = finite_number(found[2], path=self._path, line=line)
        if not _SHORTEST_FRAME <= frame_time <= _LONGEST_FRAME:
            self._fail(f"the frame time must be positive and in seconds; got {found[2]}", line=line)
        return int(found[1]), frame_time

    def _statement(self) -> None:
        keyword = self._word.lower()
        if keyword == "}":
            self._close()
        elif keyword in ("root", "joint", "end", "endsite"):
            self._node(keyword)
        elif keyword == "offset" and self._open:
            self._offset(self._nodes[self._open[-1]])
        elif keyword == "channels" and self._open:
            self._channels(self._nodes[self._open[-1]])
        elif keyword == "":
            self._fail("the file ends within the hierarchy; expected MOTION")
        else:
            self._fail(
                f"expected JOINT, End Site, OFFSET, CHANNELS, a closing brace or MOTION; got {self._word[:40]!r}"
            )

    def _node(self, keyword: str) -> None:
        line, is_root, is_end_site = self._line, keyword == "root", keyword.startswith("end")
        name = self._rest_of_line()
        if is_root and self._nodes:
            self._fail(f"a second ROOT {name!r}; one skeleton per file can be read", line=line)
        if not is_root and not self._open:
            self._fail(f"{keyword.upper()} {name!r} is outside the braces of ROOT", line=line)
        if not name and not is_end_site:
            self._fail(f"{keyword.upper()} needs a name", line=line)
        if self._word != "{":
            self._fail(f"expected an opening brace after {keyword.upper()} {name}; got {self._word[:40]!r}")
        if len(self._nodes) == MOST_JOINTS:
            self._fail(f"more than {MOST_JOINTS} joints")
        parent = self._open[-1] if self._open else -1
        self._open.append(len(self._nodes))
        self._nodes.append(Node("" if is_end_site else name, parent, line, is_end_site))
        self._advance()

    def _close(self) -> None:
        if not self._open:
            self._fail("a closing brace without an opening one")
        node = self._nodes[self._open.pop()]
        if node.offset is None:
            self._fail(f"joint {node.name or 'End Site'!r} (line {node.line}) has no OFFSET")
        self._advance()

    def _offset(self, node: Node) -> None:
        if node.offset is not None:
            self._fail(f"a second OFFSET for joint {node.name!r}")
        self._advance()
        x, y, z = (self._number() for _ in range(3))
        node.offset = (x, y, z)

    def _channels(self, node: Node) -> None:
        if node.channels:
            self._fail(f"a second CHANNELS for joint {node.name!r}")
        self._advance()
        if not re.fullmatch(r"\d{1,9}", self._word, re.ASCII):
            self._fail(f"CHANNELS of joint {node.name!r} is followed by a count; got {self._word[:40]!r}")
        count = int(self._word)
        self._advance()
        for _ in range(count):
            node.channels.append(self._channel(node, count))
        if len(node.order()) > 3:
            self._fail(f"joint {node.name!r} has {len(node.order())} rotation channels; expected at most 3")

    def _channel(self, node: Node, count: int) -> Channel:
        found = _CHANNEL.fullmatch(self._word)
        if not found:
            self._fail(
                f"joint {node.name!r} declares {count} channels; expected a name such as Xposition or Zrotation "
                f"as number {len(node.channels) + 1}, got {self._word[:40]!r}"
            )
        kind, axis = found[2].lower(), found[1].upper()
        if kind != "rotation" and any((kind, axis) == (other.kind, other.axis) for other in node.channels):
            self._fail(f"joint {node.name!r} has two channels {self._word}")
        if len(node.channels) == 9:
            self._fail(f"joint {node.name!r} declares {count} channels; expected at most 9")
        self._columns += 1
        self._advance()
        return Channel(kind, axis, self._columns - 1)

    def _number(self) -> float:
        value = finite_number(self._word, path=self._path, line=self._line)
        self._advance()
        return value

    def _rest_of_line(self) -> str:
        """The words up to the brace or the end of the line; names may contain spaces."""
        line, parts = self._line, []
        self._advance()
        while self._line == line and self._word not in ("", "{", "}"):
            parts.append(self._word)
            self._advance()
            if len(parts) > _MOST_WORDS_IN_A_NAME:
                self._fail(f"a name of more than {_MOST_WORDS_IN_A_NAME} words")
        return " ".join(parts)

    def _advance(self) -> None:
        self._word, self._line = next(self._words, ("", self._line))

    def _fail(self, message: str, *, line: int | None = None) -> NoReturn:
        raise ParseError(message, path=self._path, line=line or self._line)


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Words and braces, each with its line."""
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        for match in _TOKEN.finditer(line):
            yield match[0], number


def _make_names_unique(nodes: list[Node]) -> list[str]:
    """Name end sites after their parent with "_end" and number duplicate names; return notes on the latter."""
    uses: dict[str, int] = {}
    renamed = []
    for node in nodes:
        if not node.is_end_site:
            given, node.name = node.name, _free_name(node.name, uses)
            if node.name != given:
                renamed.append(f"{given!r} at line {node.line} is now {node.name!r}")
    for node in nodes:
        if node.is_end_site:
            node.name = _free_name(f"{nodes[node.parent].name}_end", uses)
    if not renamed:
        return []
    more = f" and {len(renamed) - 5} more" if len(renamed) > 5 else ""
    return [f"duplicate joint names were numbered: {', '.join(renamed[:5])}{more}"]


def _free_name(name: str, uses: dict[str, int]) -> str:
    free = name
    while free in uses:
        uses[name] += 1
        free = f"{name}_{uses[name]}"
    uses[free] = 1
    return free
