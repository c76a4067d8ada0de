"""The network's inputs and outputs: their order, and how handles, rotations, a gaze and velocities are written.

Training and inference share them through the file's header. Positions are relative to a frame F.
"""

from __future__ import annotations

import numpy as np

from poise.compiled import compiled
from poise.types import Array

MOVING = (
    "LeftUpLeg", "LeftLeg", "LeftFoot", "LeftToeBase",
    "RightUpLeg", "RightLeg", "RightFoot", "RightToeBase",
    "LowerBack", "Spine", "Spine1", "Neck", "Neck1", "Head",
    "LeftArm", "LeftForeArm", "LeftHand", "LeftFingerBase", "LThumb",
    "RightArm", "RightForeArm", "RightHand", "RightFingerBase", "RThumb",
)  # fmt: skip
POINTS = (
    "Hips", "Spine", "Spine1", "Neck1", "Head", "Head_end",
    "LeftUpLeg", "LeftLeg", "LeftFoot", "LeftToeBase", "LeftToeBase_end",
    "RightUpLeg", "RightLeg", "RightFoot", "RightToeBase", "RightToeBase_end",
    "LeftArm", "LeftForeArm", "LeftHand", "LeftHandIndex1_end",
    "RightArm", "RightForeArm", "RightHand", "RightHandIndex1_end",
)  # fmt: skip
TURNS = (
    "Hips", "Spine1", "Head",
    "LeftUpLeg", "LeftLeg", "LeftFoot", "RightUpLeg", "RightLeg", "RightFoot",
    "LeftArm", "LeftForeArm", "LeftHand", "RightArm", "RightForeArm", "RightHand",
)  # fmt: skip
BONES = (
    "LeftUpLeg", "LeftLeg", "LeftFoot", "LeftToeBase", "RightUpLeg", "RightLeg", "RightFoot", "RightToeBase",
    "Spine", "Spine1", "Neck1", "Head", "Head_end",
    "LeftArm", "LeftForeArm", "LeftHand", "RightArm", "RightForeArm", "RightHand",
)  # fmt: skip

# Blocks of the input vector, each (name, rows, columns); rows that are not given are zero.
INPUTS = (
    ("points", len(POINTS), 7),  # mask, position in the frame F, offset in the joint's axes
    ("turns", len(TURNS), 7),  # mask, the first two columns of the rotation in F
    ("look", 1, 4),  # mask, the direction of the face in F
    ("floor", 1, 2),  # mask, height of F's origin above the floor
    ("frame", 1, 4),  # whether F is the given root, the vertical in F
    ("bones", 1, len(BONES)),  # lengths, centred and scaled
    ("velocities", len(POINTS), 3),  # of the points, metres a second in F
    ("moving", 1, 1),  # whether velocities are given
)
FREEDOMS = 6 + 3 * len(MOVING)  # root position in F, root rotation in its own axes, maps
MEAN = 9 + 3 * len(MOVING)  # root position, the first two columns of its rotation, maps
RANK = 10
LENGTH_SCALE = 0.1  # of logarithms of bone lengths

# The canonical body: CMU's joints, each with its parent.
TREE = (
    ("Hips", ""), ("LHipJoint", "Hips"), ("LeftUpLeg", "LHipJoint"), ("LeftLeg", "LeftUpLeg"), ("LeftFoot", "LeftLeg"),
    ("LeftToeBase", "LeftFoot"), ("LeftToeBase_end", "LeftToeBase"), ("RHipJoint", "Hips"), ("RightUpLeg", "RHipJoint"),
    ("RightLeg", "RightUpLeg"), ("RightFoot", "RightLeg"), ("RightToeBase", "RightFoot"),
    ("RightToeBase_end", "RightToeBase"), ("LowerBack", "Hips"), ("Spine", "LowerBack"), ("Spine1", "Spine"),
    ("Neck", "Spine1"), ("Neck1", "Neck"), ("Head", "Neck1"), ("Head_end", "Head"), ("LeftShoulder", "Spine1"),
    ("LeftArm", "LeftShoulder"), ("LeftForeArm", "LeftArm"), ("LeftHand", "LeftForeArm"),
    ("LeftFingerBase", "LeftHand"),
    ("LeftHandIndex1", "LeftFingerBase"), ("LeftHandIndex1_end", "LeftHandIndex1"), ("LThumb", "LeftHand"),
    ("LThumb_end", "LThumb"), ("RightShoulder", "Spine1"), ("RightArm", "RightShoulder"), ("RightForeArm", "RightArm"),
    ("RightHand", "RightForeArm"), ("RightFingerBase", "RightHand"), ("RightHandIndex1", "RightFingerBase"),
    ("RightHandIndex1_end", "RightHandIndex1"), ("RThumb", "RightHand"), ("RThumb_end", "RThumb"),
)  # fmt: skip
JOINTS = tuple(name for name, _ in TREE)
PARENTS = tuple(JOINTS.index(parent) if parent else -1 for _, parent in TREE)


def begin_of(block: str) -> int:
    """The index at which a block of the input vector begins."""
    before = [name for name, _, _ in INPUTS].index(block)
    return sum(rows * columns for _, rows, columns in INPUTS[:before])


DIRECTED = (  # bones whose directions at rest differ between performers: a sign of their calibration
    "LeftUpLeg", "RightUpLeg", "LeftToeBase", "RightToeBase", "Spine", "Spine1", "Neck1", "Head", "Head_end",
    "LeftArm", "RightArm",
)  # fmt: skip

SIZED = (
    *BONES, "LeftToeBase_end", "RightToeBase_end", "LeftHandIndex1", "LeftHandIndex1_end", "LThumb_end",
    "RightHandIndex1", "RightHandIndex1_end", "RThumb_end",
)  # fmt: skip


def figure(offsets: np.ndarray) -> np.ndarray:
    """Features of a body's bones that indicate its joint calibration: rest directions, and log lengths."""
    directed = offsets[..., [JOINTS.index(name) for name in DIRECTED], :]
    lengths = np.linalg.norm(offsets[..., [JOINTS.index(name) for name in SIZED], :], axis=-1)
    units = directed / np.maximum(np.linalg.norm(directed, axis=-1, keepdims=True), 1e-6)
    return np.concatenate(
        [units.reshape(*offsets.shape[:-2], -1), np.log(np.maximum(lengths, 1e-3))], axis=-1
    )


AT_POINTS, AT_FRAME, AT_BONES, AT_FLOOR = (begin_of(block) for block in ("points", "frame", "bones", "floor"))
AT_TURNS, AT_LOOK = begin_of("turns"), begin_of("look")
AT_VELOCITIES, AT_MOVING = begin_of("velocities"), begin_of("moving")
WIDTH = sum(rows * columns for _, rows, columns in INPUTS)


@compiled
def show(inputs: Array, rows: Array, offsets: Array, targets: Array, origin: Array, axes: Array) -> None:
    """Write handles in the network's form; several on one joint are merged into their mean."""
    for h in range(len(rows)):
        inputs[AT_POINTS + 7 * rows[h]] += 1.0
    for h in range(len(rows)):
        at = AT_POINTS + 7 * rows[h]
        for i in range(3):
            seen = 0.0
            for k in range(3):
                seen += axes[k, i] * (targets[h, k] - origin[k])
            inputs[at + 1 + i] += seen / inputs[at]
            inputs[at + 4 + i] += offsets[h, i] / inputs[at]
    for h in range(len(rows)):
        inputs[AT_POINTS + 7 * rows[h]] = 1.0


@compiled
def show_velocities(inputs: Array, rows: Array, velocities: Array, axes: Array) -> None:
    """Write the velocities of handles, in the frame's axes."""
    inputs[AT_MOVING] = 1.0
    for h in range(len(rows)):
        for i in range(3):
            seen = 0.0
            for k in range(3):
                seen += axes[k, i] * velocities[h, k]
            inputs[AT_VELOCITIES + 3 * rows[h] + i] = seen


@compiled
def show_turns(inputs: Array, rows: Array, turns: Array, axes: Array) -> None:
    """Write joint rotations: the first two columns of each, in the frame's axes."""
    for h in range(len(rows)):
        at = AT_TURNS + 7 * rows[h]
        inputs[at] = 1.0
        for column in range(2):
            for i in range(3):
                seen = 0.0
                for k in range(3):
                    seen += axes[k, i] * turns[h, k, column]
                inputs[at + 1 + 3 * column + i] = seen
