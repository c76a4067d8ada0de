"""Drawable input: a motion as a mannequin, or a marker recording as dots, with the data for the camera."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, PoiseError
from poise.formats.gltf.meshes import read_mesh
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.pictures.lofts import ball
from poise.pictures.mannequin import TONES, build_mannequin
from poise.pictures.scene import Figure, figure, merged, painted
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

_LOOKS = 48  # frames examined to place floor and camera
_SLACK_BELOW, _SLACK_ABOVE = 0.12, 0.6  # metres from y = 0 within which the floor is assumed to be there
_DOT_RADIUS = 0.017


@dataclass(frozen=True, eq=False)
class Subject:
    """Drawable frames: `figure` returns the objects of one; their positions, and their heading azimuth."""

    name: str
    fps: float
    frames: int
    floor: float
    centres: Float[Array, "frames 3"]
    facing: float
    figure: Callable[[int], Figure]


def subject_of(shown: Motion | Markers) -> Subject:
    """The subject of a picture: a motion or a marker recording."""
    if len(shown) == 0:
        raise InvalidValueError("there is no frame to draw")
    return _dots(shown) if isinstance(shown, Markers) else _person(shown)


def looked_at(frames: int) -> list[int]:
    """Evenly spaced frame numbers, few enough to be fast."""
    return sorted({round(f) for f in np.linspace(0, frames - 1, min(frames, _LOOKS))})


def heading(centres: Float[Array, "frames 3"]) -> tuple[float, float]:
    """The azimuth of the path from the first frame to the last, and its length on the floor."""
    way = centres[-1] - centres[0]
    return float(np.arctan2(way[0], way[2])), float(np.hypot(way[0], way[2]))


def facing_of(skeleton: Skeleton, positions: Float[Array, "frames joints 3"]) -> float:
    """The azimuth of a body's mean heading; 0 (towards +Z) without a known left and right."""
    for part in ("thigh", "upper_arm"):
        sides = [f"{side}_{part}" for side in SIDES]
        if all(role in skeleton.roles for role in sides):
            left, right = (positions[:, skeleton.index(role)] for role in sides)
            ahead = np.cross(left - right, [0.0, 1.0, 0.0]).mean(axis=0)
            if np.hypot(ahead[0], ahead[2]) > 1e-6:
                return float(np.arctan2(ahead[0], ahead[2]))
    return 0.0


def floor_height(lowest: Float[Array, "frames"]) -> float:
    """The floor from the lowest points of some frames; for a body always in the air, at y = 0."""
    low = float(np.quantile(lowest, 0.25))
    return 0.0 if _SLACK_BELOW < low < _SLACK_ABOVE else low


def _person(motion: Motion) -> Subject:
    from poise.skeleton.kinematics import world_transforms

    body = _body(motion)
    positions, matrices = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    looks = looked_at(len(motion))
    lowest = [body(positions[f], matrices[f]).vertices[:, 1].min() for f in looks]
    pelvis = motion.skeleton.index("pelvis") if "pelvis" in motion.skeleton.roles else 0
    return Subject(
        name=motion.name,
        fps=motion.fps,
        frames=len(motion),
        floor=floor_height(np.array(lowest)),
        centres=positions[:, pelvis],
        facing=facing_of(motion.skeleton, positions[looks]),
        figure=lambda frame: body(positions[frame], matrices[frame]),
    )


def _body(motion: Motion) -> Callable[[Array, Array], Figure]:
    """The drawn body: the character's own mesh if it can be read, else a mannequin."""
    if motion.origin.character:
        try:
            mesh = read_mesh(motion.origin.character)
        except PoiseError:
            pass
        else:
            return lambda places, turns: Figure(*mesh.posed(places, turns), mesh.triangles, mesh.colours)
    mannequin = build_mannequin(motion.skeleton, rotations=motion.rotations)
    return lambda places, turns: figure(mannequin, places, turns)


def _dots(markers: Markers) -> Subject:
    known = np.isfinite(markers.points).all(axis=-1)
    if not known.any():
        raise InvalidValueError("there is no marker to draw: every one is missing in every frame")
    # The mean of the markers seen in each frame; frames without any are interpolated.
    seen = np.flatnonzero(known.any(axis=1))
    means = np.array([markers.points[f, known[f]].mean(axis=0) for f in seen])
    centres = np.stack([np.interp(np.arange(len(markers)), seen, means[:, k]) for k in range(3)], axis=-1)
    lowest = [markers.points[f, known[f], 1].min() - _DOT_RADIUS for f in seen[looked_at(len(seen))]]
    sides = {"L": "left", "R": "right"}
    tones = [sides.get(label.split(":")[-1][:1].upper(), "centre joint") for label in markers.labels]

    def dots(frame: int) -> Figure:
        own = [(markers.points[frame, k], TONES[tones[k]]) for k in np.flatnonzero(known[frame])]
        return merged([painted(ball(at, _DOT_RADIUS, sides=10), colour) for at, colour in own])

    azimuth, way = heading(centres)
    return Subject(
        name=markers.name,
        fps=markers.fps,
        frames=len(markers),
        floor=floor_height(np.array(lowest)),
        centres=centres,
        facing=azimuth if way > 1.0 else 0.0,
        figure=dots,
    )
