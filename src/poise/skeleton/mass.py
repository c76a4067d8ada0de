"""Mass distribution of a body: anthropometric segments on any skeleton, for the centre of mass and its Jacobian.

Masses and centres along the segments are those of de Leva (1996), "Adjustments to Zatsiorsky-Seluyanov's segment
inertia parameters", Journal of Biomechanics 29(9), table 4: a share of the body's mass, and a share of the segment's
length measured from its upper end. The head's and hand's centres are given from the skull's joint and from the wrist.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.skeleton.measure import HEAD_TO_CROWN, offset_between, standing_height
from poise.skeleton.neutral import LEFT, UP, Neutral, neutral_pose
from poise.skeleton.roles import ARM_ROLES, LEG_ROLES, SIDES, path
from poise.skeleton.skeleton import Skeleton, read_only
from poise.types import Array

# Segment: mass of women and men in percent of the body's, then the centre's distance from the upper joint in percent.
_DE_LEVA: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "head": ((6.68, 6.94), (50.0, 50.0)),
    "upper_trunk": ((15.45, 15.96), (50.0, 50.0)),
    "middle_trunk": ((14.65, 16.33), (50.0, 50.0)),
    "lower_trunk": ((12.47, 11.17), (50.0, 50.0)),
    "upper_arm": ((2.55, 2.71), (57.54, 57.72)),
    "forearm": ((1.38, 1.62), (45.59, 45.74)),
    "hand": ((0.56, 0.61), (74.74, 79.00)),
    "thigh": ((14.78, 14.16), (36.12, 40.95)),
    "shin": ((4.81, 4.33), (43.52, 43.95)),
    "foot": ((1.29, 1.37), (40.14, 44.15)),
}
_HAND_LENGTH = 0.050  # wrist to the third knuckle, of stature


@dataclass(frozen=True, eq=False)
class Masses:
    """Per joint, its share of the body's mass (the sum is 1) and its centre in the joint's axes, in metres."""

    fraction: Float[Array, "joints"]
    centre: Float[Array, "joints 3"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", read_only(self.fraction))
        object.__setattr__(self, "centre", read_only(self.centre))


def segment_masses(skeleton: Skeleton, *, maleness: float = 0.5) -> Masses:
    """Masses by role, interpolated between the tables for women (0) and men (1); by bone length without roles."""
    if not 0.0 <= maleness <= 1.0:
        raise InvalidValueError(f"`maleness` must be between 0 and 1; got {maleness}")
    known = {"pelvis", "head", *(f"{side}_{part}" for side in SIDES for part in ("thigh", "shin", "foot"))}
    if not known <= set(skeleton.roles):
        return masses_by_length(skeleton)
    points = [*_trunk_points(skeleton), *_limb_points(skeleton, neutral_pose(skeleton), maleness)]
    mix = np.array([1.0 - maleness, maleness])
    weighted = [(at, place, share * float(mix @ _DE_LEVA[part][0])) for part, at, place, share in points]
    return _weighted(skeleton, weighted)


def masses_by_length(skeleton: Skeleton) -> Masses:
    """Mass in proportion to bone length, at the middle of each bone, carried by the joint that rotates it."""
    lengths = np.linalg.norm(skeleton.offsets, axis=-1)
    points = [
        (parent, 0.5 * skeleton.offsets[joint], float(lengths[joint]))
        for joint, parent in enumerate(skeleton.parents.tolist())
        if parent >= 0
    ]
    if not any(weight > 0 for _, _, weight in points):
        points = [(0, np.zeros(3), 1.0)]
    return _weighted(skeleton, points)


# --- segments on joints --------------------------------------------------------------------------------------------

_Point = tuple[str, int, Array, float]  # segment, joint, position in its axes, share of the segment


def _weighted(skeleton: Skeleton, points: list[tuple[int, Array, float]]) -> Masses:
    """Masses from weighted points, normalised to a sum of 1 even if limbs are missing."""
    joints = [joint for joint, _, _ in points]
    weights = np.array([weight for _, _, weight in points])
    weights = weights / weights.sum()
    fraction, moment = np.zeros(len(skeleton)), np.zeros((len(skeleton), 3))
    np.add.at(fraction, joints, weights)
    np.add.at(moment, joints, weights[:, None] * np.array([place for _, place, _ in points]))
    return Masses(fraction, moment / np.where(fraction > 0, fraction, 1.0)[:, None])


def _trunk_points(skeleton: Skeleton) -> list[_Point]:
    """The lower trunk around the pelvis, the middle along the spine, the upper from the chest to the neck."""
    roles = skeleton.roles
    chest = "chest" if "chest" in roles else "pelvis"
    hips = [offset_between(skeleton, "pelvis", f"{side}_thigh") for side in SIDES]
    pelvis = skeleton.index("pelvis")
    points: list[_Point] = [("lower_trunk", pelvis, 0.5 * np.mean(hips, axis=0), 1.0)]
    points += _along(skeleton, "middle_trunk", path(skeleton, pelvis, skeleton.index(chest)))
    tops = ["neck" if "neck" in roles else "head", *(f"{side}_upper_arm" for side in SIDES)]
    ends = [offset_between(skeleton, chest, role) for role in tops if role in roles]
    points.append(("upper_trunk", skeleton.index(chest), 0.5 * np.mean(ends, axis=0), 1.0))
    return points


def _limb_points(skeleton: Skeleton, neutral: Neutral, maleness: float) -> list[_Point]:
    height, head = standing_height(skeleton), skeleton.index("head")
    points: list[_Point] = [("head", head, neutral.local(head, 0.5 * HEAD_TO_CROWN * height * UP), 1.0)]
    for side, out in (("left", LEFT), ("right", -LEFT)):
        for segment, end in itertools.chain(
            itertools.pairwise(ARM_ROLES[1:]), itertools.pairwise(LEG_ROLES[:3])
        ):
            top, bottom = f"{side}_{segment}", f"{side}_{end}"
            if top in skeleton.roles and bottom in skeleton.roles:
                joints = path(skeleton, skeleton.index(top), skeleton.index(bottom))
                points += _along(skeleton, segment, joints, centre=_centre(segment, maleness))
        if f"{side}_hand" in skeleton.roles:
            hand = skeleton.index(f"{side}_hand")
            reach = _centre("hand", maleness) * _HAND_LENGTH * height
            points.append(("hand", hand, neutral.local(hand, reach * out), 1.0))
        foot, toes = f"{side}_foot", f"{side}_toes"
        place = offset_between(skeleton, foot, toes) if toes in skeleton.roles else np.zeros(3)
        points.append(("foot", skeleton.index(foot), _centre("foot", maleness) * place, 1.0))
    return points


def _along(skeleton: Skeleton, segment: str, joints: list[int], *, centre: float = 0.5) -> list[_Point]:
    """A segment on the bones between joints: at its centre on a single bone, spread by length over several.

    Roles given by hand may not be on one chain; then there are no joints between them, and no points.
    """
    if not joints:
        return []
    bones = [(top, skeleton.offsets[end]) for top, end in itertools.pairwise(joints)]
    lengths = np.array([float(np.linalg.norm(bone)) for _, bone in bones])
    if lengths.sum() == 0:
        return [(segment, joints[-1], np.zeros(3), 1.0)]
    where = centre if np.count_nonzero(lengths) == 1 else 0.5
    spread = zip(bones, (lengths / lengths.sum()).tolist(), strict=True)
    return [(segment, top, where * bone, share) for (top, bone), share in spread if share]


def _centre(segment: str, maleness: float) -> float:
    women, men = _DE_LEVA[segment][1]
    return ((1.0 - maleness) * women + maleness * men) / 100.0
