"""The coordinate system of marker files: unit, up axis, and rotation to Poise's world (Y up).

Marker files seldom state the vertical axis. Laboratories usually have Z up; their axes are permuted cyclically, (x, y,
z) to (y, z, x), as in the CMU database between its C3D and AMC files, so both read to the same position.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats.units import GIVEN, Unit, metres_per_unit
from poise.types import Array

UP_AXES = ("+X", "+Y", "+Z", "-X", "-Y", "-Z")

# Words in labels of upper and of lower markers, and the metres between them that determine up.
_HEAD_OVER_FEET = re.compile(r"HD\d*$|HEAD(?!.?HUM)|TETE"), re.compile(r"TOE|HEE|ANK(?!Y)|FOOT|MT5"), 0.3
_NECK_OVER_PELVIS = re.compile(r"^(C7|T1|STE?RN?|CLAV)$"), re.compile(r"ASI|PSI|SACR"), 0.2
_FLOOR = -0.2  # metres: lowest points from noise and a badly levelled floor
_HIGHEST_FLOOR = 0.35  # metres: highest plausible lowest marker, standing or in a wheelchair
_OFTEN = 0.5  # share of the frames in which a marker must be seen to count for the body's extent
_SHORTEST, _TALLEST, _MANY = 1.2, 2.3, 15  # metres from toes to head of a person with many markers
_CLEARLY_LARGER = 1.2  # ratio of the extents along two axes above which one is the taller


def stated_unit(said: str, *, given: str | float | None, path: Path) -> Unit:
    """The unit of length stated in a file, unless another is given."""
    if given is not None:
        return Unit(str(given).strip().lower(), metres_per_unit(given), GIVEN)
    try:
        return Unit(said.strip().lower(), metres_per_unit(said), f"the file says {said.strip()}")
    except (UnknownNameError, InvalidValueError) as error:
        raise ParseError(f"{error}; units= overrides it", path=path) from error


def checked_up(up: str) -> str:
    """An up axis from user input ("z", "+Z", "-y") in the form used here."""
    word = up.strip().upper()
    word = word if word[:1] in ("+", "-") else f"+{word}"
    if word not in UP_AXES:
        raise UnknownNameError("up axis", up, UP_AXES)
    return word


def y_up(points: Float[Array, "frames markers 3"], up: str) -> Float[Array, "frames markers 3"]:
    """The points rotated so that this axis is Y."""
    return points if up == "+Y" else points @ matrix_y_up_from(up).T


def chosen_up(
    labels: tuple[str, ...],
    points: Float[Array, "frames markers 3"],
    *,
    given_up: str | None,
    stated_up: str | None = None,
    sure: bool = False,
    default_up: str,
) -> tuple[str, str]:
    """The up axis and the reason: given, else stated (if `sure`, or if no marker contradicts), else inferred."""
    if given_up:
        return checked_up(given_up), "given"
    if not stated_up:
        return infer_up(labels, points, default=default_up)
    found, extent = (None, None) if sure else (_up_from_floor(points), _extent(points))
    if found not in (None, stated_up) and extent is not None and len(labels) >= _MANY:
        height, widest = extent["XYZ".index(found[1])], np.sort(extent)[1]
        agrees = _up_from_head_and_feet(labels, points) in (None, found)
        if agrees and _SHORTEST < height < _TALLEST and height >= _CLEARLY_LARGER * widest:
            why = f"the body is tallest along it and stands on its zero, although the file says {stated_up}"
            return found, why
    return stated_up, "the file says so"


def infer_up(
    labels: tuple[str, ...], points: Float[Array, "frames markers 3"], *, default: str
) -> tuple[str, str]:
    """The up axis of points in metres, and why: head over feet, else the body's extent, else the default."""
    found, floor = _up_from_head_and_feet(labels, points), _up_from_floor(points)
    if floor and found in (None, *(axis for axis in UP_AXES if axis[1] != floor[1]), floor):
        return floor, "markers are above its zero, and on both sides of the others'"
    if found:
        return found, "head markers are above foot markers along it"
    if (extent := _extent(points)) is not None:
        lowest, floors = _floors(points)
        extent[~floors if floors.any() else lowest < _FLOOR] = 0.0
        second, first = np.sort(extent)[1:]
        if first > _CLEARLY_LARGER * second:
            axis = f"+{'XYZ'[int(np.argmax(extent))]}"
            return axis, "the body is tallest along it and stands on its zero"
    return default, "usual for this format; the markers do not determine it"


def matrix_y_up_from(up: str) -> Float[Array, "3 3"]:
    """The rotation that takes this up axis to +Y."""
    axis = "XYZ".index(up[1])
    cyclic = np.roll(np.eye(3), axis - 1, axis=1)
    return cyclic if up[0] == "+" else np.diag([1.0, -1.0, -1.0]) @ cyclic


def _up_from_head_and_feet(labels: tuple[str, ...], points: Float[Array, "frames markers 3"]) -> str | None:
    """The axis from foot to head markers, or from those of the pelvis to those of the neck and breastbone."""
    for upper, lower, least in (_HEAD_OVER_FEET, _NECK_OVER_PELVIS):
        middles = []
        for words in (upper, lower):
            named = [number for number, label in enumerate(labels) if words.search(label.upper())]
            flat = points[:, named].reshape(-1, 3)
            seen = flat[np.isfinite(flat).all(axis=1)]
            middles += [np.median(seen, axis=0)] if len(seen) else []
        if len(middles) == 2:
            difference = middles[0] - middles[1]
            axis = int(np.argmax(np.abs(difference)))
            if np.abs(difference[axis]) > least:
                return f"{'+' if difference[axis] > 0 else '-'}{'XYZ'[axis]}"
    return None


def _up_from_floor(points: Float[Array, "frames markers 3"]) -> str | None:
    """The one axis along which markers stand on zero, if they are on both sides of zero along the other two."""
    lowest, floors = _floors(points)
    alone = np.count_nonzero(floors) == 1 and (lowest[~floors] < _FLOOR).all()
    return f"+{'XYZ'[int(np.argmax(floors))]}" if alone else None


def _floors(points: Float[Array, "frames markers 3"]) -> tuple[Float[Array, "3"], Bool[Array, "3"]]:
    """The lowest marker position along each axis, and whether it is plausible above a floor."""
    seen = points[np.isfinite(points).all(axis=2)]
    lowest = np.quantile(seen, 0.01, axis=0) if len(seen) else np.full(3, np.inf)
    return lowest, (lowest > _FLOOR) & (lowest < _HIGHEST_FLOOR)


def _extent(points: Float[Array, "frames markers 3"]) -> Float[Array, "3"] | None:
    """The extent of the body along each axis, from markers that are often seen."""
    known = np.isfinite(points).all(axis=2)
    often = known[:, known.mean(axis=0) >= _OFTEN]
    whole = points[:, known.mean(axis=0) >= _OFTEN][often.all(axis=1)]
    return np.median(np.ptp(whole, axis=1), axis=0) if whole.size else None
