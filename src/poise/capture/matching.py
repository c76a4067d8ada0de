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

An OpenSim model (`.osim`) serves as a mapping file, too: its markers are on the body as on the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float, Int

from poise.capture.calibration import FEWEST_MARKERS
from poise.capture.marker_sets import computed_points, of_model, places_of, recognised, sites
from poise.capture.sources import UNLABELLED, of_subject, picked, read_markers
from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats.tables import Named, Read, read_declared
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit
from poise.motion.markers import Markers
from poise.motion.virtual_markers import OPTICAL_LABELS, Spot, optical_layout, placed_spots
from poise.priors.broad import BroadPrior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.skeleton.symmetry import mirror_joints
from poise.solvers.constraints import Position, handle_from
from poise.solvers.solve import Solver
from poise.types import Array
from poise.vision.colours import hue_of

LOCOMOTION = (
    *("left_hand", "right_hand", "left_foot", "right_foot"),
    *("left_upper_arm", "right_upper_arm", "left_waist", "right_waist"),
)
"""The markers of Chai and Hodgins 2005 for locomotion: hands, feet, shoulders and two on the waist."""
WITH_HEAD = (*LOCOMOTION, "forehead")
"""The same with the head, which they added for boxing."""

_STEADY = 0.02  # metres: largest variation of distances within one body part
_LOOKED_AT = 300  # frames examined for common movement
_ON_SKIN = {"left_waist": ("LFWT",), "right_waist": ("RFWT",), "forehead": ("LFHD", "RFHD")}
_PLACE = "joint, role or marker of the 41-marker set"

RIGID = 0.008  # metres: variation of distances within one rigid cluster
TRIED = 6  # frames, besides the tallest, in which a person may stand
HEADINGS = 8
STARTS = 12  # starts with the nearest landmarks, of all headings and arm positions
# Radians: lowering of the upper arms and bending of the forearms.
ARMS = (0.0, 0.0), (1.2, 0.0), (-1.2, 0.0), (0.9, 1.8)
ROUNDS, MORE_ROUNDS, KEPT = 3, 6, 5
FRAMES = 12  # frames that a candidate must explain
NEAR = 0.03  # metres: tolerance of the markers
CHANGES = 0.004  # metres by which a marker must move less on a neighbouring segment to be reassigned
SURE = 0.02  # metres: largest movement of a marker on its segment
HONEST = 0.03  # metres, root mean square over all markers: above this the match is rejected
FEWEST = 20  # smallest number of markers for a unique match

Places = Mapping[str, Handle | Spot | str]
"""Labels to names of places, to places of their own, or to points on joints."""


@dataclass(frozen=True, eq=False)
class MatchedTake:
    """The markers of one performer on a body, their expected positions, and unassigned points."""

    markers: Markers
    layout: Mapping[str, Handle]  # in the order of the markers
    loose: tuple[str, ...]  # markers of which only the joint is known
    unlabelled: Float[Array, "frames points 3"]
    matched: tuple[str, ...]  # the matches, in words
    places: Mapping[str, str] = field(
        default_factory=dict
    )  # labels to names of places, as far as they are known
    reasons: Mapping[str, str] = field(default_factory=dict)  # why each marker is where it is, in words

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


def read_mapping(path: Path) -> dict[str, Handle | Spot | str]:
    """Labels to names of places or, if the joint is given, to points on it; those of an OpenSim model to its places."""
    if path.suffix.lower() == ".osim":
        return dict(of_model(path))
    file = read_declared(_MappingFile, path)
    named: dict[str, Handle | Spot | str] = {
        label: at if isinstance(at, str) else at.handle for label, at in file.markers.items()
    }
    return named | {label: Handle(joint) for label, joint in file.joints.items()}


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
    own = {*_ON_SKIN, *skeleton.roles, *skeleton.names}
    found = {label: label for label in labels if label in own}
    others, _ = places_of([label for label in labels if label not in own])
    taken = set(found.values())
    found |= {
        label: place for label, place in others.items() if place not in taken or place in skeleton.roles
    }
    return {label: found[label] for label in labels if label in found}


def read_take(
    path: Path, skeleton: Skeleton, *, subject: str | None = None, mapping: Path | None = None, **options: Any
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
    computed = [label for label in computed_points(recording.labels) if label not in (mapping or {})]
    named = [one for one in recording.labels if not (one.startswith(UNLABELLED) or one in computed)]
    unlabelled = [k for k, label in enumerate(recording.labels) if label.startswith(UNLABELLED)]
    given = {label: at for label, at in (mapping or {}).items() if label in named or not isinstance(at, Spot)}
    for label in given:
        if label not in named:
            raise UnknownNameError("marker (named in the mapping file)", label, named)
    places = {**known_places([label for label in named if label not in given], skeleton), **given}
    known = _placed(places, skeleton, samples)
    if len(known) < fewest:
        layout, reasons, words = _by_geometry(recording, skeleton, named, len(known), fewest)
        loose = tuple(layout)
    else:
        carried = _carried_along(recording, known, [label for label in named if label not in known])
        layout = {label: {**known, **carried}[label] for label in named if label in known or label in carried}
        words = _in_words(named, places, carried, len(unlabelled))
        known_set = recognised(named)
        if known_set is not None:
            words = (f"marker set: {known_set.title}", *words)
        reasons = {
            label: f"moves along with {layout[label].joint}" if label in carried
            else "as the mapping says" if label in given
            else f"as {places[label]} by {known_set.title}" if known_set and known_set.place(label)
            else f"as {places[label]} by its name"
            for label in layout
        }  # fmt: skip
        on_joints = {*skeleton.roles, *skeleton.names}
        by_joint = [label for label, at in places.items() if isinstance(at, Handle) or at in on_joints]
        loose = (*by_joint, *carried)
    if computed:
        few = ", ".join(computed[:6]) + (", ..." if len(computed) > 6 else "")
        words = (*words, f"left out {len(computed)} points computed by a model: {few}")
    taken = [recording.labels.index(label) for label in layout]
    others = recording.points[:, unlabelled]
    by_place = {label: at for label, at in places.items() if isinstance(at, str)}
    markers = picked(recording, taken, list(layout))
    return MatchedTake(markers, layout, loose, others, words, by_place, reasons)


def _placed(mapping: Places, skeleton: Skeleton, samples: Array | None) -> dict[str, Handle]:
    """Labels to handles; a joint or role is itself, everything else is on the skin."""
    own, optical = {*skeleton.roles, *skeleton.names}, dict[str, Handle]()
    others = {place for place in mapping.values() if isinstance(place, str)} - own
    if others:
        optical = optical_layout(skeleton, samples=samples)
        own_sites = {place: sites()[place] for place in others if place in sites()}
        optical |= placed_spots(skeleton, own_sites, samples=samples)
    spots_given = {label: place for label, place in mapping.items() if isinstance(place, Spot)}
    found = placed_spots(skeleton, spots_given, samples=samples)
    for label, place in mapping.items():
        if isinstance(place, Handle):
            skeleton.index(place.joint)
            found[label] = place
        elif isinstance(place, Spot):
            continue
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
    frames, found = np.unique(np.linspace(0, len(recording) - 1, _LOOKED_AT).astype(int)), {}
    points, steadiness = recording.points[frames], dict[str, float]()
    for label in others:
        own = points[:, recording.index(label)]
        steadiness.clear()
        for joint in {handle.joint for handle in layout.values()}:
            fellows = [recording.index(name) for name, handle in layout.items() if handle.joint == joint]
            distances = np.linalg.norm(points[:, fellows] - own[:, None], axis=2)
            if len(fellows) >= 2 and np.isfinite(distances).any(axis=0).all():
                steadiness[joint] = float(np.nanstd(distances, axis=0).max())
        best = min(steadiness, key=lambda joint: steadiness[joint], default=None)
        still = (
            len(steadiness) > 2 and max(steadiness.values()) < _STEADY
        )  # of the whole body: it says nothing
        if best is not None and steadiness[best] < _STEADY and not still:
            x, y, z = np.mean([h.offset for h in layout.values() if h.joint == best], axis=0).tolist()
            found[label] = Handle(best, (x, y, z))
    return found


def _by_geometry(
    recording: Markers, skeleton: Skeleton, named: list[str], known: int, fewest: int
) -> tuple[dict[str, Handle], dict[str, str], tuple[str, ...]]:
    """Match a recording with uninformative labels by the geometry and movement of its points, with reasons."""
    try:
        found = match_by_geometry(skeleton, recording.points[:, [recording.labels.index(n) for n in named]])
    except InvalidValueError as error:
        shown = ", ".join(named[:8]) + (", ..." if len(named) > 8 else "")
        raise InvalidValueError(
            f"{recording.name}: {known} of {len(named)} marker labels are known and {fewest} are needed; "
            f"the labels are {shown or '(none)'}; a mapping file says what each is, such as "
            f'[markers] "Head1" = "LFHD"; known: {", ".join(OPTICAL_LABELS)}; {error}',
            settings=("map",),
        ) from error
    smaller, layout, on = skeleton.height / found.skeleton.height, {}, dict[str, list[str]]()
    reasons = {}
    for k, (label, j, offset, motion) in enumerate(
        zip(named, found.joints, found.offsets, found.motion, strict=True)
    ):
        if motion <= SURE:  # it moves with its segment
            layout[label] = Handle(found.skeleton.names[j], tuple(smaller * offset))
            on.setdefault(layout[label].joint, []).append(f"{label} ({1000 * motion:.0f} mm)")
            mirrors = f", mirrors {named[found.partners[k]]}" if found.partners[k] != k else ""
            reasons[label] = f"moves {1000 * motion:.0f} mm on it{mirrors}"
    words = [f"{len(layout)} of {len(named)} markers by geometry, since their labels are not known"]
    words += [f"on {joint}: {', '.join(on[joint])}" for joint in skeleton.names if joint in on]
    if left_out := [label for label in named if label not in layout]:
        words.append(f"left out, since they move on every body part: {', '.join(left_out)}")
    return layout, reasons, tuple(words)


def _in_words(
    named: list[str], places: Places, carried: Mapping[str, Handle], unlabelled: int
) -> tuple[str, ...]:
    same = [label for label, place in places.items() if label == place or label.upper() == place]
    words = [f"{len(same)} of {len(named)} markers by name"]
    words += [
        f"{label} is {place}"
        if isinstance(place, str)
        else f"{label} on {place.joint if isinstance(place, Handle) else place.on[0]}, as the mapping says"
        for label, place in places.items()
        if label not in same
    ]
    words += [f"{label} moves along with {handle.joint}" for label, handle in carried.items()]
    if left_out := [label for label in named if label not in {**places, **carried}]:
        words.append(
            f"left out, since they move with no part of the body, or with all of it: {', '.join(left_out)}"
        )
    return (*words, *([f"{unlabelled} points without a label may be anyone's"] if unlabelled else []))


@dataclass(frozen=True, eq=False)
class Match:
    """For every marker its joint, its position on it, its movement there (metres), and the one on the other side.

    A marker without a partner on the other side is its own.
    """

    joints: Int[Array, "markers"]
    offsets: Float[Array, "markers 3"]
    motion: Float[Array, "markers"]
    partners: Int[Array, "markers"]
    skeleton: Skeleton


def match_by_geometry(skeleton: Skeleton, points: Float[Array, "frames markers 3"]) -> Match:
    """Match unlabelled markers to the mannequin's segments; raise if the points do not determine it.

    A mannequin wears the 41-marker set as landmarks. A few frames are tried, each scaled to a person as tall as its
    markers: alternately, markers are assigned to their nearest landmarks and the body is posed to bring these landmarks
    to their markers, from several headings and arm positions (an articulated iterative closest point). The best
    candidates must then explain other frames of the take with the markers fixed to their segments, and the one with the
    least marker movement is kept. Finally a marker belongs to the segment it moves least on; markers with constant
    mutual distances belong to one segment, and markers of mirrored landmarks to mirrored segments.
    """
    whole = points[np.isfinite(points).all(axis=(1, 2))]
    if len(whole) < 2 or points.shape[1] < FEWEST:
        raise InvalidValueError(
            f"matching by geometry needs at least {FEWEST} markers that are seen together; got {points.shape[1]} "
            f"markers and {len(whole)} frames in which all are seen"
        )
    clusters = rigid_clusters(whole)
    # The person may stand where the markers are tallest, else in some frame spread over the take.
    tallest = int(np.argmax(np.ptp(whole[..., 1], axis=1)))
    tried = whole[np.unique(np.r_[_spread(len(whole), TRIED), tallest])]
    candidates = [found for frame in tried for found in _candidates(skeleton, frame, clusters)]
    candidates = sorted(candidates, key=lambda candidate: candidate.cost)[:KEPT]
    chosen = whole[_spread(len(whole), FRAMES)]
    best = min((one.matched(chosen) for one in candidates), key=lambda match: float(np.mean(match.motion)))
    moving = float(np.sqrt(np.mean(best.motion**2)))
    if moving > HONEST:
        raise InvalidValueError(
            f"the markers cannot be identified by geometry: at best they move by {1000 * moving:.0f} mm on their body "
            "parts, where 30 would do; a mapping file says where each is",
            settings=("map",),
        )
    return best


def rigid_clusters(points: Float[Array, "frames markers 3"]) -> list[Int[Array, "_"]]:
    """Groups of markers with constant mutual distances, largest first; single markers are their own group."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = np.linalg.norm(points[:, :, None] - points[:, None], axis=3)
    wobble = distances.std(axis=0)
    tree = linkage(squareform(wobble, checks=False), method="complete")
    numbers = fcluster(tree, RIGID, criterion="distance")
    return sorted((np.flatnonzero(numbers == k) for k in np.unique(numbers)), key=len, reverse=True)


class _Candidate:
    """A mannequin posed among the markers of one frame."""

    def __init__(self, space: PoseSpace, q: Array, points: Array, clusters: Sequence[Array]) -> None:
        self.space, self.q, self.points, self.clusters = space, q, points, clusters
        self.prior = BroadPrior(space, sigma=0.6)
        worn = optical_layout(space.skeleton)
        self.landmarks, names = space.handles(list(worn.values())), list(worn)
        others = [{"L": "R", "R": "L"}.get(name[0], name[0]) + name[1:] for name in names]
        self.mirrored = np.array(
            [names.index(b if b in names else a) for a, b in zip(names, others, strict=True)]
        )

    @property
    def cost(self) -> float:
        """The mean squared distance of landmarks from their markers, for a person of one metre."""
        return float(np.mean(self._nearest(self.q)[1] ** 2)) / self.space.skeleton.height**2

    def matched(self, frames: Float[Array, "n markers 3"]) -> Match:
        """Match segments by the least movement of markers on them in other frames."""
        q = self.posed(self.q, MORE_ROUNDS)
        chosen, _ = self._nearest(q)
        joints, own = self.landmarks.joints[chosen], np.arange(len(chosen))
        mirrored = chosen == self.mirrored[chosen][:, None]
        alone = (mirrored.sum(axis=1) != 1) | (mirrored.sum(axis=0) != 1)
        partners = np.where(alone, own, mirrored.argmax(axis=1))
        (positions,), (turns,) = self.space.forward(q[None])
        for _ in range(2):
            offsets, poses = _local(positions, turns, self.points, joints), []
            for points in frames:  # the pose moved rigidly to another frame's markers, then solved
                turn, shift, _ = rigid_fit(self.points, points)
                moved = q.copy()
                moved[:3] = turn @ q[:3] + shift
                turned = rotations.quaternion_from_matrix(turn)
                moved[3:ROOT_SIZE] = rotations.multiply(turned, q[3:ROOT_SIZE])
                poses.append(self._solved(moved, joints, offsets, points))
            joints, motion = self._steadiest(np.stack(poses), frames, joints, partners)
        offsets = _local(positions, turns, self.points, joints)
        return Match(joints, offsets, motion, partners, self.space.skeleton)

    def posed(self, q: Float[Array, "size"], rounds: int) -> Float[Array, "size"]:
        """The pose in which the landmarks are nearest to their markers, in alternating rounds."""
        for _ in range(rounds):
            chosen, _ = self._nearest(q)
            q = self._solved(q, self.landmarks.joints[chosen], self.landmarks.offsets[chosen], self.points)
        return q

    def _nearest(self, q: Float[Array, "size"]) -> tuple[Array, Array]:
        """Per marker its landmark, and the distance."""
        from scipy.optimize import linear_sum_assignment

        there = self.space.points(q[None], self.landmarks)[0]
        squares = np.square(self.points[:, None] - there[None]).sum(axis=2)
        chosen = np.argmin(squares, axis=1)
        rows, columns = linear_sum_assignment(squares)
        chosen[rows] = columns
        return chosen, np.sqrt(squares[np.arange(len(chosen)), chosen])

    def _solved(self, q: Array, joints: Array, offsets: Array, points: Array) -> Array:
        names = self.space.skeleton.names
        constraints = [
            Position(Handle(names[j], (x, y, z)), point, tolerance=NEAR, name=f"marker {number}")
            for number, (j, (x, y, z), point) in enumerate(zip(joints, offsets.tolist(), points, strict=True))
        ]
        return Solver(self.prior, constraints).solve(q).q

    def _steadiest(self, poses: Array, frames: Array, joints: Array, partners: Array) -> tuple[Array, Array]:
        """The segment each marker moves least on, and that movement: its own, a neighbour, or its rigid cluster's.

        Of two markers that mirror each other, the sum decides.
        """
        positions, turns = self.space.forward(poses)
        local = np.einsum("fjba,fmjb->fmja", turns, frames[:, :, None] - positions[:, None])
        motion = np.sqrt(np.square(local - local.mean(axis=0)).sum(axis=3).mean(axis=0))
        every, parents = np.arange(motion.shape[1]), self.space.skeleton.parents
        own, common = every == joints[:, None], joints.copy()
        near = own | (every == parents[joints][:, None]) | (parents == joints[:, None])
        for members in self.clusters:  # the segment of most markers in a rigid cluster
            values, counts = np.unique(joints[members], return_counts=True)
            if 2 * counts.max() > len(members):
                common[members] = values[counts.argmax()]
        allowed = near & np.isin(every, self.landmarks.joints) | (every == common[:, None])
        cost = np.where(allowed, motion + CHANGES * ~own, np.inf)
        other = cost[partners][:, mirror_joints(self.space.skeleton)]
        paired = (partners != np.arange(len(joints)))[:, None]
        found = np.argmin(np.where(paired, cost + other, cost), axis=1)
        return found, motion[np.arange(len(found)), found]


def _local(positions: Array, turns: Array, points: Array, joints: Array) -> Float[Array, "markers 3"]:
    return np.asarray(np.einsum("mba,mb->ma", turns[joints], points - positions[joints]))


def _spread(count: int, wanted: int) -> Int[Array, "chosen"]:
    return np.unique(np.linspace(0, count - 1, wanted).astype(np.int64))


def _candidates(
    skeleton: Skeleton, points: Float[Array, "markers 3"], clusters: Sequence[Int[Array, "_"]]
) -> list[_Candidate]:
    """The mannequin standing at the markers, at all headings, with its arms out, down, up and bent."""
    space = PoseSpace(skeleton.scaled(float(np.ptp(points[:, 1])) / skeleton.height))
    found, number = [], {joint: k for k, joint in enumerate(space.moving.tolist())}
    for down, bent in ARMS:
        maps = np.zeros((len(space.moving), 3))
        for side, sign in (("left", -1.0), ("right", 1.0)):
            maps[number[skeleton.index(f"{side}_upper_arm")], 2] = sign * down
            maps[number[skeleton.index(f"{side}_forearm")], 1] = sign * bent
        for heading in np.linspace(0.0, 2.0 * np.pi, HEADINGS, endpoint=False):
            turn = rotations.quaternion_from_euler(np.array([heading]), "Y")
            q = np.concatenate([np.zeros(3), turn, maps.ravel()])
            (positions,), _ = space.forward(q[None])
            q[:3] = points.mean(axis=0)
            q[1] = points[:, 1].min() - positions[:, 1].min()
            found.append(_Candidate(space, q, points, clusters))
    best = sorted(found, key=lambda one: one.cost)[:STARTS]
    for one in best:
        one.q = one.posed(one.q, ROUNDS)
    return best
