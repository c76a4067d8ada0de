"""Unit quaternions (w, x, y, z) and vectors as tuples, for compiled code: they live in registers."""

import math

from poise.compiled import compiled
from poise.skeleton.kernels import Matrix

Quaternion = tuple[float, float, float, float]
Vector = tuple[float, float, float]


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
