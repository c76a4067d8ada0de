"""Ways to damage a file: blindly (bytes, slices), and knowing what it holds (numbers, lines, keywords, GLB chunks)."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Mutator:
    """Damages contents at random, from a generator of its own; `others` are what slices are spliced in from."""

    generator: np.random.Generator
    others: tuple[bytes, ...]

    def __call__(self, content: bytes) -> bytes:
        """The content with one mutation or a few."""
        for _ in range(self._one_of((1, 1, 1, 2, 3, 4))):
            if content:
                content = self._one_of(self._all())(content)
        return content

    def _all(self) -> tuple[Callable[[bytes], bytes], ...]:
        blind = (self.flip, self.delete, self.duplicate, self.splice, self.insert, self.strange_word)
        knowing = (self.strange_number, self.strange_number, self.keyword, self.keyword, self.line, self.json)
        return (*blind, *knowing, self.truncate)

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

    def json(self, content: bytes) -> bytes:
        """The JSON of a GLB file is damaged and its lengths put right, so that readers get past them."""
        if content[:4] != b"glTF" or len(content) < 20:
            return self.strange_number(content)
        length = int.from_bytes(content[12:16], "little")
        change = self._one_of((self.strange_number, self.keyword, self.keyword, self.strange_number))
        text = change(content[20 : 20 + length])
        text += b" " * (-len(text) % 4)
        rest = content[20 + length :]
        head = struct.pack("<4sIIII", b"glTF", 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A)
        return head + text + rest

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
