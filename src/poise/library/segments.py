"""Runs of nearly equal poses: a 120 Hz recording is searched run by run instead of frame by frame.

A run is a part of one clip around a middle frame, with a radius: the largest distance of its poses from that frame. By
the triangle inequality, anything further from the middle frame than the radius is not in the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.library.poses import Poses
from poise.skeleton.skeleton import read_only
from poise.types import Array

REACH = np.radians(0.75)  # per joint angle: largest distance of a run's poses from its middle frame
LONGEST = 24  # frames: standing still would otherwise give a run of thousands


@dataclass(frozen=True, eq=False)
class Runs:
    """Run `i` has the frames `starts[i]` up to `starts[i + 1]`; `radii` are mean absolute angles from the middle."""

    starts: Int[Array, "runs_and_end"]
    middles: Int[Array, "runs"]
    radii: Float[Array, "runs"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", read_only(self.starts, dtype=np.int32))
        object.__setattr__(self, "middles", read_only(self.middles, dtype=np.int32))
        object.__setattr__(self, "radii", read_only(self.radii, dtype=np.float32))

    def __len__(self) -> int:
        return len(self.middles)


def find_runs(poses: Poses, *, reach: float = REACH, longest: int = LONGEST) -> Runs:
    """Divide the frames of every clip into runs."""
    return Runs(*_runs(poses.maps, poses.starts, reach, longest))


def runs_of(maps: Float[Array, "frames maps"], *, reach: float = REACH, longest: int = LONGEST) -> Runs:
    """Divide poses of unknown clips into runs."""
    return Runs(*_runs(np.asarray(maps, dtype=np.float32), np.array([0, len(maps)]), reach, longest))


@compiled
def _runs(maps: Array, clip_starts: Array, reach: float, longest: int) -> tuple[Array, Array, Array]:
    frames = len(maps)
    starts, middles = np.empty(frames + 1, np.int32), np.empty(frames, np.int32)
    radii = np.empty(frames, np.float32)
    count = 0
    for clip in range(len(clip_starts) - 1):
        first, last = clip_starts[clip], clip_starts[clip + 1]
        while first < last:
            middle = first  # the last frame within reach of the first; the run ends at its own reach
            while (
                middle + 1 < last
                and middle + 1 - first < longest // 2
                and mean_angle(maps, first, middle + 1) <= reach
            ):
                middle += 1
            end = middle + 1
            while end < last and end - first < longest and mean_angle(maps, middle, end) <= reach:
                end += 1
            radius = 0.0
            for frame in range(first, end):
                radius = max(radius, mean_angle(maps, middle, frame))
            starts[count], middles[count], radii[count] = first, middle, radius
            count += 1
            first = end
    starts[count] = frames
    return starts[: count + 1].copy(), middles[:count].copy(), radii[:count].copy()


@compiled
def mean_angle(maps: Array, a: int, b: int) -> float:
    """The L1 distance of Chai and Hodgins 2005, Eq. 4, per joint angle."""
    total = 0.0
    for column in range(maps.shape[1]):
        total += abs(maps[a, column] - maps[b, column])
    return total / maps.shape[1]
