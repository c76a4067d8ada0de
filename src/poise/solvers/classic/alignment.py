"""The rotation about a pivot that best aligns points with their goals (Wahba's problem), one axis at a time.

Wang and Chen, "A combined optimization method for solving the inverse kinematics problem of mechanical manipulators",
IEEE Transactions on Robotics and Automation, 1991, give the best angle about a given axis. For a ball joint the axis
of steepest gain is used: the sum of the cross products of points and goals. For one point this is the smallest
rotation that aligns it, without twist; for several, a few rounds converge to the least-squares optimum.
"""

import math

from poise.compiled import compiled
from poise.skeleton.kernels import Matrix, matrix_from_wxyz, matrix_times
from poise.solvers.classic.quaternions import Quaternion, Vector, multiply, normalized

ROUNDS = 2
_ALIGNED = 1e-12  # sine of the angle below which the points count as aligned

NOTHING: Matrix = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


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
    for _ in range(ROUNDS):
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
