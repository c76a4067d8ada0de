"""Frames of a library with the most similar poses."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from poise.errors import InvalidValueError
from poise.formats import read
from poise.library.canonical import on_canonical
from poise.library.search import ExhaustiveSearch
from poise.library.store import Library
from poise.motion.edit import frames_between
from poise.motion.motion import Motion
from poise.skeleton.kernels import ROOT_SIZE


def frames_like(
    library: Library, file: Path, *, second: float = 0.0, count: int = 10
) -> list[tuple[str, float, float]]:
    """The clips with the most similar poses: names, times, and mean distances in degrees per joint."""
    motion, canonical = read(file), library.catalogue.canonical
    if not isinstance(motion, Motion) or canonical is None:
        raise InvalidValueError(f"{file.name} holds markers; a pose needs the motion of a skeleton")
    frame = frames_between(motion, second).start
    pose = on_canonical(motion, canonical)[np.array([frame])]
    poses = library.poses
    q = poses.space.q_from_frames(pose.root_positions, pose.rotations)[0, ROOT_SIZE:]
    found = ExhaustiveSearch(poses.maps).nearest(q, len(poses))
    nearest: dict[str, tuple[str, float, float]] = {}
    for hit in found.frames.tolist():
        clip = int(poses.clip_of[hit])
        if poses.names[clip] not in nearest:
            gaps = np.linalg.norm((poses.maps[hit] - q).reshape(-1, 3), axis=-1)
            when = (hit - int(poses.starts[clip])) / float(poses.rates[clip])
            nearest[poses.names[clip]] = (poses.names[clip], when, float(np.degrees(gaps.mean())))
        if len(nearest) == count:
            break
    return list(nearest.values())
