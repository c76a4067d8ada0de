"""Rotations as matrices, unit quaternions (wxyz), exponential maps and Euler angles, batched over leading axes.

Every conversion is named `target_from_source`. Quaternions q and -q are the same rotation; functions that return
quaternions give the one with w >= 0 unless they say otherwise. Exponential maps are angle times axis, in radians
(Grassia 1998, "Practical parameterization of rotations using the exponential map"). Euler angles are intrinsic, in
the order written: order "ZYX" means R = Rz(a0) Ry(a1) Rx(a2), as the channels of a BVH file read.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from poise.errors import InvalidValueError
from poise.types import Array

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
IDENTITY.flags.writeable = False

_SMALL_ANGLE = 1e-4  # below this angle, fourth-order series are exact in double precision
_GIMBAL_LOCK = 1e-8  # sine or cosine below which an Euler order is in gimbal lock


# --- quaternion algebra --------------------------------------------------------------------------------------------


def multiply(a: Float[Array, "*#n 4"], b: Float[Array, "*#n 4"]) -> Float[Array, "... 4"]:
    """The quaternion product: applied to a vector, first b, then a. The sign is not normalised."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b), -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def conjugate(q: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """The inverse of a unit quaternion."""
    return np.asarray(q) * np.array([1.0, -1.0, -1.0, -1.0])


def rotate(q: Float[Array, "*#n 4"], v: Float[Array, "*#n 3"]) -> Float[Array, "... 3"]:
    """Vectors rotated by unit quaternions."""
    q, v = np.asarray(q), np.asarray(v)
    w, u = q[..., :1], q[..., 1:]
    t = 2.0 * np.cross(u, v)
    return v + w * t + np.cross(u, t)


def normalize(q: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """The quaternions scaled to unit length; raise if one is zero."""
    q = np.asarray(q, dtype=np.float64)
    length = np.linalg.norm(q, axis=-1, keepdims=True)
    if not np.all(length > 0):
        raise InvalidValueError("a quaternion of length zero (or NaN) is not a rotation")
    return q / length


def canonical(q: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """The same rotations with w >= 0."""
    q = np.asarray(q)
    return np.where(q[..., :1] < 0, -q, q)


def continuous(q: Float[Array, "frames *n 4"]) -> Float[Array, "frames *n 4"]:
    """The same rotations with signs chosen so that consecutive frames lie in one hemisphere."""
    q = np.asarray(q)
    flips = np.sum(q[1:] * q[:-1], axis=-1) < 0
    sign = np.where(np.cumsum(flips, axis=0) % 2 == 1, -1.0, 1.0)
    return np.concatenate([q[:1], q[1:] * sign[..., None]], axis=0)


def slerp(a: Float[Array, "*#n 4"], b: Float[Array, "*#n 4"], t: ArrayLike) -> Float[Array, "... 4"]:
    """The rotation a fraction t of the shorter way from a to b, at constant speed (Shoemake 1985)."""
    step = expmap_from_quaternion(multiply(conjugate(a), b))
    return multiply(a, quaternion_from_expmap(np.asarray(t, dtype=np.float64)[..., None] * step))


def mean(q: Float[Array, "n *m 4"], weights: Float[Array, "n"] | None = None) -> Float[Array, "*m 4"]:
    """The mean rotation over the first axis: the largest eigenvector of sum w q q' (Markley et al. 2007)."""
    q = np.asarray(q, dtype=np.float64)
    weights = np.full(len(q), 1.0 / len(q)) if weights is None else np.asarray(weights, dtype=np.float64)
    moment = np.einsum("f,f...i,f...j->...ij", weights, q, q, optimize=True)
    return canonical(np.linalg.eigh(moment)[1][..., -1])


def geodesic_distance(a: Float[Array, "*#n 4"], b: Float[Array, "*#n 4"]) -> Float[Array, "..."]:
    """The angle of the rotation from a to b, in [0, pi]; accurate for tiny angles and near pi."""
    a, b = np.asarray(a), np.asarray(b)
    difference, total = np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)
    return 4.0 * np.arctan2(np.minimum(difference, total), np.maximum(difference, total))


def quaternion_between(a: Float[Array, "*#n 3"], b: Float[Array, "*#n 3"]) -> Float[Array, "... 4"]:
    """The smallest rotation from direction a to direction b; half a turn if they are opposite."""
    a = np.asarray(a, dtype=np.float64) / np.linalg.norm(a, axis=-1, keepdims=True)
    b = np.asarray(b, dtype=np.float64) / np.linalg.norm(b, axis=-1, keepdims=True)
    a, b = np.broadcast_arrays(a, b)
    q = np.concatenate([1.0 + np.sum(a * b, axis=-1, keepdims=True), np.cross(a, b)], axis=-1)
    opposite = np.linalg.norm(q, axis=-1) < 1e-9
    if np.any(opposite):
        normals = np.cross(a[opposite], np.eye(3)[np.argmin(np.abs(a[opposite]), axis=-1)])
        normals = normals / np.linalg.norm(normals, axis=-1, keepdims=True)
        q[opposite] = np.concatenate([np.zeros_like(q[opposite, :1]), normals], axis=-1)
    return normalize(q)


# --- quaternion and matrix -----------------------------------------------------------------------------------------


def matrix_from_quaternion(q: Float[Array, "*n 4"]) -> Float[Array, "*n 3 3"]:
    """Rotation matrices of unit quaternions."""
    w, x, y, z = np.moveaxis(np.asarray(q), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quaternion_from_matrix(m: Float[Array, "*n 3 3"]) -> Float[Array, "*n 4"]:
    """Unit quaternions of rotation matrices, from the largest of the four squared components (Shepperd 1978)."""
    m = np.asarray(m, dtype=np.float64)
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    wx, wy, wz = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    # Four times q q': each row is a multiple of q, and the one with the largest diagonal is the best conditioned.
    rows = [
        [1 + xx + yy + zz, wx, wy, wz],
        [wx, 1 + xx - yy - zz, xy, xz],
        [wy, xy, 1 - xx + yy - zz, yz],
        [wz, xz, yz, 1 - xx - yy + zz],
    ]
    outer = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    best = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    return canonical(normalize(np.take_along_axis(outer, best[..., None, None], axis=-2)[..., 0, :]))


# --- exponential map -----------------------------------------------------------------------------------------------


def quaternion_from_expmap(e: Float[Array, "*n 3"]) -> Float[Array, "*n 4"]:
    """Unit quaternions of exponential maps of any length; w may be negative for angles past pi."""
    e = np.asarray(e, dtype=np.float64)
    angle = np.linalg.norm(e, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), 0.5 * e * np.sinc(angle / (2 * np.pi))], axis=-1)


def expmap_from_quaternion(q: Float[Array, "*n 4"]) -> Float[Array, "*n 3"]:
    """Exponential maps of unit quaternions, of length at most pi."""
    q = canonical(q)
    w, v = q[..., :1], q[..., 1:]
    sine = np.linalg.norm(v, axis=-1, keepdims=True)
    small = sine < _SMALL_ANGLE
    safe = np.where(small, 1.0, sine)
    return v * np.where(small, (2.0 + sine**2 / 3.0), 2.0 * np.arctan2(sine, w) / safe)


def matrix_from_expmap(e: Float[Array, "*n 3"]) -> Float[Array, "*n 3 3"]:
    """Rotation matrices of exponential maps."""
    return matrix_from_quaternion(quaternion_from_expmap(e))


def expmap_from_matrix(m: Float[Array, "*n 3 3"]) -> Float[Array, "*n 3"]:
    """Exponential maps of rotation matrices, of length at most pi."""
    return expmap_from_quaternion(quaternion_from_matrix(m))


def right_jacobian(e: Float[Array, "*n 3"]) -> Float[Array, "*n 3 3"]:
    """J with exp(e + d) = exp(e) exp(J d) to first order in d."""
    e = np.asarray(e, dtype=np.float64)
    angle = np.linalg.norm(e, axis=-1)[..., None, None]
    small = angle < _SMALL_ANGLE
    safe = np.where(small, 1.0, angle)
    a = np.where(small, 0.5 - angle**2 / 24, (1 - np.cos(safe)) / safe**2)
    b = np.where(small, 1 / 6 - angle**2 / 120, (safe - np.sin(safe)) / safe**3)
    k = skew(e)
    return np.eye(3) - a * k + b * (k @ k)


def skew(v: Float[Array, "*n 3"]) -> Float[Array, "*n 3 3"]:
    """The matrix of the cross product: skew(v) @ u = v x u."""
    x, y, z = np.moveaxis(np.asarray(v), -1, 0)
    zero = np.zeros_like(x)
    return np.stack(
        [np.stack([zero, -z, y], -1), np.stack([z, zero, -x], -1), np.stack([-y, x, zero], -1)], -2
    )


# --- Euler angles --------------------------------------------------------------------------------------------------


def quaternion_from_euler(angles: Float[Array, "*n k"], order: str) -> Float[Array, "*n 4"]:
    """Unit quaternions of intrinsic Euler angles in radians, for any sequence of one to three axes."""
    angles = np.asarray(angles, dtype=np.float64)
    axes = _axes_of(order)
    if angles.shape[-1] != len(axes):
        raise InvalidValueError(f"order {order!r} needs {len(axes)} angles, got {angles.shape[-1]}")
    q = np.broadcast_to(IDENTITY, (*angles.shape[:-1], 4))
    for k, axis in enumerate(axes):
        turn = np.zeros((*angles.shape[:-1], 4))
        turn[..., 0] = np.cos(angles[..., k] / 2)
        turn[..., 1 + axis] = np.sin(angles[..., k] / 2)
        q = turn if k == 0 else multiply(q, turn)
    return canonical(q)


def euler_from_quaternion(q: Float[Array, "*n 4"], order: str) -> Float[Array, "*n 3"]:
    """Intrinsic Euler angles in radians of unit quaternions, for any of the twelve orders."""
    return euler_from_matrix(matrix_from_quaternion(q), order)


def matrix_from_euler(angles: Float[Array, "*n k"], order: str) -> Float[Array, "*n 3 3"]:
    """Rotation matrices of intrinsic Euler angles in radians."""
    return matrix_from_quaternion(quaternion_from_euler(angles, order))


def euler_from_matrix(m: Float[Array, "*n 3 3"], order: str) -> Float[Array, "*n 3"]:
    """Intrinsic Euler angles in radians, for any of the twelve orders; at gimbal lock the last angle is zero."""
    m = np.asarray(m, dtype=np.float64)
    axes = _axes_of(order)
    if len(axes) != 3 or axes[0] == axes[1] or axes[1] == axes[2]:
        raise InvalidValueError(
            f"rotation order {order!r} must have three axes, neighbours different, such as 'ZYX'"
        )
    i, j, last = axes
    k = 3 - i - j
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    if last == i:  # a proper order such as ZXZ: m[i, i] is the cosine of the middle angle
        sine = np.hypot(m[..., i, j], m[..., i, k])
        middle = np.arctan2(sine, m[..., i, i])
        first = np.arctan2(m[..., j, i], -sign * m[..., k, i])
        third = np.arctan2(m[..., i, j], sign * m[..., i, k])
        locked = sine < _GIMBAL_LOCK
    else:  # a Tait-Bryan order such as ZYX: m[i, k] is the signed sine of the middle angle
        cosine = np.hypot(m[..., i, i], m[..., i, j])
        middle = np.arctan2(sign * m[..., i, k], cosine)
        first = np.arctan2(-sign * m[..., j, k], m[..., k, k])
        third = np.arctan2(-sign * m[..., i, j], m[..., i, i])
        locked = cosine < _GIMBAL_LOCK
    first = np.where(locked, np.arctan2(sign * m[..., k, j], m[..., j, j]), first)
    return np.stack([first, middle, np.where(locked, 0.0, third)], axis=-1)


# --- private -------------------------------------------------------------------------------------------------------


def _axes_of(order: str) -> list[int]:
    axes = ["XYZ".find(letter) for letter in order.upper()]
    if -1 in axes or not 1 <= len(axes) <= 3:
        raise InvalidValueError(f"rotation order {order!r} must be one to three of the letters X, Y, Z")
    return axes
