"""Match the markers of a recording to places on a body: by a mapping file, by name, by common movement or geometry.

A place has one name everywhere: a place on the skin (`left_waist`), a label of the 41-marker set, a role or a joint
(its origin). Labels of other laboratories are known too (`motion.marker_names`). A mapping file, TOML, gives others:

[markers]
LWRIST = "left_hand"      # a place
STICK = { joint = "right_hand", offset = [0.0, -0.4, 0.0] }   # a prop: metres from the joint, in its frame

[joints]                  # markers of which only the joint is known
M17 = "right_hand"

[colours]                 # for cameras: markers that are coloured; the others are bright
LWRIST = "red"
STICK = 0.33              # a hue
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from poise.capture.calibration import FEWEST_MARKERS
from poise.capture.geometry_matching import Match, match_by_geometry
from poise.capture.sources import UNLABELLED, of_subject, picked, read_markers
from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats.tables import Named, Read, read_declared
from poise.motion.marker_names import known_marker
from poise.motion.markers import Markers
from poise.motion.virtual_markers import OPTICAL_LABELS, optical_layout
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import handle_from
from poise.types import Array
from poise.vision.colours import hue_of

LOCOMOTION = (
    *("left_hand", "right_hand", "left_foot", "right_foot"),
    *("left_upper_arm", "right_upper_arm", "left_waist", "right_waist"),
)
"""The markers of Chai and Hodgins 2005 for locomotion: hands, feet, shoulders and two on the waist."""
WITH_HEAD = (*LOCOMOTION, "forehead")
"""The same with the head, which they added for boxing."""

RIGID = 0.02  # metres: largest variation of distances within one body part
_LOOKED_AT = 300  # frames examined for common movement
_ON_SKIN = {"left_waist": ("LFWT",), "right_waist": ("RFWT",), "forehead": ("LFHD", "RFHD")}
_PLACE = "joint, role or marker of the 41-marker set"

Places = Mapping[str, Handle | str]
"""Labels to names of places, or to points on joints."""


@dataclass(frozen=True, eq=False)
class MatchedTake:
    """The markers of one performer on a body, their expected positions, and unassigned points."""

    markers: Markers
    layout: Mapping[str, Handle]  # in the order of the markers
    loose: tuple[str, ...]  # markers of which only the joint is known
    unlabelled: Float[Array, "frames points 3"]
    matched: tuple[str, ...]  # the matches, in words

    def __len__(self) -> int:
        return len(self.markers)

    @property
    def is_full(self) -> bool:
        """Whether enough markers are on the skin, and not at joints, to fit a body to them."""
        return sum(any(handle.offset) for handle in self.layout.values()) >= FEWEST_MARKERS


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
    named = {
        label: place if isinstance(place, str) else place.handle for label, place in file.markers.items()
    }
    return named | joints


def read_hues(path: Path) -> dict[str, float]:
    """Hues of markers by label, from a mapping file; empty without colours."""
    try:
        return {label: hue_of(colour) for label, colour in read_declared(_MappingFile, path).colours.items()}
    except InvalidValueError as error:
        raise ParseError(str(error), path=path) from None


def read_layout(path: Path, skeleton: Skeleton, *, samples: Array | None = None) -> dict[str, Handle]:
    """Labels of recordings to places, from a mapping file."""
    mapping = read_mapping(path)
    if not mapping:
        raise ParseError('expected a table [markers] with lines such as LWRIST = "left_hand"', path=path)
    return _placed(mapping, skeleton, samples)


def marker_layout(
    skeleton: Skeleton, names: Sequence[str], *, samples: Float[Array, "frames joints 4"] | None = None
) -> dict[str, Handle]:
    """The named places on a skeleton; `samples` are recorded rotations, if its rest pose does not stand."""
    return _placed({name: name for name in names}, skeleton, samples)


def known_places(labels: Sequence[str], skeleton: Skeleton) -> dict[str, str]:
    """The labels that name a place, with its name; of two labels of one marker, the first."""
    own, found = {*_ON_SKIN, *skeleton.roles, *skeleton.names}, dict[str, str]()
    for label in labels:
        place = label if label in own else known_marker(label)
        if place is not None and place not in found.values():
            found[label] = place
    return found


def read_take(
    path: Path,
    skeleton: Skeleton,
    *,
    subject: str | None = None,
    mapping: Path | None = None,
    **options: Any,
) -> MatchedTake:
    """Read a take (C3D, TRC or CSV) and match it to a skeleton; `options` are the reader's (units, up)."""
    table = read_mapping(mapping) if mapping is not None else {}
    return match(of_subject(read_markers(path, **options), subject), skeleton, table)


def match(
    recording: Markers,
    skeleton: Skeleton,
    mapping: Places | None = None,
    *,
    samples: Float[Array, "frames joints 4"] | None = None,
    fewest: int = FEWEST_MARKERS,
) -> MatchedTake:
    """Match a recording's labels to a skeleton: by the mapping, by name, and by common movement.

    With fewer than `fewest` known labels, the points themselves say where they are.
    """
    named, given = (
        [label for label in recording.labels if not label.startswith(UNLABELLED)],
        dict(mapping or {}),
    )
    for label in given:
        if label not in named:
            raise UnknownNameError("marker (named in the mapping file)", label, named)
    by_name = known_places([label for label in named if label not in given], skeleton)
    known = _placed({**by_name, **given}, skeleton, samples)
    if len(known) < fewest:
        return _by_geometry(recording, skeleton, named, [*known], fewest)
    carried = _carried_along(recording, known, [label for label in named if label not in known])
    every = {**known, **carried}
    labels = [label for label in recording.labels if label in every]
    on_joints = {*skeleton.roles, *skeleton.names}
    loose = [label for label, place in given.items() if isinstance(place, Handle)]
    loose += [label for label, place in {**by_name, **given}.items() if place in on_joints]
    unlabelled = [k for k, label in enumerate(recording.labels) if label.startswith(UNLABELLED)]
    return MatchedTake(
        picked(recording, [recording.labels.index(label) for label in labels], labels),
        {label: every[label] for label in labels},
        (*loose, *carried),
        recording.points[:, unlabelled],
        _in_words(named, {**by_name, **given}, carried, len(unlabelled)),
    )


# --- private -------------------------------------------------------------------------------------------------------


def _placed(mapping: Places, skeleton: Skeleton, samples: Array | None) -> dict[str, Handle]:
    """Labels to handles; a joint or role is itself, everything else is on the skin."""
    own, optical = {*skeleton.roles, *skeleton.names}, dict[str, Handle]()
    if any(isinstance(place, str) and place not in own for place in mapping.values()):
        optical = optical_layout(skeleton, samples=samples)
    found = {}
    for label, place in mapping.items():
        if isinstance(place, Handle):
            skeleton.index(place.joint)
            found[label] = place
        elif place in own:
            found[label] = Handle(place)
        elif place in optical or place in _ON_SKIN:
            spots = [optical[name] for name in _ON_SKIN.get(place, (place,))]
            x, y, z = np.mean([spot.offset for spot in spots], axis=0).tolist()
            found[label] = Handle(spots[0].joint, (x, y, z))
        else:
            raise UnknownNameError(
                _PLACE, place, (*_ON_SKIN, *skeleton.roles, *skeleton.names, *OPTICAL_LABELS)
            )
    return found


def _carried_along(recording: Markers, layout: Mapping[str, Handle], others: list[str]) -> dict[str, Handle]:
    """Markers with unknown names, each on the joint whose markers keep their distances to it."""
    found = {}
    frames = np.unique(np.linspace(0, len(recording) - 1, _LOOKED_AT).astype(int))
    points = recording.points[frames]
    for label in others:
        own = points[:, recording.index(label)]
        steadiness = {}
        for joint in {handle.joint for handle in layout.values()}:
            fellows = [recording.index(name) for name, handle in layout.items() if handle.joint == joint]
            distances = np.linalg.norm(points[:, fellows] - own[:, None], axis=2)
            if len(fellows) >= 2 and np.isfinite(distances).any(axis=0).all():
                steadiness[joint] = float(np.nanstd(distances, axis=0).max())
        best = min(steadiness, key=lambda joint: steadiness[joint], default=None)
        if best is not None and steadiness[best] < RIGID:
            fellows_at = np.mean([h.offset for h in layout.values() if h.joint == best], axis=0)
            x, y, z = fellows_at.tolist()
            found[label] = Handle(best, (x, y, z))
    return found


def _by_geometry(
    recording: Markers, skeleton: Skeleton, named: list[str], known: list[str], fewest: int
) -> MatchedTake:
    """Match a recording with uninformative labels by the geometry and movement of its points."""
    numbers = [recording.labels.index(label) for label in named]
    try:
        found = match_by_geometry(skeleton, recording.points[:, numbers])
    except InvalidValueError as error:
        shown = ", ".join(named[:8]) + (", ..." if len(named) > 8 else "")
        raise InvalidValueError(
            f"{recording.name}: {len(known)} of {len(named)} marker labels are known and {fewest} are needed; "
            f"the labels are {shown or '(none)'}; a mapping file says what each is, such as "
            f'[markers] "Head1" = "LFHD"; known: {", ".join(OPTICAL_LABELS)}; {error}',
            settings=("map",),
        ) from error
    smaller = skeleton.height / found.skeleton.height
    layout = {
        label: Handle(handle.joint, tuple(smaller * np.array(handle.offset)))
        for label, handle, sure in zip(named, found.handles(), found.sure, strict=True)
        if sure
    }
    kept = [number for number, label in zip(numbers, named, strict=True) if label in layout]
    unlabelled = [k for k, label in enumerate(recording.labels) if label.startswith(UNLABELLED)]
    return MatchedTake(
        picked(recording, kept, list(layout)),
        layout,
        tuple(layout),
        recording.points[:, unlabelled],
        _geometry_in_words(named, found, skeleton),
    )


def _in_words(
    named: list[str], places: Places, carried: Mapping[str, Handle], unlabelled: int
) -> tuple[str, ...]:
    same = [label for label, place in places.items() if label == place or label.upper() == place]
    words = [f"{len(same)} of {len(named)} markers by name"]
    words += [
        f"{label} is {place}" if isinstance(place, str) else f"{label} on {place.joint}, as the mapping says"
        for label, place in places.items()
        if label not in same
    ]
    words += [f"{label} moves along with {handle.joint}" for label, handle in carried.items()]
    if left_out := [label for label in named if label not in {**places, **carried}]:
        words.append(f"left out, since they move with no part of the body: {', '.join(left_out)}")
    return (*words, *([f"{unlabelled} points without a label may be anyone's"] if unlabelled else []))


def _geometry_in_words(named: list[str], found: Match, skeleton: Skeleton) -> tuple[str, ...]:
    """A line per body part: its markers, and the movement of each on it in millimetres."""
    words = [f"{int(found.sure.sum())} of {len(named)} markers by geometry, since their labels are not known"]
    for joint in np.unique(found.joints[found.sure]).tolist():
        own = [
            f"{label} ({1000 * motion:.0f} mm)"
            for label, on, motion, sure in zip(named, found.joints, found.motion, found.sure, strict=True)
            if on == joint and sure
        ]
        words.append(f"on {skeleton.names[joint]}: {', '.join(own)}")
    if left_out := [label for label, sure in zip(named, found.sure, strict=True) if not sure]:
        words.append(f"left out, since they move on every body part: {', '.join(left_out)}")
    return tuple(words)
