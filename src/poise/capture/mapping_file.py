"""Mapping files: the place on a body of each label in a recording, as TOML.

[markers]
LWRIST = "left_hand"      # a place, a role, a joint, or a label of the 41-marker set
STICK = { joint = "right_hand", offset = [0.0, -0.4, 0.0] }   # a prop: metres from the joint, in its frame

[joints]                  # markers of which only the joint is known
M17 = "right_hand"

[colours]                 # for cameras: markers that are coloured; the others are bright
LWRIST = "red"
STICK = 0.33              # a hue
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from poise.formats.tables import Named, Read, read_declared
from poise.skeleton.pose_space import Handle
from poise.solvers.constraints import handle_from


@dataclass(frozen=True)
class _Prop:
    handle: Annotated[Handle, Named("joint"), Read(handle_from)]


@dataclass(frozen=True)
class _MappingFile:
    markers: dict[str, str | _Prop] = field(default_factory=dict)
    joints: dict[str, str] = field(default_factory=dict)
    colours: dict[str, str | float] = field(default_factory=dict)


def read_mapping(path: Path) -> dict[str, Handle | str]:
    """Labels to names of places or, if the joint is given, to points on it."""
    file = read_declared(_MappingFile, path)
    joints = {label: Handle(joint) for label, joint in file.joints.items()}
    return {
        label: place if isinstance(place, str) else place.handle for label, place in file.markers.items()
    } | joints


def read_colours(path: Path) -> dict[str, str | float]:
    """Labels to colours, by name or by hue."""
    return read_declared(_MappingFile, path).colours
