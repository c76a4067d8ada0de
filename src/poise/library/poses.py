"""All poses of a library as one array of pose vectors, in single precision and memory-mapped, for searching."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from poise.bounds import FASTEST, SLOWEST
from poise.errors import InvalidValueError, ParseError, SkeletonError, UnknownNameError
from poise.geometry import rotations
from poise.library.tensor_file import Stream, map_tensors, write_tensors
from poise.motion.motion import Motion
from poise.schema import Indices, Numbers, Schema, choice, several, text
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import STILL_ANGLE, Handle, Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

_BLOCK = 4096  # frames processed at once
_SAMPLES = 20_000  # frames for the mean rotations


@dataclass(frozen=True, eq=False)
class Poses:
    """Frames of many clips, one after the other, on one skeleton.

    `maps` are exponential maps of the moving joints about the mean rotations of all frames; `roots` are positions and
    quaternions. Clip `i` has the frames `starts[i]` up to `starts[i + 1]`.
    """

    space: PoseSpace
    maps: Float[Array, "frames maps"]
    roots: Float[Array, "frames 7"]
    starts: Int[Array, "clips_and_end"]
    names: tuple[str, ...]
    rates: Float[Array, "clips"]

    def __len__(self) -> int:
        return len(self.maps)

    @property
    def skeleton(self) -> Skeleton:
        """The common skeleton of all frames."""
        return self.space.skeleton

    @cached_property
    def clip_of(self) -> Int[Array, "frames"]:
        """Per frame, the index of its clip."""
        return np.repeat(np.arange(len(self.names), dtype=np.int32), np.diff(self.starts))

    def frames_of(self, name: str) -> slice:
        """The frames of the clip with this name."""
        if name not in self.names:
            raise UnknownNameError("clip", name, self.names)
        number = self.names.index(name)
        return slice(int(self.starts[number]), int(self.starts[number + 1]))

    def q(self, frames: Int[Array, "n"]) -> Float[Array, "n size"]:
        """Pose vectors of the given frames, in double precision."""
        return np.concatenate([self.roots[frames], self.maps[frames]], axis=1, dtype=np.float64)

    def motion(self, frames: slice) -> Motion:
        """A range of frames of one clip as a motion."""
        number = int(self.clip_of[frames.start])
        places, turns = self.space.frames_from_q(self.q(np.arange(frames.start, frames.stop)))
        return Motion(self.skeleton, float(self.rates[number]), places, turns, name=self.names[number])

    def marker_positions(
        self, handles: Sequence[Handle | str] | Handles, *, skeleton: Skeleton | None = None
    ) -> Float[Array, "frames handles 3"]:
        """Marker positions of every frame in the root's frame (Chai and Hodgins 2005, Eq. 1).

        On the body of `skeleton` if given: the same joints with the performer's limb lengths.
        """
        space = self.space if skeleton is None else self.space.on_body(skeleton)
        looked_up = handles if isinstance(handles, Handles) else space.handles(handles)
        points = np.empty((len(self), len(looked_up), 3), dtype=np.float32)
        for first in range(0, len(self), _BLOCK):
            block = slice(first, first + _BLOCK)
            points[block] = space.points_in_root_frame(self.maps[block], looked_up)
        return points

    @classmethod
    def of_motions(cls, motions: Sequence[Motion]) -> Poses:
        """The frames of clips of one topology, in memory."""
        if not motions:
            raise InvalidValueError("poses need at least one clip; got none")
        for motion in motions:
            if not motion.skeleton.same_topology(motions[0].skeleton):
                raise SkeletonError(
                    f"{motion.name or 'a clip'} has another skeleton than {motions[0].name or 'the first'}"
                )
        space = common_space(motions, sum(len(motion) for motion in motions))
        blocks = list(_vectors(space, iter(motions)))
        q, again, names = np.concatenate(blocks), Counter[str](), list[str]()
        for name in (motion.name or "clip" for motion in motions):
            again[name] += 1
            names.append(name if again[name] == 1 else f"{name}.{again[name]}")
        return cls(
            space,
            np.ascontiguousarray(q[:, ROOT_SIZE:]),
            np.ascontiguousarray(q[:, :ROOT_SIZE]),
            np.cumsum([0, *(len(block) for block in blocks)]),
            tuple(names),
            np.array([motion.fps for motion in motions]),
        )


def common_space(motions: Iterable[Motion], frames: int) -> PoseSpace:
    """Mean rotations of many clips with so many frames in all, and the joints that move in any."""
    stride = max(1, frames // _SAMPLES)
    samples, first, turned, skeleton = [], None, None, None
    for motion in motions:
        skeleton = skeleton or motion.skeleton
        first = motion.rotations[0] if first is None else first
        turned = np.zeros(len(skeleton), dtype=bool) if turned is None else turned
        angles = rotations.geodesic_distance(motion.rotations[:, ~turned], first[~turned])
        turned[~turned] = angles.max(axis=0) > STILL_ANGLE
        samples.append(motion.rotations[::stride])
    if skeleton is None or turned is None:
        raise InvalidValueError("the library has no clips, so it has no poses")
    references = rotations.mean(np.concatenate(samples))
    references[0] = rotations.IDENTITY
    return PoseSpace(skeleton, references=references, moving=turned)


def write_poses(
    path: Path, motions: Callable[[], Iterator[Motion]], *, frames: int, header: Mapping[str, Any]
) -> str:
    """Write the frames of many clips to one file, one clip in memory at a time; return the file's SHA-256."""
    clips = list[tuple[str, float, int]]()

    def noted() -> Iterator[Motion]:
        for motion in motions():
            clips.append((motion.name, motion.fps, len(motion)))
            yield motion

    space = common_space(noted(), frames)
    lengths = [length for _, _, length in clips]
    frames, kind, roots = sum(lengths), np.dtype(np.float32), list[Array]()

    def maps() -> Iterator[Array]:
        for q in _vectors(space, motions()):
            roots.append(q[:, :ROOT_SIZE].copy())  # written next, without reading all clips again
            yield q[:, ROOT_SIZE:]

    arrays: dict[str, Array | Stream] = {
        "maps": ((frames, 3 * len(space.moving)), kind, maps()),
        "roots": ((frames, ROOT_SIZE), kind, (block for block in roots)),
        "starts": np.cumsum([0, *lengths], dtype=np.int64),
        "rates": np.array([rate for _, rate, _ in clips], dtype=np.float64),
        "references": np.asarray(space.references),
        "moving": np.asarray(space.is_moving),
    }
    return write_tensors(path, arrays, {"kind": "poses", "names": [name for name, _, _ in clips], **header})


def map_poses(path: Path, skeleton: Skeleton) -> tuple[Poses, dict[str, Any]]:
    """The poses of such a file, memory-mapped, and its header."""
    arrays, header = map_tensors(path)
    lengths = {"joints": len(skeleton), "all": 2**40}
    try:
        known = _POSES.checked_header(header)
        kept = _POSES.checked_arrays(arrays, known, {**lengths, "clips": len(known["names"])})
        maps, roots, moving, starts = arrays["maps"], arrays["roots"], arrays["moving"], kept["starts"]
        if moving.dtype != np.bool_:
            raise InvalidValueError(f"moving must be true or false for each joint; got {moving.dtype}")
        space, frames = PoseSpace(skeleton, references=kept["references"], moving=np.array(moving)), len(maps)
        shapes = maps.shape == (frames, 3 * len(space.moving)) and roots.shape == (frames, ROOT_SIZE)
        if not shapes or maps.dtype != np.float32 or roots.dtype != np.float32 or frames == 0:
            raise InvalidValueError(
                f"maps and roots of {maps.shape} and {roots.shape} do not go with the skeleton"
            )
        firsts = range(0, frames, _BLOCK)
        blocks = (array[first : first + _BLOCK] for array in (maps, roots) for first in firsts)
        if not all(np.isfinite(block).all() for block in blocks):
            raise InvalidValueError("maps and roots must be finite numbers")
        fill = starts[0] == 0 and starts[-1] == frames and np.all(np.diff(starts) > 0)
        if len(starts) != len(kept["rates"]) + 1 or not fill:
            raise InvalidValueError("clips must start one after the other and fill all frames")
    except (InvalidValueError, SkeletonError, KeyError, ValueError, IndexError) as error:
        raise ParseError(f"not a library's poses: {error}", path=path) from error
    return Poses(space, maps, roots, starts, tuple(known["names"]), kept["rates"]), header


_POSES = Schema(
    {"kind": choice("poses"), "names": several(text(), least=1, most=10_000_000)},
    lambda _header, _lengths: {
        "references": Numbers(axes="joints 4", least=-1.001, most=1.001),
        "starts": Indices(axes="starts", below="all"),
        "rates": Numbers(axes="clips", least=SLOWEST, most=FASTEST),
    },
    {"starts": 10_000_001},
)


def _vectors(space: PoseSpace, motions: Iterable[Motion]) -> Iterator[Float[Array, "frames size"]]:
    for motion in motions:
        yield space.q_from_frames(motion.root_positions, motion.rotations).astype(np.float32)


# --- features by which frames are compared ---------------------------------------------------------------------------
#
# Control markers in the root's frame, and continuity with two poses before (Chai and Hodgins 2005, Eq. 2): alpha
# ||c_n - c||^2 + (1 - alpha) ||q_n - (2 q_{t-1} - q_{t-2})||^2, as squared Euclidean distance between rows of one
# matrix and a query vector. Unknown columns of a query are NaN and ignored.


ALPHA = 0.8  # of the paper
_SPREAD = 10_000  # frames for the standard deviations of markers and angles


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
        maps = poses.maps[:: max(1, len(poses) // _SPREAD)]
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
        space = poses.space if skeleton is None else poses.space.on_body(skeleton)
        of_markers, of_maps = self.scales

        def blocks() -> Iterator[Float[Array, "block columns"]]:
            for first in range(0, len(poses), _BLOCK):
                maps = poses.maps[first : first + _BLOCK]
                points = space.points_in_root_frame(maps, handles).reshape(len(maps), -1)
                yield np.concatenate([of_markers * points, of_maps * maps], axis=1).astype(np.float32)

        if keep is None:
            return np.concatenate(list(blocks()))
        shape = (len(poses), 3 * len(handles) + poses.maps.shape[1])
        write_tensors(keep, {"rows": (shape, np.dtype(np.float32), blocks())}, {"kind": "rows"})
        return map_tensors(keep)[0]["rows"]
