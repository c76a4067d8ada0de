"""Inputs of the network: handles, joint rotations, a gaze and velocities, relative to a frame F."""

from __future__ import annotations

from jaxtyping import Float

from poise.compiled import compiled
from poise.priors.universal import layout
from poise.types import Array

POINTS, FRAME, BONES, FLOOR = (layout.begin_of(block) for block in ("points", "frame", "bones", "floor"))
_TURNS, _LOOK = layout.begin_of("turns"), layout.begin_of("look")
_VELOCITIES, _MOVING = layout.begin_of("velocities"), layout.begin_of("moving")
WIDTH = sum(rows * columns for _, rows, columns in layout.INPUTS)


@compiled
def show(inputs: Array, rows: Array, offsets: Array, targets: Array, origin: Array, axes: Array) -> None:
    """Write handles in the network's form; several on one joint are merged into their mean."""
    for h in range(len(rows)):
        inputs[POINTS + 7 * rows[h]] += 1.0
    for h in range(len(rows)):
        at = POINTS + 7 * rows[h]
        for i in range(3):
            seen = 0.0
            for k in range(3):
                seen += axes[k, i] * (targets[h, k] - origin[k])
            inputs[at + 1 + i] += seen / inputs[at]
            inputs[at + 4 + i] += offsets[h, i] / inputs[at]
    for h in range(len(rows)):
        inputs[POINTS + 7 * rows[h]] = 1.0


@compiled
def show_velocities(inputs: Array, rows: Array, velocities: Array, axes: Array) -> None:
    """Write the velocities of handles, in the frame's axes."""
    inputs[_MOVING] = 1.0
    for h in range(len(rows)):
        for i in range(3):
            seen = 0.0
            for k in range(3):
                seen += axes[k, i] * velocities[h, k]
            inputs[_VELOCITIES + 3 * rows[h] + i] = seen


@compiled
def show_turns(inputs: Array, rows: Array, turns: Array, axes: Array) -> None:
    """Write joint rotations: the first two columns of each, in the frame's axes."""
    for h in range(len(rows)):
        at = _TURNS + 7 * rows[h]
        inputs[at] = 1.0
        for column in range(2):
            for i in range(3):
                seen = 0.0
                for k in range(3):
                    seen += axes[k, i] * turns[h, k, column]
                inputs[at + 1 + 3 * column + i] = seen


def show_look(inputs: Array, direction: Float[Array, "3"], axes: Array) -> None:
    """Write the direction of the face."""
    inputs[_LOOK], inputs[_LOOK + 1 : _LOOK + 4] = 1.0, axes.T @ direction
