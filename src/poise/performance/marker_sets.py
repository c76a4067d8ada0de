"""Marker sets of performances: names that people use for places on the body, as points on a skeleton's joints.

A name is one of the places below, a role or a joint (its origin), or a label of the 41-marker set. A mapping file in
TOML says which label of a recording is which place:

    [markers]
    LWRIST = "left_hand"
    RWRIST = "right_hand"
    STICK = { joint = "right_hand", offset = [0.0, -0.4, 0.0] }   # a prop: metres from the joint, in its frame

    [colours]         # for cameras: markers that are coloured; the others are bright
    LWRIST = "red"
    RWRIST = 0.33     # a hue
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats.files import existing_file
from poise.motion.virtual_markers import OPTICAL_LABELS, optical_layout
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Skeleton
from poise.vision.colours import hue_of

Array = np.ndarray

LOCOMOTION = (
    *("left_hand", "right_hand", "left_foot", "right_foot"),
    *("left_upper_arm", "right_upper_arm", "left_waist", "right_waist"),
)
WITH_HEAD = (*LOCOMOTION, "forehead")
SETS = {"locomotion": LOCOMOTION, "boxing": WITH_HEAD}
"""The sets of Chai and Hodgins 2005: hands, feet, shoulders and two on the waist; the head added for boxing."""

_ON_SKIN = {"left_waist": ("LFWT",), "right_waist": ("RFWT",), "forehead": ("LFHD", "RFHD")}


def marker_layout(
    skeleton: Skeleton, names: Sequence[str], *, samples: Float[Array, "frames joints 4"] | None = None
) -> dict[str, Handle]:
    """Where places with these names are on a skeleton; `samples` are recorded rotations, if its rest does not stand."""
    optical: dict[str, Handle] = {}
    if any(name in _ON_SKIN or name in OPTICAL_LABELS for name in names):
        optical = optical_layout(skeleton, samples=samples)
    return {name: _place(skeleton, name, optical) for name in names}


def read_mapping(path: Path, skeleton: Skeleton, *, samples: Array | None = None) -> dict[str, Handle]:
    """Labels of recordings to places, from a mapping file."""
    table = _read_toml(path).get("markers")
    if not isinstance(table, dict) or not table:
        raise ParseError('expected a table [markers] with lines such as LWRIST = "left_hand"', path=path)
    return {label: _mapped(path, skeleton, label, value, samples) for label, value in table.items()}


def read_colours(path: Path) -> dict[str, float]:
    """Hues of markers by label, from a mapping file; none where it has no colours."""
    table = _read_toml(path).get("colours", {})
    if not isinstance(table, dict):
        raise ParseError('expected a table [colours] with lines such as LWRIST = "red"', path=path)
    try:
        return {label: hue_of(colour) for label, colour in table.items()}
    except InvalidValueError as error:
        raise ParseError(str(error), path=path) from None


def guessed_mapping(
    labels: Sequence[str], skeleton: Skeleton, *, samples: Array | None = None
) -> dict[str, Handle]:
    """The labels of a recording that name a place, as they are."""
    valid = {*_ON_SKIN, *skeleton.roles, *skeleton.names, *OPTICAL_LABELS}
    known = [label for label in labels if label in valid]
    if not known:
        raise UnknownNameError("set of markers", ", ".join(labels[:8]) or "(none)", sorted(valid))
    return marker_layout(skeleton, known, samples=samples)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(existing_file(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParseError(f"not a TOML file: {error}", path=path) from error


def _mapped(path: Path, skeleton: Skeleton, label: str, value: Any, samples: Array | None) -> Handle:
    if isinstance(value, str):
        return marker_layout(skeleton, [value], samples=samples)[value]
    if not isinstance(value, Mapping) or "joint" not in value:
        raise ParseError(
            f'{label}: expected a place such as "left_hand", or {{ joint = ..., offset = [x, y, z] }}; got {value!r}',
            path=path,
        )
    offset = value.get("offset", [0.0, 0.0, 0.0])
    if not (
        isinstance(offset, list) and len(offset) == 3 and all(isinstance(n, int | float) for n in offset)
    ):
        raise ParseError(f"{label}: an offset is three numbers in metres; got {offset!r}", path=path)
    x, y, z = map(float, offset)
    return Handle(_known(skeleton, str(value["joint"])), (x, y, z))


def _place(skeleton: Skeleton, name: str, optical: Mapping[str, Handle]) -> Handle:
    if name in _ON_SKIN:
        spots = [optical[label] for label in _ON_SKIN[name]]
        x, y, z = np.mean([spot.offset for spot in spots], axis=0).tolist()
        return Handle(spots[0].joint, (x, y, z))
    if name in optical and name not in skeleton.names:
        return optical[name]
    return Handle(_known(skeleton, name))


def _known(skeleton: Skeleton, name: str) -> str:
    """The name, if it is one of the skeleton's joints or roles."""
    skeleton.index(name)
    return name
