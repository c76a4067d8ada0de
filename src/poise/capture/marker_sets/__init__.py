"""Marker sets of laboratories as data, one TOML file each beside this module.

A set has the labels of sided markers (without L or R), of those in the middle, and of clusters, of which only the
segment is known. A label is written without points, spaces, hyphens and underscores, in capitals. Its value is a place:
a marker of the 41-marker set (without its side), a place of `sites.toml`, or for a cluster a role. `computed` and
`axes` are patterns of points that are outputs of the set's model, not markers. The set of any laboratory can be read
from its OpenSim model, too (`of_model`).
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from jaxtyping import Float

from poise.errors import ParseError
from poise.formats.mot import model_skeleton, roles_of
from poise.formats.osim import placed, read_model
from poise.formats.tables import read_declared
from poise.motion.marker_names import known_marker
from poise.motion.virtual_markers import Spot, on_both_sides
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.roles import ARM_ROLES, LEG_ROLES, SIDES, path
from poise.types import Array

FOLDER = Path(__file__).parent
FEWEST = 8  # labels of a set from which it counts as recognised ...
SHARE = 0.5  # ... and the share of the file's labels


@dataclass(frozen=True)
class MarkerSet:
    """A laboratory's marker set."""

    title: str
    computed: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    sided: dict[str, str] = field(default_factory=dict)
    middle: dict[str, str] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)

    def place(self, label: str) -> str | None:
        """The place of a label: a marker of the 41-marker set, a site, or a role if only the segment is known."""
        name = plain(label)
        if name in self.middle:
            return self.middle[name]
        for side in SIDES if name[:1] in ("L", "R") else ():
            first, rest = side[0].upper(), name[1:]
            if name.startswith(first) and rest in self.sided:
                return f"{first}{self.sided[rest]}"
            if name.startswith(first) and rest in self.clusters:
                segment = self.clusters[rest]
                return segment if segment in ("pelvis", "chest", "head") else f"{side}_{segment}"
        return None


@dataclass(frozen=True, eq=False)
class _Site:
    on: tuple[str, ...]
    at: str
    skin: Float[Array, "3"]
    to: str = ""
    part: float = 0.0

    @property
    def spot(self) -> Spot:
        x, y, z = self.skin.tolist()
        return Spot(self.on, self.at, self.to or self.at, self.part, (x, y, z))


@dataclass(frozen=True)
class _Sites:
    left: dict[str, _Site]
    middle: dict[str, _Site]


def plain(label: str) -> str:
    """A label without its subject, points, spaces, hyphens and underscores, in capitals."""
    return re.sub(r"[\s._-]", "", label.rpartition(":")[2]).upper()


@cache
def marker_sets() -> tuple[MarkerSet, ...]:
    """All sets."""
    files = sorted(path for path in FOLDER.glob("*.toml") if path.stem != "sites")
    return tuple(read_declared(MarkerSet, path) for path in files)


@cache
def sites() -> dict[str, Spot]:
    """The places beside those of the 41-marker set, by name: `Lknee_medial`, `sacrum`."""
    file = read_declared(_Sites, FOLDER / "sites.toml")
    left = {name: site.spot for name, site in file.left.items()}
    return {**on_both_sides(left), **{name: site.spot for name, site in file.middle.items()}}


def recognised(labels: Sequence[str]) -> MarkerSet | None:
    """The set that most of the labels belong to, if it is enough of them."""
    known = {one.title: {plain(label) for label in labels if one.place(label)} for one in marker_sets()}
    sizes = {one.title: len(one.sided) + len(one.clusters) + len(one.middle) for one in marker_sets()}
    best = max(marker_sets(), key=lambda one: (len(known[one.title]), -sizes[one.title]))
    count = len(known[best.title])
    return best if count >= FEWEST and count >= SHARE * len(labels) else None


def computed_points(labels: Sequence[str]) -> list[str]:
    """The labels that are no markers but outputs of a model: segments' axes, joint centres, centres of mass."""
    names, found, own = {plain(label) for label in labels}, [], recognised(labels)
    for label in labels:
        if own is not None and own.place(label) is not None:
            continue  # another set's joint centre may be this one's marker, such as R.Hip
        name = plain(label)
        for one in marker_sets():
            stems = (stem for stem in one.axes if name[-1:] in tuple("OALP") and fnmatchcase(name[:-1], stem))
            if any(fnmatchcase(name, pattern) for pattern in one.computed) or (
                f"{name[:-1]}O" in names and any(stems)
            ):
                found.append(label)
                break
    return found


def places_of(labels: Sequence[str]) -> tuple[dict[str, str], MarkerSet | None]:
    """The labels with a known place, and the set they belong to; of two labels of one place, the first."""
    best, found = recognised(labels), dict[str, str]()
    for label in labels:
        place = (best.place(label) if best is not None else None) or known_marker(label)
        loose = place is not None and place in _SEGMENTS
        if place is not None and (loose or place not in found.values()):
            found[label] = place
    return found, best


def of_model(file: Path) -> dict[str, Spot]:
    """The markers of an OpenSim model by label: on a bone where they are on the model's, at distances of stature."""
    model = read_model(file)
    if not model.markers:
        raise ParseError(
            "the model has no markers; expected a MarkerSet with labels, bodies and locations", path=file
        )
    skeleton, roles, at = model_skeleton(model), roles_of(model), placed(model, model.defaults[None])
    neutral, by_body = neutral_pose(skeleton), {body: role for role, body in roles.items()}
    found = {}
    for label, (body, place) in model.markers.items():
        carrier = next(one for one in reversed(path(skeleton, 0, body)) if one in by_body)
        way = at.centres[0, body] + at.turns[0, body] @ (place - model.joints[body].in_child[:3, 3])
        way -= at.centres[0, carrier] if carrier else skeleton.offsets[0]  # the root is between the hips
        point = neutral.positions[carrier] + neutral.world[carrier] @ way
        first, last = _bone(by_body[carrier], skeleton.roles)
        start, end = (neutral.positions[skeleton.index(role)] for role in (first, last))
        bone = end - start
        part = float((point - start) @ bone / max(float(bone @ bone), 1e-12)) if carrier else 0.5
        on = [by_body[one] for one in reversed(path(skeleton, 0, carrier)) if one in by_body]
        if by_body[carrier] == "chest" and part > 1.0:  # the head is part of the torso in many models
            on, first, start, bone, part = ["head", *on], last, end, 0.0 * bone, 0.0
        part = min(max(part, 0.0), 1.0)
        x, y, z = ((point - start - part * bone) / skeleton.height).tolist()
        found[label] = Spot(tuple(on), first, last, part, (x, y, z))
    return found


def _bone(role: str, roles: Container[str]) -> tuple[str, str]:
    """The roles between which markers of a segment are measured."""
    if role in ("pelvis", "chest"):
        return ("left_thigh", "right_thigh") if role == "pelvis" else ("pelvis", "head")
    side, _, part = role.partition("_")
    for limb in (ARM_ROLES, LEG_ROLES):
        if part in limb[:-1] and (end := f"{side}_{limb[limb.index(part) + 1]}") in roles:
            return role, end
    return role, role


_SEGMENTS = {"pelvis", "chest", "head"} | {
    f"{side}_{part}" for side in SIDES for part in ("upper_arm", "forearm", "thigh", "shin", "foot")
}
