"""FABRIK: forward and backward reaching, on the full tree, for any number of handles.

Aristidou and Lasenby, "FABRIK: A fast, iterative solver for the inverse kinematics problem", Graphical Models, 2011.
Backward, from the targets to the root, each joint is pulled to its bone's length from the joint beyond it; a joint with
several bones (a sub-base) moves to the centroid of their pulls. Forward, from the root to the ends, each joint is
put back at its bone's length. Bones that leave one joint are rigidly connected here, so both passes rotate a body:
by the smallest rotation (no twist) for one bone, by the best fit for several, and within the bounds of its joint.
"""

from functools import partial

import numpy as np

from poise.compiled import compiled
from poise.evaluation.classic.bodies import (
    NOTHING,
    Bodies,
    Quaternion,
    Vector,
    aligning_turn,
    between,
    gather,
    is_bounded,
    multiply,
    place_all,
    place_body,
    place_points,
    place_root,
    put3,
    row3,
    row4,
    turn_body,
    turned,
    with_pair,
    within_bounds,
)
from poise.evaluation.classic.task import ClassicRun, ClassicTask, begin, finished
from poise.skeleton.kernels import Matrix
from poise.types import Array

ROUNDS = 3  # of rotating and shifting a body with several points
_NO_OFFSET = (0.0, 0.0, 0.0)


@compiled
def solve(q: Array, task: ClassicTask) -> int:
    """See `CompiledSolver`; an iteration is one backward and one forward pass."""
    best, record = begin(q, task)
    bodies = gather(task)
    goals = np.zeros_like(bodies.positions)  # positions of the pivots after the backward pass
    place_all(bodies, q, task.targets)
    iteration = 0
    while not finished(q, bodies.errors, task.tolerance, best, record) and iteration < task.max_iterations:
        for b in range(len(goals) - 1, -1, -1):
            _reach_backward(bodies, b, goals, task)
        if task.free_root:
            q[:3] = goals[0]
            place_root(bodies, q)
            _reach_forward(bodies, 0, goals, q, task)
        for b in range(1, len(goals)):
            place_body(bodies, b, q)
            _reach_forward(bodies, b, goals, q, task)
        place_points(bodies, task.targets)
        iteration += 1
    q[:] = best
    return iteration


@compiled
def _reach_backward(bodies: Bodies, b: int, goals: Array, task: ClassicTask) -> None:
    """Rotate a body towards the goals of its points, then shift it to remove the mean residual."""
    pivot, turn = row3(bodies.positions, b), row4(bodies.turns, b)
    for _ in range(ROUNDS):
        turn = multiply(aligning_turn(_profile(bodies, b, pivot, turn, goals, task.targets)), turn)
        if is_bounded(bodies, b, task):
            turn, _e = within_bounds(bodies, b, turn, task)
        pivot, points = _centroid_of_pulls(bodies, b, turn, goals, task.targets)
        if points == 1:
            break
    put3(goals, b, pivot)


@compiled
def _reach_forward(bodies: Bodies, b: int, goals: Array, q: Array, task: ClassicTask) -> None:
    """Rotate a body towards the goals of its points, about the position that its parent gives it."""
    profile = _profile(bodies, b, row3(bodies.positions, b), row4(bodies.turns, b), goals, task.targets)
    turn_body(bodies, b, aligning_turn(profile), q, task)


@compiled
def _profile(bodies: Bodies, b: int, pivot: Vector, turn: Quaternion, goals: Array, targets: Array) -> Matrix:
    """The profile for `aligning_turn`: a body's points (pivots of its child bodies, and handles) and their goals."""
    profile = NOTHING
    for child in range(b + 1, len(bodies.parents)):
        if bodies.parents[child] == b:
            bone = turned(turn, row3(bodies.pivots, child))
            profile = with_pair(profile, bone, between(pivot, row3(goals, child)))
    for h in range(len(targets)):
        if bodies.owners[h] == b:
            bone = turned(turn, row3(bodies.offsets, h))
            profile = with_pair(profile, bone, between(pivot, row3(targets, h)))
    return profile


@compiled
def _centroid_of_pulls(
    bodies: Bodies, b: int, turn: Quaternion, goals: Array, targets: Array
) -> tuple[Vector, int]:
    """The mean pivot position that a body's points ask for, and their number; a target of the pivot itself wins."""
    x, y, z, points = 0.0, 0.0, 0.0, 0
    for h in range(len(targets)):
        if bodies.owners[h] == b:
            if row3(bodies.offsets, h) == _NO_OFFSET:
                return row3(targets, h), 1
            pull = between(turned(turn, row3(bodies.offsets, h)), row3(targets, h))
            x, y, z, points = x + pull[0], y + pull[1], z + pull[2], points + 1
    for child in range(b + 1, len(bodies.parents)):
        if bodies.parents[child] == b:
            pull = between(turned(turn, row3(bodies.pivots, child)), row3(goals, child))
            x, y, z, points = x + pull[0], y + pull[1], z + pull[2], points + 1
    return (x / points, y / points, z / points), points


run = partial(ClassicRun, solve)
