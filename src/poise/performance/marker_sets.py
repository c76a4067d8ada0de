"""Marker sets of performances: common names of places on the body, as points on a skeleton's joints.

A name is one of the places below, a role or a joint (its origin), or a label of the 41-marker set. A mapping file
(`capture.mapping_file`) maps labels of a recording to places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.capture.mapping_file import read_colours, read_mapping
from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.motion.virtual_markers import OPTICAL_LABELS, optical_layout
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Skeleton
from poise.types import Array
from poise.vision.colours import hue_of

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
    """The named places on a skeleton; `samples` are recorded rotations, if its rest pose does not stand."""
    optical: dict[str, Handle] = {}
    if any(name in _ON_SKIN or name in OPTICAL_LABELS for name in names):
        optical = optical_layout(skeleton, samples=samples)
    return {name: _place(skeleton, name, optical) for name in names}


def read_layout(path: Path, skeleton: Skeleton, *, samples: Array | None = None) -> dict[str, Handle]:
    """Labels of recordings to places, from a mapping file."""
    mapping = read_mapping(path)
    if not mapping:
        raise ParseError('expected a table [markers] with lines such as LWRIST = "left_hand"', path=path)
    named = marker_layout(
        skeleton, [place for place in mapping.values() if isinstance(place, str)], samples=samples
    )
    return {
        label: named[place] if isinstance(place, str) else _on_joint(skeleton, place)
        for label, place in mapping.items()
    }


def read_hues(path: Path) -> dict[str, float]:
    """Hues of markers by label, from a mapping file; empty without colours."""
    try:
        return {label: hue_of(colour) for label, colour in read_colours(path).items()}
    except InvalidValueError as error:
        raise ParseError(str(error), path=path) from None


def guessed_mapping(
    labels: Sequence[str], skeleton: Skeleton, *, samples: Array | None = None
) -> dict[str, Handle]:
    """The labels of a recording that are names of places, unchanged."""
    valid = {*_ON_SKIN, *skeleton.roles, *skeleton.names, *OPTICAL_LABELS}
    known = [label for label in labels if label in valid]
    if not known:
        raise UnknownNameError("set of markers", ", ".join(labels[:8]) or "(none)", sorted(valid))
    return marker_layout(skeleton, known, samples=samples)


def _on_joint(skeleton: Skeleton, handle: Handle) -> Handle:
    return Handle(_known(skeleton, handle.joint), handle.offset)


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
