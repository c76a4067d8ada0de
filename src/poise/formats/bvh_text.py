"""The text of a BVH file: the header (hierarchy, number of frames, frame time), and the rows, block by block."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
from jaxtyping import Float, Int

from poise.errors import ParseError
from poise.formats.text import NumberRows, finite_number, unique_names
from poise.geometry import rotations
from poise.motion.motion import Doubt
from poise.types import Array

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

    def columns(self, kind: str) -> list[int]:
        """The columns of its channels of a kind, in the order written."""
        return [channel.column for channel in self.channels if channel.kind == kind]


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
    joints, ends = ([node for node in nodes if node.is_end_site is end] for end in (False, True))
    given = [node.name for node in joints]
    for node, name in zip(joints, unique_names(given), strict=True):
        node.name = name
    named = unique_names(
        [*(node.name for node in joints), *(f"{nodes[end.parent].name}_end" for end in ends)]
    )
    for node, name in zip(ends, named[len(joints) :], strict=True):
        node.name = name
    changed = [(name, node) for name, node in zip(given, joints, strict=True) if node.name != name]
    renamed = ", ".join(f"{name!r} at line {node.line} is now {node.name!r}" for name, node in changed[:5])
    more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
    stated = _STATED_UNIT.search(text)
    return Header(
        nodes=tuple(nodes),
        columns=sum(len(node.channels) for node in nodes),
        frames=frames,
        frame_time=frame_time,
        first_row_byte=len(raw),
        first_row_line=_count_lines(text) + 1,
        warnings=(f"duplicate joint names were numbered: {renamed}{more}",) if changed else (),
        metres_per_unit=_metres(int(exponent) for exponent in stated.groups()) if stated else None,
    )


def stating_zeros(metres: float) -> str | None:
    """Zeros whose exponents state a unit of length, or None for one without a name.

    `0e-2 0e1 0e0` is 10^-2 x 2.54^1 x 0.45^0 m, an inch.
    """
    for exponents in itertools.product(range(-8, 9), (0, 1), (0, -1)):
        if math.isclose(_metres(exponents), metres, rel_tol=1e-9):
            return " ".join(f"0e{exponent}" for exponent in exponents)
    return None


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
        while (keyword := self._word.lower()) != "motion":
            node = self._nodes[self._open[-1]] if self._open else None
            if keyword == "}":
                if node is None:
                    self._fail("a closing brace without an opening one")
                if node.offset is None:
                    self._fail(f"joint {node.name or 'End Site'!r} (line {node.line}) has no OFFSET")
                self._open.pop()
                self._advance()
            elif keyword in ("root", "joint", "end", "endsite"):
                self._node(keyword)
            elif keyword == "offset" and node is not None:
                if node.offset is not None:
                    self._fail(f"a second OFFSET for joint {node.name!r}")
                self._advance()
                node.offset = (self._number(), self._number(), self._number())
            elif keyword == "channels" and node is not None:
                self._channels(node)
            elif keyword == "":
                self._fail("the file ends within the hierarchy; expected MOTION")
            else:
                self._fail(
                    f"expected JOINT, End Site, OFFSET, CHANNELS, a closing brace or MOTION; got {self._word[:40]!r}"
                )
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

    def _node(self, keyword: str) -> None:
        line, is_root, is_end_site = self._line, keyword == "root", keyword.startswith("end")
        parts: list[str] = []
        self._advance()
        while self._line == line and self._word not in ("", "{", "}"):  # names may contain spaces
            parts.append(self._word)
            self._advance()
            if len(parts) > _MOST_WORDS_IN_A_NAME:
                self._fail(f"a name of more than {_MOST_WORDS_IN_A_NAME} words")
        name = " ".join(parts)
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

    def _channels(self, node: Node) -> None:
        if node.channels:
            self._fail(f"a second CHANNELS for joint {node.name!r}")
        self._advance()
        if not re.fullmatch(r"\d{1,9}", self._word, re.ASCII):
            self._fail(f"CHANNELS of joint {node.name!r} is followed by a count; got {self._word[:40]!r}")
        count = int(self._word)
        self._advance()
        for _ in range(count):
            found = _CHANNEL.fullmatch(self._word)
            if not found:
                self._fail(
                    f"joint {node.name!r} declares {count} channels; expected a name such as Xposition or Zrotation "
                    f"as number {len(node.channels) + 1}, got {self._word[:40]!r}"
                )
            kind, axis = found[2].lower(), found[1].upper()
            if kind != "rotation" and any(
                (kind, axis) == (other.kind, other.axis) for other in node.channels
            ):
                self._fail(f"joint {node.name!r} has two channels {self._word}")
            if len(node.channels) == 9:
                self._fail(f"joint {node.name!r} declares {count} channels; expected at most 9")
            node.channels.append(Channel(kind, axis, self._columns))
            self._columns += 1
            self._advance()
        if len(node.order()) > 3:
            self._fail(f"joint {node.name!r} has {len(node.order())} rotation channels; expected at most 3")

    def _number(self) -> float:
        value = finite_number(self._word, path=self._path, line=self._line)
        self._advance()
        return value

    def _advance(self) -> None:
        self._word, self._line = next(self._words, ("", self._line))

    def _fail(self, message: str, *, line: int | None = None) -> NoReturn:
        raise ParseError(message, path=self._path, line=line or self._line)


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Words and braces, each with its line."""
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        for match in _TOKEN.finditer(line):
            yield match[0], number


# --- rows to root positions and quaternions -------------------------------------------------------------------------

_STILL = 1e-3  # of the longest bone: positions that vary by less count as constant
_MOST_BYTES_PER_BYTE = 40  # largest size of a pose relative to its text, in a real recording
_ALWAYS_ALLOWED_BYTES = 1 << 28
_WHOLE_BODY = 10  # joints; fewer may all be still


@dataclass
class BvhFrames:
    """A skeleton and its frames in the file's units, built from the rows."""

    names: tuple[str, ...]
    parents: Int[Array, "joints"]
    offsets: Float[Array, "joints 3"]
    orders: tuple[str, ...]
    root_positions: Float[Array, "frames 3"]
    rotations: Float[Array, "frames joints 4"]
    warnings: list[str] = field(default_factory=list)


def read_frames(file: BufferedReader, header: Header, *, path: Path) -> BvhFrames:
    """Read all frames after the header, with corrections noted."""
    if header.columns == 0:
        raise ParseError("no joint has a channel, so there is no motion", path=path)
    size = path.stat().st_size
    # The declared number, limited by the file's size: a number and its separator take two bytes.
    expected = min(header.frames, (size - header.first_row_byte) // (2 * header.columns) + 1)
    _check_memory(expected, header, path=path, size=size)
    table = _Table(header, room=expected)
    file.seek(header.first_row_byte)
    rows = NumberRows(file, columns=header.columns, line=header.first_row_line, path=path)
    for block in rows:
        _check_memory(rows.rows, header, path=path, size=size)
        table.add(block)
    rows.check_end(declared=header.frames)
    if rows.rows == 0:
        raise ParseError(
            f"no frames: {header.frames} are declared, but the file has none",
            path=path,
            line=header.first_row_line,
        )
    return table.frames()


def _check_memory(frames: int, header: Header, *, path: Path, size: int) -> None:
    """Raise if a small file would need too much memory: many joints without channels, and a row for every number."""
    needed = frames * len(header.nodes) * rotations.IDENTITY.nbytes
    if needed > _ALWAYS_ALLOWED_BYTES + _MOST_BYTES_PER_BYTE * size:
        raise ParseError(
            f"{frames} frames of {len(header.nodes)} joints would take {needed / 1e9:.1f} GB, "
            f"far more than a recording of {size / 1e6:.1f} MB can hold",
            path=path,
        )


class _Table:
    """Rotations, positions of the possible root joints, and the range of all other positions."""

    def __init__(self, header: Header, *, room: int) -> None:
        self._nodes = nodes = header.nodes
        self._count = 0
        self._offsets = np.array([node.offset for node in nodes])
        self._low, self._high = self._offsets.copy(), self._offsets.copy()
        self._total = np.zeros_like(self._offsets)
        # The root and, while each is an only child with position channels, the joints below it: 0, 1, 2, ...
        children = np.bincount([node.parent for node in nodes[1:]], minlength=len(nodes))
        self._chain = 1
        while children[self._chain - 1] == 1 and nodes[self._chain].columns("position"):
            self._chain += 1
        joints: dict[str, list[int]] = {}
        for joint, node in enumerate(nodes):
            joints.setdefault(node.order(), []).append(joint)
        self._groups = {  # per rotation order, the joints that have it and their columns
            order: (
                np.array(found),
                np.array([nodes[joint].columns("rotation") for joint in found], dtype=np.int64),
            )
            for order, found in joints.items()
        }
        positions = [
            (joint, "XYZ".index(channel.axis), channel.column)
            for joint, node in enumerate(nodes)
            for channel in node.channels
            if channel.kind == "position"
        ]
        self._placed, self._axes, self._columns = np.array(positions, dtype=np.int64).reshape(-1, 3).T
        self._tracks = np.empty((room, self._chain, 3))
        self._rotations = np.empty((room, len(nodes), 4))
        self._widest = 0.0

    def add(self, rows: Float[Array, "rows columns"]) -> None:
        """Convert and store a block of rows; grow in place, if the system can, if there are more than declared."""
        start, self._count = self._count, self._count + len(rows)
        if self._count > len(self._rotations):
            room = max(self._count, len(self._rotations) * 3 // 2)
            self._tracks.resize((room, *self._tracks.shape[1:]), refcheck=False)
            self._rotations.resize((room, *self._rotations.shape[1:]), refcheck=False)
        for order, (joints, columns) in self._groups.items():
            if order:
                self._widest = max(self._widest, float(np.abs(rows[:, columns]).max(initial=0.0)))
            self._rotations[start : self._count, joints] = (
                rotations.quaternion_from_euler(np.radians(rows[:, columns]), order)
                if order
                else rotations.IDENTITY
            )
        positions, where = rows[:, self._columns], (self._placed, self._axes)
        if start == 0:  # the first block: position channels replace the offset
            self._low[where] = self._high[where] = positions[0]
        self._low[where] = np.minimum(self._low[where], positions.min(axis=0))
        self._high[where] = np.maximum(self._high[where], positions.max(axis=0))
        self._total[where] += positions.sum(axis=0)
        tracks = self._tracks[start : self._count]
        tracks[:] = self._offsets[: self._chain]
        followed = self._placed < self._chain
        tracks[:, self._placed[followed], self._axes[followed]] = positions[:, followed]

    def frames(self) -> BvhFrames:
        """All frames so far, with static roots merged and position channels converted to offsets."""
        tracks, turns = self._tracks[: self._count], self._rotations[: self._count]
        scaled = [node.name for node in self._nodes if node.columns("scale")]
        warnings = [f"scale channels are not used (joints: {', '.join(scaled[:5])})"] if scaled else []
        if len(self._nodes) >= _WHOLE_BODY and 1.0 < self._widest <= 2 * np.pi:
            warnings.append(Doubt(f"all angles are within {self._widest:.3g} degrees; are they radians?"))
        first = 0
        while first + 1 < self._chain:
            # The root is replaced by its only child if the child moves within it, or if it stays at the origin.
            stays = max(np.abs(self._low[first]).max(), np.abs(self._high[first]).max()) <= self._tolerance
            if not (self._varies(first + 1) or stays):
                break
            tracks[:, first + 1] = tracks[:, first] + rotations.rotate(turns[:, first], tracks[:, first + 1])
            turns[:, first + 1] = rotations.canonical(
                rotations.multiply(turns[:, first], turns[:, first + 1])
            )
            name, child = self._nodes[first].name, self._nodes[first + 1].name
            warnings.append(f"the root {name!r} above {child!r} was merged into it")
            first += 1
            self._offsets[first] = 0.0  # the position channels give its position
        warnings += self._settle_offsets(first)
        return BvhFrames(
            names=tuple(node.name for node in self._nodes[first:]),
            parents=np.array([-1, *(node.parent - first for node in self._nodes[first + 1 :])]),
            offsets=self._offsets[first:],
            orders=tuple(node.order() for node in self._nodes[first:]),
            root_positions=np.ascontiguousarray(tracks[:, first]),
            rotations=np.ascontiguousarray(turns[:, first:]),
            warnings=warnings,
        )

    def _varies(self, joint: int) -> bool:
        return bool(np.any(self._high[joint] - self._low[joint] > self._tolerance))

    @cached_property
    def _tolerance(self) -> float:
        bones = np.linalg.norm((self._low + self._high)[self._chain :] / 2, axis=-1)
        return _STILL * float(bones.max(initial=0.0))

    def _settle_offsets(self, root: int) -> list[str]:
        """Convert position channels below the root to offsets: their mean, if it differs from the offset."""
        moving, means = [], self._offsets.copy()
        means[self._placed, self._axes] = self._total[self._placed, self._axes] / self._count
        for joint in sorted(set(self._placed[self._placed > root].tolist())):
            if self._varies(joint):
                moving.append(joint)
            if np.any(np.abs(means[joint] - self._offsets[joint]) > self._tolerance):
                self._offsets[joint] = means[joint]
        if not moving:
            return []
        more = ", ..." if len(moving) > 5 else ""
        names = ", ".join(self._nodes[joint].name for joint in moving[:5]) + more
        furthest = float((self._high - self._low)[moving].max())
        return [
            f"joints that move relative to their parents (by up to {furthest:.4g} units of the file) "
            f"are held at their mean offsets: {names}"
        ]
