"""The laboratory that marker files are written in: its unit, which axis is up, and the turn to Poise's world (Y up).

Marker files seldom say which axis is vertical. The usual laboratory has Z up; its axes go round by one, (x, y, z) to
(y, z, x), which is what the CMU database did between its C3D and its AMC files, so both read to the same place here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats.units import Unit, metres_per_unit

Array = np.ndarray
UP_AXES = ("+X", "+Y", "+Z", "-X", "-Y", "-Z")

_HEAD_WORDS = ("HD", "HEAD")
_FOOT_WORDS = ("TOE", "HEE", "ANK", "FOOT", "MT5")
_LEAST_HEIGHT = 0.3  # metres between head and foot markers that tell up from down
_FLOOR = -0.2  # metres: noise and a badly levelled floor put points this far below it
_CLEARLY_LARGER = 1.2  # the ratio between the extents along two axes at which one is the taller


def stated_unit(said: str, *, given: str | float | None, path: Path) -> Unit:
    """The unit of length a file states, unless another is given."""
    if given is not None:
        return Unit(str(given).strip().lower(), metres_per_unit(given), "given")
    try:
        return Unit(said.strip().lower(), metres_per_unit(said), f"the file says {said.strip()}")
    except (UnknownNameError, InvalidValueError) as error:
        raise ParseError(f"{error}; units= overrides it", path=path) from error


def checked_up(up: str) -> str:
    """An up axis as written by a user ("z", "+Z", "-y") in the form used here."""
    word = up.strip().upper()
    word = word if word[:1] in ("+", "-") else f"+{word}"
    if word not in UP_AXES:
        raise UnknownNameError("up axis", up, UP_AXES)
    return word


def world_from_laboratory(
    labels: tuple[str, ...],
    points: Float[Array, "frames markers 3"],
    *,
    given_up: str | None,
    stated_up: str | None = None,
    default_up: str,
) -> tuple[Float[Array, "frames markers 3"], str]:
    """Points in metres turned to Y up, and in words which axis was up: the one given, else stated, else inferred."""
    up, reason = chosen_up(labels, points, given_up=given_up, stated_up=stated_up, default_up=default_up)
    turned = points if up == "+Y" else points @ matrix_y_up_from(up).T
    return turned, f"{up} is up: {reason}"


def chosen_up(
    labels: tuple[str, ...],
    points: Float[Array, "frames markers 3"],
    *,
    given_up: str | None,
    stated_up: str | None = None,
    default_up: str,
) -> tuple[str, str]:
    """The up axis and why: the one given, else stated, else inferred."""
    if given_up:
        return checked_up(given_up), "given"
    if stated_up:
        return stated_up, "the file says so"
    return infer_up(labels, points, default=default_up)


def infer_up(
    labels: tuple[str, ...], points: Float[Array, "frames markers 3"], *, default: str
) -> tuple[str, str]:
    """The up axis of points in metres, and why: head over feet, else the body's extent, else the default."""
    found = _up_from_head_and_feet(labels, points)
    if found:
        return found, "head markers are above foot markers along it"
    found = _up_from_extent(points)
    if found:
        return found, "the body is tallest along it and stands on its zero"
    return default, "usual for this format; the markers do not tell"


def matrix_y_up_from(up: str) -> Float[Array, "3 3"]:
    """The rotation that takes this up axis to +Y."""
    axis = "XYZ".index(up[1])
    cyclic = np.roll(np.eye(3), axis - 1, axis=1)
    return cyclic if up[0] == "+" else np.diag([1.0, -1.0, -1.0]) @ cyclic


def _up_from_head_and_feet(labels: tuple[str, ...], points: Float[Array, "frames markers 3"]) -> str | None:
    head, feet = _named(labels, _HEAD_WORDS), _named(labels, _FOOT_WORDS)
    if not (head and feet):
        return None
    difference = _median(points[:, head]) - _median(points[:, feet])
    axis = int(np.argmax(np.abs(difference)))
    if not np.abs(difference[axis]) > _LEAST_HEIGHT:
        return None
    return f"{'+' if difference[axis] > 0 else '-'}{'XYZ'[axis]}"


def _up_from_extent(points: Float[Array, "frames markers 3"]) -> str | None:
    seen = points[np.isfinite(points).all(axis=(1, 2))]
    if seen.size == 0:
        return None
    extent = np.median(np.ptp(seen, axis=1), axis=0)
    extent[np.quantile(seen, 0.01, axis=(0, 1)) < _FLOOR] = 0.0
    second, first = np.sort(extent)[1:]
    return f"+{'XYZ'[int(np.argmax(extent))]}" if first > _CLEARLY_LARGER * second else None


def _named(labels: tuple[str, ...], words: tuple[str, ...]) -> list[int]:
    return [number for number, label in enumerate(labels) if any(word in label.upper() for word in words)]


def _median(points: Float[Array, "frames markers 3"]) -> Float[Array, "3"]:
    flat = points.reshape(-1, 3)
    seen = flat[np.isfinite(flat).all(axis=1)]
    return np.median(seen, axis=0) if len(seen) else np.zeros(3)
