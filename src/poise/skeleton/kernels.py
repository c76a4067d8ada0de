"""The compiled core: forward kinematics, axes of motion and Jacobians of one pose, in Numba.

A tree is two arrays. `links[j] = (parent, slot)`: the parent's index, and the index of the joint's exponential map (-1
if it does not move). `rest[j]` holds the joint's offset (3) and its reference rotation as a matrix (9).
A pose is q = [root position 3, root quaternion wxyz 4, exponential maps 3 per slot]; its tangent is
[root translation in the world 3, root rotation in the root's own frame 3, change of exponential map 3 per slot].

A joint's rotation is reference . exp(e), so a change of e rotates it by the right Jacobian of e: the columns of
`axes[j]` are the world axes about which the joint rotates as each component of e grows. All Jacobians are sums over
ancestors of cross products with those axes. Small tuples stand for vectors and matrices: they stay in registers.
"""

import math

import numpy as np

from poise.compiled import compiled
from poise.types import Array

Matrix = tuple[float, float, float, float, float, float, float, float, float]  # row-major 3x3

ROOT_SIZE = 7  # position and quaternion in q
ROOT_FREEDOMS = 6  # translation and rotation in the tangent

_SMALL_SQUARED_ANGLE = 1e-8


@compiled
def matrix_times(a: Matrix, b: Matrix) -> Matrix:
    """The product of two matrices."""
    return (
        a[0] * b[0] + a[1] * b[3] + a[2] * b[6],
        a[0] * b[1] + a[1] * b[4] + a[2] * b[7],
        a[0] * b[2] + a[1] * b[5] + a[2] * b[8],
        a[3] * b[0] + a[4] * b[3] + a[5] * b[6],
        a[3] * b[1] + a[4] * b[4] + a[5] * b[7],
        a[3] * b[2] + a[4] * b[5] + a[5] * b[8],
        a[6] * b[0] + a[7] * b[3] + a[8] * b[6],
        a[6] * b[1] + a[7] * b[4] + a[8] * b[7],
        a[6] * b[2] + a[7] * b[5] + a[8] * b[8],
    )


@compiled
def matrix_from_wxyz(w: float, x: float, y: float, z: float) -> Matrix:
    """The rotation matrix of a unit quaternion."""
    return (
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * z + w * y),
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z - w * x),
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        1 - 2 * (x * x + y * y),
    )


@compiled
def _combine(x: float, y: float, z: float, skew: float, square: float) -> Matrix:
    """I + skew [e]x + square [e]x[e]x, the common form of exp(e) and of its Jacobian."""
    xx, yy, zz = square * x * x, square * y * y, square * z * z
    xy, xz, yz = square * x * y, square * x * z, square * y * z
    return (
        1 - yy - zz,
        xy - skew * z,
        xz + skew * y,
        xy + skew * z,
        1 - xx - zz,
        yz - skew * x,
        xz - skew * y,
        yz + skew * x,
        1 - xx - yy,
    )


@compiled
def exponential(x: float, y: float, z: float) -> tuple[Matrix, Matrix]:
    """The rotation exp(e) and its right Jacobian: exp(e + d) = exp(e) exp(J d) to first order."""
    squared = x * x + y * y + z * z
    if squared < _SMALL_SQUARED_ANGLE:
        sine, cosine, cubic = 1 - squared / 6, 0.5 - squared / 24, 1 / 6 - squared / 120
    else:
        angle = math.sqrt(squared)
        s = math.sin(angle)
        sine, cosine, cubic = s / angle, (1 - math.cos(angle)) / squared, (angle - s) / (squared * angle)
    return _combine(x, y, z, sine, cosine), _combine(x, y, z, -cosine, cubic)


@compiled
def load(matrices: Array, j: int) -> Matrix:
    """One matrix of many."""
    m = matrices[j]
    return (m[0, 0], m[0, 1], m[0, 2], m[1, 0], m[1, 1], m[1, 2], m[2, 0], m[2, 1], m[2, 2])


@compiled
def store(matrices: Array, j: int, m: Matrix) -> None:
    """Write one matrix of many."""
    out = matrices[j]
    out[0, 0], out[0, 1], out[0, 2] = m[0], m[1], m[2]
    out[1, 0], out[1, 1], out[1, 2] = m[3], m[4], m[5]
    out[2, 0], out[2, 1], out[2, 2] = m[6], m[7], m[8]


@compiled
def _place(j: int, parent: int, rest: Array, positions: Array, above: Matrix) -> None:
    """A joint's position from its parent's position and rotation."""
    x, y, z = rest[j, 0], rest[j, 1], rest[j, 2]
    positions[j, 0] = positions[parent, 0] + above[0] * x + above[1] * y + above[2] * z
    positions[j, 1] = positions[parent, 1] + above[3] * x + above[4] * y + above[5] * z
    positions[j, 2] = positions[parent, 2] + above[6] * x + above[7] * y + above[8] * z


@compiled
def _reference(rest: Array, j: int) -> Matrix:
    r = rest[j]
    return (r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11])


@compiled
def forward(q: Array, links: Array, rest: Array, positions: Array, matrices: Array, axes: Array) -> None:
    """World positions, world rotations and axes of motion of every joint of one pose."""
    for i in range(3):
        positions[0, i] = q[i]
    root = matrix_from_wxyz(q[3], q[4], q[5], q[6])
    store(matrices, 0, root)
    store(axes, 0, root)
    for j in range(1, len(links)):
        parent, slot = links[j, 0], links[j, 1]
        above = load(matrices, parent)
        _place(j, parent, rest, positions, above)
        world = matrix_times(above, _reference(rest, j))
        if slot >= 0:
            k = ROOT_SIZE + 3 * slot
            turn, jacobian = exponential(q[k], q[k + 1], q[k + 2])
            world = matrix_times(world, turn)
            store(axes, j, matrix_times(world, jacobian))
        store(matrices, j, world)


@compiled
def forward_many(qs: Array, links: Array, rest: Array, positions: Array, matrices: Array) -> None:
    """World positions and rotations of many poses."""
    axes = np.empty((len(links), 3, 3))
    for frame in range(len(qs)):
        forward(qs[frame], links, rest, positions[frame], matrices[frame], axes)


@compiled
def forward_rotations(
    parents: Array, offsets: Array, roots: Array, quaternions: Array, positions: Array, matrices: Array
) -> None:
    """World positions and rotations of many frames given as quaternions relative to the parent."""
    for frame in range(len(roots)):
        p, m, q = positions[frame], matrices[frame], quaternions[frame]
        for j in range(len(parents)):
            local = matrix_from_wxyz(q[j, 0], q[j, 1], q[j, 2], q[j, 3])
            if j == 0:
                for i in range(3):
                    p[0, i] = roots[frame, i]
            else:
                above = load(m, parents[j])
                _place(j, parents[j], offsets, p, above)
                local = matrix_times(above, local)
            store(m, j, local)


@compiled
def point_on(joint: int, offset: Array, positions: Array, matrices: Array, out: Array) -> None:
    """The world position of a point fixed to a joint."""
    m = matrices[joint]
    for i in range(3):
        out[i] = positions[joint, i] + m[i, 0] * offset[0] + m[i, 1] * offset[1] + m[i, 2] * offset[2]


@compiled
def point_jacobian(joint: int, point: Array, links: Array, positions: Array, axes: Array, out: Array) -> None:
    """The Jacobian (3, freedoms) of a world point fixed to a joint; `out` must be zero off the chain."""
    out[0, 0] = out[1, 1] = out[2, 2] = 1.0
    j = joint
    while j >= 0:
        if j == 0 or links[j, 1] >= 0:
            column = 3 if j == 0 else ROOT_FREEDOMS + 3 * links[j, 1]
            a = axes[j]
            x, y, z = point[0] - positions[j, 0], point[1] - positions[j, 1], point[2] - positions[j, 2]
            for c in range(3):
                out[0, column + c] = a[1, c] * z - a[2, c] * y
                out[1, column + c] = a[2, c] * x - a[0, c] * z
                out[2, column + c] = a[0, c] * y - a[1, c] * x
        j = links[j, 0]


@compiled
def turn_jacobian(joint: int, links: Array, axes: Array, out: Array) -> None:
    """The Jacobian (3, freedoms) of a joint's angular velocity in the world; `out` must be zero off the chain."""
    j = joint
    while j >= 0:
        if j == 0 or links[j, 1] >= 0:
            column = 3 if j == 0 else ROOT_FREEDOMS + 3 * links[j, 1]
            for c in range(3):
                for i in range(3):
                    out[i, column + c] = axes[j, i, c]
        j = links[j, 0]


@compiled
def centre_of_mass(masses: Array, positions: Array, matrices: Array, out: Array) -> None:
    """The centre of mass; `masses[j]` is the joint's share of the body's mass (1) and its centre on the joint (3)."""
    out[:] = 0.0
    for j in range(len(masses)):
        m, share = matrices[j], masses[j, 0]
        for i in range(3):
            on_joint = m[i, 0] * masses[j, 1] + m[i, 1] * masses[j, 2] + m[i, 2] * masses[j, 3]
            out[i] += share * (positions[j, i] + on_joint)


@compiled
def centre_of_mass_jacobian(
    masses: Array, links: Array, positions: Array, matrices: Array, axes: Array, out: Array
) -> None:
    """The Jacobian (3, freedoms) of the centre of mass: a joint moves the mass of its subtree about itself."""
    count = len(links)
    carried = np.zeros((count, 4))  # mass, and mass times position, of each joint's subtree
    for j in range(count - 1, -1, -1):
        m, share = matrices[j], masses[j, 0]
        carried[j, 0] += share
        for i in range(3):
            on_joint = m[i, 0] * masses[j, 1] + m[i, 1] * masses[j, 2] + m[i, 2] * masses[j, 3]
            carried[j, 1 + i] += share * (positions[j, i] + on_joint)
        if j > 0:
            for i in range(4):
                carried[links[j, 0], i] += carried[j, i]
    out[:] = 0.0
    for i in range(3):
        out[i, i] = carried[0, 0]
    for j in range(count):
        if j == 0 or links[j, 1] >= 0:
            column = 3 if j == 0 else ROOT_FREEDOMS + 3 * links[j, 1]
            x = carried[j, 1] - carried[j, 0] * positions[j, 0]
            y = carried[j, 2] - carried[j, 0] * positions[j, 1]
            z = carried[j, 3] - carried[j, 0] * positions[j, 2]
            for c in range(3):
                a, b, d = axes[j, 0, c], axes[j, 1, c], axes[j, 2, c]
                out[0, column + c] = b * z - d * y
                out[1, column + c] = d * x - a * z
                out[2, column + c] = a * y - b * x


@compiled
def handle_points(
    q: Array, links: Array, rest: Array, joints: Array, offsets: Array, points: Array, jacobian: Array
) -> None:
    """Positions (handles, 3) and Jacobian (3 handles, freedoms) of points on joints, from q in one call."""
    count = len(links)
    positions, matrices, axes = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3, 3))
    forward(q, links, rest, positions, matrices, axes)
    jacobian[:] = 0.0
    for h in range(len(joints)):
        point_on(joints[h], offsets[h], positions, matrices, points[h])
        point_jacobian(joints[h], points[h], links, positions, axes, jacobian[3 * h : 3 * h + 3])


@compiled
def handle_turns(q: Array, links: Array, rest: Array, joints: Array, turns: Array, jacobian: Array) -> None:
    """World rotations (handles, 3, 3) and angular Jacobian (3 handles, freedoms) of joints, from q in one call."""
    count = len(links)
    positions, matrices, axes = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3, 3))
    forward(q, links, rest, positions, matrices, axes)
    jacobian[:] = 0.0
    for h in range(len(joints)):
        turns[h] = matrices[joints[h]]
        turn_jacobian(joints[h], links, axes, jacobian[3 * h : 3 * h + 3])


@compiled
def balance(q: Array, links: Array, rest: Array, masses: Array, centre: Array, jacobian: Array) -> None:
    """The centre of mass (3) and its Jacobian (3, freedoms), from q in one call."""
    count = len(links)
    positions, matrices, axes = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3, 3))
    forward(q, links, rest, positions, matrices, axes)
    centre_of_mass(masses, positions, matrices, centre)
    centre_of_mass_jacobian(masses, links, positions, matrices, axes, jacobian)


@compiled
def integrate(q: Array, step: Array, out: Array) -> None:
    """The pose after a tangent step: the root rotates in its own frame, the rest is added."""
    for i in range(3):
        out[i] = q[i] + step[i]
    if step[3] == 0.0 and step[4] == 0.0 and step[5] == 0.0:  # a given root stays bit-identical
        out[3], out[4], out[5], out[6] = q[3], q[4], q[5], q[6]
    else:
        _turn_root(q, 0.5 * step[3], 0.5 * step[4], 0.5 * step[5], out)
    for i in range(ROOT_SIZE, len(q)):
        out[i] = q[i] + step[i - 1]


@compiled
def _turn_root(q: Array, x: float, y: float, z: float, out: Array) -> None:
    """The root's quaternion times the exponential of twice (x, y, z), at unit length."""
    half = math.sqrt(x * x + y * y + z * z)
    scale = math.sin(half) / half if half > 1e-9 else 1.0
    c = math.cos(half)
    x, y, z = scale * x, scale * y, scale * z
    w0, x0, y0, z0 = q[3], q[4], q[5], q[6]
    w1 = w0 * c - x0 * x - y0 * y - z0 * z
    x1 = w0 * x + x0 * c + y0 * z - z0 * y
    y1 = w0 * y - x0 * z + y0 * c + z0 * x
    z1 = w0 * z + x0 * y - y0 * x + z0 * c
    length = math.sqrt(w1 * w1 + x1 * x1 + y1 * y1 + z1 * z1)
    out[3], out[4], out[5], out[6] = w1 / length, x1 / length, y1 / length, z1 / length
