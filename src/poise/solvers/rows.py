"""Constraint rows in compiled code: the error of each row at a pose, and its Jacobian.

A block is `integers = (kind, joint, other, first row, rows)` and `floats` (offset of the handle, then parameters as
written by `constraints`). A row's error is the change that its measure still needs: J d = error meets it to first
order. For an inequality a positive error is a violation.
"""

import math

import numpy as np

from poise.compiled import compiled
from poise.priors.forms import root_gap
from poise.skeleton.clearance import nearest_parts
from poise.skeleton.kernels import (
    ROOT_FREEDOMS,
    ROOT_SIZE,
    centre_of_mass,
    centre_of_mass_jacobian,
    forward,
    point_jacobian,
    point_on,
    turn_jacobian,
)
from poise.types import Array

Body = tuple[Array, Array, Array]  # links, rest, masses
Blocks = tuple[Array, Array]  # integers, floats

# Members of constraints.Kind, as numbers the compiler can switch on.
_POSITION, _ORIENTATION, _LINE, _PLANE, _PROJECTION = range(5)
_LOOK_AT, _DISTANCE, _CENTRE_OF_MASS, _ROTATION, _LINEAR, _APART = range(5, 11)


@compiled
def evaluate(q: Array, body: Body, blocks: Blocks, errors: Array, jacobian: Array) -> None:
    """Errors (rows) and Jacobian (rows, freedoms) of all blocks at a pose."""
    links, rest, masses = body
    integers, floats = blocks
    count, freedoms = len(links), jacobian.shape[1]
    positions, matrices, axes = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3, 3))
    forward(q, links, rest, positions, matrices, axes)
    point = np.empty(3)
    jacobian[:] = 0.0
    for b in range(len(integers)):
        kind, joint, other, row = integers[b, 0], integers[b, 1], integers[b, 2], integers[b, 3]
        f = floats[b]
        if kind == _POSITION:
            point_on(joint, f, positions, matrices, point)
            point_jacobian(joint, point, links, positions, axes, jacobian[row : row + 3])
            for i in range(3):
                errors[row + i] = f[3 + i] - point[i]
        elif kind == _ORIENTATION:
            _turn_missing(matrices[joint], f[3:12], errors[row : row + 3])
            turn_jacobian(joint, links, axes, jacobian[row : row + 3])
        elif kind == _CENTRE_OF_MASS:
            centre_of_mass(masses, positions, matrices, point)
            moved = np.empty((3, freedoms))
            centre_of_mass_jacobian(masses, links, positions, matrices, axes, moved)
            errors[row] = f[6] - (f[3] * point[0] + f[4] * point[1] + f[5] * point[2])
            _combine_rows(f[3:6], moved, jacobian[row])
        elif kind == _ROTATION:
            for i in range(3):
                errors[row + i] = f[3 + i] - q[ROOT_SIZE + 3 * other + i]
                jacobian[row + i, ROOT_SIZE - 1 + 3 * other + i] = 1.0
        elif kind == _LINEAR:
            errors[row] = _linear(q, f, jacobian[row])
        elif kind == _APART:
            far, moved, turned = np.empty(3), np.zeros((3, freedoms)), np.zeros((3, freedoms))
            _nearest_points(joint, other, f, positions, matrices, point, far)
            point_jacobian(joint, point, links, positions, axes, moved)
            point_jacobian(other, far, links, positions, axes, turned)
            _distance(f[9], point, far, moved, turned, errors, jacobian, row)
        else:
            point_on(joint, f, positions, matrices, point)
            moved = np.zeros((3, freedoms))
            point_jacobian(joint, point, links, positions, axes, moved)
            if kind == _LINE:
                for i in range(2):
                    normal = f[6 + 3 * i : 9 + 3 * i]
                    errors[row + i] = _dot(normal, f[3:6]) - _dot(normal, point)
                    _combine_rows(normal, moved, jacobian[row + i])
            elif kind == _PLANE:
                errors[row] = f[6] - _dot(f[3:6], point)
                _combine_rows(f[3:6], moved, jacobian[row])
            elif kind == _PROJECTION:
                _projection(f, point, moved, errors[row : row + 2], jacobian[row : row + 2])
            elif kind == _LOOK_AT:
                turned = np.zeros((3, freedoms))
                turn_jacobian(joint, links, axes, turned)
                _look_at(
                    f, point, matrices[joint], moved, turned, errors[row : row + 2], jacobian[row : row + 2]
                )
            elif kind == _DISTANCE:
                far = np.empty(3)
                point_on(other, f[3:6], positions, matrices, far)
                turned = np.zeros((3, freedoms))
                point_jacobian(other, far, links, positions, axes, turned)
                _distance(f[6], point, far, moved, turned, errors, jacobian, row)


@compiled
def _dot(a: Array, b: Array) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled
def _combine_rows(weights: Array, rows: Array, out: Array) -> None:
    """out = weights . rows, for three rows."""
    a, b, c = weights[0], weights[1], weights[2]
    for i in range(len(out)):
        out[i] = a * rows[0, i] + b * rows[1, i] + c * rows[2, i]


@compiled
def _linear(q: Array, f: Array, row: Array) -> float:
    """A row linearised at a pose, stored as its error there, its Jacobian, and the pose (see `measured`)."""
    freedoms = len(row)
    begun, gap = f[1 + freedoms :], np.empty(freedoms)
    root_gap(begun, q, gap)
    for i in range(ROOT_FREEDOMS, freedoms):
        gap[i] = q[i + 1] - begun[i + 1]
    error = f[0]
    for i in range(freedoms):
        row[i] = f[1 + i]
        error -= row[i] * gap[i]
    return error


@compiled
def _turn_missing(matrix: Array, target: Array, out: Array) -> None:
    """The rotation vector, in the world, that rotates a matrix to a target (row-major)."""
    m = np.empty((3, 3))
    for i in range(3):
        for k in range(3):
            m[i, k] = (
                target[3 * i] * matrix[k, 0]
                + target[3 * i + 1] * matrix[k, 1]
                + target[3 * i + 2] * matrix[k, 2]
            )
    x, y, z = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    sine, cosine = 0.5 * math.sqrt(x * x + y * y + z * z), 0.5 * (m[0, 0] + m[1, 1] + m[2, 2] - 1.0)
    if sine > 1e-6:
        scale = 0.5 * math.atan2(sine, cosine) / sine
        out[0], out[1], out[2] = scale * x, scale * y, scale * z
    elif cosine > 0:
        out[0], out[1], out[2] = 0.5 * x, 0.5 * y, 0.5 * z
    else:  # a rotation by pi: the axis is the largest column of m + I
        k = 0
        for i in range(1, 3):
            if m[i, i] > m[k, k]:
                k = i
        x, y, z = m[0, k], m[1, k], m[2, k]
        if k == 0:
            x += 1.0
        elif k == 1:
            y += 1.0
        else:
            z += 1.0
        scale = math.pi / math.sqrt(x * x + y * y + z * z)
        out[0], out[1], out[2] = scale * x, scale * y, scale * z


@compiled
def in_own_unit(integers: Array, f: Array) -> float:
    """One metre or radian in the unit of a block: 1, or the pixels of one metre at one metre's depth."""
    return -1.0 / f[15] if integers[0] == _PROJECTION and f[15] < 0 else 1.0


@compiled
def _projection(f: Array, point: Array, moved: Array, errors: Array, jacobian: Array) -> None:
    """Rows of K [R | t] with the pixel folded in: f0 and f1 vanish on the ray, f2 is the depth."""
    depth = max(_dot(f[11:14], point) + f[14], 1e-3)
    weights = np.empty(3)
    for i in range(2):
        row = f[3 + 4 * i : 7 + 4 * i]
        value = _dot(row, point) + row[3]
        if f[15] > 0:  # in metres at the point's depth: linear in the point
            errors[i] = -value * f[15]
            for k in range(3):
                weights[k] = row[k] * f[15]
        else:  # in pixels; minus one over the focal length
            errors[i] = -value / depth
            for k in range(3):
                weights[k] = (row[k] - value / depth * f[11 + k]) / depth
        _combine_rows(weights, moved, jacobian[i])


@compiled
def _look_at(
    f: Array, point: Array, matrix: Array, moved: Array, turned: Array, errors: Array, jacobian: Array
) -> None:
    """Two rows perpendicular to the gaze u = R axis: the rotation about each that aligns u with the direction v."""
    u, v = np.empty(3), np.empty(3)
    for i in range(3):
        u[i] = matrix[i, 0] * f[6] + matrix[i, 1] * f[7] + matrix[i, 2] * f[8]
        v[i] = f[3 + i] - point[i]
    distance = max(math.sqrt(_dot(v, v)), 1e-9)
    for i in range(3):
        v[i] /= distance
    least = 0
    for i in range(1, 3):
        if abs(u[i]) < abs(u[least]):
            least = i
    helper, first, second = np.zeros(3), np.empty(3), np.empty(3)
    helper[least] = 1.0
    _cross(u, helper, first)
    length = math.sqrt(_dot(first, first))
    for i in range(3):
        first[i] /= length
    _cross(u, first, second)
    cosine = _dot(u, v)
    across = math.sqrt(max(_dot(first, v) ** 2 + _dot(second, v) ** 2, 0.0))
    behind = across <= 1e-9 and cosine < 0.0
    stretch = (
        math.atan2(across, cosine) / across if across > 1e-9 else 1.0
    )  # the full angle, also beyond 90 degrees
    axis, weights = np.empty(3), np.empty(3)
    for k in range(2):
        b = first if k == 0 else second
        along = _dot(b, v)
        errors[k] = math.pi * (1 - k) if behind else stretch * along
        _cross(u, b, axis)
        _combine_rows(axis, turned, jacobian[k])
        for i in range(3):
            weights[i] = (b[i] - along * v[i]) / distance
        for i in range(jacobian.shape[1]):
            jacobian[k, i] += weights[0] * moved[0, i] + weights[1] * moved[1, i] + weights[2] * moved[2, i]


@compiled
def _cross(a: Array, b: Array, out: Array) -> None:
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@compiled
def _nearest_points(
    joint: int, other: int, f: Array, positions: Array, matrices: Array, near: Array, far: Array
) -> None:
    """The closest points of two bones."""
    point_on(joint, f[3:6], positions, matrices, near)
    point_on(other, f[6:9], positions, matrices, far)
    here, there = positions[joint], positions[other]
    s, t = nearest_parts(here, near, there, far)
    for i in range(3):
        near[i], far[i] = here[i] + s * (near[i] - here[i]), there[i] + t * (far[i] - there[i])


@compiled
def _distance(
    wanted: float,
    near: Array,
    far: Array,
    moved: Array,
    moved_far: Array,
    errors: Array,
    jacobian: Array,
    row: int,
) -> None:
    x, y, z = near[0] - far[0], near[1] - far[1], near[2] - far[2]
    length = math.sqrt(x * x + y * y + z * z)
    errors[row] = wanted - length
    if length < 1e-9:
        x, y, z, length = 0.0, 1.0, 0.0, 1.0  # coincident points may separate in any direction
    x, y, z = x / length, y / length, z / length
    for i in range(jacobian.shape[1]):
        jacobian[row, i] = (
            x * (moved[0, i] - moved_far[0, i])
            + y * (moved[1, i] - moved_far[1, i])
            + z * (moved[2, i] - moved_far[2, i])
        )
