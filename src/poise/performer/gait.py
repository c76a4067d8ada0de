"""Walking and running: a stride's timing from the speed, footfalls along a course, the body carried above; the actions.

Stride rate of walking after Grieve and Gear (1966), "The relationships between length of stride, step frequency, time
of swing and speed of walking"; of running after Cavanagh and Kram (1989). Legs swing along published joint-angle
curves; while running, the body falls freely between footfalls.

Walking curves: thigh, knee and ankle in the sagittal plane after Winter (1991), "The Biomechanics and Motor Control of
Human Gait", natural cadence; trunk, pelvis and arm amplitudes after Murray, Drought and Kory (1964), "Walking patterns
of normal men", and Murray, Sepic and Barnard (1967). Running: Novacheck (1998), "The biomechanics of running". The
tables are read off the published shapes every 5 % of the stride from foot strike and are not recordings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.performer.posing import SIDES, Arm, BodyTargets, Foot, turned, yawed
from poise.performer.stage import Stage, within
from poise.performer.steps import (
    Course,
    Footfalls,
    Rate,
    Rolling,
    Stepping,
    integral,
    path_course,
    planted_ankle,
    turning_course,
)
from poise.performer.tracks import GRAVITY, bounding, ease, soft_minimum
from poise.types import Array

_WALKS_BELOW, _RUNS_ABOVE = 0.52, 0.98  # v / sqrt(g leg): between them the gait changes (Kram et al. 1997)
_LOWEST_AT = 0.045  # of the stride after foot strike: double support
_PUSH_STARTS = {"walk": 0.62, "run": 0.30}  # share of the stance at which the heel leaves the floor
_FLAT_BY = {"walk": 0.18, "run": 0.22}  # share of the stance at which the foot is flat
_HALF_STRIDE = {"left": 0.0, "right": 0.5}


@dataclass(frozen=True)
class Gait:
    """One walker on one course, as functions of time."""

    stage: Stage
    course: Course
    manner: str = "by speed"  # "walk", "run", or whichever the speed asks for

    # --- timing ------------------------------------------------------------------------------------------------

    @cached_property
    def running(self) -> Float[Array, "grid"]:
        """0 walking, 1 running, over the course's grid."""
        if self.manner != "by speed":
            return np.full_like(self.course.grid, self.manner == "run")
        froude = self.course.speed / np.sqrt(GRAVITY * self.stage.body.leg)
        return ease((froude - _WALKS_BELOW) / (_RUNS_ABOVE - _WALKS_BELOW))

    @cached_property
    def stride_rate(self) -> Float[Array, "grid"]:
        """Strides a second over the course's grid."""
        body, style, speed = self.stage.body, self.stage.style, self.course.speed
        walk = 64.8 / 60.0 * (np.maximum(speed, 0.05) / body.height) ** 0.57
        run = (1.19 + 0.07 * speed) * np.sqrt(1.75 / body.height)
        flutter = 1.0 + 0.008 * style.variation * self.stage.drift("rate", hertz=0.4)(self.course.grid)[:, 0]
        cadence = style.cadence ** (1.0 - 0.6 * self.running)
        rate = cadence * (walk + self.running * (run - walk)) * flutter
        longest = (2.05 + 2.2 * self.running) * body.leg  # metres a stride
        return -soft_minimum(-rate, -speed / longest, width=0.06)

    @cached_property
    def duty(self) -> Float[Array, "grid"]:
        """The share of the stride in which a foot is on the floor, over the course's grid."""
        speed = self.course.speed * np.sqrt(0.856 / self.stage.body.leg)
        walk = np.clip(0.70 - 0.06 * speed, 0.56, 0.68)
        run = np.clip(0.46 - 0.033 * speed, 0.24, 0.45)
        return walk + self.running * (run - walk)

    @cached_property
    def phases(self) -> Float[Array, "grid"]:
        """Strides done since time zero, over the course's grid; the left foot lands at whole numbers."""
        return integral(self.course.grid, self.stride_rate)

    def phase(self, times: Array) -> Float[Array, "frames"]:
        """Strides done since time zero."""
        return self.course.at(self.phases, times)

    def when(self, phases: Array) -> Float[Array, "frames"]:
        """The times at which these phases are reached."""
        return np.interp(phases, self.phases, self.course.grid)

    def at(self, values: Float[Array, "grid"], times: Array) -> Float[Array, "frames"]:
        """A function on the course's grid, at these times."""
        return self.course.at(values, times)

    # --- feet --------------------------------------------------------------------------------------------------

    @cached_property
    def passing(self) -> Float[Array, "grid"]:
        """The share of the stride between foot strike and the pelvis passing over the ankle."""
        walk, run = 0.36 * self.duty, 0.26 * self.duty
        return walk + self.running * (run - walk)

    @cached_property
    def stride(self) -> Float[Array, "grid"]:
        """Metres a stride."""
        return self.course.speed / self.stride_rate

    @cached_property
    def strike_pitch(self) -> Float[Array, "grid"]:
        """How far the heel is up when the foot lands; negative for a heel strike."""
        heel_first = np.radians(21.0 - 12.0 * self.running) * self._roll
        return np.radians(self.stage.style.tiptoe) * (1.0 - self.running) - heel_first

    @cached_property
    def push_pitch(self) -> Float[Array, "grid"]:
        """How far the heel is up when the toes leave the floor."""
        return np.radians(60.0 + 9.0 * self.running) * np.minimum(0.4 + 0.6 * self._roll, 1.1)

    @cached_property
    def _roll(self) -> Float[Array, "grid"]:
        effort = np.clip(self.stride / (1.6 * self.stage.body.leg), 0.4, 1.1)
        roll = 1.0 + (self.stage.style.foot_roll - 1.0) * (1.0 - 0.5 * self.running)
        return roll * (effort + self.running * (1.0 - effort))

    def falls(self, side: str) -> Footfalls:
        """One foot's footfalls, for the whole course."""
        body, style = self.stage.body, self.stage.style
        last = np.ceil(self.phase(np.array([self.stage.seconds]))[0])
        strike_phase = np.arange(-1.0, last + 2.0) + _HALF_STRIDE[side]
        strike = self.when(strike_phase)
        over = self.when(strike_phase + self.at(self.passing, strike))
        middle = self.when(strike_phase + 0.6 * self.at(self.duty, strike))
        duty = np.minimum(self.at(self.duty, strike), self.at(self.duty, middle))  # no leg lags
        off = self.when(strike_phase + duty * self._limp(side))
        yaw = self.course.heading(over) + SIDES[side] * np.radians(5.0 + style.toes_out)
        # Random numbers per footfall that do not depend on the length of the clip.
        rows = [self.stage.generator(f"{side} {phase:.1f}").standard_normal(2) for phase in strike_phase]
        scatter = 0.008 * style.variation * np.clip(np.array(rows).reshape(-1, 2), -2.0, 2.0)
        aside = np.stack([SIDES[side] * self._half_width(over) + scatter[:, 0], 0 * over, scatter[:, 1]], -1)
        ahead = np.broadcast_to(body.ball * [0.0, 0.0, 1.0], aside.shape)
        ball = self.course.position(over) + yawed(self.course.heading(over), aside) + yawed(yaw, ahead)
        return Footfalls(strike, off, ball, yaw)

    def foot(self, side: str, times: Array) -> Foot:
        """One foot at these times."""
        falls = self.falls(side)
        running = self.at(self.running, falls.strike)
        rolling = Rolling(
            falls,
            strike=self.at(self.strike_pitch, falls.strike),
            push=self.at(self.push_pitch, falls.strike),
            flat_by=_FLAT_BY["walk"] + running * (_FLAT_BY["run"] - _FLAT_BY["walk"]),
            push_from=_PUSH_STARTS["walk"] + running * (_PUSH_STARTS["run"] - _PUSH_STARTS["walk"]),
        )

        def free(at: Array) -> tuple[Array, Array]:
            return self._free_foot(side, falls, at)

        return Stepping(self.stage.body, falls, rolling.pitch, free=free).foot(times)

    def _free_foot(self, side: str, falls: Footfalls, times: Array) -> tuple[Array, Array]:
        """The ankle and the foot's pitch as the published curves would have them, from the hip joint."""
        body, style = self.stage.body, self.stage.style
        running = self.at(self.running, times)
        index = falls.current(times)
        following = np.minimum(index + 1, len(falls.strike) - 1)
        late = times - falls.off[index]
        early = (late < 0) & (times - falls.strike[index] < 0.5 * (falls.off[index] - falls.strike[index]))
        leave = np.where(early, falls.off[np.maximum(index - 1, 0)], falls.off[index])
        land = np.where(early, falls.strike[index], falls.strike[following])
        swing = (times - leave) / np.maximum(
            land - leave, 1e-3
        )  # 0 when the foot leaves the floor, 1 when it lands
        curves = (gait.at(gait.toe_off + (1.0 - gait.toe_off) * swing) for gait in (WALK, RUN))
        thigh, knee, ankle = (walk + running * (run - walk) for walk, run in zip(*curves, strict=True))
        stretch = np.clip(self.at(self.stride, times) / (1.72 * body.leg), 0.3, 1.15)
        reach = stretch + running * (self.at(self._run_effort, times) - stretch)
        knee_lift = 1.0 + (style.knee_lift - 1.0) * (1.0 - 0.7 * running)
        lift = (0.8 + 0.2 * reach) * knee_lift * self._limp(side)
        knee, thigh = knee * lift, thigh * reach + 0.45 * knee * (lift - reach)
        forward = body.thigh * np.sin(thigh) + body.shank * np.sin(thigh - knee)
        down = body.thigh * np.cos(thigh) + body.shank * np.cos(thigh - knee)
        offset = body.skeleton.offsets[body.skeleton.names.index(f"{side.capitalize()}UpLeg")]
        turn = turned(self.pelvis_turn(times))
        hip_joint = self.pelvis(times) + rotations.rotate(turn, np.broadcast_to(offset, (len(times), 3)))
        aside = SIDES[side] * self._half_width(times)
        across = yawed(self.course.heading(times), np.stack([aside, 0 * aside, forward], axis=-1))
        ankle_at = self.course.position(times) + across + self._surge(times)
        ankle_at[:, 1] = hip_joint[:, 1] - down
        return ankle_at, knee - thigh - ankle

    @cached_property
    def _run_effort(self) -> Array:
        return np.clip(0.62 + 0.11 * self.course.speed, 0.7, 1.25)

    # --- pelvis ------------------------------------------------------------------------------------------------

    def pelvis(self, times: Array) -> Float[Array, "frames 3"]:
        """The pelvis position."""
        style, phase = self.stage.style, self.phase(times)
        running = self.at(self.running, times)
        sway = (0.022 - 0.012 * running) * style.sway * self.stage.body.height / 1.75
        inward = self._lean_in(times) * 0.55 * self.stage.body.leg
        sideways = sway * np.cos(2 * np.pi * (phase - 0.27)) + inward
        aside = yawed(self.course.heading(times), np.stack([sideways, 0 * sideways, 0 * sideways], axis=-1))
        position = self.course.position(times) + aside + self._surge(times)
        walk, run = self._walking_height(times), self._running_height(times)
        position[:, 1] = (
            walk + running * (run - walk) + self.stage.body.pelvis_height - self.stage.body.hip_height
        )
        return position

    def pelvis_turn(self, times: Array) -> Float[Array, "frames 3"]:
        """The pelvis' tilt, rotation and list."""
        style, phase, running = self.stage.style, self.phase(times), self.at(self.running, times)
        stride = np.clip(self.at(self.stride, times) / (1.72 * self.stage.body.leg), 0.3, 1.3)
        yaw = np.radians(4.5 + 2.5 * running) * stride * style.sway * np.cos(2 * np.pi * (phase - 0.5))
        listing = np.cos(2 * np.pi * (phase - 0.16 + 0.02 * running))
        list_ = np.radians(3.8) * np.minimum(style.sway, 1.3) * listing
        speeding_up = self.at(np.gradient(self.course.speed, self.course.grid), times)
        drive = 0.6 * np.arctan(speeding_up / GRAVITY)  # the forward lean that goes with it
        tilt = np.radians(2.0 + 5.0 * running) + drive + self._pelvic_nod(phase)
        return np.stack([tilt, self.course.heading(times) + yaw, list_ - self._lean_in(times)], axis=-1)

    def _pelvic_nod(self, phase: Array) -> Array:
        """The pelvis tips forward and back twice a stride."""
        return np.radians(1.2) * np.cos(4 * np.pi * (phase - 0.05))

    @cached_property
    def _walking_heights(self) -> tuple[Array, Array]:
        """The hips' lowest and highest positions over the grid: in double support and over the standing leg."""
        body, passing = self.stage.body, self.passing
        lead = self._hip_above(passing * self.stride, self.strike_pitch)
        risen = np.maximum((0.5 / self.duty - _PUSH_STARTS["walk"]) / (1.0 - _PUSH_STARTS["walk"]), 0.0) ** 2
        trail = self._hip_above((0.5 - passing) * self.stride, self.push_pitch * risen)
        leaving = self._hip_above((self.duty - passing) * self.stride, self.push_pitch) - 0.012 * body.leg
        low = np.minimum(np.minimum(lead, trail), leaving)
        high = body.ankle_height + 0.985 * body.leg
        return np.minimum(low, high), np.minimum(np.maximum(high, low + 0.004), low + 0.06 * body.leg)

    def _walking_height(self, times: Array) -> Array:
        low, high = (self.at(heights, times) for heights in self._walking_heights)
        half = 0.5 * (high - low) * min(self.stage.style.bounce, 1.2)
        return low + half * (1.0 - np.cos(4 * np.pi * (self.phase(times) - _LOWEST_AT)))

    @cached_property
    def _landing_height(self) -> Array:
        """The hips' height over the grid when a running foot lands and leaves."""
        duty = np.minimum(self.duty, 0.49)
        lead = self._hip_above(self.passing * self.stride, self.strike_pitch)
        trail = self._hip_above((duty - self.passing) * self.stride, self.push_pitch)
        return np.minimum(lead, trail) - 0.025 * self.stage.body.leg

    def _running_height(self, times: Array) -> Array:
        """Free fall between footfalls, a smooth push in each."""
        rate, duty = self.at(self.stride_rate, times), np.minimum(self.at(self.duty, times), 0.49)
        rise = bounding((2.0 * self.phase(times)) % 1.0, 2.0 * duty)
        return self.at(self._landing_height, times) + GRAVITY * (0.5 / rate) ** 2 * rise

    def _hip_above(self, distance: Array, pitch: Array) -> Array:
        """The height of a hip joint at this horizontal distance from a flat foot's ankle, when that foot is rolled."""
        body, zero = self.stage.body, np.zeros_like(distance)
        rolled = planted_ankle(body, np.zeros((len(distance), 3)), zero, pitch)
        forward = np.abs(rolled[:, 2] + body.ball[2])
        longest = (0.995 * body.leg) ** 2
        return rolled[:, 1] + np.sqrt(np.maximum(longest - (distance - forward) ** 2, 0.3 * longest))

    def _surge(self, times: Array) -> Array:
        """Small changes of forward speed within each step: slower over the standing leg."""
        phase, running = self.phase(times), self.at(self.running, times)
        ahead = (0.010 - 0.004 * running) * self.stage.style.sway * np.sin(4 * np.pi * (phase - 0.05))
        wander = 0.012 * self.stage.style.variation * self.stage.drift("wander", hertz=0.12)(times)[:, 0]
        return yawed(self.course.heading(times), np.stack([wander, 0 * ahead, ahead], axis=-1))

    def _lean_in(self, times: Array) -> Array:
        """The lean into a turn, to the left."""
        return np.arctan(self.at(self.course.speed * self.course.turn_rates, times) / GRAVITY)

    # --- upper body --------------------------------------------------------------------------------------------

    def targets(self) -> BodyTargets:
        """The whole body at the stage's times."""
        times = self.stage.times
        heading, phase = self.course.heading(times), self.phase(times)
        running = self.at(self.running, times)
        pelvis_turn, nodding = self.pelvis_turn(times), self._pelvic_nod(phase)
        lean_in, sway = self._lean_in(times), self.stage.style.sway
        shoulders = np.radians(5.5 + 7.0 * running) * sway * np.cos(2 * np.pi * (phase - 0.02))
        bend = np.radians(1.0 + 5.0 * running) - 0.6 * nodding
        twist = shoulders - (pelvis_turn[:, 1] - heading)
        aside = -0.9 * (pelvis_turn[:, 2] + lean_in) - 0.2 * lean_in
        spine = np.stack([bend, twist, aside], axis=-1)
        ahead = 0.6 * (self.course.heading(times + 0.45) - heading)
        nod = np.radians(2.0) * np.cos(4 * np.pi * (phase - 0.30))
        gaze = np.stack([np.radians(3.0) + nod, ahead, -0.25 * lean_in], axis=-1)
        feet = {side: self.foot(side, times) for side in SIDES}
        # Each arm swings against the leg of its side, its elbow bending most in front.
        stride = np.clip(self.at(self.stride, times) / (1.72 * self.stage.body.leg), 0.25, 1.3)
        arms = {}
        for side in SIDES:
            swing = np.cos(2 * np.pi * (phase - _HALF_STRIDE[side] - 0.52))
            late = np.cos(2 * np.pi * (phase - _HALF_STRIDE[side] - 0.57))
            size = self.stage.style.arm_swing * (stride + running * (1.0 - stride)) * (2.0 - self._limp(side))
            arms[side] = Arm(
                flexion=np.radians((-1.0 - 14.0 * running) + size * (23.0 + 5.0 * running) * swing),
                abduction=np.radians(7.0 + 9.0 * running),
                twist=np.radians(14.0 + 16.0 * running + 6.0 * running * swing),
                elbow=np.radians(16.0 + 76.0 * running + size * (13.0 + 1.0 * running) * (late + 0.7)),
                pronation=np.radians(18.0 + 14.0 * running),
                wrist=np.radians(6.0 + 3.0 * late),
                shoulder_forward=np.radians(3.0 * size * swing),
                shoulder_up=np.radians(2.0 * running),
            )
        upright = 1.0 - 0.6 * running
        return BodyTargets(self.pelvis(times), pelvis_turn, spine, heading, gaze, feet, arms, upright)

    # --- irregularity ------------------------------------------------------------------------------------------

    def _half_width(self, times: Array) -> Array:
        running = self.at(self.running, times)
        walk, run = 0.050 * self.stage.style.step_width, 0.018
        return (walk + running * (run - walk)) * self.stage.body.height / 1.75

    def _limp(self, side: str) -> float:
        return 1.0 - (self.stage.style.asymmetry if side == "left" else 0.0)


_HARMONICS = 6


@dataclass(frozen=True)
class LegCurves:
    """Degrees at 0, 5, ... 95 % of the stride from foot strike, and the share of the stride at which the toes leave.

    The thigh's angle is from the vertical, forward positive (hip flexion less the pelvis' forward tilt); the knee's is
    flexion and the ankle's dorsiflexion.
    """

    thigh: tuple[float, ...]
    knee: tuple[float, ...]
    ankle: tuple[float, ...]
    toe_off: float

    def at(self, phase: Float[Array, "frames"]) -> tuple[Array, Array, Array]:
        """Thigh, knee and ankle angles in radians at these phases of the stride (1 is one stride)."""
        turn = np.exp(2j * np.pi * np.asarray(phase))

        def angle(table: tuple[float, ...]) -> Array:
            """The Fourier series through a periodic table, cut after the sixth harmonic, by Horner's rule."""
            coefficients = 2.0 * np.fft.rfft(np.radians(table))[: _HARMONICS + 1] / len(table)
            total = np.full_like(turn, coefficients[-1])
            for coefficient in coefficients[-2:0:-1]:
                total = total * turn + coefficient
            return coefficients[0].real / 2.0 + (total * turn).real

        return angle(self.thigh), angle(self.knee), angle(self.ankle)


WALK = LegCurves(
    thigh=(27, 26, 23, 18, 12, 6, 0, -6, -12, -17, -21, -22, -18, -9, 2, 13, 21, 26, 28.5, 28.5),
    knee=(4, 10, 16, 19, 18.5, 16, 12.5, 9, 7, 7.5, 11, 20, 34, 50, 61, 63, 56, 42, 24, 9),
    ankle=(0, -4, -5, -2, 2, 4.5, 6, 7.5, 9, 9.5, 7, -1, -13, -19, -15, -7, -2, 0.5, 1.5, 1),
    toe_off=0.61,
)
RUN = LegCurves(
    thigh=(27, 26, 22, 15, 7, -2, -12, -21, -27, -26, -18, -6, 7, 20, 31, 38, 41, 40, 36, 31),
    knee=(18, 27, 37, 42, 41, 35, 27, 20, 18, 25, 41, 62, 82, 95, 97, 87, 67, 43, 23, 15),
    ankle=(6, 9, 14, 19, 21, 18, 8, -8, -22, -22, -15, -9, -5, -2, 0, 2, 4, 6, 7, 7),
    toe_off=0.38,
)


# --- the actions -----------------------------------------------------------------------------------------------------

Points = Sequence[Sequence[float]]

WALKING_SPEEDS = (0.2, 2.1)  # metres a second
RUNNING_SPEEDS = (2.2, 8.0)
SHARPEST_TURN = 2.0  # radians a second


def walk(
    stage: Stage, *, speed: float | None = None, turn: float = 0.0, path: Points | None = None
) -> BodyTargets:
    """Walks at `speed` metres a second, turning left at `turn` radians a second or along a `path` of (x, z) points."""
    pace = within("a walking speed", _pace(stage, speed, 1.35), WALKING_SPEEDS, "m/s")
    return Gait(stage, _course(stage, lambda times: np.full_like(times, pace), turn, path), "walk").targets()


def run(
    stage: Stage, *, speed: float | None = None, turn: float = 0.0, path: Points | None = None
) -> BodyTargets:
    """Runs at `speed` metres a second, turning left at `turn` radians a second or along a `path` of (x, z) points."""
    pace = _pace(stage, speed, 3.3)
    pace = max(pace, RUNNING_SPEEDS[0]) if speed is None else pace
    pace = within("a running speed", pace, RUNNING_SPEEDS, "m/s")
    return Gait(stage, _course(stage, lambda times: np.full_like(times, pace), turn, path), "run").targets()


def walk_to_run(
    stage: Stage, *, slow: float = 1.4, fast: float = 3.3, turn: float = 0.0, path: Points | None = None
) -> BodyTargets:
    """Walks at `slow` metres a second, speeds up in the middle of the clip and runs on at `fast`."""
    return _change_of_gait(stage, slow, fast, turn, path)


def run_to_walk(
    stage: Stage, *, fast: float = 3.3, slow: float = 1.4, turn: float = 0.0, path: Points | None = None
) -> BodyTargets:
    """Runs at `fast` metres a second, slows down in the middle of the clip and walks on at `slow`."""
    return _change_of_gait(stage, fast, slow, turn, path)


def _change_of_gait(
    stage: Stage, before: float, after: float, turn: float, path: Points | None
) -> BodyTargets:
    slow, fast = min(before, after), max(before, after)
    within("a walking speed", slow, WALKING_SPEEDS, "m/s")
    within("a running speed", fast, RUNNING_SPEEDS, "m/s")
    change = max(0.45 * stage.seconds, 0.8)
    start = 0.5 * (stage.seconds - change)

    def speed(times: Array) -> Array:
        return before + (after - before) * ease((times - start) / change)

    return Gait(stage, _course(stage, speed, turn, path)).targets()


def _pace(stage: Stage, speed: float | None, usual: float) -> float:
    """The given speed, or the natural one of this body and style (dynamic similarity: Alexander 1989)."""
    return usual * stage.style.speed * float(np.sqrt(stage.body.leg / 0.852)) if speed is None else speed


def _course(stage: Stage, speed: Rate, turn: float, path: Points | None) -> Course:
    within("a turn", turn, (-SHARPEST_TURN, SHARPEST_TURN), "rad/s")
    if path is None:
        return turning_course(stage.seconds, speed, lambda times: np.full_like(times, turn))
    if turn:
        raise InvalidValueError("give a turn or a path, not both")
    return path_course(stage.seconds, speed, path)
