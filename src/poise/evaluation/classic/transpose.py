"""Jacobian transpose: handles pull on the body like springs, and the joints follow the torque.

Wolovich and Elliott, "A computational technique for inverse kinematics", IEEE Conference on Decision and Control, 1984.
The step is alpha J'e with alpha = <e, JJ'e> / <JJ'e, JJ'e> (Buss, "Introduction to inverse kinematics with Jacobian
transpose, pseudoinverse and damped least squares methods", 2004), the best length if handles moved on straight lines.
It is halved until it reduces the residual. J'e is summed from the ends to the root; J is never formed.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from poise.compiled import compiled
from poise.evaluation.classic.task import ClassicRun, ClassicTask, advance, begin, block, finished
from poise.skeleton.kernels import ROOT_FREEDOMS, forward, point_on
from poise.types import Array

HALVINGS = 30


class _World(NamedTuple):
    """World positions and residuals of one pose."""

    positions: Array  # (joints, 3)
    matrices: Array  # (joints, 3, 3)
    axes: Array  # (joints, 3, 3)
    points: Array  # (handles, 3)
    errors: Array  # (handles, 3) from point to target


@compiled
def solve(q: Array, task: ClassicTask) -> int:
    """See `CompiledSolver`; no iteration increases the sum of squared distances."""
    best, record = begin(q, task)
    links, joints = task.links, task.joints
    world = _room(len(links), len(joints))
    wrench, step, tried = np.empty((len(links), 6)), np.zeros(len(task.lower)), np.empty_like(q)
    squared = _place(world, q, task)
    iteration = 0
    while not finished(q, world.errors, task.tolerance, best, record) and iteration < task.max_iterations:
        _torques(world, links, joints, wrench, step)
        block(q, step, task)
        scale = _best_length(world, links, joints, step)
        step *= scale
        for _ in range(HALVINGS):
            advance(q, step, task, tried)
            closer = _place(world, tried, task)
            if closer < squared:
                break
            step *= 0.5
        else:
            break  # no step reduces the residual: a local minimum
        squared = closer
        q[:] = tried
        iteration += 1
    q[:] = best
    return iteration


@compiled
def _room(count: int, handles: int) -> _World:
    return _World(
        np.empty((count, 3)),
        np.empty((count, 3, 3)),
        np.empty((count, 3, 3)),
        np.empty((handles, 3)),
        np.empty((handles, 3)),
    )


@compiled
def _place(world: _World, q: Array, task: ClassicTask) -> float:
    """Compute all world positions from q; return the sum of squared distances."""
    forward(q, task.links, task.rest, world.positions, world.matrices, world.axes)
    squared = 0.0
    for h in range(len(task.joints)):
        point_on(task.joints[h], task.offsets[h], world.positions, world.matrices, world.points[h])
        for i in range(3):
            world.errors[h, i] = task.targets[h, i] - world.points[h, i]
            squared += world.errors[h, i] ** 2
    return squared


@compiled
def _torques(world: _World, links: Array, joints: Array, wrench: Array, out: Array) -> None:
    """J'e: each joint receives the force and the torque (about the origin) of all the errors beyond it."""
    wrench[:] = 0.0
    for h in range(len(joints)):
        f, p, w = world.errors[h], world.points[h], wrench[joints[h]]
        w[0] += f[0]
        w[1] += f[1]
        w[2] += f[2]
        w[3] += p[1] * f[2] - p[2] * f[1]
        w[4] += p[2] * f[0] - p[0] * f[2]
        w[5] += p[0] * f[1] - p[1] * f[0]
    for j in range(len(links) - 1, 0, -1):
        if links[j, 1] >= 0:
            _about_axes(world, j, wrench[j], ROOT_FREEDOMS + 3 * links[j, 1], out)
        for i in range(6):
            wrench[links[j, 0], i] += wrench[j, i]
    out[:3] = wrench[0, :3]
    _about_axes(world, 0, wrench[0], 3, out)


@compiled
def _about_axes(world: _World, j: int, w: Array, column: int, out: Array) -> None:
    """The torque about a joint's own axes of motion, from that about the origin."""
    p, a = world.positions[j], world.axes[j]
    x = w[3] - p[1] * w[2] + p[2] * w[1]
    y = w[4] - p[2] * w[0] + p[0] * w[2]
    z = w[5] - p[0] * w[1] + p[1] * w[0]
    for c in range(3):
        out[column + c] = a[0, c] * x + a[1, c] * y + a[2, c] * z


@compiled
def _best_length(world: _World, links: Array, joints: Array, step: Array) -> float:
    """<e, J step> / <J step, J step>; zero if the step moves no handle."""
    along, squared = 0.0, 0.0
    for h in range(len(joints)):
        velocity = _velocity(world, links, joints[h], world.points[h], step)
        for i in range(3):
            along += world.errors[h, i] * velocity[i]
            squared += velocity[i] ** 2
    return along / squared if squared > 0.0 else 0.0


@compiled
def _velocity(
    world: _World, links: Array, joint: int, point: Array, step: Array
) -> tuple[float, float, float]:
    """J step for one point: the sum over all joints that carry it."""
    vx, vy, vz = step[0], step[1], step[2]
    j = joint
    while j >= 0:
        if j == 0 or links[j, 1] >= 0:
            column = 3 if j == 0 else ROOT_FREEDOMS + 3 * links[j, 1]
            a, s0, s1, s2 = world.axes[j], step[column], step[column + 1], step[column + 2]
            wx = a[0, 0] * s0 + a[0, 1] * s1 + a[0, 2] * s2
            wy = a[1, 0] * s0 + a[1, 1] * s1 + a[1, 2] * s2
            wz = a[2, 0] * s0 + a[2, 1] * s1 + a[2, 2] * s2
            x, y, z = (
                point[0] - world.positions[j, 0],
                point[1] - world.positions[j, 1],
                point[2] - world.positions[j, 2],
            )
            vx += wy * z - wz * y
            vy += wz * x - wx * z
            vz += wx * y - wy * x
        j = links[j, 0]
    return vx, vy, vz


run = partial(ClassicRun, solve)
