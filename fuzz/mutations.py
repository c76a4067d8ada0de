"""Ways to damage a file: blindly (bytes, slices), and knowing what it holds (numbers, lines, keywords, GLB chunks)."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

NUMBER = re.compile(rb"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
STRANGE_NUMBERS = (
    b"nan", b"-inf", b"1e308", b"-1e308", b"1e400", b"1e-320", b"0", b"-0", b"-1", b"-7.5", b"2147483648", b"65536",
    b"99999999999999999999", b"1e9", b"0x10", b"1,5", b"1_000", b"--1", b"1e", b".", b"", b"\xc2\xb2", b"1e5 1e5",
)  # fmt: skip
STRANGE_WORDS = (0, 1, 0xFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
KEYWORDS = (
    b"HIERARCHY", b"ROOT", b"JOINT", b"End Site", b"OFFSET", b"CHANNELS", b"MOTION", b"Frames:", b"Frame Time:", b"{",
    b"}", b"Xposition", b"Zrotation", b"Yrotation", b":units", b":root", b":bonedata", b":hierarchy", b"begin", b"end",
    b"direction", b"length", b"axis", b"dof", b"limits", b"order", b"XYZ", b"rx", b"TX", b"deg", b":DEGREES",
    b":FULLY-SPECIFIED", b":SAMPLES-PER-SECOND", b"root", b"PathFileType", b"DataRate", b"Units", b"NumFrames", b"mm",
    b"Frame#", b"X1", b"\t", b"\n", b'"nodes"', b'"accessors"', b'"bufferView"', b'"bufferViews"', b'"count"',
    b'"children"',
    b'"byteOffset"', b'"componentType"', b'"sampler"', b'"skins"', b'"joints"', b'"path"', b'"rotation"', b"null", b"[",
    b"]", b'"type"', b'"VEC4"', b'"SCALAR"',
)  # fmt: skip


STRANGE_VALUES = (
    None, True, -1, 0, 1, 7, 5126, 2**31, 2**63, 10**30, 1e308, -0.5, "", "SCALAR", "VEC3", "../x", [], [0], [0, 0],
    {}, [[]], {"node": 0}, [1e308] * 3, [0, 0, 0, 0], [None],
)  # fmt: skip
DEPTHS = (2, 40, 990, 5000)  # of lists inside each other
GLB_MAGIC, GLB_HEAD = b"glTF", 20

Mutation = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Mutator:
    """Damages contents at random, from a generator of its own; `others` are what slices are spliced in from."""

    generator: np.random.Generator
    others: tuple[bytes, ...]

    def __call__(self, content: bytes) -> bytes:
        """The content with one mutation or a few."""
        for _ in range(self._one_of((1, 1, 1, 2, 3, 4))):
            if content:
                is_glb = content.startswith(GLB_MAGIC) and len(content) >= GLB_HEAD
                content = self._one_of(self._for_glb() if is_glb else self._for_any())(content)
        return content

    def _for_any(self) -> tuple[Mutation, ...]:
        blind = (self.flip, self.delete, self.duplicate, self.splice, self.insert, self.truncate)
        return (
            *blind,
            self.strange_word,
            self.strange_number,
            self.strange_number,
            self.keyword,
            self.keyword,
            self.line,
        )

    def _for_glb(self) -> tuple[Mutation, ...]:
        blind = (self.flip, self.delete, self.splice, self.strange_word, self.truncate)
        repaired = tuple(partial(self._with_lengths_put_right, change) for change in blind)
        return (*blind, *repaired, self.json_text, *(self.json_value,) * 6)

    def flip(self, content: bytes) -> bytes:
        """Some bytes become others."""
        changed = np.frombuffer(content, dtype=np.uint8).copy()
        places = self.generator.integers(0, len(changed), size=self.generator.integers(1, 9))
        changed[places] = self.generator.integers(0, 256, size=len(places))
        return changed.tobytes()

    def delete(self, content: bytes) -> bytes:
        """A slice goes."""
        start, end = self._slice(content)
        return content[:start] + content[end:]

    def duplicate(self, content: bytes) -> bytes:
        """A slice is there several times."""
        start, end = self._slice(content)
        return content[:end] + content[start:end] * int(self.generator.integers(1, 4)) + content[end:]

    def splice(self, content: bytes) -> bytes:
        """A slice of another file replaces one of this."""
        other = self._one_of(self.others)
        start, end = self._slice(content)
        from_start, from_end = self._slice(other)
        return content[:start] + other[from_start:from_end] + content[end:]

    def insert(self, content: bytes) -> bytes:
        """Some random bytes come in."""
        place = self._place(content)
        return content[:place] + self.generator.bytes(int(self.generator.integers(1, 17))) + content[place:]

    def truncate(self, content: bytes) -> bytes:
        """The end goes."""
        return content[: self._place(content)]

    def strange_word(self, content: bytes) -> bytes:
        """Four bytes become an integer at the edge of its range."""
        place = self._place(content) // 4 * 4
        return content[:place] + struct.pack("<I", self._one_of(STRANGE_WORDS)) + content[place + 4 :]

    def strange_number(self, content: bytes) -> bytes:
        """A number becomes a strange one."""
        return self._replace_match(NUMBER.finditer(content), self._one_of(STRANGE_NUMBERS), content)

    def keyword(self, content: bytes) -> bytes:
        """A keyword goes, is doubled, becomes another or changes case."""
        word = self._one_of(KEYWORDS)
        changes = (b"", word + b" " + word, self._one_of(KEYWORDS), word.lower(), word.upper(), word + b"x")
        return self._replace_match(re.finditer(re.escape(word), content), self._one_of(changes), content)

    def line(self, content: bytes) -> bytes:
        """A line goes, is doubled or trades places with another."""
        lines = content.split(b"\n")
        first, second = self.generator.integers(0, len(lines), size=2)
        change = self.generator.integers(0, 3)
        if change == 0:
            del lines[first]
        elif change == 1:
            lines.insert(first, lines[second])
        else:
            lines[first], lines[second] = lines[second], lines[first]
        return b"\n".join(lines)

    def json_text(self, content: bytes) -> bytes:
        """The JSON of a GLB file is damaged as text."""
        text, rest = glb_parts(content)
        return glb(self._one_of((self.strange_number, self.keyword))(text), rest)

    def json_value(self, content: bytes) -> bytes:
        """One value in the JSON of a GLB file goes, or becomes another of any type; what it is next to stays sound."""
        text, rest = glb_parts(content)
        try:
            document = json.loads(text)
        except ValueError:
            return content
        found = tuple(places(document))
        if found:
            holder, key = self._one_of(found)
            self._change_value(holder, key)
        return glb(json.dumps(document).encode(), rest)

    def _change_value(self, holder: Any, key: Any) -> None:
        change = self.generator.integers(0, 4)
        if change == 0:
            del holder[key]
        elif change == 1 and isinstance(holder[key], list):
            holder[key] = holder[key] * 2
        elif change == 2 and isinstance(holder[key], int):
            holder[key] += self._one_of((-1, 1, 3, 1000))
        else:
            holder[key] = self._one_of(STRANGE_VALUES)

    def _with_lengths_put_right(self, change: Mutation, content: bytes) -> bytes:
        """The change, with a GLB file's lengths as they then should be, so that readers get past them."""
        changed = change(content)
        return glb(*glb_parts(changed)) if len(changed) >= GLB_HEAD else changed

    def _replace_match(self, matches: Iterable[re.Match[bytes]], replacement: bytes, content: bytes) -> bytes:
        found = tuple(matches)
        if not found:
            return content
        match = self._one_of(found)
        return bytes(content[: match.start()] + replacement + content[match.end() :])

    def _place(self, content: bytes) -> int:
        return int(self.generator.integers(0, len(content)))

    def _slice(self, content: bytes) -> tuple[int, int]:
        start = self._place(content)
        longest = self._one_of((4, 64, max(1, len(content) // 4)))
        return start, start + int(self.generator.integers(1, longest + 1))

    def _one_of(self, choices: tuple[Any, ...]) -> Any:
        return choices[int(self.generator.integers(0, len(choices)))]


def glb_parts(content: bytes) -> tuple[bytes, bytes]:
    """The JSON of a GLB file and what follows its chunk's eight bytes of header, if anything does."""
    length = int.from_bytes(content[12:16], "little")
    return content[GLB_HEAD : GLB_HEAD + length], content[GLB_HEAD + length + 8 :]


def glb(text: bytes, binary: bytes) -> bytes:
    """A GLB file of these two chunks."""
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text
    if binary:
        chunks += struct.pack("<I4s", len(binary), b"BIN\0") + binary
    return struct.pack("<4sII", GLB_MAGIC, 2, 12 + len(chunks)) + chunks


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value: what holds it, and the key or number there."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def changed_json(text: str, generator: np.random.Generator, *, words: tuple[str, ...] = ()) -> str:
    """A value of some JSON becomes another, or one of these words; goes; or is buried in lists."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text
    found = list(places(values))
    if not found:
        return text
    holder, key = found[int(generator.integers(len(found)))]
    change = generator.integers(5)
    if change == 0:
        del holder[key]
    elif change == 1:
        depth, holder[key] = int(generator.choice(DEPTHS)), "BURIED"
        return json.dumps(values).replace('"BURIED"', "[" * depth + "]" * depth, 1)
    elif change == 2:
        holder[key] = "x" * int(generator.choice([10, 2000, 10**6]))
    else:
        strange = (*STRANGE_VALUES, float("nan"), 10**400, *words)
        holder[key] = strange[int(generator.integers(len(strange)))]
    return json.dumps(values)
