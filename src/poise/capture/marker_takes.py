"""Read a take of markers and match them to a body: by name, by a mapping file, or by common movement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.capture.calibration import FEWEST_MARKERS
from poise.capture.mapping_file import read_mapping
from poise.capture.marker_matching import Match, match_by_geometry
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats import read
from poise.formats.files import existing_file
from poise.motion.marker_names import known_markers
from poise.motion.markers import Markers
from poise.motion.virtual_markers import OPTICAL_LABELS, optical_layout
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

UNLABELLED = "*"
RIGID = 0.02  # metres: largest variation of distances within one body part
_LOOKED_AT = 300  # frames examined for common movement


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


def read_take(
    path: Path,
    skeleton: Skeleton,
    *,
    subject: str | None = None,
    mapping: Path | None = None,
    **options: Any,
) -> MatchedTake:
    """Read a take from a C3D or TRC file and match it to a skeleton; `options` are the reader's (units, up)."""
    if _is_c3d(path):
        options["keep_unlabelled"] = True
    recording = read(path, **options)
    if not isinstance(recording, Markers):
        raise InvalidValueError(
            f"{path.name} holds the motion of a skeleton; this needs markers (C3D or TRC)"
        )
    table = read_mapping(mapping) if mapping is not None else {}
    return match(of_subject(recording, subject), skeleton, table)


def of_subject(recording: Markers, subject: str | None) -> Markers:
    """The markers of one person, by the prefix of their labels ("Anna:LFHD"), and unprefixed ones."""
    prefixes = [label.partition(":")[0] if ":" in label else "" for label in recording.labels]
    people = tuple(dict.fromkeys(prefix for prefix in prefixes if prefix))
    if subject is None and len(people) > 1:
        raise InvalidValueError(
            f"{recording.name}: the markers of {len(people)} people ({', '.join(people)}); choose one",
            settings=("subject",),
        )
    if subject is not None and subject not in people:
        raise UnknownNameError("subject", subject, people or ("(labels have no prefix)",))
    wanted = subject if subject is not None else (people[0] if people else "")
    kept = [
        k
        for k, prefix in enumerate(prefixes)
        if prefix == wanted or recording.labels[k].startswith(UNLABELLED)
    ]
    return _picked(recording, kept, [recording.labels[k].removeprefix(f"{wanted}:") for k in kept])


def match(
    recording: Markers, skeleton: Skeleton, mapping: Mapping[str, Handle | str] | None = None
) -> MatchedTake:
    """Match a recording's labels to a skeleton: by the mapping, by name, and by common movement."""
    named = [label for label in recording.labels if not label.startswith(UNLABELLED)]
    expected, given = optical_layout(skeleton), dict(mapping or {})
    _check_mapping(given, named, skeleton)
    by_name = {label: marker for label, marker in known_markers(named).items() if label not in given}
    by_name.update({label: place for label, place in given.items() if isinstance(place, str)})
    layout = {label: expected[marker] for label, marker in by_name.items()}
    loose = {label: place for label, place in given.items() if isinstance(place, Handle)}
    if len(layout) + len(loose) < FEWEST_MARKERS:
        return _by_geometry(recording, skeleton, named, [*layout, *loose])
    carried = _carried_along(
        recording, {**layout, **loose}, [n for n in named if n not in {**layout, **loose}]
    )
    every = {**layout, **loose, **carried}
    labels = [label for label in recording.labels if label in every]
    unlabelled = [k for k, label in enumerate(recording.labels) if label.startswith(UNLABELLED)]
    return MatchedTake(
        _picked(recording, [recording.labels.index(label) for label in labels], labels),
        {label: every[label] for label in labels},
        tuple({**loose, **carried}),
        recording.points[:, unlabelled],
        _in_words(named, by_name, loose, carried, len(unlabelled)),
    )


# --- private -------------------------------------------------------------------------------------------------------


def _is_c3d(path: Path) -> bool:
    return existing_file(path).read_bytes()[1:2] == b"\x50"


def _picked(recording: Markers, numbers: list[int], labels: list[str]) -> Markers:
    residuals = None if recording.residuals is None else recording.residuals[:, numbers]
    return replace(recording, labels=tuple(labels), points=recording.points[:, numbers], residuals=residuals)


def _by_geometry(recording: Markers, skeleton: Skeleton, named: list[str], known: list[str]) -> MatchedTake:
    """Match a recording with uninformative labels by the geometry and movement of its points."""
    numbers = [recording.labels.index(label) for label in named]
    try:
        found = match_by_geometry(skeleton, recording.points[:, numbers])
    except InvalidValueError as error:
        raise InvalidValueError(f"{_too_few(recording, named, known)}; {error}", settings=("map",)) from error
    smaller = skeleton.height / found.skeleton.height
    layout = {
        label: Handle(handle.joint, tuple(smaller * np.array(handle.offset)))
        for label, handle, sure in zip(named, found.handles(), found.sure, strict=True)
        if sure
    }
    kept = [number for number, label in zip(numbers, named, strict=True) if label in layout]
    unlabelled = [k for k, label in enumerate(recording.labels) if label.startswith(UNLABELLED)]
    return MatchedTake(
        _picked(recording, kept, list(layout)),
        layout,
        tuple(layout),
        recording.points[:, unlabelled],
        _geometry_in_words(named, found, skeleton),
    )


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
    left_out = [label for label, sure in zip(named, found.sure, strict=True) if not sure]
    return (
        *words,
        *([f"left out, since they move on every body part: {', '.join(left_out)}"] if left_out else []),
    )


def _check_mapping(given: Mapping[str, Handle | str], named: list[str], skeleton: Skeleton) -> None:
    for label, place in given.items():
        if label not in named:
            raise UnknownNameError("marker (named in the mapping file)", label, named)
        if isinstance(place, Handle):
            skeleton.index(place.joint)
        elif place not in OPTICAL_LABELS:
            raise UnknownNameError("marker of the 41-marker set", place, OPTICAL_LABELS)


def _too_few(recording: Markers, named: list[str], known: list[str]) -> str:
    shown = ", ".join(named[:8]) + (", ..." if len(named) > 8 else "")
    return (
        f"{recording.name}: {len(known)} of {len(named)} marker labels are known and {FEWEST_MARKERS} are needed; "
        f"the labels are {shown or '(none)'}; a mapping file says what each is, such as "
        f'[markers] "Head1" = "LFHD"; known: {", ".join(OPTICAL_LABELS)}'
    )


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


def _in_words(
    named: list[str],
    by_name: Mapping[str, str],
    loose: Mapping[str, Handle],
    carried: Mapping[str, Handle],
    unlabelled: int,
) -> tuple[str, ...]:
    same = [label for label, marker in by_name.items() if label.upper() == marker]
    words = [f"{len(same)} of {len(named)} markers by name"]
    words += [f"{label} is {marker}" for label, marker in by_name.items() if label not in same]
    words += [f"{label} on {handle.joint}, as the mapping says" for label, handle in loose.items()]
    words += [f"{label} moves along with {handle.joint}" for label, handle in carried.items()]
    left_out = [n for n in named if n not in {**by_name, **loose, **carried}]
    words += (
        [f"left out, since they move with no part of the body: {', '.join(left_out)}"] if left_out else []
    )
    return (*words, *([f"{unlabelled} points without a label may be anyone's"] if unlabelled else []))
