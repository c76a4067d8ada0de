"""The contents of a motion file as plain values, for `poise info` and as JSON for scripts."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.motion.ranges import still_joints


def describe(value: Motion | Markers) -> dict[str, Any]:
    """Counts, rates and sizes of a motion or a marker recording, and its reader's decisions; ready for JSON.

    `joints` counts rotating joints; end sites are counted separately. Keys that do not apply to a marker recording are
    present and empty, so that one script can read both.
    """
    origin = value.origin
    if isinstance(value, Motion):
        skeleton = value.skeleton
        turning = [name for name, order in zip(skeleton.names, skeleton.orders, strict=True) if order]
        about = {
            "kind": "motion",
            "joints": len(turning),
            "end_sites": len(skeleton) - len(turning),
            "joint_names": turning,
            "height_m": round(skeleton.height, 4),
            "roles": dict(skeleton.roles),
            "still_joints": list(still_joints(value)),
        }
    else:
        unseen = np.isnan(value.points).any(axis=2)
        about = {
            "kind": "markers",
            "markers": len(value.labels),
            "marker_names": list(value.labels),
            "gaps_percent": round(100.0 * float(unseen.mean()), 3) if unseen.size else 0.0,
            "markers_with_gaps": [
                label for label, gaps in zip(value.labels, unseen.any(axis=0), strict=True) if gaps
            ],
            "joints": 0,
            "height_m": None,
            "roles": {},
            "still_joints": [],
        }
    return {
        "name": value.name,
        "path": origin.path,
        "format": origin.format,
        "frames": len(value),
        "frames_in_file": origin.frames_in_file or len(value),
        "dropped_first_frame": origin.dropped_first_frame,
        "fps": round(value.fps, 4),
        "seconds": round(value.seconds, 4),
        "units": origin.units,
        "metres_per_unit": origin.metres_per_unit,
        "units_reason": origin.units_reason,
        **about,
        "notes": list(origin.notes),
        "warnings": list(origin.warnings),
    }
