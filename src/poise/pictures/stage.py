"""What is put on stage: a motion as a mannequin, or a marker recording as dots, with what the camera needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.pictures.scene import Figure, figure, merged, painted
from poise.skeleton.lofts import ball
from poise.skeleton.mannequin import TONES, Mannequin, build_mannequin
from poise.skeleton.skeleton import Skeleton

Array = np.ndarray

_LOOKS = 48  # frames looked at to place floor and camera
_SLACK_BELOW, _SLACK_ABOVE = 0.12, 0.6  # metres from y = 0 at which the floor is still taken to be there
_DOT_RADIUS = 0.017


class Stage(Protocol):
    """Frames that can be drawn, and where they go."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def fps(self) -> float:
        """Frames a second."""

    @property
    def frames(self) -> int:
        """How many there are."""

    @property
    def floor(self) -> float:
        """The height of the floor."""

    @property
    def centres(self) -> Float[Array, "frames 3"]:
        """Where its middle is."""

    @property
    def facing(self) -> float:
        """The azimuth it faces on average."""

    def figure(self, frame: int) -> Figure:
        """What is seen at a frame."""


def stage(shown: Motion | Markers) -> Stage:
    """The stage for a motion or a marker recording."""
    if len(shown) == 0:
        raise InvalidValueError("there is no frame to draw")
    return _dots(shown) if isinstance(shown, Markers) else _person(shown)


def looked_at(frames: int) -> list[int]:
    """Evenly spread frame numbers, few enough to be quick."""
    return sorted({round(f) for f in np.linspace(0, frames - 1, min(frames, _LOOKS))})


def heading(centres: Float[Array, "frames 3"]) -> tuple[float, float]:
    """The azimuth of the way from the first frame to the last, and its length on the floor."""
    way = centres[-1] - centres[0]
    return float(np.arctan2(way[0], way[2])), float(np.hypot(way[0], way[2]))


def facing_of(skeleton: Skeleton, positions: Float[Array, "frames joints 3"]) -> float:
    """The azimuth that a body faces on average; 0 (towards +Z) where no left and right are known."""
    for part in ("thigh", "upper_arm"):
        sides = [skeleton.roles.get(f"{side}_{part}") for side in ("left", "right")]
        if all(sides):
            left, right = (positions[:, skeleton.index(str(name))] for name in sides)
            ahead = np.cross(left - right, [0.0, 1.0, 0.0]).mean(axis=0)
            if np.hypot(ahead[0], ahead[2]) > 1e-6:
                return float(np.arctan2(ahead[0], ahead[2]))
    return 0.0


def floor_height(lowest: Float[Array, "frames"]) -> float:
    """The floor from the lowest points of some frames; below one who is in the air throughout, it is at y = 0."""
    low = float(np.quantile(lowest, 0.25))
    return 0.0 if _SLACK_BELOW < low < _SLACK_ABOVE else low


@dataclass(frozen=True, eq=False)
class _Person:
    name: str
    fps: float
    frames: int
    floor: float
    centres: Float[Array, "frames 3"]
    facing: float
    mannequin: Mannequin
    positions: Float[Array, "frames joints 3"]
    matrices: Float[Array, "frames joints 3 3"]

    def figure(self, frame: int) -> Figure:
        return figure(self.mannequin, self.positions[frame], self.matrices[frame])


def _person(motion: Motion) -> _Person:
    from poise.skeleton.kinematics import world_transforms

    mannequin = build_mannequin(motion.skeleton, rotations=motion.rotations)
    positions, matrices = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    looks = looked_at(len(motion))
    lowest = [mannequin.posed(positions[f], matrices[f])[0][:, 1].min() for f in looks]
    pelvis = motion.skeleton.index(motion.skeleton.roles.get("pelvis", motion.skeleton.names[0]))
    return _Person(
        motion.name, motion.fps, len(motion), floor_height(np.array(lowest)), positions[:, pelvis],
        facing_of(motion.skeleton, positions[looks]), mannequin, positions, matrices,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Dots:
    name: str
    fps: float
    frames: int
    floor: float
    centres: Float[Array, "frames 3"]
    facing: float
    markers: Markers

    def figure(self, frame: int) -> Figure:
        seen = np.flatnonzero(np.isfinite(self.markers.points[frame]).all(axis=-1))
        return merged([_dot(self.markers.points[frame, k], _side(self.markers.labels[k])) for k in seen])


def _dots(markers: Markers) -> _Dots:
    known = np.isfinite(markers.points).all(axis=-1)
    if not known.any():
        raise InvalidValueError("there is no marker to draw: every one is missing in every frame")
    seen = np.where(known[..., None], markers.points, 0.0)
    counts = known.sum(axis=1)
    whole = np.flatnonzero(counts)
    means = seen.sum(axis=1)[whole] / counts[whole, None]
    centres = np.stack([np.interp(np.arange(len(markers)), whole, means[:, k]) for k in range(3)], axis=-1)
    lowest = [markers.points[f, known[f], 1].min() for f in whole[looked_at(len(whole))]]
    azimuth, way = heading(centres)
    floor = floor_height(np.array(lowest) - _DOT_RADIUS)
    return _Dots(
        markers.name, markers.fps, len(markers), floor, centres, azimuth if way > 1.0 else 0.0, markers
    )


def _side(label: str) -> str:
    first = label.split(":")[-1][:1].upper()
    return {"L": "left", "R": "right"}.get(first, "centre joint")


def _dot(at: Float[Array, "3"], tone: str) -> Figure:
    return painted(ball(at, _DOT_RADIUS, sides=10), TONES[tone])
