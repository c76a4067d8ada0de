"""Helpers for actions on the spot: feet placed by hand, bodies posed by key frames in degrees.

Times here are by the stage's clock. Lengths are for a body of `REFERENCE` metres and are scaled to the performer's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.performer.posing import Arm, BodyTargets, Foot, yawed
from poise.performer.stage import Stage
from poise.performer.steps import Footfalls, FreeFoot, Stepping
from poise.performer.tracks import Key, track
from poise.types import Array

Keys = Sequence[Key]

REFERENCE = 1.75  # metres
ALWAYS = 1e6  # seconds
HIP_WIDTH_STANCE = 0.095  # metres from the middle to each ankle
ANKLES_BEHIND = -0.035  # metres: the weight is over the middle of the feet
HANGING = {"flexion": 2.0, "abduction": 7.0, "twist": 12.0, "elbow": 14.0, "pronation": 20.0, "wrist": 4.0}


@dataclass(frozen=True)
class Place:
    """A flat foot's position: from when until when, the ankle's x and z, and the yaw in degrees."""

    start: float
    stop: float
    x: float
    z: float
    yaw: float


def scale(stage: Stage) -> float:
    """The body's size relative to the reference body."""
    return stage.body.height / REFERENCE


def angles(stage: Stage, keys: Keys) -> Array:
    """Key frames in degrees, at the stage's frames, in radians."""
    return np.radians(track(stage.clock, keys))


def lengths(stage: Stage, keys: Keys) -> Array:
    """Key frames in metres for the reference body, at the stage's frames, for this one."""
    return scale(stage) * track(stage.clock, keys)


def arm(stage: Stage, **keys: Keys) -> Arm:
    """An arm from key frames of its angles, in degrees; angles not given hang."""
    hanging: dict[str, Keys] = {name: [(0.0, value)] for name, value in HANGING.items()}
    posed_angles: dict[str, Any] = {
        name: angles(stage, values) for name, values in {**hanging, **keys}.items()
    }
    return Arm(**posed_angles)


def foot(
    stage: Stage,
    places: Sequence[Place],
    *,
    heel: Keys = ((0.0, 0.0),),
    pivot: Keys = ((0.0, 0.0),),
    free: FreeFoot | None = None,
    lift: float = 0.0,
    impact: float = 0.0,
    fade: float = 0.5,
) -> Foot:
    """A foot that stands at these positions, with its heel raised and rotated on its ball by the keys (degrees)."""
    size, body = scale(stage), stage.body
    yaw = np.radians([place.yaw for place in places])
    ankle = size * np.array([[place.x, 0.0, place.z] for place in places])
    ball = ankle + yawed(yaw, np.broadcast_to(body.ball * [0.0, 0.0, 1.0], ankle.shape))
    falls = Footfalls(
        np.array([place.start for place in places]), np.array([place.stop for place in places]), ball, yaw
    )
    return Stepping(
        body,
        falls,
        pitch=lambda times, _: np.radians(track(times, heel)),
        yaw=lambda times, _: np.radians(track(times, pivot)),
        free=free,
        lift=size * lift,
        impact=impact,
        fade=fade,
    ).foot(stage.clock)


def stance(stage: Stage, *, width: float = HIP_WIDTH_STANCE) -> Mapping[str, Foot]:
    """Both feet flat, side by side, toes a little out."""
    toes_out = 8.0 + stage.style.toes_out
    width *= 1.0 + 0.5 * (stage.style.step_width - 1.0)
    return {
        "left": foot(stage, [Place(-ALWAYS, ALWAYS, width, ANKLES_BEHIND, toes_out)]),
        "right": foot(stage, [Place(-ALWAYS, ALWAYS, -width, ANKLES_BEHIND, -toes_out)]),
    }


def posed(
    stage: Stage,
    *,
    pelvis: Keys = ((0.0, (0.0, 0.0, 0.0)),),
    pelvis_turn: Keys = ((0.0, (0.0, 0.0, 0.0)),),
    spine: Keys = ((0.0, (0.0, 0.0, 0.0)),),
    gaze: Keys = ((0.0, (0.0, 0.0, 0.0)),),
    feet: Mapping[str, Foot],
    arms: Mapping[str, Arm],
) -> BodyTargets:
    """Targets from key frames: the pelvis in metres relative to relaxed standing, turns in degrees."""
    position = lengths(stage, pelvis) + sway(stage)
    position[:, 1] += standing_height(stage)
    frames = len(position)
    return BodyTargets(
        position,
        angles(stage, pelvis_turn),
        angles(stage, spine),
        np.zeros(frames),
        angles(stage, gaze),
        feet,
        arms,
    )


def standing_height(stage: Stage) -> float:
    """The pelvis' height when standing easily, knees not locked."""
    return stage.body.pelvis_height - 0.004 * stage.body.leg


def sway(stage: Stage) -> Float[Array, "frames 3"]:
    """The slow sway of standing, in metres (a few millimetres: Winter 1995)."""
    drift = stage.drift("sway", hertz=0.25, channels=2)(stage.times)
    amount = 0.004 * stage.style.variation * scale(stage)
    return amount * np.stack([drift[:, 0], np.zeros(len(drift)), 1.3 * drift[:, 1]], axis=-1)


def starts(stage: Stage, period: float) -> Float[Array, "repetitions"]:
    """The start times of repetitions with this `period`; the last may be cut by the end of the clip."""
    return period * np.arange(max(1, int(np.ceil(stage.beats / period - 1e-6))))


def repeated(keys: Keys, beginnings: Sequence[float] | Array) -> list[Key]:
    """The same keys once for every start time."""
    return [(start + time, value) for start in beginnings for time, value in keys]
