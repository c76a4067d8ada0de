"""Limits on numbers from outside the program: files, scripts, scenes, datagrams, constraints."""

from __future__ import annotations

from numbers import Real
from typing import Any

from poise.errors import InvalidValueError

LARGEST_NUMBER = 1e12  # in a file: far above any length, angle or rate of a moving body in any unit
FARTHEST = 1e4  # metres: largest distance from the origin of any coordinate of a body or its targets
LARGEST = 1e300  # largest magnitude of any number
LONGEST_TEXT = 8_000_000  # characters: largest settings file or header
DEEPEST = 32  # nesting levels of tables and lists
CLOSEST = 1e-6  # seconds: smallest interval between two keys of a path
SLOWEST, FASTEST = 1.0, 1e4  # frames a second


def checked_rate(fps: float) -> float:
    """Return `fps` if it is a valid frame rate; raise otherwise."""
    if not is_number(fps) or not SLOWEST <= fps <= FASTEST:
        raise InvalidValueError(
            f"a frame rate must be positive, between {SLOWEST:g} and {FASTEST:,.0f} frames a second; got {fps!r:.40}"
        )
    return float(fps)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number, and not true or false."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return bool(abs(value if isinstance(value, int) else float(value)) <= LARGEST)


def checked_text(text: str) -> str:
    """Return `text` if it is short enough to parse; raise otherwise."""
    if len(text) > LONGEST_TEXT:
        raise InvalidValueError(f"the text has {len(text):,} characters; expected at most {LONGEST_TEXT:,}")
    return text


def checked_depth(values: Any) -> Any:
    """Return parsed `values` if they are nested at most `DEEPEST` levels deep; raise otherwise."""
    level = [values]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return values
    raise InvalidValueError(f"tables and lists are nested deeper than {DEEPEST} levels")
