"""CSV for spreadsheets, pandas and MATLAB: one row per frame, with positions and rotations; written only.

Columns are `frame`, `time` (seconds), then for each joint `NAME.x`, `.y`, `.z` (its position in the world, metres, Y
up) and `NAME.qw`, `.qx`, `.qy`, `.qz` (its rotation relative to the parent); markers have positions, empty at gaps.
"""

from __future__ import annotations

import csv
import os

import numpy as np

from poise.errors import InvalidValueError
from poise.formats.files import replacing
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.motion.world import joint_positions


def write(value: Motion | Markers, path: str | os.PathLike[str]) -> None:
    """Write a motion or markers as CSV."""
    if isinstance(value, Motion):
        names, parts = value.skeleton.names, ["x", "y", "z", "qw", "qx", "qy", "qz"]
        table = np.concatenate([joint_positions(value), value.rotations], axis=2)
    elif isinstance(value, Markers):
        names, parts, table = value.labels, ["x", "y", "z"], value.points
    else:
        raise InvalidValueError(f"a CSV file holds a motion or markers; got {type(value).__name__}")
    with replacing(path) as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["frame", "time", *(f"{name}.{part}" for name in names for part in parts)])
        for frame, cells in enumerate(table.reshape(len(table), -1).tolist()):
            known = ("" if cell != cell else f"{cell:.8f}" for cell in cells)
            rows.writerow([frame, f"{frame / value.fps:.8g}", *known])
