"""Text of motion files: encodings, unique names, numbers with the position of errors, and rows of numbers.

Rows are read block by block by the compiled scanner. A row may be wrapped over lines, but it ends at the end of a line;
only a file whose numbers ignore line ends throughout, and add up to exactly the declared rows, may do otherwise.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import NoReturn

import numpy as np
from jaxtyping import Float

from poise.bounds import LARGEST_NUMBER
from poise.errors import ParseError
from poise.types import Array

_BLOCK = 1 << 20
_HARD_AT_ONCE = 4096
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def text_lines(path: Path) -> list[str]:
    """The lines of a text file in UTF-8 (with or without a byte-order mark), UTF-16 or, as a fallback, Latin-1."""
    content = path.read_bytes()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = content.decode("utf-16", errors="replace")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def numbers(words: Sequence[str], *, path: Path, line: int, what: str) -> list[float]:
    """The words as numbers, including NaN and infinity; raise an error with the position of any other word."""
    try:
        return [float(word) for word in words]
    except ValueError:
        bad = next(word for word in words if not is_number_word(word))
        raise ParseError(f"{what} must be numbers; got {bad[:40]!r}", path=path, line=line) from None


def finite_numbers(words: Sequence[str], *, path: Path, line: int, what: str) -> list[float]:
    """The words as finite, plausible numbers; raise an error with the position otherwise."""
    found = numbers(words, path=path, line=line, what=what)
    if not all(abs(number) <= LARGEST_NUMBER for number in found):
        raise ParseError(
            f"{what} must be finite and not absurdly large; got {' '.join(words)[:80]}", path=path, line=line
        )
    return found


def unused_name(name: str, taken: Collection[str]) -> str:
    """The name, or the first of name_2, name_3, ... that is not taken."""
    candidates = itertools.chain([name], (f"{name}_{count}" for count in itertools.count(2)))
    return next(candidate for candidate in candidates if candidate not in taken)


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names in order, with numbers appended to duplicates."""
    found: dict[str, None] = {}
    again: Counter[str] = Counter()
    for name in names:
        unique = name
        while unique in found:
            again[name] += 1
            unique = f"{name}_{again[name] + 1}"
        found[unique] = None
    return tuple(found)


def is_number_word(word: str) -> bool:
    """Whether a word is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def finite_number(token: str | bytes, *, path: Path, line: int) -> float:
    """The number that a token spells; anything else, including NaN and infinity, raises an error with its position."""
    raw = token.encode("latin-1", "replace") if isinstance(token, str) else token
    shown = raw[:40].decode("latin-1")
    if not _NUMBER.fullmatch(raw):
        raise ParseError(f"expected a number; got {shown!r}", path=path, line=line)
    value = float(raw)
    if not math.isfinite(value) or abs(value) > LARGEST_NUMBER:
        raise ParseError(f"the number {shown} is out of range", path=path, line=line)
    return value


class NumberRows:
    """Iterates over blocks of whole rows; each block is valid until the next one is requested."""

    def __init__(self, file: BufferedReader, *, columns: int, line: int, path: Path) -> None:
        from poise.formats import number_kernel

        self._kernel = number_kernel
        self._file, self._columns, self._path = file, columns, path
        self._state = np.zeros(number_kernel.STATE_SIZE, dtype=np.int64)
        self._state[number_kernel.LINE] = line
        self._buffer = np.empty(_BLOCK, dtype=np.uint8)
        self._values = np.empty(_BLOCK // 2 + 1 + columns)
        self._hard = np.empty((_HARD_AT_ONCE, 4), dtype=np.int64)
        self.rows = 0

    def __iter__(self) -> Iterator[Float[Array, "rows columns"]]:
        kernel, state, kept, at_end = self._kernel, self._state, 0, False
        while not at_end:
            read = self._file.readinto(self._buffer[kept:].data)
            at_end = read == 0
            filled = kept + read
            stop = filled
            if not at_end:  # the end of the last complete token, just after its last white space
                for first in (max(filled - 4096, 0), 0):
                    white = np.flatnonzero(self._buffer[first:filled] <= 32)
                    stop = first + int(white[-1]) + 1 if len(white) else 0
                    if stop:
                        break
                if stop == 0 and filled == _BLOCK:
                    line, long = int(state[kernel.LINE]), "a word of a million letters"
                    raise ParseError(f"expected numbers; got {long}", path=self._path, line=line)
            position = 0
            while position < stop:
                position = kernel.scan(
                    self._buffer, position, stop, self._columns, self._values, self._hard, state
                )
                for start, end, place, line in self._hard[: state[kernel.HARD]].tolist():
                    token = self._buffer[start:end].tobytes()
                    self._values[place] = finite_number(token, path=self._path, line=line)
                state[kernel.HARD] = 0
            kept = filled - stop
            self._buffer[:kept] = self._buffer[stop:filled]
            if state[kernel.BROKEN_LINE] and state[kernel.FULL_LINES]:
                self._fail_at(int(state[kernel.BROKEN_LINE]))
            count = int(state[kernel.COUNT])
            used = count - count % self._columns
            if used:
                rows = self._values[:used].reshape(-1, self._columns)
                self.rows += len(rows)
                yield rows
                self._values[: count - used] = self._values[used:count]
                state[kernel.COUNT] = count - used

    def check_end(self, *, declared: int) -> None:
        """Raise if the rows do not match the lines or the last one is incomplete."""
        kernel, state = self._kernel, self._state
        if state[kernel.BROKEN_LINE] and (
            state[kernel.FULL_LINES] or state[kernel.FILL] or self.rows != declared
        ):
            self._fail_at(int(state[kernel.BROKEN_LINE]))
        if state[kernel.FILL]:
            raise ParseError(
                f"the file ends within a row: {state[kernel.FILL]} numbers of {self._columns}",
                path=self._path,
                line=int(state[kernel.ROW_LINE]),
            )

    def _fail_at(self, line: int) -> NoReturn:
        with self._path.open("rb") as file:
            lines = (text for chunk in file for text in re.split(rb"\r(?!\n)", chunk))
            text = next((text for number, text in enumerate(lines, start=1) if number == line), b"")
        raise ParseError(
            f"a row must have {self._columns} numbers; this line has {len(text.split())}",
            path=self._path,
            line=line,
        )


def warm_up() -> None:
    """Compile the scanner, or load it from the cache."""
    for _ in NumberRows(BufferedReader(BytesIO(b"1\n")), columns=1, line=1, path=Path("warm-up")):
        pass
