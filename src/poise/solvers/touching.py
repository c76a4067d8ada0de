"""What a body touches: palms and soles lie flat on it, and what bears load moves the balance.

A surface that faces up carries weight as a foot does. One that faces the body is pushed, which moves the support: at a
height h, a push of a share s of the weight is balanced by the centre of mass s * h ahead of the feet. So the body
leans, with one foot ahead and the other leg stretched behind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from poise.skeleton.pose_space import Handle
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton
from poise.solvers import bearing
from poise.solvers.bearing import ARM, AWAY, LEG, STRAIGHT, Place, Vec3, stretched
from poise.solvers.constraints import Against, Constraint, LookAt, Position
from poise.solvers.solution import Solution

FLAT_ONES = ("palm", "sole")
FLAT, PUSHED = (
    0.05,
    0.12,
)  # radians: tolerance of palms and soles on what carries weight, and on what is pushed
ON_THE_FLOOR = 0.03  # metres: a palm or sole that is asked for lower is on the floor
FRONT, REAR, ASIDE = 0.42, 0.76, 0.05  # of stature: feet of a push from the surface, and from their middle
HEEL_UP = 0.04  # of stature: the rear heel of a push
PROPPED = 0.9  # of an arm's length: from shoulder to wrist of an arm that bears load
SAME_WAY = 0.3  # length of the mean normal below which pushes are opposite
UPWARD: Vec3 = (0.0, 1.0, 0.0)


@dataclass(frozen=True)
class Touched:
    """What a constraint touches: its number among those asked for, the surface's normal, and the skin if it is flat."""

    number: int
    handle: Handle
    joint: int
    normal: Vec3
    facing: Vec3 | None
    against: bool
    """Whether this was said, or is so because the floor is near."""


def touched(asked: Sequence[Constraint], skeleton: Skeleton, floor: float | None) -> tuple[Touched, ...]:
    """What the constraints touch: those that are `Against` something, and palms and soles on the floor."""
    found = []
    for number, one in enumerate(asked):
        if one.kind not in (Position.kind, Against.kind):
            continue
        handle: Handle | str = one.handle  # type: ignore[attr-defined]
        normal = one.way if one.kind == Against.kind else None  # type: ignore[attr-defined]
        if (
            normal is None
            and isinstance(handle, str)
            and (handle in skeleton.roles or handle in skeleton.names)
        ):
            continue
        at = Handle(handle) if isinstance(handle, str) else handle
        own = at.surface(skeleton)
        is_flat = own is not None and own[0].endswith(FLAT_ONES)
        if normal is None and is_flat and floor is not None:
            normal = UPWARD if one.target[1] - floor < ON_THE_FLOOR else None  # type: ignore[attr-defined]
        if normal is not None:
            facing = own[1].facing if own is not None and is_flat else None
            found.append(Touched(number, at, at.on(skeleton)[0], normal, facing, one.kind == Against.kind))
    return tuple(found)


def flat(touching: Sequence[Touched], *, at: Place) -> list[Constraint]:
    """Soft constraints: palms and soles lie flat on what they touch; `at` is the body's approximate position."""
    found: list[Constraint] = []
    for one in touching:
        if one.facing is not None:
            into = tuple((np.asarray(at) - AWAY * np.asarray(one.normal)).tolist())
            joint = one.handle.joint
            sure = FLAT if one.normal[1] >= bearing.CARRIES else PUSHED
            found.append(LookAt(joint, into, one.facing, tolerance=sure, name=f"{joint} flat"))
    return found


def loads(touching: Sequence[Touched], asked: Sequence[Any]) -> list[tuple[Place, Vec3]]:
    """The points that bear load, with the normals of their surfaces."""
    return [(asked[one.number].target, one.normal) for one in touching]


def overhang(solution: Solution, asked: Sequence[Constraint], *, floor: float = 0.0) -> float:
    """Distance of the centre of mass outside the support of a pose that was asked for, in metres; negative inside."""
    skeleton, (centre, _) = solution.space.skeleton, solution.space.centre_of_mass(solution.q)
    placed = {one.at.on(skeleton)[0] for one in asked if isinstance(one, Position)}
    held = {role for role in skeleton.roles if skeleton.index(role) in placed}
    bearing_load = loads(touched(asked, skeleton, floor), asked)
    return bearing.overhang(solution.pose, centre, held=held, loads=bearing_load)


def propped(touching: Sequence[Touched], skeleton: Skeleton, *, legs: bool) -> list[Constraint]:
    """Soft constraints: arms that bear load are nearly straight, and so are free `legs`, the rear one in a push."""
    own = _of_arms(touching, skeleton)
    found = [each for side in own for each in stretched(skeleton, side, ARM, PROPPED)]
    pushing = [one for each in own.values() for one in each if abs(one.normal[1]) < bearing.CARRIES]
    rear = [SIDES[_ahead(own) == SIDES[0]]] if pushing else SIDES
    return found + [
        each for side in rear if legs and own for each in stretched(skeleton, side, LEG, STRAIGHT)
    ]


def lunge(
    touching: Sequence[Touched], asked: Sequence[Any], skeleton: Skeleton, floor: float
) -> tuple[Vec3, dict[str, Vec3]] | None:
    """The heading of a body that pushes and the places of its feet, one ahead; None if hands push nothing.

    With one hand, the foot of the other side is ahead.
    """
    own = _of_arms(touching, skeleton)
    pushed = [one for each in own.values() for one in each if abs(one.normal[1]) < bearing.CARRIES]
    if not pushed or not skeleton.roles.keys() >= {"pelvis", "left_foot", "right_foot"}:
        return None
    (x, _, z) = np.mean([asked[one.number].target for one in pushed], axis=0)
    (away_x, _, away_z) = np.mean([one.normal for one in pushed], axis=0)
    if (size := math.hypot(away_x, away_z)) < SAME_WAY:
        return None
    away_x, away_z, height = float(away_x / size), float(away_z / size), skeleton.height
    feet: dict[str, Vec3] = {}
    for side in SIDES:
        far, up = (FRONT, 0.0) if side == _ahead(own) else (REAR, HEEL_UP)
        far, left = far * height, ASIDE * height if side == "left" else -ASIDE * height
        y = floor + bearing.at_rest(skeleton, f"{side}_foot") + up * height
        feet[f"{side}_foot"] = (
            float(x + far * away_x - left * away_z),
            y,
            float(z + far * away_z + left * away_x),
        )
    return (-away_x, 0.0, -away_z), feet


def _of_arms(touching: Sequence[Touched], skeleton: Skeleton) -> dict[str, list[Touched]]:
    """What each arm is against."""
    arms = {side: bearing.below(skeleton, f"{side}_upper_arm") for side in SIDES}
    own = {side: [one for one in touching if one.against and one.joint in arms[side]] for side in SIDES}
    return {side: each for side, each in own.items() if each}


def _ahead(own: Mapping[str, Any]) -> str:
    return "right" if "right" not in own else "left"
