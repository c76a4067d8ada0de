"""How a body bears itself where nothing else is asked: hips that keep facing one way, weight over what carries it.

These are soft constraints, so a model that has seen otherwise, and every handle, can overrule them. What carries a body
fades out with its height above the floor, so that the support changes steadily under a hand that lifts a foot.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from poise.skeleton import clearance
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.neutral import LEFT, neutral_pose
from poise.skeleton.roles import MAIN_ROLES, SIDES
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.constraints import Apart, CentreOfMass, Constraint, LookAt, Plane, floor

Array = np.ndarray
Places = Mapping[str, Float[Array, "3"]]

FLOOR_ROLES = ("left_foot", "right_foot", "left_toes", "right_toes")
TURN = 0.12  # radians that hips turn from where they face, typically
SWAY = 0.02  # metres that the centre of mass goes beyond its support, typically
MARGIN = 0.02  # metres that it keeps within the edge
AWAY = 100.0  # metres to the point that hips are turned to: their place does not change its direction
HEEL, TIP, SIDE = (
    0.35,
    0.35,
    0.025,
)  # of a foot behind the ankle and before the toes; half its width, of stature
SWING = (0.2, 0.25)  # radians that an idle upper arm and forearm swing from hanging, typically
NEARBY = 0.03  # metres between two parts that may come to touch
TOUCH = 0.01  # metres that they give way, typically
SEAT = 0.07  # half of what one sits on, of stature
LIFTED = 0.07  # of stature: a foot, hand or knee this high above where it rests carries nothing
SEATED, STANDING = (
    0.75,
    0.9,
)  # of the height of standing hips: a seat carries all of those below, none of those above
ADRIFT = 1.0  # metres by which the support widens as nothing carries the body any more


def heading_of(pose: Pose) -> Float[Array, "3"] | None:
    """Which way the hips face along the ground; None without hips, or where they lie on their side."""
    if "pelvis" not in pose.skeleton.roles:
        return None
    _, matrices = world_transforms(pose.skeleton, pose.root_position, pose.rotations)
    x, _, z = matrices[pose.skeleton.index("pelvis")] @ _body(pose.skeleton).left
    size = np.hypot(x, z)
    return np.array([-z, 0.0, x]) / size if size > 0.2 else None


def facing(
    heading: Float[Array, "3"], skeleton: Skeleton, *, at: Float[Array, "3"], tolerance: float = TURN
) -> LookAt:
    """The hips face this way and stay level, softly; `at` is about where they are."""
    left = np.array([heading[2], 0.0, -heading[0]])
    return LookAt(
        "pelvis",
        np.asarray(at) + AWAY * left,
        tuple(_body(skeleton).left),
        tolerance=tolerance,
        name="heading",
    )


def balanced(
    places: Places, skeleton: Skeleton, *, held: Collection[str] = (), sway: float = SWAY
) -> CentreOfMass | None:
    """The centre of mass stays over what carries a body whose parts are at these places (by role), softly.

    Feet and knees carry it where they are low; hands and hips only where they are `held` there.
    """
    corners = support(places, skeleton, held=held)
    return None if corners is None else CentreOfMass(list(corners), tolerance=sway, name="balance")


def support(
    places: Places, skeleton: Skeleton, *, held: Collection[str] = (), margin: float = MARGIN
) -> Float[Array, "4 2"] | None:
    """The rectangle on the ground (x, z) that the centre of mass stays in; None where no foot is known."""
    carriers = _carriers(places, skeleton, held)
    if not carriers:
        return None
    shares = np.array([share for _, share in carriers])
    middles = np.array([corners.mean(axis=0) for corners, _ in carriers])
    firm = shares + 1e-3  # something is left to stand on where nothing carries
    middle = firm @ middles / firm.sum()
    points = np.concatenate([middle + share * (corners - middle) for corners, share in carriers])
    return _rectangle(points, margin - ADRIFT * (1.0 - shares.max()))


def hanging(skeleton: Skeleton, *, busy: Collection[int], at: Float[Array, "3"]) -> list[Constraint]:
    """Arms none of whose joints are `busy` hang down, softly; `at` is about where the body is."""
    found: list[Constraint] = []
    for side in SIDES:
        parts = [f"{side}_{part}" for part in ("upper_arm", "forearm", "hand")]
        if not set(parts) <= set(skeleton.roles) or not _below(skeleton, parts[0]).isdisjoint(busy):
            continue
        for upper, lower, sway in zip(parts[:-1], parts[1:], SWING, strict=True):
            bone = tuple(skeleton.offsets[skeleton.index(lower)])
            down = (at[0], at[1] - AWAY, at[2])
            found.append(LookAt(upper, down, bone, tolerance=sway, name=f"{side} arm hangs"))
    return found


def apart(pose: Pose, *, nearby: float = NEARBY) -> list[Constraint]:
    """Limbs that are nearby another part of the body, or inside it, stay or come out of it, softly.

    What is soft gives way a little, so a limb that was kept out by one solve is still in touch for the next.
    """
    skeleton = pose.skeleton
    if not set(MAIN_ROLES) <= set(skeleton.roles):
        return []
    deep = clearance.depths(skeleton, np.asarray(pose.positions)[None])
    near = [pair for pair, depth in deep.items() if depth[0] > -nearby]
    trunk = [role for role in ("spine", "chest") if role in skeleton.roles]
    return [
        Apart(
            limb, bone, clearance.between(skeleton, limb, part), tolerance=TOUCH, name=f"{limb} beside {bone}"
        )
        for limb, part in near
        for bone in (trunk if part == "torso" else [part])
    ]


def standing(pose: Pose) -> Plane | None:
    """The lower foot of a pose on the floor, before any handle; None where it is there, or where there are no feet."""
    body, places = _body(pose.skeleton), places_of(pose)
    sides = [side for side in SIDES if f"{side}_foot" in places]
    lower = min(sides, key=lambda side: _height(places, body, side), default=None)
    if lower is None or abs(_height(places, body, lower)) < SWAY:
        return None
    end = f"{lower}_toes" if f"{lower}_toes" in places else f"{lower}_foot"
    return Plane(end, (0.0, body.rest[end], 0.0), priority=1, name=f"{lower} foot on the floor")


def on_the_floor(skeleton: Skeleton) -> list[Constraint]:
    """Feet not below the floor, and softly on it."""
    body, roles = _body(skeleton), [role for role in FLOOR_ROLES if role in skeleton.roles]
    ends = [role for role in roles if role.endswith("toes")] or roles
    near = [
        Plane(end, (0.0, body.rest[end], 0.0), tolerance=SWAY, name=f"{end} near the floor") for end in ends
    ]
    return [*near, *floor(roles)]


def places_of(pose: Pose) -> dict[str, Float[Array, "3"]]:
    """Where the parts are that can carry a body, by role."""
    positions, _ = world_transforms(pose.skeleton, pose.root_position, pose.rotations)
    return {role: positions[pose.skeleton.index(role)] for role in _body(pose.skeleton).rest}


def overhang(pose: Pose, centre: Float[Array, "3"], *, held: Collection[str] = ()) -> float:
    """How far the centre of mass is outside of what carries a pose, in metres; negative inside."""
    corners = support(places_of(pose), pose.skeleton, held=held, margin=0.0)
    if corners is None:
        return 0.0
    along = corners[1] - corners[0], corners[3] - corners[0]
    reach = np.array([np.linalg.norm(way) for way in along])
    place = np.array([(centre[[0, 2]] - corners[0]) @ way for way in along]) / reach
    return float(np.max(np.abs(place - reach / 2) - reach / 2))


# --- private -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Stature:
    """Of a skeleton: its stature, the left of its hips in their own frame, and how high parts are when it stands."""

    stature: float
    left: Float[Array, "3"]
    rest: Mapping[str, float]


_ROLES = (*FLOOR_ROLES, "left_shin", "right_shin", "left_hand", "right_hand", "pelvis")


@lru_cache(maxsize=32)
def _body(skeleton: Skeleton) -> _Stature:
    neutral = neutral_pose(skeleton)
    heights = neutral.positions[:, 1] - neutral.positions[:, 1].min()
    roles = [role for role in _ROLES if role in skeleton.roles]
    rest = {role: float(heights[skeleton.index(role)]) for role in roles}
    rest |= {role: 0.04 * skeleton.height for role in roles if role.endswith(("shin", "hand"))}
    hips = skeleton.index("pelvis") if "pelvis" in skeleton.roles else 0
    return _Stature(skeleton.height, neutral.local(hips, LEFT), rest)


@lru_cache(maxsize=64)
def _below(skeleton: Skeleton, role: str) -> set[int]:
    """A joint and all that it carries."""
    top = skeleton.index(role)
    return {joint for joint in range(len(skeleton)) if top in skeleton.chain(skeleton.names[joint])}


def _carriers(places: Places, skeleton: Skeleton, held: Collection[str]) -> list[tuple[Array, float]]:
    """What is on the ground below each part, and how much of it carries (0 to 1)."""
    body, found = _body(skeleton), []
    for side in SIDES:
        if f"{side}_foot" in places:
            found.append((_footprint(places, body, side), _share(_height(places, body, side), body)))
        for role in (f"{side}_shin", f"{side}_hand"):
            if role in places and (role.endswith("shin") or role in held):
                share = _share(places[role][1] - body.rest[role], body)
                found.append((_square(places[role], SIDE * body.stature), share))
    if "pelvis" in held and "pelvis" in places:
        low = places["pelvis"][1] / body.rest["pelvis"]
        share = float(np.clip((STANDING - low) / (STANDING - SEATED), 0.0, 1.0))
        found.append((_square(places["pelvis"], SEAT * body.stature), share))
    return found


def _share(height: float, body: _Stature) -> float:
    return float(np.clip(1.0 - height / (LIFTED * body.stature), 0.0, 1.0))


def _height(places: Places, body: _Stature, side: str) -> float:
    """How high the lowest part of a foot is above where it rests."""
    parts = [role for role in (f"{side}_foot", f"{side}_toes") if role in places]
    return float(min(places[role][1] - body.rest[role] for role in parts))


def _footprint(places: Places, body: _Stature, side: str) -> Float[Array, "4 2"]:
    ankle = np.asarray(places[f"{side}_foot"])[[0, 2]]
    if f"{side}_toes" not in places:
        return _square(places[f"{side}_foot"], 2.0 * SIDE * body.stature)
    along = np.asarray(places[f"{side}_toes"])[[0, 2]] - ankle
    length = max(float(np.linalg.norm(along)), 1e-3)
    across = SIDE * body.stature * np.array([-along[1], along[0]]) / length
    heel, tip = ankle - HEEL * along, ankle + (1.0 + TIP) * along
    return np.array([heel + across, heel - across, tip - across, tip + across])


def _square(point: Float[Array, "3"], half: float) -> Float[Array, "4 2"]:
    return np.asarray(point)[[0, 2]] + half * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]])


def _rectangle(points: Float[Array, "points 2"], margin: float) -> Float[Array, "4 2"]:
    """Around points, along the way in which they spread most, and this much smaller on every side."""
    _, axes = np.linalg.eigh(np.cov(points.T))
    seen = points @ axes
    low, high = seen.min(axis=0), seen.max(axis=0)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2 - margin, 0.005)
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return np.asarray((middle + corners * half) @ axes.T)
