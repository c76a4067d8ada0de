"""Check the layout of a C3D file before it is passed to ezc3d, which is compiled and does not check its input.

After "The C3D File Format User Guide" (Motion Lab Systems, 2008): blocks of 512 bytes; a header block, a parameter
section of groups and parameters chained by offsets, and the data, whose size the header and the parameters state.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path

from poise.errors import ParseError

_BLOCK = 512
_MAGIC = 0x50
_BYTE_ORDERS = {84: "<", 85: "<", 86: ">"}  # Intel, DEC and MIPS
_SIGN_BYTES = {84: 15, 85: 13, 86: 12}  # position in the header of the scale factor's sign
_TEXT = -1
_TYPE_SIZES = {-1: 1, 1: 1, 2: 2, 4: 4}
_MOST_EVENTS = 18
_MOST_LISTED = 255
_SIGN_BIT = 0x80
_BYTES_PER_ROTATION = 4 * 17  # a 4x4 matrix and its reliability
# Types that ezc3d assumes without checking: -1 is text, 2 an integer, 4 a number.
_EXPECTED_TYPES = {
    "USED": (2,), "SCALE": (4,), "RATE": (4,), "DATA_START": (2,), "FRAMES": (2, 4), "LABELS": (-1,), "UNITS": (-1,),
    "GEN_SCALE": (4,), "OFFSET": (2, 4), "X_SCREEN": (-1,), "Y_SCREEN": (-1,), "DESCRIPTIONS": (-1,),
    "RATIO": (2,), "ACTUAL_START_FIELD": (2,), "ACTUAL_END_FIELD": (2,),
}  # fmt: skip
_TRUSTED_GROUPS = ("POINT", "ANALOG", "ROTATION", "TRIAL")
# Parameters whose first value ezc3d takes without checking that there is one.
_NEVER_EMPTY = ("USED", "DATA_START", "FRAMES", "RATIO", "ACTUAL_START_FIELD", "ACTUAL_END_FIELD")
_NEEDED = ("USED", "SCALE", "RATE", "DATA_START", "FRAMES", "LABELS")


class OddLayoutError(ParseError):
    """A layout that may crash ezc3d although the points may be valid: not to be read in this process."""


@dataclass(frozen=True)
class _Parameter:
    """One parameter: the number of its group, its type code, its dimensions and its bytes."""

    group: int
    name: str
    type: int
    dimensions: tuple[int, ...]
    content: bytes


@dataclass(frozen=True)
class _Header:
    """The counts of the header block."""

    points: int
    analog_values: int
    first_frame: int
    last_frame: int
    holds_floats: bool
    data_block: int
    samples_per_frame: int


def check_layout(path: Path) -> None:
    """Raise a ParseError unless the file has the layout of a C3D file and everything it declares."""
    content, fail = path.read_bytes(), partial(ParseError, path=path)
    if len(content) < 2 or content[1] != _MAGIC:
        raise fail("not a C3D file: the second byte is not 0x50")
    start = (content[0] - 1) * _BLOCK
    if content[0] < 2 or len(content) < start + 4:
        raise fail(f"the parameters are declared in block {content[0]}, outside the file")
    blocks, processor = content[start + 2], content[start + 3]
    if processor not in _BYTE_ORDERS:
        raise fail(f"unknown processor {processor}; a C3D file has 84, 85 or 86")
    end = start + blocks * _BLOCK
    if blocks == 0 or end > len(content):
        raise fail(f"the {blocks} blocks of parameters do not fit into the file")
    order = _BYTE_ORDERS[processor]
    points, analogs, first, last, _ = struct.unpack(f"{order}5H", content[2:12])
    data_block, samples = struct.unpack(f"{order}2H", content[16:20])
    events = struct.unpack(f"{order}H", content[300:302])[0]
    if points == 0 or last < first or data_block < 2:
        raise fail(f"{points} points in frames {first} to {last}: no motion")
    if not any(content[12:16]):
        raise fail("the scale factor must not be zero")
    if events > _MOST_EVENTS:
        raise fail(f"the header states {events} events; at most {_MOST_EVENTS} fit")
    holds_floats = content[_SIGN_BYTES[processor]] >= _SIGN_BIT
    header = _Header(points, analogs, first, last, holds_floats, data_block, samples)
    stated = _parameters(content[start + 4 : end], order, path=path)
    for name in _NEEDED:
        if ("POINT", name) not in stated:
            raise OddLayoutError(f"there is no POINT:{name}; a C3D file must have one", path=path)
    _check_counts(header, stated, order, size=len(content), path=path)


def _parameters(section: bytes, order: str, *, path: Path) -> dict[tuple[str, str], _Parameter]:
    """The parameters by the names of their group and their own, checked."""
    groups: dict[int, str] = {}
    parameters: list[_Parameter] = []
    for number, name, body in _chain(section, order, path=path):
        if number < 0:
            if -number in groups or name in groups.values():
                raise OddLayoutError(f"the group {name} is defined twice", path=path)
            groups[-number] = name
            _check_description(name, body, path=path)
        else:
            parameters.append(_parameter(number, name, body, path=path))
    stated: dict[tuple[str, str], _Parameter] = {}
    for item in parameters:
        key = groups.get(item.group, ""), item.name
        if item.group not in groups or key in stated:
            trouble = "is there twice" if item.group in groups else "has no group"
            raise OddLayoutError(f"the parameter {item.name} {trouble}", path=path)
        stated[key] = item
        if groups[item.group] in _TRUSTED_GROUPS:
            expected = _EXPECTED_TYPES.get(item.name)
            if expected and item.type not in expected:
                raise ParseError(
                    f"the parameter {item.name} has type {item.type}; expected {expected}", path=path
                )
            if item.name in _NEVER_EMPTY and not item.content:
                raise OddLayoutError(f"the parameter {item.name} has no value", path=path)
    return stated


def _chain(section: bytes, order: str, *, path: Path) -> Iterator[tuple[int, str, bytes]]:
    """The group number (negative for a group itself), name and body of each record; the last may lack an offset."""
    place = 0
    while place + 2 <= len(section):
        length, number = struct.unpack("bb", section[place : place + 2])
        if length == 0:
            return
        body = place + 2 + abs(length) + 2
        name = section[place + 2 : body - 2]
        if number == 0 or body > len(section) or not (name.isascii() and name.decode("ascii").isprintable()):
            raise ParseError(f"a damaged parameter record at byte {place} of the section", path=path)
        step = struct.unpack(f"{order}H", section[body - 2 : body])[0]
        place = body - 2 + step if step else len(section)
        if (step and place < body + 1) or place > len(section):
            raise OddLayoutError(
                f"the record {name.decode('ascii')} points outside the parameters", path=path
            )
        yield number, name.decode("ascii"), section[body:place]


def _parameter(group: int, name: str, body: bytes, *, path: Path) -> _Parameter:
    kind, count = struct.unpack("bB", body[:2]) if len(body) >= 2 else (0, 0)
    dimensions = tuple(body[2 : 2 + count])
    start = 2 + count
    size = abs(_TYPE_SIZES.get(kind, 0)) * prod(dimensions)
    if kind not in _TYPE_SIZES or count > 7 or len(dimensions) != count or start + size > len(body):
        raise ParseError(f"the parameter {name} is damaged: its size does not fit its record", path=path)
    if kind == _TEXT and count == 0:
        raise ParseError(f"the parameter {name} is text without a length", path=path)
    _check_description(name, body[start + size :], path=path)
    return _Parameter(group, name, kind, dimensions, body[start : start + size])


def _check_description(name: str, rest: bytes, *, path: Path) -> None:
    """Check the end of a record: the length of its description and the description, padded with zeros at most."""
    if not rest or 1 + rest[0] > len(rest) or any(rest[1 + rest[0] :]):
        raise ParseError(f"the record {name} is damaged: its description does not fit", path=path)


def _check_counts(
    header: _Header, stated: dict[tuple[str, str], _Parameter], order: str, *, size: int, path: Path
) -> None:
    """Check that all declared counts of points, channels, frames and rotations agree with the file's length."""
    used = _first_integer(stated.get(("POINT", "USED")), order)
    if used != header.points:
        raise ParseError(f"the header has {header.points} points but POINT:USED is {used}", path=path)
    channels = _first_integer(stated.get(("ANALOG", "USED")), order)
    if channels * header.samples_per_frame != header.analog_values:
        raise OddLayoutError(
            f"{channels} analog channels of {header.samples_per_frame} samples are not the header's "
            f"{header.analog_values} values a frame",
            path=path,
        )
    for name, needed in (("GEN_SCALE", 1), ("SCALE", channels), ("OFFSET", channels)):
        item = stated.get(("ANALOG", name))
        listed = len(item.content) // _TYPE_SIZES[item.type] if item else 0
        if channels and listed < min(needed, _MOST_LISTED):
            raise OddLayoutError(f"ANALOG:{name} lists {listed} values for {channels} channels", path=path)
    # Two bytes hold up to 65,535 frames, so longer recordings declare theirs only in TRIAL.
    counts = [header.last_frame - header.first_frame + 1]
    start, end = stated.get(("TRIAL", "ACTUAL_START_FIELD")), stated.get(("TRIAL", "ACTUAL_END_FIELD"))
    if start and end and len(start.content) >= 4 and len(end.content) >= 4:
        words = (struct.unpack(f"{order}2H", item.content[:4]) for item in (start, end))
        first, last = (low + 0x10000 * high for low, high in words)
        counts.append(last - first + 1)
    if stated["POINT", "FRAMES"].type == 2:
        counts.append(_first_integer(stated["POINT", "FRAMES"], order))
    each = (4 if header.holds_floats else 2) * (4 * header.points + header.analog_values)
    held, frames = max(0, size - (header.data_block - 1) * _BLOCK) // each, max(counts)
    if frames > held:
        raise ParseError(f"truncated: {frames} frames are declared and {held} are present", path=path)
    used, ratio, block = (
        _first_integer(stated.get(("ROTATION", name)), order) for name in ("USED", "RATIO", "DATA_START")
    )
    if used and (ratio == 0 or block < 2):
        raise ParseError("the rotations have no ratio or no data position", path=path)
    needed = frames * max(used, 1) * ratio * _BYTES_PER_ROTATION
    if ratio and (block - 1) * _BLOCK + needed > size + _BLOCK:
        raise ParseError(f"truncated: {used} rotations per frame are declared but missing", path=path)


def _first_integer(parameter: _Parameter | None, order: str) -> int:
    content = parameter.content[:2] if parameter else b""
    return int(struct.unpack(f"{order}H", content)[0]) if len(content) == 2 else 0
