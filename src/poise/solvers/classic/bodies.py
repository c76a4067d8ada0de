"""Rigid-body tree for methods that rotate one joint at a time: only the joints that carry handles.

Fixed joints are part of the body that carries them; limbs without handles are left out. Parents come before their
children; body 0 is the root.
"""

import math
from typing import NamedTuple

import numpy as np

from poise.compiled import compiled
from poise.skeleton.kernels import ROOT_SIZE
from poise.solvers.classic.quaternions import (
    Quaternion,
    Vector,
    conjugate,
    expmap_from_quaternion,
    multiply,
    normalized,
    quaternion_from_expmap,
    quaternion_from_matrix,
    turned,
)
from poise.solvers.classic.task import Task
from poise.types import Array

_HOLDS_A_HANDLE, _TURNS_A_HANDLE = 1, 2


class Bodies(NamedTuple):
    """The bodies, the points (handles) fixed to them, and work arrays for their world positions."""

    parents: Array  # (bodies,)
    columns: Array  # (bodies,) where in q the exponential map begins
    pivots: Array  # (bodies, 3) in the parent's frame
    references: Array  # (bodies, 4) relative to the parent
    owners: Array  # (handles,) the body of each handle
    offsets: Array  # (handles, 3) in its frame
    positions: Array  # (bodies, 3) in the world, as are those below
    turns: Array  # (bodies, 4)
    points: Array  # (handles, 3)
    errors: Array  # (handles, 3) from point to target


@compiled
def gather(task: Task) -> Bodies:
    """The bodies that carry a task's handles."""
    links, rest, joints, offsets = task.links, task.rest, task.joints, task.offsets
    matters = _what_matters(links, joints, offsets)
    is_body = (matters == _TURNS_A_HANDLE) & (links[:, 1] >= 0)
    bodies = _room(1 + np.sum(is_body[1:]), len(joints))
    owner, place, frame = np.zeros(len(links), np.int64), np.zeros((len(links), 3)), np.zeros((len(links), 4))
    frame[:, 0] = 1.0  # joint 0 is body 0; each joint's place and frame are those on its body
    last = 0
    for j in range(1, len(links)):
        if matters[j] == 0:
            continue
        above = links[j, 0]
        on_body, reference = _rest_frame(rest[j], row4(frame, above), row3(place, above))
        if is_body[j]:
            last += 1
            bodies.parents[last], bodies.columns[last] = owner[above], ROOT_SIZE + 3 * links[j, 1]
            put3(bodies.pivots, last, on_body)
            put4(bodies.references, last, reference)
            owner[j] = last
        else:
            owner[j] = owner[above]
            put3(place, j, on_body)
            put4(frame, j, reference)
    for h in range(len(joints)):
        j = joints[h]
        bodies.owners[h] = owner[j]
        put3(bodies.offsets, h, carried(row3(place, j), row4(frame, j), row3(offsets, h)))
    return bodies


@compiled
def place_all(bodies: Bodies, q: Array, targets: Array) -> None:
    """Compute the world transforms of all bodies and handles from q."""
    place_root(bodies, q)
    for b in range(1, len(bodies.parents)):
        place_body(bodies, b, q)
    place_points(bodies, targets)


@compiled
def place_root(bodies: Bodies, q: Array) -> None:
    """Set the root's world transform from q."""
    put3(bodies.positions, 0, (q[0], q[1], q[2]))
    put4(bodies.turns, 0, (q[3], q[4], q[5], q[6]))


@compiled
def place_body(bodies: Bodies, b: int, q: Array) -> None:
    """Compute a body's world transform from its parent's and q."""
    parent, k = bodies.parents[b], bodies.columns[b]
    turn = row4(bodies.turns, parent)
    put3(bodies.positions, b, carried(row3(bodies.positions, parent), turn, row3(bodies.pivots, b)))
    local = quaternion_from_expmap((q[k], q[k + 1], q[k + 2]))
    put4(bodies.turns, b, multiply(multiply(turn, row4(bodies.references, b)), local))


@compiled
def place_points(bodies: Bodies, targets: Array) -> None:
    """Compute the handles' world positions and their residuals to the targets."""
    for h in range(len(targets)):
        b = bodies.owners[h]
        put3(
            bodies.points,
            h,
            carried(row3(bodies.positions, b), row4(bodies.turns, b), row3(bodies.offsets, h)),
        )
        put3(bodies.errors, h, between(row3(bodies.points, h), row3(targets, h)))


@compiled
def turn_body(bodies: Bodies, b: int, turn: Quaternion, q: Array, task: Task) -> None:
    """Rotate a body in the world, as far as its bounds allow, and write the result into q."""
    wanted = normalized(multiply(turn, row4(bodies.turns, b)))
    if b == 0:
        put4(bodies.turns, 0, wanted)
        q[3], q[4], q[5], q[6] = wanted
    else:
        k = bodies.columns[b]
        allowed, e = within_bounds(bodies, b, wanted, task)
        put4(bodies.turns, b, allowed)
        q[k], q[k + 1], q[k + 2] = e


@compiled
def within_bounds(bodies: Bodies, b: int, wanted: Quaternion, task: Task) -> tuple[Quaternion, Vector]:
    """Clamp a world rotation's exponential map (relative to the parent) to its bounds; return rotation and map."""
    k, lower, upper = bodies.columns[b], task.lower, task.upper
    below = multiply(row4(bodies.turns, bodies.parents[b]), row4(bodies.references, b))
    e = expmap_from_quaternion(multiply(conjugate(below), wanted))
    allowed = (
        min(max(e[0], lower[k - 1]), upper[k - 1]),
        min(max(e[1], lower[k]), upper[k]),
        min(max(e[2], lower[k + 1]), upper[k + 1]),
    )
    return (wanted if allowed == e else multiply(below, quaternion_from_expmap(allowed))), allowed


@compiled
def is_bounded(bodies: Bodies, b: int, task: Task) -> bool:
    """Whether a body's joint has any bound; the root's has none."""
    k = bodies.columns[b]
    bounded = False
    for i in range(k - 1, k + 2):
        bounded |= task.lower[i] > -math.inf or task.upper[i] < math.inf
    return b > 0 and bounded


@compiled
def carried(position: Vector, turn: Quaternion, offset: Vector) -> Vector:
    """World position of an offset in a frame at `position` with rotation `turn`."""
    v = turned(turn, offset)
    return (position[0] + v[0], position[1] + v[1], position[2] + v[2])


@compiled
def between(start: Vector, end: Vector) -> Vector:
    """The vector from one point to another."""
    return (end[0] - start[0], end[1] - start[1], end[2] - start[2])


@compiled
def row3(rows: Array, i: int) -> Vector:
    """A row of three as a tuple."""
    return (rows[i, 0], rows[i, 1], rows[i, 2])


@compiled
def row4(rows: Array, i: int) -> Quaternion:
    """A row of four as a tuple."""
    return (rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3])


@compiled
def put3(rows: Array, i: int, v: Vector) -> None:
    """Write a row of three."""
    rows[i, 0], rows[i, 1], rows[i, 2] = v[0], v[1], v[2]


@compiled
def put4(rows: Array, i: int, a: Quaternion) -> None:
    """Write a row of four."""
    rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3] = a[0], a[1], a[2], a[3]


@compiled
def _what_matters(links: Array, joints: Array, offsets: Array) -> Array:
    """Per joint: whether it rotates a handle, or only holds one at its own centre (which its rotation cannot move)."""
    matters = np.zeros(len(links), np.int8)
    for h in range(len(joints)):
        j = joints[h]
        if offsets[h, 0] == 0.0 and offsets[h, 1] == 0.0 and offsets[h, 2] == 0.0:
            matters[j] = max(matters[j], _HOLDS_A_HANDLE)
            j = links[j, 0]
        while j >= 0 and matters[j] != _TURNS_A_HANDLE:
            matters[j] = _TURNS_A_HANDLE
            j = links[j, 0]
    return matters


@compiled
def _room(count: int, handles: int) -> Bodies:
    return Bodies(
        parents=np.full(count, -1),
        columns=np.zeros(count, np.int64),
        pivots=np.zeros((count, 3)),
        references=np.zeros((count, 4)),
        owners=np.zeros(handles, np.int64),
        offsets=np.zeros((handles, 3)),
        positions=np.zeros((count, 3)),
        turns=np.zeros((count, 4)),
        points=np.zeros((handles, 3)),
        errors=np.zeros((handles, 3)),
    )


@compiled
def _rest_frame(r: Array, frame: Quaternion, place: Vector) -> tuple[Vector, Quaternion]:
    """A joint's position and reference rotation on the body above it."""
    reference = quaternion_from_matrix((r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11]))
    return carried(place, frame, (r[0], r[1], r[2])), multiply(frame, reference)
