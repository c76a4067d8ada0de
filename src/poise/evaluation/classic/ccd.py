"""Cyclic coordinate descent: each joint in turn, from the ends to the root, rotates its handles to their targets.

Wang and Chen, "A combined optimization method for solving the inverse kinematics problem of mechanical manipulators",
IEEE Transactions on Robotics and Automation, 1991; extended to ball joints and any number of handles on a tree. Each
joint takes the rotation that brings all its handles closest to their targets, so no sweep increases the sum of
squared distances.
"""

from functools import partial

import numpy as np

from poise.compiled import compiled
from poise.evaluation.classic.bodies import (
    NOTHING,
    Bodies,
    Quaternion,
    aligning_turn,
    between,
    carried,
    conjugate,
    gather,
    multiply,
    place_all,
    put3,
    put4,
    row3,
    row4,
    turn_body,
    with_pair,
)
from poise.evaluation.classic.task import ClassicRun, ClassicTask, begin, finished
from poise.types import Array


@compiled
def solve(q: Array, task: ClassicTask) -> int:
    """See `CompiledSolver`; an iteration is one sweep over the joints."""
    best, record = begin(q, task)
    bodies = gather(task)
    carries = _carried_handles(bodies)
    iteration = 0
    while True:
        place_all(bodies, q, task.targets)
        if finished(q, bodies.errors, task.tolerance, best, record) or iteration >= task.max_iterations:
            break
        for b in range(len(carries) - 1, 0, -1):
            _turn_towards_targets(bodies, b, carries[b], q, task)
        if task.free_root:
            _turn_towards_targets(bodies, 0, carries[0], q, task)
            _shift_root(bodies, q, task.targets)
        iteration += 1
    q[:] = best
    return iteration


@compiled
def _carried_handles(bodies: Bodies) -> Array:
    """Which handles each body carries (bodies, handles)."""
    carries = np.zeros((len(bodies.parents), len(bodies.owners)), np.bool_)
    for h in range(len(bodies.owners)):
        b = bodies.owners[h]
        while b >= 0:
            carries[b, h] = True
            b = bodies.parents[b]
    return carries


@compiled
def _turn_towards_targets(bodies: Bodies, b: int, carries: Array, q: Array, task: ClassicTask) -> None:
    """Rotate one body and the handles it carries; its descendants are placed in the next sweep."""
    pivot, before, k = row3(bodies.positions, b), row4(bodies.turns, b), bodies.columns[b]
    profile = NOTHING
    for h in range(len(carries)):
        if carries[h]:
            profile = with_pair(
                profile, between(pivot, row3(bodies.points, h)), between(pivot, row3(task.targets, h))
            )
    x, y, z = q[k], q[k + 1], q[k + 2]
    turn_body(bodies, b, aligning_turn(profile), q, task)
    turn = multiply(row4(bodies.turns, b), conjugate(before))
    if b == 0 or _gain(bodies, b, carries, turn, task.targets) > 0.0:
        _carry_points(bodies, b, carries, turn)
    else:  # the bounds cut the rotation short and it may increase the distance: do not rotate
        put4(bodies.turns, b, before)
        q[k], q[k + 1], q[k + 2] = x, y, z


@compiled
def _gain(bodies: Bodies, b: int, carries: Array, turn: Quaternion, targets: Array) -> float:
    """Half the decrease of the squared distances of a body's handles under a rotation."""
    pivot, gain = row3(bodies.positions, b), 0.0
    for h in range(len(carries)):
        if carries[h]:
            point, goal = row3(bodies.points, h), between(pivot, row3(targets, h))
            moved = between(point, carried(pivot, turn, between(pivot, point)))
            gain += goal[0] * moved[0] + goal[1] * moved[1] + goal[2] * moved[2]
    return gain


@compiled
def _carry_points(bodies: Bodies, b: int, carries: Array, turn: Quaternion) -> None:
    pivot = row3(bodies.positions, b)
    for h in range(len(carries)):
        if carries[h]:
            put3(bodies.points, h, carried(pivot, turn, between(pivot, row3(bodies.points, h))))


@compiled
def _shift_root(bodies: Bodies, q: Array, targets: Array) -> None:
    """Move a free root by the mean residual."""
    for h in range(len(targets)):
        for i in range(3):
            q[i] += (targets[h, i] - bodies.points[h, i]) / len(targets)


run = partial(ClassicRun, solve)
