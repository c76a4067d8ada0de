"""Motions: one skeleton over many frames, with their origin. Operations on motions are in the modules beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from jaxtyping import Float

from poise.bounds import is_number
from poise.errors import InvalidValueError
from poise.savable import Editable
from poise.skeleton.skeleton import Pose, Positions, Skeleton, read_only, unit_quaternions
from poise.types import Array

SEPARATOR = "; "  # between credits, in files that have one line for them


class Doubt(str):
    """A warning that a file contradicts itself, or cannot mean what it says: it is refused if read strictly."""

    __slots__ = ()


@dataclass(frozen=True)
class Origin:
    """The source of a motion and what its reader inferred; every inference is recorded here."""

    path: str = ""
    format: str = ""
    metres_per_unit: float = 1.0
    units: str = "m"
    units_reason: str = "given"
    frames_in_file: int = 0
    dropped_first_frame: bool = False
    notes: tuple[str, ...] = ()
    """Decisions without doubt, such as which axis was up."""
    warnings: tuple[str, ...] = ()
    """What to check in the file; a `Doubt` if it contradicts itself."""
    character: str = ""
    """The file of the character with this skeleton, including its mesh; a GLB or VRM is written into it."""
    credits: tuple[str, ...] = ()
    """Databases and licences of the data it was made from; written to files that have a field for them."""


@dataclass(frozen=True, eq=False, repr=False)
class Motion(Editable):
    """A moving skeleton: root positions in metres and joint rotations (wxyz, relative to the parent) per frame."""

    skeleton: Skeleton
    fps: float
    root_positions: Float[Array, "frames 3"]
    rotations: Float[Array, "frames joints 4"]
    name: str = ""
    origin: Origin = field(default_factory=Origin)

    def __post_init__(self) -> None:
        if not isinstance(self.skeleton, Skeleton):
            raise InvalidValueError(f"a motion needs a poise.Skeleton; got {self.skeleton!r:.40}")
        object.__setattr__(self, "root_positions", read_only(self.root_positions))
        object.__setattr__(self, "rotations", read_only(self.rotations))
        joints, frames = len(self.skeleton), len(self.root_positions) if self.root_positions.ndim else 0
        if self.root_positions.shape != (frames, 3) or self.rotations.shape != (frames, joints, 4):
            raise InvalidValueError(
                f"a motion of {joints} joints needs root positions (frames, 3) and rotations (frames, {joints}, 4); "
                f"got {self.root_positions.shape} and {self.rotations.shape}"
            )
        if not (is_number(self.fps) and self.fps > 0):
            raise InvalidValueError(f"a motion needs a positive frame rate; got {self.fps!r:.40}")
        if not (np.all(np.isfinite(self.root_positions)) and np.all(np.isfinite(self.rotations))):
            raise InvalidValueError("a motion's positions and rotations must be finite; got NaN or infinity")
        object.__setattr__(self, "rotations", unit_quaternions(self.rotations, "a motion's rotations"))

    @classmethod
    def of_poses(cls, poses: Sequence[Pose], *, fps: float = 30.0, name: str = "") -> Motion:
        """Join poses of one skeleton to a motion."""
        if not poses or not all(pose.skeleton.same_topology(poses[0].skeleton) for pose in poses):
            needed = "a motion needs at least one pose, and all poses must have the same skeleton"
            raise InvalidValueError(needed)
        roots, turns = [pose.root_position for pose in poses], [pose.rotations for pose in poses]
        return cls(poses[0].skeleton, fps, np.stack(roots), np.stack(turns), name=name)

    def __len__(self) -> int:
        return len(self.root_positions)

    def __iter__(self) -> Iterator[Pose]:
        return (self[frame] for frame in range(len(self)))

    @overload
    def __getitem__(self, frames: int) -> Pose: ...
    @overload
    def __getitem__(self, frames: slice | Array) -> Motion: ...
    def __getitem__(self, frames: int | slice | Array) -> Pose | Motion:
        """One frame as a Pose, or several as a Motion (a stride divides the frame rate)."""
        if isinstance(frames, (int, np.integer)):
            if not -len(self) <= frames < len(self):
                raise IndexError(f"no frame {frames}; the motion has frames 0 to {len(self) - 1}")
            return Pose(self.skeleton, self.root_positions[frames], self.rotations[frames])
        step = abs(frames.step or 1) if isinstance(frames, slice) else 1
        return self.with_frames(self.root_positions[frames], self.rotations[frames], fps=self.fps / step)

    @property
    def summary(self) -> str:
        """The name, length and frame rate, and the number of joints."""
        label = f"{self.name!r}, " if self.name else ""
        return f"{label}{len(self)} frames at {self.fps:g} Hz, {len(self.skeleton)} joints"

    @property
    def frames(self) -> int:
        """The number of frames."""
        return len(self)

    @property
    def seconds(self) -> float:
        """The duration."""
        return len(self) / self.fps

    @property
    def duration(self) -> float:
        """The duration in seconds."""
        return self.seconds

    @cached_property
    def positions(self) -> Positions:
        """Joint positions in every frame, `motion.positions["right_hand"]`, computed on first access."""
        return Positions.of(self.skeleton, self.root_positions, self.rotations)

    def with_frames(
        self,
        root_positions: Float[Array, "frames 3"],
        rotations: Float[Array, "frames joints 4"],
        **changes: Any,
    ) -> Motion:
        """The same skeleton and origin with other frames."""
        return replace(self, root_positions=root_positions, rotations=rotations, **changes)
