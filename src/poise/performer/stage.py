"""The inputs of every action: a body, a style, the times of the frames, randomness; and poses by key frames.

For actions on the spot, feet are placed by hand and bodies posed by key frames in degrees. Times are then by the
stage's clock. Lengths are for a body of `REFERENCE` metres and are scaled to the performer's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.performer.bodies import Body
from poise.performer.posing import Arm, BodyTargets, Foot, yawed
from poise.performer.steps import Footfalls, FreeFoot, Stepping
from poise.performer.styles import Style
from poise.performer.tracks import Drift, Key, soft_positive, track
from poise.types import Array

_PROTRACTED = np.radians(35.0)  # how far a shoulder goes forward or back (Kapandji 2007)
_STRAIGHTEST = np.radians(4.0)  # an elbow is never quite straight
_RAISED, _BENT = np.radians(75.0), np.radians(95.0)  # angles at which an arm no longer hangs


@dataclass(frozen=True)
class Stage:
    """One performance before it is acted: who, how, when; `seed` determines its small irregularities."""

    body: Body
    style: Style
    seconds: float
    fps: float
    seed: int

    @cached_property
    def times(self) -> Float[Array, "frames"]:
        """The times of the frames in seconds."""
        return np.arange(max(1, round(self.seconds * self.fps))) / self.fps

    @cached_property
    def clock(self) -> Float[Array, "frames"]:
        """The times scaled by the style's tempo: gestures planned for a neutral tempo use this clock."""
        return self.times * self.style.tempo

    @property
    def beats(self) -> float:
        """The available time by the style's clock."""
        return self.seconds * self.style.tempo

    def generator(self, purpose: str) -> np.random.Generator:
        """A random generator for one purpose, so that adding one does not change the others."""
        return np.random.default_rng([self.seed, *purpose.encode()])

    def drift(self, purpose: str, *, hertz: float, channels: int = 1) -> Drift:
        """A slow random function of time for one purpose."""
        return Drift(self.generator(purpose), hertz=hertz, channels=channels)


def lively(stage: Stage, targets: BodyTargets) -> BodyTargets:
    """The targets with the style's posture, breathing, small irregularities and, for some, a tremor."""
    style, times = stage.style, stage.times
    unrest = np.radians(style.variation) * stage.drift("unrest", hertz=0.35, channels=9)(times)
    breath = np.sin(2 * np.pi * 0.27 * style.tempo * times + stage.generator("breath").uniform(0, 2 * np.pi))
    spine = targets.spine + 0.6 * unrest[:, :3]
    spine[:, 0] += np.radians(style.slump + 0.5 * breath)
    pelvis_turn = targets.pelvis_turn.copy()
    pelvis_turn[:, 0] += np.radians(style.lean) * targets.upright
    gaze = targets.gaze + 1.2 * unrest[:, 3:6]
    gaze[:, 0] += np.radians(style.head_down)
    pelvis = targets.pelvis.copy()
    pelvis[:, 1] -= style.crouch * stage.body.leg * targets.upright
    # The style's arm posture applies as far as an arm hangs: a raised or bent one is busy.
    tremor = np.radians(style.tremor) * np.sin(2 * np.pi * 5.1 * times) * (1 + breath) / 2
    forward = style.arms_forward + 0.8 * (
        style.lean + style.slump
    )  # from a bent trunk as from an upright one
    arms = {}
    for number, (side, arm) in enumerate(targets.arms.items()):
        own = unrest[:, 6 + number]
        raised = [(np.asarray(angle) / _RAISED) ** 2 for angle in (arm.flexion, arm.abduction)]
        hangs = np.exp(-raised[0] - raised[1])
        straight = np.exp(-((np.asarray(arm.elbow) / _BENT) ** 2))
        idle = np.maximum(1.0 - (np.asarray(arm.shoulder_forward) / _PROTRACTED) ** 2, 0.0)
        bend = arm.elbow + np.radians(style.elbows) * straight + 1.5 * own + tremor
        arms[side] = replace(
            arm,
            flexion=arm.flexion + np.radians(forward) * hangs + 1.5 * own,
            abduction=arm.abduction + np.radians(style.arms_out) * hangs + own,
            elbow=_STRAIGHTEST + soft_positive(bend - _STRAIGHTEST, width=0.05),
            wrist=arm.wrist + 2.0 * own + 2.0 * tremor,
            shoulder_up=arm.shoulder_up + np.radians(style.shoulders_up + 0.6 * breath),
            shoulder_forward=arm.shoulder_forward + np.radians(style.shoulders_forward) * idle,
        )
    return replace(targets, pelvis=pelvis, spine=spine, pelvis_turn=pelvis_turn, gaze=gaze, arms=arms)


def within(what: str, value: float, limits: tuple[float, float], unit: str) -> float:
    """Return the value as a float if it is within the limits; raise otherwise."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise InvalidValueError(f"{what} must be a number; got {value!r}")
    low, high = limits
    if not low <= value <= high:
        raise InvalidValueError(f"{what} must be {low:g} to {high:g} {unit}; got {value!r:.40}")
    return float(value)


def one_of(what: str, value: str, valid: tuple[str, ...]) -> str:
    """Return the value if it is valid; raise otherwise."""
    if value not in valid:
        raise UnknownNameError(what, str(value), valid)
    return value


Keys = Sequence[Key]
STILL: Keys = ((0.0, (0.0, 0.0, 0.0)),)

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


def keyed(times: Sequence[float], values: Sequence[Any]) -> list[Key]:
    """Key frames from their times and as many values."""
    return list(zip(times, values, strict=True))


def lengths(stage: Stage, keys: Keys) -> Array:
    """Key frames in metres for the reference body, at the stage's frames, for this one."""
    return scale(stage) * track(stage.clock, keys)


def arm(stage: Stage, **keys: Keys) -> Arm:
    """An arm from key frames of its angles, in degrees; angles not given hang."""
    hanging: dict[str, Keys] = {name: [(0.0, value)] for name, value in HANGING.items()}
    posed_angles: Any = {name: angles(stage, values) for name, values in {**hanging, **keys}.items()}
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
    pelvis: Keys = STILL,
    pelvis_turn: Keys = STILL,
    spine: Keys = STILL,
    gaze: Keys = STILL,
    feet: Mapping[str, Foot],
    arms: Mapping[str, Arm],
) -> BodyTargets:
    """Targets from key frames: the pelvis in metres relative to relaxed standing, turns in degrees."""
    position = lengths(stage, pelvis) + sway(stage)
    position[:, 1] += standing_height(stage)
    turn, facing = angles(stage, pelvis_turn), np.zeros(len(position))
    return BodyTargets(position, turn, angles(stage, spine), facing, angles(stage, gaze), feet, arms)


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
