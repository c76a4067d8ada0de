"""What the handles of a scene touch: the faces of its props, and the feet of a body that pushes against one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.skeleton.skeleton import Skeleton
from poise.solvers import bearing
from poise.solvers.bearing import Vec3
from poise.studio.messages import Prop
from poise.types import Array

NEAR = 0.035  # metres: a palm, fingertips or a sole that is nearer to a face touches it
BOARD, LEG = 0.03, 0.04  # metres, of which chairs and shelves are made, as the page draws them
LEVELS = (0.15, 0.43, 0.71, 0.99)  # of a shelf's height: its boards
SOLID = ("box", "chair", "shelf", "mesh")


def face_near(props: Sequence[Prop], place: Vec3) -> Vec3 | None:
    """The outward normal of the nearest face of a prop, if the place is near one."""
    best, found = NEAR, None
    for prop in props:
        if prop.kind not in SOLID:
            continue
        turn = rotations.matrix_from_quaternion(np.array(prop.rotation))
        local = turn.T @ (np.array(place) - np.array(prop.position))
        for middle, size in _boards(prop):
            away = local - middle
            gaps = np.abs(away) - size / 2
            axis = int(gaps.argmax())
            if np.all(np.delete(gaps, axis) < NEAR) and abs(gaps[axis]) < best:
                best, normal = abs(float(gaps[axis])), math.copysign(1.0, away[axis]) * turn[:, axis]
                found = (float(normal[0]), float(normal[1]), float(normal[2]))
    return found


def standing_at(feet: dict[str, Vec3], heading: Vec3, skeleton: Skeleton) -> dict[str, Vec3]:
    """Feet with their toes ahead of them, on the floor."""
    found = dict(feet)
    for role, (x, y, z) in feet.items():
        if (toes := role.replace("foot", "toes")) in skeleton.roles:
            rest = bearing.at_rest(skeleton, toes)
            length = float(np.linalg.norm(skeleton.offsets[skeleton.index(toes)]))
            ahead = math.sqrt(max(length**2 - (y - rest) ** 2, 0.0))
            found[toes] = (x + ahead * heading[0], rest, z + ahead * heading[2])
    return found


def _boards(prop: Prop) -> Iterator[tuple[Float[Array, "3"], Float[Array, "3"]]]:
    """The middle and size of each board of a prop, in its frame; legs touch nothing."""
    w, h, d = prop.size
    if prop.kind == "chair":
        yield np.array([0.0, h / 2, 0.0]), np.array([w, LEG, d])
        yield np.array([0.0, 0.75 * h, (BOARD - d) / 2]), np.array([w, h / 2, BOARD])
    elif prop.kind == "shelf":
        for side in (-1.0, 1.0):
            yield np.array([side * (w - BOARD) / 2, h / 2, 0.0]), np.array([BOARD, h, d])
        for level in LEVELS:
            yield np.array([0.0, level * h, 0.0]), np.array([w, BOARD, d])
    else:
        yield np.array([0.0, h / 2, 0.0]), np.array([w, h, d])
