"""The inputs of every action: a body, a style, the times of the frames, and a source of randomness."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.performer.bodies import Body
from poise.performer.posing import Arm, BodyTargets
from poise.performer.styles import Style
from poise.performer.tracks import Drift, soft_positive
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

    def in_real_time(self) -> Stage:
        """The same with a clock in seconds, for motion under gravity."""
        return replace(self, style=replace(self.style, tempo=1.0))

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
    arms = {
        side: _lively_arm(stage, arm, breath, unrest[:, 6 + number])
        for number, (side, arm) in enumerate(targets.arms.items())
    }
    return replace(targets, pelvis=pelvis, spine=spine, pelvis_turn=pelvis_turn, gaze=gaze, arms=arms)


def _lively_arm(stage: Stage, arm: Arm, breath: Array, unrest: Array) -> Arm:
    """The style's arm posture, as far as the arm hangs: a raised or bent one is busy."""
    style = stage.style
    tremor = np.radians(style.tremor) * np.sin(2 * np.pi * 5.1 * stage.times) * (1 + breath) / 2
    hangs = np.exp(-((np.asarray(arm.flexion) / _RAISED) ** 2) - (np.asarray(arm.abduction) / _RAISED) ** 2)
    straight = np.exp(-((np.asarray(arm.elbow) / _BENT) ** 2))
    idle = np.maximum(1.0 - (np.asarray(arm.shoulder_forward) / _PROTRACTED) ** 2, 0.0)
    forward = style.arms_forward + 0.8 * (
        style.lean + style.slump
    )  # arms hang from a bent trunk as from an upright one
    bend = arm.elbow + np.radians(style.elbows) * straight + 1.5 * unrest + tremor
    return replace(
        arm,
        flexion=arm.flexion + np.radians(forward) * hangs + 1.5 * unrest,
        abduction=arm.abduction + np.radians(style.arms_out) * hangs + unrest,
        elbow=_STRAIGHTEST + soft_positive(bend - _STRAIGHTEST, width=0.05),
        wrist=arm.wrist + 2.0 * unrest + 2.0 * tremor,
        shoulder_up=arm.shoulder_up + np.radians(style.shoulders_up + 0.6 * breath),
        shoulder_forward=arm.shoulder_forward + np.radians(style.shoulders_forward) * idle,
    )
