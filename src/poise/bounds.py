"""What numbers from outside keep to, wherever they come in: files, scripts, scenes, datagrams, constraints."""

from __future__ import annotations

from poise.errors import InvalidValueError

FARTHEST = (
    1e4  # metres: no coordinate of a body or of what it reaches for is further than this from the origin
)
SLOWEST, FASTEST = 1.0, 1e4  # frames a second


def checked_rate(fps: float) -> float:
    """The frame rate, if it is one that something is recorded or shown at."""
    if not SLOWEST <= fps <= FASTEST:  # NaN is not, either
        raise InvalidValueError(
            f"a frame rate must be positive, between {SLOWEST:g} and {FASTEST:,.0f} frames a second; got {fps}"
        )
    return float(fps)
