"""Rigid alignment of point sets, and the common shift of points that are known only across rays."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.types import Array

Matrix = tuple[float, float, float, float, float, float, float, float, float]  # row-major 3x3


def rigid_fits(
    sources: Float[Array, "sets points 3"], target: Float[Array, "points 3"], *, upright: bool = False
) -> tuple[Float[Array, "sets 3 3"], Float[Array, "sets 3"], Float[Array, "sets"]]:
    """The rotations and translations that align sets best with a target (Kabsch 1976), and the remaining distances.

    `upright` rotates about the vertical only, as does a fit of fewer than three points, which is underdetermined.
    """
    centres, goal = sources.mean(axis=1), target.mean(axis=0)
    moments = (target - goal).T @ (sources - centres[:, None])
    if upright or len(target) < 3:
        angles = np.arctan2(moments[:, 0, 2] - moments[:, 2, 0], moments[:, 0, 0] + moments[:, 2, 2])
        turns = np.zeros_like(moments)
        turns[:, 0, 0] = turns[:, 2, 2] = np.cos(angles)
        turns[:, 0, 2], turns[:, 1, 1] = np.sin(angles), 1.0
        turns[:, 2, 0] = -turns[:, 0, 2]
    else:
        left, _, right = np.linalg.svd(moments)
        left[:, :, 2] *= np.sign(np.linalg.det(left @ right))[:, None]
        turns = left @ right
    shifts = goal - np.einsum("sab,sb->sa", turns, centres)
    placed = sources @ turns.transpose(0, 2, 1) + shifts[:, None]
    return turns, shifts, np.linalg.norm((placed - target).reshape(len(sources), -1), axis=1)


@compiled
def closest_root(
    sources: Float[Array, "sets points 3"],
    target: Float[Array, "points 3"],
    root: Float[Array, "7"],
    upright: bool,
) -> int:
    """Write the translation and rotation (wxyz) of the best-fitting set into `root`; return the index of that set.

    Each set's residual follows from the largest eigenvalue of Horn's key matrix, by Newton's method on its
    characteristic polynomial (Theobald 2005); the rotation is computed for the best set only. `upright` rotates about
    the vertical only, as do fewer than three points.
    """
    upright, count = upright or len(target) < 3, len(target)
    goal = np.array([target[:, 0].mean(), target[:, 1].mean(), target[:, 2].mean()])
    target = target - goal
    around, best, least = 0.5 * np.sum(target * target), 0, np.inf
    for s in range(len(sources)):
        m, size = _moment(sources[s], target)
        size += around
        if upright:
            gained = math.sqrt((m[2] - m[6]) ** 2 + (m[0] + m[8]) ** 2) + m[4]
        else:
            gained = _largest_eigenvalue(m, size, size - least)
        if size - gained < least:
            best, least = s, size - gained
    m, _ = _moment(sources[best], target)
    turn, centre = np.zeros((3, 3)), np.zeros(3)
    if upright:
        angle = math.atan2(m[2] - m[6], m[0] + m[8])
        turn[0, 0], turn[2, 2], turn[1, 1] = math.cos(angle), math.cos(angle), 1.0
        turn[0, 2], turn[2, 0] = math.sin(angle), -math.sin(angle)
    else:
        left, _, right = np.linalg.svd(np.array(m).reshape(3, 3))
        left[:, 2] *= np.sign(np.linalg.det(np.dot(left, right)))
        turn[:] = np.dot(left, right)
    for p in range(count):
        centre += sources[best, p] / count
    root[:3] = goal - np.dot(turn, centre)
    quaternion_of(turn, root[3:])
    return best


@compiled
def _moment(source: Array, target: Array) -> tuple[Matrix, float]:
    """The sum of target source' (row-major), both about their means; and half the sum of squares of the source.

    Numbers instead of arrays: they stay in registers.
    """
    xx = xy = xz = yx = yy = yz = zx = zy = zz = x = y = z = squares = 0.0
    for p in range(len(target)):
        a, b, c = target[p, 0], target[p, 1], target[p, 2]
        d, e, f = source[p, 0], source[p, 1], source[p, 2]
        xx, xy, xz = xx + a * d, xy + a * e, xz + a * f
        yx, yy, yz = yx + b * d, yy + b * e, yz + b * f
        zx, zy, zz = zx + c * d, zy + c * e, zz + c * f
        x, y, z, squares = x + d, y + e, z + f, squares + d * d + e * e + f * f
    about = squares - (x * x + y * y + z * z) / len(target)
    return (xx, xy, xz, yx, yy, yz, zx, zy, zz), 0.5 * about


@compiled
def _largest_eigenvalue(m: Matrix, size: float, enough: float) -> float:
    """The largest eigenvalue of Horn's key matrix of a moment: the trace of the best rotated moment.

    Newton's method converges from above, so it can stop at a value below `enough`: the eigenvalue is smaller still.
    """
    xx, xy, xz, yx, yy, yz, zx, zy, zz = m
    squares = xx * xx + xy * xy + xz * xz + yx * yx + yy * yy + yz * yz + zx * zx + zy * zy + zz * zz
    a, b, c = yy * zz - yz * zy, yz * zx - yx * zz, yx * zy - yy * zx  # the cofactors
    d, e, f = xz * zy - xy * zz, xx * zz - xz * zx, xy * zx - xx * zy
    g, h, i = xy * yz - xz * yy, xz * yx - xx * yz, xx * yy - xy * yx
    cubes = xx * a + xy * b + xz * c
    minors = a * a + b * b + c * c + d * d + e * e + f * f + g * g + h * h + i * i
    # lambda^4 - 2 squares lambda^2 - 8 cubes lambda + (squares^2 - 4 minors) = 0; every root is below size.
    constant, value = squares * squares - 4.0 * minors, size
    for _ in range(50):
        square = value * value
        slope = 4.0 * (value * (square - squares) - 2.0 * cubes)
        if slope <= 0.0:
            break
        step = (square * square - 2.0 * squares * square - 8.0 * cubes * value + constant) / slope
        value -= step
        if abs(step) <= 1e-11 * size or value < enough:
            break
    return value


@compiled
def quaternion_of(m: Array, out: Array) -> None:
    """The unit quaternion (wxyz) of a rotation matrix, from its largest component."""
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    if trace > max(m[0, 0], m[1, 1], m[2, 2]):
        w = 0.5 * math.sqrt(1.0 + trace)
        out[0], scale = w, 0.25 / w
        out[1], out[2], out[3] = (
            scale * (m[2, 1] - m[1, 2]),
            scale * (m[0, 2] - m[2, 0]),
            scale * (m[1, 0] - m[0, 1]),
        )
        return
    i = 0 if m[0, 0] >= max(m[1, 1], m[2, 2]) else (1 if m[1, 1] >= m[2, 2] else 2)
    j, k = (i + 1) % 3, (i + 2) % 3
    own = 0.5 * math.sqrt(max(1.0 + 2.0 * m[i, i] - trace, 1e-300))
    scale = 0.25 / own
    sign = 1.0 if m[k, j] >= m[j, k] else -1.0
    out[0] = sign * scale * (m[k, j] - m[j, k])
    out[1 + i], out[1 + j], out[1 + k] = (
        sign * own,
        sign * scale * (m[j, i] + m[i, j]),
        sign * scale * (m[k, i] + m[i, k]),
    )


def rigid_fit(
    source: Float[Array, "points 3"], target: Float[Array, "points 3"], *, upright: bool = False
) -> tuple[Float[Array, "3 3"], Float[Array, "3"], float]:
    """The rotation and translation that align one set best with a target, and the remaining distance."""
    turns, shifts, distances = rigid_fits(source[None], target, upright=upright)
    return turns[0], shifts[0], float(distances[0])


def shifts_across(
    gaps: Float[Array, "points fits 3"], across: Float[Array, "points 3 3"]
) -> tuple[Float[Array, "fits 3"], Float[Array, "fits"]]:
    """The common shift of points whose gaps are known only in the directions of `across`; and the squared residuals."""
    known = gaps @ across
    normal = across.sum(axis=0) + 1e-6 * np.eye(3)  # parallel rays determine no shift along themselves
    shifts = np.linalg.solve(normal, known.sum(axis=0).T).T
    return shifts, np.asarray(np.sum((known - shifts @ across) ** 2, axis=(0, 2)))
