"""Examples: poses of a library and, for each, the pose a moment earlier; the data of local models.

Consecutive frames are so similar that 30 per second are enough; the moment before gives every marker a velocity. Both
are kept as whole pose vectors, so that markers of any set, on any body, can be computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.library.coherent import CoherentSearch, runs_of
from poise.library.poses import Poses
from poise.motion.edit import retarget
from poise.motion.motion import Motion
from poise.priors.clusters import blocks_of
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.retarget import scaled_places
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

RATE = 30.0  # examples per second
ALIKE = 1e-3  # metres: smallest bone difference between performers
FIGURES = 8  # largest number of coordinates that distinguish performers
CONTROL_SHARE = 0.8  # alpha of Eq. 2
LAG = 1 / 30  # seconds between an example and the pose before it


@dataclass(frozen=True, eq=False)
class Examples:
    """Pose vectors, those `LAG` seconds earlier, and for each its block of the recordings and its performer."""

    space: PoseSpace
    q: Float[Array, "examples size"]
    before: Float[Array, "examples size"]
    blocks: Int[Array, "examples"]
    whose: Int[Array, "examples"]
    bodies: Float[Array, "bodies joints 3"]  # offsets of the performers' bones

    def __len__(self) -> int:
        return len(self.q)

    @property
    def maps(self) -> Float[Array, "examples maps"]:
        """The poses without their roots."""
        return self.q[:, ROOT_SIZE:]

    @cached_property
    def mean(self) -> Float[Array, "maps"]:
        """The mean pose."""
        return np.asarray(self.maps.mean(axis=0))

    @classmethod
    def by_one(cls, space: PoseSpace, q: Array, before: Array, blocks: Int[Array, "examples"]) -> Examples:
        """Examples of a single performer, with the body of the space."""
        return cls(space, q, before, blocks, np.zeros(len(q), dtype=np.int64), space.skeleton.offsets[None])

    @classmethod
    def of_motions(cls, motions: Sequence[Motion]) -> Examples:
        """The examples of clips of one topology, on the body of the first."""
        clips = []
        for motion in motions:
            body, own = motions[0].skeleton, motion.skeleton
            same = own is body or np.array_equal(own.offsets, body.offsets)
            clips.append(motion if same or not own.same_topology(body) else retarget(motion, body))
        return cls.of_poses(Poses.of_motions(clips), [motion.skeleton for motion in motions])

    @classmethod
    def of_poses(cls, poses: Poses, performers: Sequence[Skeleton] = ()) -> Examples:
        """The examples of a library, with the body of each clip's performer if known."""
        now, before = [], []
        for first, last, fps in zip(poses.starts[:-1], poses.starts[1:], poses.rates, strict=True):
            lag, stride = max(1, round(fps * LAG)), max(1, round(fps / RATE))
            frames = np.arange(min(first + lag, last - 1), last, stride)
            now.append(frames)
            before.append(np.maximum(frames - lag, first))
        lengths = [len(frames) for frames in now]
        offsets = np.stack([one.offsets for one in performers or [poses.skeleton] * len(lengths)])
        flat = offsets.reshape(len(offsets), -1).round(4)
        _, first, whose = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        q, earlier = poses.q(np.concatenate(now)), poses.q(np.concatenate(before))
        whose = np.repeat(whose.ravel(), lengths)
        return cls(poses.space, q, earlier, blocks_of(lengths), whose, offsets[first])

    def on_body(self, skeleton: Skeleton) -> Examples:
        """The same poses on a body of the same topology and other limb lengths."""
        q, before = self.q.copy(), self.before.copy()
        for placed in (q, before):
            placed[:, :3] = scaled_places(placed[:, :3], self.space.skeleton, skeleton)
        return replace(self, space=self.space.on_body(skeleton), q=q, before=before)

    def figures(self) -> tuple[Float[Array, "examples figures"], Float[Array, "figures"]]:
        """Coordinates of each example's performer and of the current body: close together if their bones are alike."""
        flat = self.bodies.reshape(len(self.bodies), -1)
        centre = flat.mean(axis=0)
        _, sizes, axes = np.linalg.svd(flat - centre, full_matrices=False)
        axes = axes[sizes > ALIKE][:FIGURES]
        own, now = (flat - centre) @ axes.T, (self.space.skeleton.offsets.ravel() - centre) @ axes.T
        return own[self.whose], now

    def markers(self, handles: Handles) -> tuple[Array, Array]:
        """World marker positions of each example, now and a moment earlier (Chai and Hodgins 2005, Eq. 1)."""
        return self.space.points(self.q, handles), self.space.points(self.before, handles)

    def __getitem__(self, which: slice | Bool[Array, "examples"]) -> Examples:
        """A subset."""
        parts = {name: getattr(self, name)[which] for name in ("q", "before", "blocks", "whose")}
        return replace(self, **parts)

    def every(self, stride: int) -> Examples:
        """Every `stride`-th example."""
        return self[::stride]


class Query:
    """The query metric of Eq. 2 over all examples, with the coherent search of a library from frame to frame."""

    def __init__(
        self, markers: Float[Array, "examples markers 3"], maps: Float[Array, "examples maps"]
    ) -> None:
        self._control = math.sqrt(CONTROL_SHARE) / _spread(markers)
        self._continuity = math.sqrt(1.0 - CONTROL_SHARE) / _spread(maps)
        rows = np.hstack([self._control * markers.reshape(len(markers), -1), self._continuity * maps])
        self._unknown = np.full(maps.shape[1], np.nan)
        self._search = CoherentSearch(runs_of(maps), rows.astype(np.float32))

    def __call__(
        self, markers: Float[Array, "markers 3"], expected: Float[Array, "maps"] | None, count: int
    ) -> tuple[Int[Array, "count"], Float[Array, "count"]]:
        """The closest examples in order, with their squared distances; NaN markers are ignored."""
        going = self._unknown if expected is None else expected
        query = np.concatenate([self._control * markers.ravel(), self._continuity * going])
        found = self._search.nearest(query.astype(np.float32), count)
        return found.frames.astype(np.int64), found.distances.astype(np.float64)


def _spread(values: Float[Array, "examples *columns"]) -> float:
    """The standard deviation of all columns together, as unit: Eq. 2 adds metres to radians."""
    return max(math.sqrt(float(values.var(axis=0).sum())), 1e-9)
