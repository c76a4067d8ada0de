"""Jumping off both feet and hopping on one: ballistic in the air, whatever the style's tempo."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.performer.posing import SIDES, Arm, BodyTargets, Foot, mirrored
from poise.performer.stage import (
    ALWAYS,
    ANKLES_BEHIND,
    HIP_WIDTH_STANCE,
    Place,
    Stage,
    arm,
    foot,
    keyed,
    one_of,
    posed,
    repeated,
    scale,
    standing_height,
    within,
)
from poise.performer.steps import Footfalls, Rolling, Stepping, planted_ankle
from poise.performer.tracks import GRAVITY, Key, bounding, hermite
from poise.types import Array

_TAKE_OFF_PITCH, _LANDING_PITCH = 50.0, 24.0  # degrees the heels are up


def jump(stage: Stage, *, height: float | None = None, distance: float = 0.0) -> BodyTargets:
    """Jumps off both feet, again and again: the hips rise `height` metres, the feet land `distance` metres ahead."""
    rise = (
        0.30 * stage.style.amplitude * scale(stage)
        if height is None
        else within("a jump's height", height, (0.05, 0.8), "m")
    )
    within("a jump's distance", distance, (0.0, 2.0), "m")
    in_seconds = replace(stage, style=replace(stage.style, tempo=1.0))  # the clock of motion under gravity
    return _Jumps(in_seconds, rise, distance, stage.style.tempo).targets()


@dataclass(frozen=True)
class _Jumps:
    """A row of equal jumps; all times in seconds, all keys from the beginning of each jump."""

    stage: Stage
    rise: float
    distance: float
    tempo: float

    @cached_property
    def heights(self) -> tuple[float, float]:
        """The pelvis' height above standing when the toes leave and when they land."""
        body, zero = self.stage.body, np.zeros(1)

        def height(pitch: float, bend: float) -> float:
            ankle = planted_ankle(body, np.zeros((1, 3)), zero, zero + np.radians(pitch))[0, 1]
            return float(ankle + bend * body.leg - body.hip_height)

        return height(_TAKE_OFF_PITCH, 0.952), height(_LANDING_PITCH, 0.945)

    @cached_property
    def moments(self) -> tuple[float, float, float, float, float]:
        """When the crouch is deepest, the toes leave and land, the landing is deepest, and the body stands again."""
        deepest = 0.55 / self.tempo
        leaves = deepest + 0.26
        lands = leaves + self._flight
        return deepest, leaves, lands, lands + 0.22, lands + 0.22 + 0.55 / self.tempo

    @property
    def period(self) -> float:
        return self.moments[-1] + 0.15

    @property
    def _speed(self) -> float:
        return float(np.sqrt(2 * GRAVITY * self.rise))

    @property
    def _flight(self) -> float:
        up, down = self.heights
        return float(self._speed + np.sqrt(self._speed**2 + 2 * GRAVITY * (up - down))) / GRAVITY

    @cached_property
    def begins(self) -> Float[Array, "jumps"]:
        return 0.1 + self.period * np.arange(max(1, int(np.ceil(self.stage.seconds / self.period))))

    def pelvis(self, times: Array) -> Float[Array, "frames 3"]:
        """From standing height and the origin: hermite pieces on the floor, a parabola in the air."""
        deepest, leaves, lands, lowest, stands = self.moments
        leg, (up, down) = self.stage.body.leg, self.heights
        z1, z2, speed = 0.14 * self.distance, 0.84 * self.distance, 0.70 * self.distance / self._flight
        land_speed = self._speed - GRAVITY * self._flight
        depth = min(0.22 + 0.35 * self.rise, 0.42) * leg
        rows = [  # time, height, its rate, forward, its rate
            (0.0, 0.0, 0.0, 0.0, 0.0),
            (deepest, -depth, 0.0, 0.02 * self.distance - 0.42 * depth, 0.1 * speed),
            (leaves, up, self._speed, z1, speed),
            (lands, down, land_speed, z2, speed),
            (lowest, -0.8 * depth, 0.0, 0.97 * self.distance - 0.34 * depth, 0.1 * speed),
            (stands, 0.0, 0.0, self.distance, 0.0),
        ]
        table = np.array(
            [
                (start + t, y, dy, k * self.distance + z, dz)
                for k, start in enumerate(self.begins)
                for t, y, dy, z, dz in rows
            ]
        )
        height, forward = hermite(times, table[:, 0], table[:, [1, 3]], table[:, [2, 4]]).T
        number = np.clip(np.searchsorted(self.begins, times, side="right") - 1, 0, len(self.begins) - 1)
        air = times - self.begins[number] - leaves
        flying = (air > 0) & (air < self._flight)
        height = np.where(flying, up + self._speed * air - GRAVITY * air**2 / 2, height)
        forward = np.where(flying, number * self.distance + z1 + speed * air, forward)
        return np.stack([np.zeros_like(times), height, forward], axis=-1)

    def free_foot(self, side: str, times: Array) -> tuple[Array, Array]:
        """In the air the legs hang, a little tucked and with the toes down, then reach for the floor."""
        body, (_, leaves, _, _, _) = self.stage.body, self.moments
        number = np.clip(np.searchsorted(self.begins, times, side="right") - 1, 0, len(self.begins) - 1)
        share = (times - self.begins[number] - leaves) / self._flight
        tuck = (
            0.985 - 0.03 * share - 0.30 * min(self.rise / 0.5, 1.0) * np.exp(-(((share - 0.5) / 0.26) ** 2))
        )
        pelvis = self.pelvis(times)
        ahead = -0.10 * (1 - share) * body.leg + 0.16 * self.distance * (share - 0.2)
        aside = np.full_like(times, SIDES[side] * HIP_WIDTH_STANCE * scale(self.stage))
        up = body.hip_height + pelvis[:, 1] - tuck * body.leg
        ankle = np.stack([aside, up, pelvis[:, 2] + ahead], axis=-1)
        return ankle, np.radians(_TAKE_OFF_PITCH + share * (_LANDING_PITCH - _TAKE_OFF_PITCH))

    def keyed(self, *values: float, lead: float = 0.0) -> list[Key]:
        """Keys at the start, `lead` seconds before the deepest crouch, at take-off, the top, landing, ..., standing."""
        deepest, leaves, lands, lowest, stands = self.moments
        moments = (0.0, deepest - lead, leaves, (leaves + lands) / 2, lands, lowest, stands)
        return repeated(keyed(moments, values), self.begins)

    def foot(self, side: str) -> Foot:
        deepest, leaves, lands, lowest, _ = self.moments
        steps = self.distance / scale(self.stage)
        strikes = [-ALWAYS, *(self.begins + lands)]
        offs = [*(self.begins + leaves), ALWAYS]
        places = [
            Place(a, b, SIDES[side] * HIP_WIDTH_STANCE, k * steps + ANKLES_BEHIND, SIDES[side] * 6.0)
            for k, (a, b) in enumerate(zip(strikes, offs, strict=True))
        ]
        heel = [
            (deepest - 0.1, 0.0),
            (deepest + 0.06, 2.0),
            (leaves - 0.075, 12.0),
            (leaves, _TAKE_OFF_PITCH),
        ]
        heel += [(leaves + 0.05, 68.0), (lands - 0.12, 42.0), (lands, _LANDING_PITCH), (lands + 0.09, 0.0)]
        return foot(
            self.stage,
            places,
            heel=repeated([*heel, (lowest, 0.0)], self.begins),
            free=lambda times: self.free_foot(side, times),
            impact=0.6,
            fade=0.3,
        )

    def targets(self) -> BodyTargets:
        """The whole body, arms swung back in the crouch and up in the leap."""
        size = self.stage.style.amplitude
        reach = min(100.0 + 40.0 * size, 165.0)
        swung = arm(
            self.stage,
            flexion=self.keyed(2.0, -48.0, 0.75 * reach, reach, 82.0, 26.0, 2.0, lead=0.12),
            abduction=self.keyed(7.0, 12.0, 16.0, 24.0, 34.0, 22.0, 7.0),
            elbow=self.keyed(14.0, 12.0, 34.0, 24.0, 30.0, 34.0, 14.0),
            shoulder_up=self.keyed(0.0, -3.0, 10.0, 12.0, 6.0, 0.0, 0.0),
        )
        targets = posed(
            self.stage,
            pelvis_turn=[(t, (v, 0.0, 0.0)) for t, v in self.keyed(0.0, 33.0, 2.0, 4.0, 8.0, 28.0, 0.0)],
            spine=[(t, (v, 0.0, 0.0)) for t, v in self.keyed(0.0, 15.0, -6.0, 2.0, 6.0, 14.0, 0.0)],
            gaze=[(t, (v, 0.0, 0.0)) for t, v in self.keyed(0.0, 10.0, -10.0, 0.0, 12.0, 10.0, 0.0)],
            feet={side: self.foot(side) for side in SIDES},
            arms={"left": swung, "right": swung},
        )
        return replace(targets, pelvis=targets.pelvis + self.pelvis(self.stage.times))


# --- hopping -------------------------------------------------------------------------------------------------------

_ON_FLOOR = 0.62  # share of a hop


def hop(stage: Stage, *, foot: str = "right", speed: float = 0.5) -> BodyTargets:
    """Hops on the "right" or the "left" foot, forward at `speed` metres a second."""
    one_of("foot", foot, ("right", "left"))
    within("a hopping speed", speed, (0.0, 2.0), "m/s")
    targets = _Hops(stage, speed).targets()
    return mirrored(targets) if foot == "right" else targets


@dataclass(frozen=True)
class _Hops:
    """Hops on the left foot, one after the other."""

    stage: Stage
    speed: float

    @property
    def period(self) -> float:
        return 0.43 * float(np.sqrt(scale(self.stage))) / self.stage.style.tempo**0.3

    def pelvis(self, times: Array) -> Float[Array, "frames 3"]:
        """Over the hopping foot, falling freely in the air."""
        body = self.stage.body
        share = (times / self.period) % 1.0
        landing = standing_height(self.stage) + 0.012 * body.leg
        height = landing + GRAVITY * self.period**2 * bounding(share, np.full_like(share, _ON_FLOOR))
        return np.stack([np.full_like(times, 0.045 * scale(self.stage)), height, self.speed * times], axis=-1)

    def hopping_foot(self) -> Foot:
        body, count = self.stage.body, int(self.stage.seconds / self.period) + 4
        strike = self.period * (np.arange(count) - 2.0)
        off = strike + _ON_FLOOR * self.period
        noise = self.stage.generator("hops").standard_normal((count, 2)).clip(-2, 2)
        scatter = 0.006 * self.stage.style.variation * noise
        middle = strike + 0.45 * _ON_FLOOR * self.period
        aside = 0.05 * scale(self.stage) + scatter[:, 0]
        ahead = self.speed * middle + 0.6 * body.ball[2] + scatter[:, 1]
        ball = np.stack([aside, 0 * middle, ahead], -1)
        falls = Footfalls(strike, off, ball, np.full(count, np.radians(4.0)))
        all_ = np.ones(count)
        rolling = Rolling(falls, np.radians(16.0) * all_, np.radians(46.0) * all_, 0.30 * all_, 0.52 * all_)

        def free(times: Array) -> tuple[Array, Array]:
            pelvis = self.pelvis(times)
            ankle = pelvis + np.array([0.0, body.hip_height - body.pelvis_height - 0.93 * body.leg, -0.02])
            return ankle, np.full_like(times, np.radians(26.0))

        return Stepping(body, falls, rolling.pitch, free=free, clearance=0.03, impact=0.5).foot(
            self.stage.times
        )

    def lifted_foot(self) -> Foot:
        """The other leg, bent and swinging a little with each hop."""
        body, times = self.stage.body, self.stage.times
        beat = np.cos(2 * np.pi * (times / self.period - 0.75))
        thigh, knee = np.radians(40.0 + 9.0 * beat), np.radians(98.0 + 8.0 * beat)
        hip = self.pelvis(times) + np.array(
            [-0.5 * body.proportions.hip_width * body.height, body.hip_height - body.pelvis_height, 0.0]
        )
        ahead = body.thigh * np.sin(thigh) + body.shank * np.sin(thigh - knee)
        down = body.thigh * np.cos(thigh) + body.shank * np.cos(thigh - knee)
        ankle = hip + np.stack([np.full_like(times, -0.02), -down, ahead], axis=-1)
        turn = np.stack([knee - thigh + np.radians(12.0), 0 * times, 0 * times], axis=-1)
        never = np.zeros(len(times), dtype=bool)
        return Foot(ankle, turn, 0 * times, never, never, holds_pelvis=0.0)

    def targets(self) -> BodyTargets:
        """The whole body, arms out for balance and lifting with each hop."""
        times, size = self.stage.times, self.stage.style.amplitude
        beat = np.cos(2 * np.pi * (times / self.period - 0.80))
        zero = np.zeros_like(times)
        lean = np.radians(5.0 + 6.0 * self.speed - 4.0 * beat)
        pelvis_turn = np.stack([lean, zero, zero - np.radians(5.0)], axis=-1)
        spine = np.stack(
            [np.radians(3.0) - 0.4 * lean, np.radians(3.0) * beat, zero + np.radians(9.0)], axis=-1
        )
        gaze = np.stack([zero + np.radians(9.0), zero, zero], axis=-1)
        left = Arm(
            flexion=np.radians(10.0 + 16.0 * size * beat),
            abduction=np.radians(26.0 + 9.0 * size * beat),
            twist=np.radians(16.0),
            elbow=np.radians(62.0 + 8.0 * size * beat),
            pronation=np.radians(40.0),
            wrist=np.radians(6.0),
            shoulder_up=np.radians(3.0 + 3.0 * size * beat),
        )
        arms = {"left": left, "right": replace(left, abduction=np.radians(38.0 + 9.0 * size * beat))}
        feet = {"left": self.hopping_foot(), "right": self.lifted_foot()}
        return BodyTargets(self.pelvis(times), pelvis_turn, spine, zero, gaze, feet, arms)
