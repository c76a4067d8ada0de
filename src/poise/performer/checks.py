"""Checks of the caller's values, with messages that state the value and the valid range."""

import numpy as np

from poise.errors import InvalidValueError, UnknownNameError


def within(what: str, value: float, limits: tuple[float, float], unit: str) -> float:
    """Return the value as a float if it is within the limits; raise otherwise."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise InvalidValueError(f"{what} must be a number; got {value!r}")
    low, high = limits
    if not low <= value <= high:
        raise InvalidValueError(f"{what} must be {low:g} to {high:g} {unit}; got {value:g}")
    return float(value)


def one_of(what: str, value: str, valid: tuple[str, ...]) -> str:
    """Return the value if it is valid; raise otherwise."""
    if value not in valid:
        raise UnknownNameError(what, str(value), valid)
    return value
