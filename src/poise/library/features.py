"""Features by which frames are compared: control markers in the root's frame, and continuity with two poses before.

Chai and Hodgins 2005, Eq. 2: alpha ||c_n - c||^2 + (1 - alpha) ||q_n - (2 q_{t-1} - q_{t-2})||^2, as squared Euclidean
distance between rows of one matrix and a query vector. Unknown columns of a query are NaN and ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.library.poses import Poses
from poise.library.tensor_file import map_tensors, write_tensors
from poise.skeleton.pose_space import Handles
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

ALPHA = 0.8  # of the paper
_BLOCK = 4096
_SAMPLES = 10_000  # frames for the standard deviations of markers and angles


@dataclass(frozen=True)
class QueryMetric:
    """The weight of markers against continuity, and the unit of each.

    In metres and radians, the sum over all joint angles far outweighs that over the markers, and a performance follows
    its own past instead of its markers; `balanced` scales both by their variation in the library.
    """

    alpha: float = ALPHA
    metres: float = 1.0
    radians: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0:
            raise InvalidValueError(f"the markers' weight `alpha` must be between 0 and 1; got {self.alpha}")

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of markers and exponential maps in the compared rows."""
        return float(np.sqrt(self.alpha)) / self.metres, float(np.sqrt(1.0 - self.alpha)) / self.radians

    @classmethod
    def balanced(cls, poses: Poses, handles: Handles, *, alpha: float = ALPHA) -> QueryMetric:
        """A metric with markers and angles scaled by their standard deviations over the library."""
        maps = poses.maps[:: max(1, len(poses) // _SAMPLES)]
        points = poses.space.points_in_root_frame(maps, handles).reshape(len(maps), -1)
        metres, radians = (float(np.sqrt(part.var(axis=0).sum())) for part in (points, maps))
        return cls(alpha, metres or 1.0, radians or 1.0)

    def query(
        self,
        markers: Float[Array, "handles 3"],
        before: Float[Array, "maps"] | None = None,
        before_that: Float[Array, "maps"] | None = None,
        *,
        maps: int,
    ) -> Float[Array, "columns"]:
        """The query row: markers in the root's frame (NaN if unseen) and the pose extrapolated from the last two.

        With one previous pose, that pose is expected; with none, continuity is ignored.
        """
        of_markers, of_maps = self.scales
        expected = np.full(maps, np.nan) if before is None else before
        if before is not None and before_that is not None:
            expected = 2.0 * before - before_that
        return np.concatenate([of_markers * markers.ravel(), of_maps * expected]).astype(np.float32)

    def rows(
        self, poses: Poses, handles: Handles, *, skeleton: Skeleton | None = None, keep: Path | None = None
    ) -> Float[Array, "frames columns"]:
        """A row per frame of the library, for these markers on this body (Eq. 1); in the file `keep` if given.

        The file is memory-mapped: a million frames need not fit into memory.
        """
        blocks = self._blocks(poses, handles, skeleton)
        if keep is None:
            return np.concatenate(list(blocks))
        shape = (len(poses), 3 * len(handles) + poses.maps.shape[1])
        write_tensors(keep, {"rows": (shape, np.dtype(np.float32), blocks)}, {"kind": "rows"})
        return map_tensors(keep)[0]["rows"]

    def _blocks(
        self, poses: Poses, handles: Handles, skeleton: Skeleton | None
    ) -> Iterator[Float[Array, "block columns"]]:
        space = poses.space if skeleton is None else poses.space.on_body(skeleton)
        of_markers, of_maps = self.scales
        for first in range(0, len(poses), _BLOCK):
            maps = poses.maps[first : first + _BLOCK]
            points = space.points_in_root_frame(maps, handles).reshape(len(maps), -1)
            yield np.concatenate([of_markers * points, of_maps * maps], axis=1).astype(np.float32)
