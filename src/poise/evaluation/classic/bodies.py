"""Rigid-body tree for methods that rotate one joint at a time: only the joints that carry handles.

Fixed joints are part of the body that carries them; limbs without handles are left out. Parents come before their
children; body 0 is the root. Below it, what turns a body: unit quaternions (w, x, y, z) and vectors as tuples, which
live in registers, and the rotation about a pivot that best aligns points with their goals (Wahba's problem). Wang and
Chen, "A combined optimization method for solving the inverse kinematics problem of mechanical manipulators", IEEE
Transactions on Robotics and Automation, 1991, give the best angle about a given axis. For a ball joint the axis of
steepest gain is used: the sum of the cross products of points and goals. For one point this is the smallest rotation
that aligns it, without twist; for several, a few rounds converge to the least-squares optimum.
"""

import math
from typing import NamedTuple

import numpy as np

from poise.compiled import compiled
from poise.evaluation.classic.task import ClassicTask
from poise.skeleton.kernels import ROOT_SIZE, Matrix, matrix_from_wxyz, matrix_times
from poise.types import Array

Quaternion = tuple[float, float, float, float]
Vector = tuple[float, float, float]

_HOLDS_A_HANDLE, _TURNS_A_HANDLE = 1, 2
ALIGNMENTS = 2  # rounds of turning about the steepest axis
_ALIGNED = 1e-12  # sine of the angle below which the points count as aligned
NOTHING: Matrix = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


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
def gather(task: ClassicTask) -> Bodies:
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
def turn_body(bodies: Bodies, b: int, turn: Quaternion, q: Array, task: ClassicTask) -> None:
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
def within_bounds(bodies: Bodies, b: int, wanted: Quaternion, task: ClassicTask) -> tuple[Quaternion, Vector]:
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
def is_bounded(bodies: Bodies, b: int, task: ClassicTask) -> bool:
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


@compiled
def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """The rotation b followed by the rotation a."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@compiled
def conjugate(a: Quaternion) -> Quaternion:
    """The inverse rotation."""
    return (a[0], -a[1], -a[2], -a[3])


@compiled
def normalized(a: Quaternion) -> Quaternion:
    """The same rotation at unit length."""
    length = math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3])
    return (a[0] / length, a[1] / length, a[2] / length, a[3] / length)


@compiled
def turned(a: Quaternion, v: Vector) -> Vector:
    """The vector `v` rotated by `a`."""
    x = 2.0 * (a[2] * v[2] - a[3] * v[1])
    y = 2.0 * (a[3] * v[0] - a[1] * v[2])
    z = 2.0 * (a[1] * v[1] - a[2] * v[0])
    return (
        v[0] + a[0] * x + a[2] * z - a[3] * y,
        v[1] + a[0] * y + a[3] * x - a[1] * z,
        v[2] + a[0] * z + a[1] * y - a[2] * x,
    )


@compiled
def quaternion_from_expmap(e: Vector) -> Quaternion:
    """The rotation by |e| about e."""
    half = 0.5 * math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
    scale = 0.5 * math.sin(half) / half if half > 1e-9 else 0.5
    return (math.cos(half), scale * e[0], scale * e[1], scale * e[2])


@compiled
def expmap_from_quaternion(a: Quaternion) -> Vector:
    """The exponential map, at most pi long."""
    sine = math.sqrt(a[1] * a[1] + a[2] * a[2] + a[3] * a[3])
    if sine < 1e-9:
        scale = 2.0 if a[0] > 0.0 else -2.0
    elif a[0] < 0.0:
        scale = -2.0 * math.atan2(sine, -a[0]) / sine
    else:
        scale = 2.0 * math.atan2(sine, a[0]) / sine
    return (scale * a[1], scale * a[2], scale * a[3])


@compiled
def quaternion_from_matrix(m: Matrix) -> Quaternion:
    """The rotation of a row-major matrix, by its largest component (Shepperd 1978)."""
    w, x, y, z = m[0] + m[4] + m[8], m[0] - m[4] - m[8], m[4] - m[8] - m[0], m[8] - m[0] - m[4]
    if w >= 0.0:
        return normalized((1.0 + w, m[7] - m[5], m[2] - m[6], m[3] - m[1]))
    if x >= y and x >= z:
        return normalized((m[7] - m[5], 1.0 + x, m[1] + m[3], m[2] + m[6]))
    if y >= z:
        return normalized((m[2] - m[6], m[1] + m[3], 1.0 + y, m[5] + m[7]))
    return normalized((m[3] - m[1], m[2] + m[6], m[5] + m[7], 1.0 + z))


@compiled
def with_pair(profile: Matrix, point: Vector, goal: Vector) -> Matrix:
    """The profile (the sum of goal point') with one more point and goal, both seen from the pivot."""
    return (
        profile[0] + goal[0] * point[0],
        profile[1] + goal[0] * point[1],
        profile[2] + goal[0] * point[2],
        profile[3] + goal[1] * point[0],
        profile[4] + goal[1] * point[1],
        profile[5] + goal[1] * point[2],
        profile[6] + goal[2] * point[0],
        profile[7] + goal[2] * point[1],
        profile[8] + goal[2] * point[2],
    )


@compiled
def aligning_turn(profile: Matrix) -> Quaternion:
    """The rotation R that makes the sum of goal . (R point) largest, and the squared distances smallest."""
    turn = (1.0, 0.0, 0.0, 0.0)
    for _ in range(ALIGNMENTS):
        step = _best_turn_about_steepest_axis(profile)
        if step[0] == 1.0:
            break
        turn = multiply(step, turn)
        profile = _turned_points(profile, step)
    return normalized(turn)


@compiled
def _best_turn_about_steepest_axis(m: Matrix) -> Quaternion:
    x, y, z = m[7] - m[5], m[2] - m[6], m[3] - m[1]
    sine = math.sqrt(x * x + y * y + z * z)
    trace = m[0] + m[4] + m[8]
    if sine <= _ALIGNED * (abs(m[0]) + abs(m[4]) + abs(m[8])):
        return _half_turn(m) if trace < 0.0 else (1.0, 0.0, 0.0, 0.0)
    x, y, z = x / sine, y / sine, z / sine
    along = x * (m[0] * x + m[1] * y + m[2] * z)
    along += y * (m[3] * x + m[4] * y + m[5] * z)
    along += z * (m[6] * x + m[7] * y + m[8] * z)
    cosine = (trace - along) / math.sqrt(
        sine * sine + (trace - along) ** 2
    )  # Wang and Chen: of the best angle about this axis
    scale = math.sqrt(max(0.0, 0.5 - 0.5 * cosine))
    return (math.sqrt(max(0.0, 0.5 + 0.5 * cosine)), scale * x, scale * y, scale * z)


@compiled
def _half_turn(m: Matrix) -> Quaternion:
    """For goals opposite the points, where no axis is steepest: half a turn about the best coordinate axis."""
    if m[0] >= m[4] and m[0] >= m[8]:
        return (0.0, 1.0, 0.0, 0.0)
    if m[4] >= m[8]:
        return (0.0, 0.0, 1.0, 0.0)
    return (0.0, 0.0, 0.0, 1.0)


@compiled
def _turned_points(m: Matrix, turn: Quaternion) -> Matrix:
    """The profile after its points have been rotated: M R'."""
    return matrix_times(m, matrix_from_wxyz(turn[0], -turn[1], -turn[2], -turn[3]))
