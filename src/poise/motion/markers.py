"""Marker recordings: labelled points over frames. Unseen markers are NaN, which is valid input."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from poise.bounds import is_number
from poise.errors import InvalidValueError, UnknownNameError
from poise.motion.motion import Origin
from poise.savable import Savable
from poise.skeleton.skeleton import read_only
from poise.types import Array


@dataclass(frozen=True, eq=False, repr=False)
class Markers(Savable):
    """Points in metres, Y up, over frames; NaN if a marker was not seen. `residuals` (metres) are optional."""

    labels: tuple[str, ...]
    points: Float[Array, "frames markers 3"]
    fps: float
    residuals: Float[Array, "frames markers"] | None = None
    name: str = ""
    origin: Origin = field(default_factory=Origin)

    def __post_init__(self) -> None:
        if isinstance(self.labels, str) or not np.iterable(self.labels):
            raise InvalidValueError(f"labels are a sequence of names; got {self.labels!r:.40}")
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "points", read_only(self.points))
        if self.points.ndim != 3 or self.points.shape[1:] != (len(self.labels), 3):
            raise InvalidValueError(
                f"{len(self.labels)} labels need points (frames, {len(self.labels)}, 3); got {self.points.shape}"
            )
        if self.residuals is not None:
            object.__setattr__(self, "residuals", read_only(self.residuals))
        if not (is_number(self.fps) and self.fps > 0):
            raise InvalidValueError(f"a marker recording needs a positive frame rate; got {self.fps!r:.40}")

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, frames: slice) -> Markers:
        """A selection of frames (a stride divides the frame rate)."""
        residuals = None if self.residuals is None else self.residuals[frames]
        fps = self.fps / abs(frames.step or 1)
        return replace(self, points=self.points[frames], residuals=residuals, fps=fps)

    @property
    def summary(self) -> str:
        """The number of markers, length and frame rate."""
        return f"{len(self.labels)} markers, {len(self)} frames at {self.fps:g} Hz"

    @property
    def seconds(self) -> float:
        """The duration."""
        return len(self) / self.fps

    def index(self, label: str) -> int:
        """The index of the marker with this label; raise an error with close matches if there is none."""
        if label not in self.labels:
            raise UnknownNameError("marker", label, self.labels)
        return self.labels.index(label)
