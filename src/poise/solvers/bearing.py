"""Default posture of a body: hips keep their heading, and the centre of mass stays over the support.

These are soft constraints: handles overrule them, and so does a model trained on other poses. A body part's share of
the support fades out with its height above the floor, so the support changes smoothly while a foot is lifted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from poise.skeleton import clearance
from poise.skeleton.neutral import LEFT, UP, neutral_pose
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.ranges import edges
from poise.skeleton.roles import MAIN_ROLES, SIDES
from poise.skeleton.skeleton import Pose, Skeleton, kept_for_body
from poise.solvers.constraints import (
    Apart,
    Beyond,
    CentreOfMass,
    Constraint,
    HalfSpace,
    Inside,
    LookAt,
    Plane,
    Position,
)
from poise.types import Array, PoseVector

Vec3 = tuple[float, float, float]
Place = Float[Array, "3"] | Sequence[float]
Places = Mapping[str, Place]
_Corners = tuple[tuple[float, float], ...]
_Carrier = tuple[_Corners, float]

FLOOR_ROLES = ("left_foot", "right_foot", "left_toes", "right_toes")
TURN = 0.12  # radians: tolerance of the hips' heading
SWAY = 0.02  # metres: tolerance of the centre of mass beyond the support
MARGIN = 0.02  # metres: margin kept inside the edge of the support
AWAY = 5000.0  # metres to the point that a part is aimed at: so far that its position does not change its direction
# of the foot: its length behind the ankle and beyond the toes; of stature: half its width
HEEL, TIP, SIDE = 0.35, 0.35, 0.025
SWING = (0.25, 0.3)  # radians: tolerance of an idle upper arm and forearm
HANGS = ((-0.15, 0.06), (0.3, 0.0))  # radians: how far they hang forward and outward, as in recordings
SPREAD = ((0.1, 0.8), (0.6, 0.7))  # the same of arms that balance a high foot
ARM, LEG = ("upper_arm", "forearm", "hand"), ("thigh", "shin", "foot")
STRAIGHT, STRETCH = 0.985, 0.04  # of a leg's length: from hip to ankle in a kick; and its tolerance in metres
UPRIGHT = 0.08  # radians: tolerance of the trunk on a chair
TURNS, MOST_TURN = (
    math.radians(75.0),
    math.radians(120.0),
)  # a gaze further aside turns the hips, at most so far
HEEL_UP = 0.7  # of a foot's length: largest height of an ankle above rest with its toes on the floor
NEARBY = 0.03  # metres: distance at which two body parts are kept apart
TOUCH = 0.01  # metres: tolerance of that constraint
FLESH = {
    "pelvis": 0.04,
    "spine": 0.04,
    "chest": 0.04,
    "head": 0.04,
    "shin": 0.025,
    "forearm": 0.018,
    "hand": 0.012,
}
# of stature: from a joint to the skin below it, where a body lies, sits or kneels
LOW = 0.06  # metres above the floor at which a part is kept above it while a handle is dragged
EASY, EASE = 0.998, 0.01  # of the height of a straight body, and metres: a relaxed stand and its tolerance
FIRM = 0.002  # metres: tolerance of parts above the floor
SUNK = 0.005  # metres: how far below the floor a part may be, and a handle before a note says so
STEP, BRACED = 0.02, 0.03  # metres: tolerance of a foot that steps under the body, and of one that braces it
SPENT = math.radians(
    36.0
)  # how far an ankle bends up before the heel lifts (Konor et al. 2012: 30 to 40 degrees)
SPRING = 0.004  # metres: tolerance of the distance from knee to toes that this gives
EDGE, CLOSE = (
    math.radians(1.0),
    math.radians(4.0),
)  # tolerance of people's ranges; how near a drag looks at them
CARRIES = 0.5  # the height of a unit normal from which a surface carries weight
PUSH = 0.2  # of the weight: a push against a surface that does not
SEAT = 0.07  # half the width of a seat, of stature
LIFTED = 0.07  # of stature: a foot, hand or knee this high above its rest height carries no weight
SEATED, STANDING = 0.75, 0.9  # of the standing hip height: below it a seat carries fully, above it not at all
ADRIFT = 1.0  # metres by which the support grows when nothing carries the body


def heading_of(pose: Pose) -> Float[Array, "3"] | None:
    """Return the hips' heading in the ground plane; None without hips, or when they lie on their side."""
    if "pelvis" not in pose.skeleton.roles:
        return None
    x, _, z = pose.world[1][pose.skeleton.index("pelvis")] @ _body(pose.skeleton).left
    size = np.hypot(x, z)
    return np.array([-z, 0.0, x]) / size if size > 0.2 else None


def facing(heading: Place, skeleton: Skeleton, *, at: Place, tolerance: float = TURN) -> LookAt:
    """A soft constraint: the hips keep `heading` and stay level; `at` is their approximate position."""
    aside = (at[0] + AWAY * heading[2], at[1], at[2] - AWAY * heading[0])
    return LookAt("pelvis", aside, tuple(_body(skeleton).left), tolerance=tolerance, name="heading")


def balance_over(support: Float[Array, "4 2"], *, sway: float = SWAY) -> CentreOfMass:
    """A soft constraint: the centre of mass stays over a support."""
    corners = tuple([(x, z) for x, z in support.tolist()])
    return CentreOfMass(corners, tolerance=sway, name="balance")


def stepped(
    places: Places,
    corners: Float[Array, "4 2"],
    centre: Float[Array, "3"],
    *,
    held: Collection[str],
) -> tuple[Places, list[Constraint]]:
    """The places with free feet moved as far as the centre of mass is outside the support, and soft constraints for it.

    Without these the feet would follow a body that moves to be above them.
    """
    middle, sides = corners.mean(axis=0), np.stack([corners[1] - corners[0], corners[3] - corners[0]])
    reach = np.linalg.norm(sides, axis=1)
    along = (np.array([centre[0], centre[2]]) - middle) @ (sides / reach[:, None]).T
    x, z = (along - np.clip(along, -reach / 2, reach / 2)) @ (sides / reach[:, None])
    feet = [side for side in SIDES if {f"{side}_foot", f"{side}_toes"}.isdisjoint(held)]
    feet = [f"{side}_foot" for side in feet if f"{side}_foot" in places]
    moved = dict(places)
    for role in FLOOR_ROLES:
        if role in places and f"{role.partition('_')[0]}_foot" in feet:
            moved[role] = places[role] + np.array([x, 0.0, z])
    return moved, [
        Position(role, moved[role], tolerance=STEP, name=f"{role} under the body") for role in feet
    ]


def balanced_among(
    moments: Sequence[Places], skeleton: Skeleton, *, held: Collection[str] = ()
) -> CentreOfMass | None:
    """The same for a moving body: the centre of mass stays over the union of the supports at `moments`."""
    found = [support(places, skeleton, held=held) for places in moments]
    known = [corners for corners in found if corners is not None]
    return balance_over(_rectangle(np.concatenate(known), 0.0)) if known else None


def with_toes(places: Places, skeleton: Skeleton, forward: Float[Array, "3"]) -> Places:
    """Add toes to `places` where only the ankle is known: ahead of it, and on the floor if the heel may be up."""
    body, found = _body(skeleton), dict(places)
    for side in SIDES:
        foot, toes = f"{side}_foot", f"{side}_toes"
        if foot not in places or toes in places or toes not in body.rest:
            continue
        length = float(np.linalg.norm(skeleton.offsets[skeleton.index(toes)]))
        lifted = max(0.0, places[foot][1] - body.rest[foot] - HEEL_UP * length)
        below = np.asarray(places[foot]) * (1.0, 0.0, 1.0)
        found[toes] = below + length * forward + (0.0, body.rest[toes] + lifted, 0.0)
    return found


def support(
    places: Places,
    skeleton: Skeleton,
    *,
    held: Collection[str] = (),
    loads: Sequence[tuple[Place, Vec3]] = (),
    margin: float = MARGIN,
) -> Float[Array, "4 2"] | None:
    """Return the rectangle on the ground (x, z) that the centre of mass stays in; None if no foot is known.

    Low feet and knees carry weight; hands and hips only if they are in `held`. Each carrier is drawn towards the middle
    by the fraction that it does not carry. `loads` are points on other surfaces, with the normals of those: one that
    faces up carries weight, and a push against another moves the rectangle towards it.
    """
    carriers = _carriers(places, skeleton, held)
    for place, normal in loads:
        if normal[1] >= CARRIES:
            carriers.append((_square(place, SIDE * skeleton.height), 1.0))
    if not carriers:
        return None
    corners, carried = zip(*carriers, strict=True)
    prints, shares = np.array(corners), np.array(carried)
    firm = shares + 1e-3  # keeps the weights positive when nothing carries the body
    middle = firm @ np.add.reduce(prints, axis=1) / (4.0 * np.add.reduce(firm))
    points = middle + shares[:, None, None] * (prints - middle)
    found = _rectangle(points.reshape(-1, 2), margin - ADRIFT * (1.0 - max(carried)))
    if not loads:
        return found
    pushes = [float(place[1]) * np.array(normal) for place, normal in loads if abs(normal[1]) < CARRIES]
    return found - PUSH * np.mean(pushes, axis=0)[[0, 2]] if pushes else found


def hanging(
    skeleton: Skeleton,
    *,
    busy: Collection[int],
    at: Place,
    heading: Place | None = None,
    spread: bool = False,
) -> list[Constraint]:
    """Soft constraints: arms without `busy` joints hang down, elbows a little bent if the `heading` is known.

    `at` is the body's approximate position. In a kick they are `spread` for balance.
    """
    found: list[Constraint] = []
    forward = np.zeros(3) if heading is None else np.asarray(heading)
    for side, outward in zip(SIDES, (1.0, -1.0), strict=True):
        parts = [f"{side}_{part}" for part in ("upper_arm", "forearm", "hand")]
        if not set(parts) <= set(skeleton.roles) or not below(skeleton, parts[0]).isdisjoint(busy):
            continue
        aside = outward * np.array([forward[2], 0.0, -forward[0]])
        for upper, lower, sway, (ahead, out) in zip(
            parts[:-1], parts[1:], SWING, SPREAD if spread else HANGS, strict=True
        ):
            bone = tuple(skeleton.offsets[skeleton.index(lower)])
            way = ahead * forward + out * aside - (0.0, 1.0, 0.0)
            down = tuple((np.asarray(at) + AWAY * way).tolist())
            found.append(LookAt(upper, down, bone, tolerance=sway, name=f"{side} arm hangs"))
    return found


def seated(skeleton: Skeleton, *, at: Place) -> list[Constraint]:
    """A soft constraint: the trunk of a body on a chair is upright."""
    if not {"chest", "pelvis"} <= skeleton.roles.keys():
        return []
    up = tuple(neutral_pose(skeleton).local(skeleton.index("chest"), UP))
    above = (at[0], at[1] + AWAY, at[2])
    return [LookAt("chest", above, up, tolerance=UPRIGHT, name="upright on a seat")]


def at_rest(skeleton: Skeleton, role: str) -> float:
    """The height of a foot or toes above the floor in a stand."""
    return _body(skeleton).rest[role]


def braced(feet: Mapping[str, Vec3], heading: Place, skeleton: Skeleton) -> list[Constraint]:
    """Soft constraints: feet at these places, and hips with this heading."""
    found = [Position(role, at, tolerance=BRACED, name=f"{role} braced") for role, at in feet.items()]
    return [*found, facing(heading, skeleton, at=next(iter(feet.values())))]


def stretched(skeleton: Skeleton, side: str, limb: Sequence[str], share: float) -> list[Constraint]:
    """A soft constraint: a limb, named by its three joints, is stretched to at least a share of its length."""
    joints = [f"{side}_{part}" for part in limb]
    if not set(joints) <= skeleton.roles.keys():
        return []
    length = sum(float(np.linalg.norm(skeleton.offsets[skeleton.index(role)])) for role in joints[1:])
    name = f"{side} {limb[0]} stretched"
    return [Beyond(joints[0], joints[2], share * length, tolerance=STRETCH, name=name)]


def turn_towards(heading: Place, gaze: Place) -> float:
    """The angle by which hips and feet turn to the left, for a gaze further aside than neck and trunk turn."""
    x, z, ahead = float(gaze[0]), float(gaze[2]), math.atan2(float(heading[0]), float(heading[2]))
    angle = math.remainder(math.atan2(x, z) - ahead, 2.0 * math.pi)
    return math.copysign(max(abs(angle) - TURNS, 0.0), angle)


def turned(way: Place, angle: float) -> Vec3:
    """A vector turned to the left about the vertical."""
    (x, y, z), cos, sin = map(float, way), math.cos(angle), math.sin(angle)
    return cos * x + sin * z, y, cos * z - sin * x


def apart(
    skeleton: Skeleton, positions: Float[Array, "joints 3"], *, nearby: float = NEARBY
) -> list[Constraint]:
    """Soft constraints that keep limbs out of nearby body parts, or push them out.

    They give way a little, so a limb that one solve kept out is still nearby for the next.
    """
    if not skeleton.roles.keys() >= _MAIN_ROLES:
        return []
    return [
        _apart(skeleton, limb, part, clearance.nearest_bone(skeleton, positions, limb, part))
        for limb, part in clearance.pairs_within(skeleton, positions, nearby)
    ]


def above_floor(
    firm: Firm, positions: Float[Array, "joints 3"], *, floor: float, held: Collection[int], moving: bool
) -> list[Constraint]:
    """Soft constraints that keep hands, fingers, knees, seat, head, back and toes above the floor, if one is below it.

    Handles overrule them: `held` are the joints that have one. In a `moving` body, what is low may be below it next.
    """
    heights = positions[firm.parts, 1] - firm.skin - floor
    if not moving and np.minimum.reduce(heights, initial=0.0) > -SUNK:
        return []
    low = zip(firm.parts.tolist(), firm.skin.tolist(), heights.tolist(), strict=True)
    return [_above(firm, joint, floor + skin) for joint, skin, gap in low if gap < LOW and joint not in held]


def below_floor(asked: Sequence[Constraint], floor: float) -> tuple[str, ...]:
    """A note for every handle that is asked for below the floor."""
    deep = [(one, floor - float(one.target[1])) for one in asked if isinstance(one, Position)]
    return tuple(
        [f"the {one.label} is {100 * depth:.1f} cm below the floor" for one, depth in deep if depth > SUNK]
    )


def at_ease(skeleton: Skeleton, floor: float = 0.0, heading: Place = (0.0, 0.0, 1.0)) -> list[Constraint]:
    """Soft constraints of a relaxed stand: feet under the hips, legs and back nearly straight."""
    ahead = math.atan2(float(heading[0]), float(heading[2]))
    body = neutral_pose(skeleton).positions
    up = floor - float(body[:, 1].min())
    roles = [role for role in ("pelvis", "head", "left_foot", "right_foot") if role in skeleton.roles]
    found: list[Constraint] = []
    for role in roles:
        x, y, z = body[skeleton.index(role)] - body[0] * (1.0, 0.0, 1.0) + (0.0, up, 0.0)
        height = y if role.endswith("foot") else EASY * y
        place = turned((x, height, z), ahead)
        found.append(Position(role, place, tolerance=EASE, name=f"{role} at ease"))
    return found


def within_people(space: PoseSpace, q: PoseVector, *, nearby: float = 0.0) -> list[Constraint]:
    """Soft constraints that keep parts within the ranges of people, where a pose is beyond them or `nearby`."""
    return [
        Inside(edge.excess, edge.slope, q, tolerance=EDGE, name=edge.name)
        for edge in edges(space, q, nearer=nearby)
    ]


def heels(firm: Firm, positions: Float[Array, "joints 3"], *, nearby: float = 0.0) -> list[Constraint]:
    """Soft constraints that lift the heel of a foot whose ankle would bend farther than people's (`SPENT`)."""
    found: list[Constraint] = []
    for knee, toes, ankle in firm.ankles:
        if math.dist(positions[knee], positions[toes]) < ankle.distance + nearby:
            found.append(ankle)
    return found


def standing(
    skeleton: Skeleton, positions: Float[Array, "joints 3"], sides: Sequence[str], *, floor: float = 0.0
) -> list[Constraint]:
    """Put the lower foot of some sides on the floor, before any handle; nothing if it is there already."""
    body, places = _body(skeleton), places_among(skeleton, positions)
    heights = dict[str, float]()
    for side in sides:
        parts = [role for role in (f"{side}_foot", f"{side}_toes") if role in places]
        if f"{side}_foot" in places:
            heights[side] = float(min([places[role][1] - body.rest[role] for role in parts])) - floor
    lower = min(heights, key=heights.__getitem__, default=None)
    if lower is None or abs(heights[lower]) < SWAY:
        return []
    end = f"{lower}_toes" if f"{lower}_toes" in places else f"{lower}_foot"
    return [Plane(end, (0.0, floor + body.rest[end], 0.0), priority=1, name=f"{lower} foot on the floor")]


def free_sides(skeleton: Skeleton, placed: Collection[int]) -> tuple[str, ...]:
    """The sides whose foot and toes have no handle."""
    feet = {side: [f"{side}_foot", f"{side}_toes"] for side in SIDES}
    return tuple(
        side
        for side, roles in feet.items()
        if not any(role in skeleton.roles and skeleton.index(role) in placed for role in roles)
    )


def near_the_floor(feet: Sequence[str], skeleton: Skeleton, height: float = 0.0) -> list[Constraint]:
    """Soft constraints: feet (by role) are near the floor, with their toes where they have some."""
    rest = _body(skeleton).rest
    ends = [role for role in feet if role.endswith("toes")] or feet
    return [
        Plane(end, (0.0, height + rest[end], 0.0), tolerance=SWAY, name=f"{end} near the floor")
        for end in ends
    ]


def places_of(pose: Pose) -> dict[str, Place]:
    """Positions of the parts that can carry the body, by role."""
    return places_among(pose.skeleton, pose.world[0])


def places_among(skeleton: Skeleton, positions: Float[Array, "joints 3"]) -> dict[str, Place]:
    """The same from the positions of all joints."""
    return {role: positions[joint] for role, joint in _body(skeleton).joints.items()}


def overhang(
    pose: Pose,
    centre: Float[Array, "3"],
    *,
    held: Collection[str] = (),
    loads: Sequence[tuple[Place, Vec3]] = (),
) -> float:
    """Distance of the centre of mass outside the support of a pose, in metres; negative inside."""
    corners = support(places_of(pose), pose.skeleton, held=held, loads=loads, margin=0.0)
    return 0.0 if corners is None else outside(corners, centre)


def outside(corners: Float[Array, "4 2"], centre: Float[Array, "3"]) -> float:
    """Distance of a centre of mass outside a rectangle on the ground, in metres; negative inside."""
    (x, z), (one_x, one_z), _, (other_x, other_z) = corners.tolist()
    found, at = [], (float(centre[0]) - x, float(centre[2]) - z)
    for dx, dz in ((one_x - x, one_z - z), (other_x - x, other_z - z)):
        reach = math.hypot(dx, dz)
        found.append(abs((dx * at[0] + dz * at[1]) / reach - reach / 2) - reach / 2)
    return max(found)


@dataclass(frozen=True, eq=False)
class Firm:
    """What a body cannot do: pass through the floor, or bend its ankles beyond their range."""

    skeleton: Skeleton
    parts: Int[Array, "parts"]
    """The joints that can touch the floor, besides the soles."""
    skin: Float[Array, "parts"]
    """Their heights when they do."""
    ankles: tuple[tuple[int, int, Beyond], ...]
    """Knees and toes, and their least distance."""


@dataclass(frozen=True, eq=False)
class _Stature:
    """A skeleton's stature, the left direction in the hips' own frame, and the heights of its parts when standing."""

    stature: float
    left: Float[Array, "3"]
    rest: Mapping[str, float]
    joints: Mapping[str, int]


_MAIN_ROLES = frozenset(MAIN_ROLES)
_ROLES = (*FLOOR_ROLES, "left_shin", "right_shin", "left_hand", "right_hand", "pelvis")


@kept_for_body
def _body(skeleton: Skeleton) -> _Stature:
    neutral = neutral_pose(skeleton)
    heights = neutral.positions[:, 1] - neutral.positions[:, 1].min()
    roles = [role for role in _ROLES if role in skeleton.roles]
    rest = {role: float(heights[skeleton.index(role)]) for role in roles}
    rest |= {role: 0.04 * skeleton.height for role in roles if role.endswith(("shin", "hand"))}
    hips = skeleton.index("pelvis") if "pelvis" in skeleton.roles else 0
    joints = {role: skeleton.index(role) for role in roles}
    return _Stature(skeleton.height, neutral.local(hips, LEFT), rest, joints)


@kept_for_body
def below(skeleton: Skeleton, role: str) -> frozenset[int]:
    """The joint of a role and all its descendants; none if there is no such joint."""
    if role not in skeleton.roles:
        return frozenset()
    top = skeleton.index(role)
    return frozenset(joint for joint in range(len(skeleton)) if top in skeleton.chain(skeleton.names[joint]))


@kept_for_body
def _apart(skeleton: Skeleton, limb: str, part: str, bone: str) -> Constraint:
    distance = clearance.between(skeleton, limb, part)
    return Apart(limb, bone, distance, tolerance=TOUCH, name=f"{limb} beside {bone}")


@kept_for_body
def firm_of(skeleton: Skeleton) -> Firm:
    """What a body cannot do: its parts that can touch the floor besides the soles, and its ankles."""
    roles = {
        skeleton.index(role): role.removeprefix("left_").removeprefix("right_") for role in skeleton.roles
    }
    sole = {skeleton.index(role) for role in FLOOR_ROLES if role in skeleton.roles}
    tips = set(range(len(skeleton))) - set(skeleton.parents.tolist())
    parts = sorted((tips | {joint for joint, role in roles.items() if role in FLESH}) - sole)
    skin = [FLESH.get(roles.get(joint, ""), 0.0) * skeleton.height for joint in parts]
    ankles = []
    for side in SIDES:
        ends = [f"{side}_{part}" for part in ("shin", "foot", "toes")]
        if skeleton.roles.keys() >= set(ends):
            places, (knee, ankle, toes) = neutral_pose(skeleton).positions, map(skeleton.index, ends)
            shin, foot = places[knee] - places[ankle], places[toes] - places[ankle]
            one, other = float(np.linalg.norm(shin)), float(np.linalg.norm(foot))
            bend = math.acos(float(shin @ foot) / (one * other)) - SPENT
            least = math.sqrt(one**2 + other**2 - 2.0 * one * other * math.cos(bend))
            name = f"{side} ankle"
            ankles.append((knee, toes, Beyond(ends[0], ends[2], least, tolerance=SPRING, name=name)))
    return Firm(skeleton, np.array(parts, dtype=np.int64), np.array(skin), tuple(ankles))


@lru_cache(maxsize=1024)
def _above(firm: Firm, joint: int, height: float) -> HalfSpace:
    name = firm.skeleton.names[joint]
    return HalfSpace(name, (0.0, height, 0.0), tolerance=FIRM, name=f"{name} above the floor")


def _carriers(places: Places, skeleton: Skeleton, held: Collection[str]) -> list[_Carrier]:
    """Footprints of feet and other carrying parts, each with the fraction (0 to 1) to which it carries weight."""
    body, found = _body(skeleton), list[_Carrier]()
    low, wide = LIFTED * body.stature, SIDE * body.stature
    for side in SIDES:
        if (foot := f"{side}_foot") in places:
            x, height, z = map(float, places[foot])
            height -= body.rest[foot]
            if (toes := f"{side}_toes") in places:
                toe_x, toe_height, toe_z = map(float, places[toes])
                dx, dz, height = toe_x - x, toe_z - z, min(height, toe_height - body.rest[toes])
                away = wide / max(math.hypot(dx, dz), 1e-3)
                sides = ((-HEEL, away), (-HEEL, -away), (1.0 + TIP, -away), (1.0 + TIP, away))
                footprint = tuple([(x + far * dx - out * dz, z + far * dz + out * dx) for far, out in sides])
            else:
                footprint = _square(places[foot], 2.0 * wide)
            found.append((footprint, min(max(1.0 - height / low, 0.0), 1.0)))
        for role in (f"{side}_shin", f"{side}_hand"):
            if role in places and (role.endswith("shin") or role in held):
                share = min(1.0 - (float(places[role][1]) - body.rest[role]) / low, 1.0)
                found += [(_square(places[role], wide), share)] if share > 0.0 else []
    if "pelvis" in held and "pelvis" in places:
        seated = float(places["pelvis"][1]) / body.rest["pelvis"]
        share = min(max((STANDING - seated) / (STANDING - SEATED), 0.0), 1.0)
        found += [(_square(places["pelvis"], SEAT * body.stature), share)] if share > 0.0 else []
    return found


def _square(point: Place, half: float) -> _Corners:
    x, z = float(point[0]), float(point[2])
    return (x + half, z + half), (x + half, z - half), (x - half, z - half), (x - half, z + half)


def _rectangle(points: Float[Array, "points 2"], margin: float) -> Float[Array, "4 2"]:
    """A rectangle around the points along their principal axis, smaller by `margin` on every side."""
    away = points - np.add.reduce(points) / len(points)
    (xx, xz), (_, zz) = (away.T @ away).tolist()
    angle = 0.5 * math.atan2(2.0 * xz, xx - zz)
    axes = np.array([[-math.sin(angle), math.cos(angle)], [math.cos(angle), math.sin(angle)]])
    seen = points @ axes
    low, high = np.minimum.reduce(seen), np.maximum.reduce(seen)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2 - margin, 0.005)
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return np.asarray((middle + corners * half) @ axes.T)
