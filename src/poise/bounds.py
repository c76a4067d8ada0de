"""What numbers from outside keep to, wherever they come in: files, scripts, scenes, datagrams, constraints."""

from __future__ import annotations

from typing import Any

from poise.errors import InvalidValueError

FARTHEST = (
    1e4  # metres: no coordinate of a body or of what it reaches for is further than this from the origin
)
LARGEST = 1e300  # of any number
LONGEST_TEXT = 8_000_000  # characters of a file of settings, or of a header
DEEPEST = 32  # tables and lists inside each other
CLOSEST = 1e-6  # seconds from one key of a path to the next
SLOWEST, FASTEST = 1.0, 1e4  # frames a second


def checked_rate(fps: float) -> float:
    """The frame rate, if it is one that something is recorded or shown at."""
    if not SLOWEST <= fps <= FASTEST:  # NaN is not, either
        raise InvalidValueError(
            f"a frame rate must be positive, between {SLOWEST:g} and {FASTEST:,.0f} frames a second; got {fps}"
        )
    return float(fps)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number, and not true or false."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def checked_text(text: str) -> str:
    """Text that is to be parsed, if it is of a length that people and programs write."""
    if len(text) > LONGEST_TEXT:
        raise InvalidValueError(f"{len(text):,} characters; expected {LONGEST_TEXT:,} at most")
    return text


def checked_depth(values: Any) -> Any:
    """Parsed values, if they are not nested deeper than people and programs nest them."""
    level = [values]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _members(outer)]
        if not level:
            return values
    raise InvalidValueError(f"more than {DEEPEST} tables and lists inside each other")


def _members(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
