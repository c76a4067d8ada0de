"""Order of the motion network's inputs and outputs: shared by training and inference."""

from __future__ import annotations

import re

import numpy as np

from poise.priors.universal.layout import BONES, JOINTS, MOVING, PARENTS, POINTS

TURNING = ("Hips", *MOVING)  # joints with a rotation of their own
HANDLES = ("Hips", "Head", "LeftHand", "RightHand", "LeftFoot", "RightFoot")  # may be given alone

# A frame's inputs, each block with its width and its typical size; rows that are not given are zero.
INPUTS = (
    ("root", 3, 0.5),  # position of the base pose's root in the window's frame F, metres
    ("points", 3 * len(POINTS), 0.3),  # positions of the base pose relative to its root, in F's axes
    ("turns", 6 * len(TURNING), 0.7),  # the first two columns of the base pose's rotations in F
    ("velocities", 3 * len(POINTS), 1.0),  # of the base pose's points, metres a second
    ("time", 6, 1.0),  # share of the gap, its length, frames to the keys; whether whole key, or partial key
    (
        "handles",
        8 * len(HANDLES),
        0.2,
    ),  # position given, offset from the base; rotation given, turn from the base
    ("path", 3, 0.2),  # given, offset of the root on the floor from the base
    ("contacts", 4, 1.0),  # given and standing, per side
    ("bones", len(BONES), 0.15),  # logarithms of lengths in the typical body's
)
WIDTH = sum(width for _, width, _ in INPUTS)
SIZES = np.concatenate([np.full(width, size, np.float32) for _, width, size in INPUTS])

# A frame's outputs.
OUTPUTS = (
    ("shift", 3, 0.2),  # of the root, in F
    ("turns", 3 * len(TURNING), 0.3),  # rotation vectors: the root's in F, the others' in their own axes
    ("contacts", 2, 1.0),  # log odds that a foot stands
    ("root spread", 3, 1.0),  # logarithms of standard deviations: of the root's position,
    ("turn spread", len(TURNING), 1.0),  # of rotations about each axis,
    ("point spread", len(POINTS), 1.0),  # and of points along each axis
)
LEFT = sum(width for _, width, _ in OUTPUTS)
SCALES = np.concatenate([np.full(width, size, np.float32) for _, width, size in OUTPUTS])


def nearest(at: int, names: tuple[str, ...]) -> int:
    """The joint, or the nearest above it, that is one of these; -1 above the root."""
    while at >= 0 and JOINTS[at] not in names:
        at = PARENTS[at]
    return at


_ABOVE = [nearest(PARENTS[JOINTS.index(name)], TURNING) for name in TURNING]
PARENT = tuple(-1 if at < 0 else TURNING.index(JOINTS[at]) for at in _ABOVE)  # among the turning joints


def _across(names: tuple[str, ...], signs: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The order and the signs of a block in a mirror: for each name, the values of its other side."""
    swapped = {"Left": "Right", "Right": "Left", "LThumb": "RThumb", "RThumb": "LThumb"}
    sides = re.compile("^(" + "|".join(swapped) + ")")
    others = [names.index(sides.sub(lambda side: swapped[side[0]], name)) for name in names]
    width = len(signs)
    return (width * np.array(others)[:, None] + np.arange(width)).ravel(), np.tile(signs, len(names))


def _joined(*blocks: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    begins = np.cumsum([0, *(len(order) for order, _ in blocks)])
    orders = [begin + order for begin, (order, _) in zip(begins, blocks, strict=False)]
    return np.concatenate(orders), np.concatenate([signs for _, signs in blocks]).astype(np.float32)


_PLACE, _TURN, _ONE, _SIDES = (-1.0, 1.0, 1.0), (1.0, -1.0, -1.0), ("all",), ("Left", "Right")
MIRRORED_INPUTS = _joined(  # order and signs of a frame's inputs seen in a mirror
    _across(_ONE, _PLACE), _across(POINTS, _PLACE), _across(TURNING, (1.0, -1.0, -1.0, -1.0, 1.0, 1.0)),
    _across(POINTS, _PLACE), _across(_ONE, (1.0,) * 6), _across(HANDLES, (1.0, *_PLACE, 1.0, *_TURN)),
    _across(_ONE, (1.0, -1.0, 1.0)), _across(_SIDES, (1.0,)), _across(_SIDES, (1.0,)), _across(BONES, (1.0,)),
)  # fmt: skip
MIRRORED_OUTPUTS = _joined(
    _across(_ONE, _PLACE), _across(TURNING, _TURN), _across(_SIDES, (1.0,)), _across(_ONE, (1.0,) * 3),
    _across(TURNING, (1.0,)), _across(POINTS, (1.0,)),
)  # fmt: skip
