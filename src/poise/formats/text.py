"""Text of motion files: encodings, numbers with the position of errors, and unique names."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from poise.bounds import LARGEST_NUMBER
from poise.errors import ParseError


def text_lines(path: Path) -> list[str]:
    """The lines of a text file in UTF-8 (with or without a byte-order mark), UTF-16 or, as a fallback, Latin-1."""
    content = path.read_bytes()
    return _decoded(content).replace("\r\n", "\n").replace("\r", "\n").split("\n")


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


def _decoded(content: bytes) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def is_number_word(word: str) -> bool:
    """Whether a word is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True
