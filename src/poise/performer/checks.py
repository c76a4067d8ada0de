"""Checks of what the caller asks for, with messages that say what was got and what is possible."""

import numpy as np

from poise.errors import InvalidValueError, UnknownNameError


def within(what: str, value: float, limits: tuple[float, float], unit: str) -> float:
    """The value as a float, if it lies within the limits."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise InvalidValueError(f"{what} is a number; got {value!r}")
    low, high = limits
    if not low <= value <= high:
        raise InvalidValueError(f"{what} is {low:g} to {high:g} {unit}; got {value:g}")
    return float(value)


def one_of(what: str, value: str, valid: tuple[str, ...]) -> str:
    """The value, if it is one of the valid ones."""
    if value not in valid:
        raise UnknownNameError(what, str(value), valid)
    return value
