"""Everyday actions: standing idly, waving, reaching, sitting down and standing up.

A reach takes the arm, and as much of the trunk and the knees as the point asks for; hands move from point to point with
minimum jerk (Flash and Hogan 1985). When sitting and rising the trunk leans before the hips leave, so that the weight
stays over the feet; timing and lean are after Schenkman et al. (1990), "Whole-body movements during rising to standing
from sitting".
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.performer.posing import SIDES, Arm, BodyTargets, Reach, mirrored
from poise.performer.stage import (
    Keys,
    Stage,
    angles,
    arm,
    keyed,
    one_of,
    posed,
    repeated,
    scale,
    stance,
    standing_height,
    starts,
    within,
)
from poise.performer.tracks import Key, ease, track
from poise.types import Array


def idle(stage: Stage) -> BodyTargets:
    """Stands, breathes, shifts its weight from leg to leg and looks around."""
    generator = stage.generator("weight")
    # (time, side): side 1 on the left leg and -1 on the right, held for a few seconds each.
    time, side, shifts = 0.0, float(generator.choice([-1.0, 1.0])), list[tuple[float, float]]()
    while time < stage.beats + 6.0:
        held = generator.uniform(1.6, 3.4)
        amount = side * generator.uniform(0.6, 1.0)
        shifts += [(time, amount), (time + held, amount)]
        time, side = time + held + generator.uniform(0.8, 1.2), -side
    generator = stage.generator("glances")
    time, glances = 0.0, [(0.0, (3.0, 0.0, 0.0))]
    while time < stage.beats + 4.0:
        time += generator.uniform(1.0, 2.6)
        yaw = generator.uniform(-38.0, 38.0)
        look = (generator.uniform(-3.0, 9.0), yaw, 0.05 * yaw)
        glances += [(time, glances[-1][1]), (time + 0.35 + abs(yaw) / 120.0, look)]
        time = glances[-1][0]
    return posed(
        stage,
        pelvis=[(time, (0.065 * side, -0.012 * abs(side), 0.0)) for time, side in shifts],
        pelvis_turn=[(time, (0.0, 5.0 * side, 6.0 * side)) for time, side in shifts],
        spine=[(time + 0.15, (1.0, -4.0 * side, -8.0 * side)) for time, side in shifts],
        gaze=glances,
        feet=stance(stage, width=0.11),
        arms={"left": arm(stage), "right": arm(stage)},
    )


def wave(stage: Stage, *, hand: str = "right") -> BodyTargets:
    """Raises one hand ("right" or "left") and waves."""
    one_of("hand", hand, ("right", "left"))
    size = stage.style.amplitude
    period = 3.6
    begins = starts(stage, period)

    def held(value: tuple[float, float, float], *moments: float) -> list[Key]:
        at_rest = (0.0, 0.0, 0.0)
        return repeated(keyed(moments, (at_rest, value, value, at_rest)), begins)

    # The hand rises to the shoulder; then the forearm swings, and the hand lags behind.
    beats = 0.85 + 0.24 * np.arange(8)
    swings = [(time, 74.0 + 24.0 * size * (-1) ** number) for number, time in enumerate(beats)]
    drags = [(time + 0.07, -14.0 * size * (-1) ** number) for number, time in enumerate(beats)]
    lift = 62.0 + 12.0 * size
    waving_arm = arm(
        stage,
        flexion=repeated([(0.0, 2.0), (0.75, 28.0), (2.6, 28.0), (3.4, 2.0)], begins),
        abduction=repeated([(0.05, 7.0), (0.75, lift), (2.6, lift), (3.4, 7.0)], begins),
        twist=repeated([(0.0, 12.0), (0.7, -64.0), (2.6, -64.0), (3.3, 12.0)], begins),
        elbow=repeated([(0.0, 14.0), (0.45, 92.0), *swings, (3.35, 14.0)], begins),
        pronation=repeated([(0.0, 20.0), (0.7, 62.0), (2.6, 62.0), (3.4, 20.0)], begins),
        wrist=repeated([(0.0, 4.0), (0.6, -8.0), *drags, (3.4, 4.0)], begins),
        shoulder_up=repeated([(0.0, 0.0), (0.7, 9.0), (2.6, 9.0), (3.4, 0.0)], begins),
    )
    tilt = -2.0 * size
    targets = posed(
        stage,
        pelvis=held((0.02, 0.0, 0.0), 0.1, 0.8, 2.7, 3.4),
        pelvis_turn=held((0.0, 0.0, tilt), 0.0, 0.7, 2.6, 3.4),
        spine=held((0.0, 2.0 * tilt, 1.5 * tilt), 0.0, 0.7, 2.6, 3.4),
        gaze=held((-3.0, 0.0, 3.0), 0.0, 0.7, 2.6, 3.4),
        feet=stance(stage),
        arms={"left": arm(stage), "right": waving_arm},
    )
    return targets if hand == "right" else mirrored(targets)


PERIOD = 1.9  # seconds by the stage's clock for one point, there and back
_ARRIVES, _LEAVES = 0.75, 1.10
_FARTHEST = 2.5  # metres


def reach(
    stage: Stage, *, points: Sequence[Sequence[float]] | None = None, hand: str = "nearest"
) -> BodyTargets:
    """Brings the fingertips to `points` in turn: (x, y, z), x to the left, y up from the floor, z ahead."""
    one_of("hand", hand, ("nearest", "left", "right"))
    goals = _goals(stage, points)
    sides = [hand if hand != "nearest" else ("left" if x > 0 else "right") for x, _, _ in goals]
    helps = [_help(stage, goal, side) for goal, side in zip(goals, sides, strict=True)]
    hanging = arm(stage, wrist=[(0.0, 0.0)])
    bent = np.radians(track(stage.clock, _there_and_back([(0.8 * (h[3] + h[5]),) for h in helps], lead=0.05)))
    hanging = replace(hanging, flexion=hanging.flexion + bent[:, 0])
    targets = posed(
        stage,
        pelvis=_there_and_back([(h[0], h[1], h[2]) for h in helps], lead=0.05),
        pelvis_turn=_there_and_back([(h[3], h[4], 0.0) for h in helps], lead=0.08),
        spine=_there_and_back([(h[5], h[6], h[7]) for h in helps], lead=0.02),
        gaze=_there_and_back([(h[8], h[9], 0.0) for h in helps], lead=0.18),
        feet=stance(stage, width=0.12),
        arms={side: _reaching(hanging, stage, side, goals, sides) for side in SIDES},
    )
    return replace(targets, pelvis=targets.pelvis + np.array([0.0, -0.01, 0.0]))


def _goals(stage: Stage, points: Sequence[Sequence[float]] | None) -> Float[Array, "points 3"]:
    """The points, checked; or some on a shell around the shoulders, from the shins to above the head."""
    if points is None:
        generator = stage.generator("points")
        count = max(1, int(np.ceil(stage.beats / PERIOD)))
        side = np.where(
            (np.arange(count) + generator.integers(2)) % 2 == 0, 1.0, -1.0
        )  # left and right in turn
        levels = np.array([1.45, 0.75, 1.95, 1.1, 0.55])[(np.arange(count) + generator.integers(5)) % 5]
        around = np.radians(generator.uniform(5.0, 70.0, count))
        radius = np.select([levels > 1.8, levels < 0.8], [0.30, 0.45], 0.60) * generator.uniform(
            0.9, 1.05, count
        )
        height = levels + generator.uniform(-0.08, 0.08, count)
        across, ahead = side * (0.15 + radius * np.sin(around)), radius * np.cos(around)
        return scale(stage) * np.stack([across, height, ahead], axis=-1)
    goals = np.asarray(points, dtype=np.float64)
    if goals.shape == (3,):
        goals = goals[None]
    if goals.ndim != 2 or goals.shape[1] != 3 or len(goals) == 0 or not np.all(np.isfinite(goals)):
        raise InvalidValueError(f"points to reach for are (x, y, z) in metres; got {points!r}")
    if np.any(np.linalg.norm(goals, axis=1) > _FARTHEST):
        raise InvalidValueError(
            f"a point to reach for lies at most {_FARTHEST} m from the origin between the feet"
        )
    across, up, ahead = (goals / stage.body.height).T
    inside = (np.hypot(across / 0.10, ahead / 0.075) < 1.0) & (up > 0.4) & (up < 0.85)
    for wrong, where in (
        (ahead < -0.06, "behind the performer"),
        (inside, "inside the performer's own trunk"),
    ):
        if np.any(wrong):
            raise InvalidValueError(f"the point {tuple(goals[wrong][0].tolist())} lies {where}; z is ahead")
    return goals


def _help(stage: Stage, goal: Array, side: str) -> tuple[float, ...]:
    """The body's share: pelvis x, y, z (m), its pitch and yaw; spine bend, twist, side; head pitch and yaw."""
    x, y, z = goal / scale(stage)
    sign = SIDES[side]
    yaw = np.clip(np.degrees(np.arctan2(x - 0.10 * sign, max(z, 0.08))), -75.0, 75.0)
    low = float(ease((1.12 - y) / 0.9))
    high = float(ease((y - 1.55) / 0.5))
    away = np.hypot(x - 0.17 * sign, z)
    far = float(np.clip((np.hypot(away, min(y - 1.36, 0.0) * 0.4) - 0.50) / 0.40, 0.0, 1.0))
    bend = 46.0 * low + 34.0 * far - 7.0 * high
    ahead, aside = float(np.cos(np.radians(yaw))), float(np.sin(np.radians(yaw)))
    level = max(float(np.hypot(x, z)), 0.25)
    look = np.clip(np.degrees(np.arctan2(1.58 - 0.25 * low - y, level)), -45.0, 55.0)
    pelvis = 0.10 * far * aside, -0.30 * low, 0.06 * far * ahead - 0.13 * low
    pelvis_turn = 0.55 * bend * ahead + 6.0 * low, 0.30 * yaw
    spine = 0.45 * bend * ahead, 0.32 * yaw, -0.30 * bend * aside + 6.0 * high * sign
    return (*pelvis, *pelvis_turn, *spine, 0.8 * look, 0.75 * yaw)


def _there_and_back(values: list[tuple[float, ...]], *, lead: float) -> list[Key]:
    """Keys that go to each value, stay, and come most of the way back; `lead` seconds before the hand."""
    rest = tuple(0.0 for _ in values[0])
    keys: list[Key] = [(-1.0, rest)]
    for number, value in enumerate(values):
        start = number * PERIOD - lead
        keys += [(start + 0.08, rest), (start + _ARRIVES - 0.05, value)]
        keys += [(start + _LEAVES, value), (start + 1.78, rest)]
    return keys


def _reaching(hanging: Arm, stage: Stage, side: str, goals: Array, sides: list[str]) -> Arm:
    """An arm that hangs until its turn."""
    mine = [number for number, chosen in enumerate(sides) if chosen == side]
    if not mine:
        return hanging
    weight: list[Key] = [(-1.0, 0.0)]
    place: list[Key] = []
    for number in mine:
        start = number * PERIOD
        weight += [(start + 0.05, 0.0), (start + _ARRIVES, 1.0), (start + _LEAVES, 1.0), (start + 1.80, 0.0)]
        place += [(start, goals[number]), (start + PERIOD - 0.01, goals[number])]
    point = track(stage.clock, place)
    high = np.clip((point[:, 1] / scale(stage) - 1.3) / 0.6, -0.2, 1.0)
    sideways = SIDES[side] * (0.55 + 0.45 * high)
    elbow = np.stack([sideways, 0.6 * high - 1.0, -0.45 * np.ones_like(high)], axis=-1)
    reaching = Reach(point, elbow, track(stage.clock, weight), fingertips=True)
    lifted = np.asarray(reaching.weight)
    return replace(
        hanging,
        reach=reaching,
        pronation=np.radians(20.0 + 35.0 * lifted),
        shoulder_up=np.radians(14.0) * lifted * high,
        shoulder_forward=np.radians(10.0) * lifted,
    )


_SEAT_TO_HIP = 0.050  # of the height: flesh below the hip joints
_USUAL_SEAT = 0.255  # of the height


def sit(stage: Stage, *, height: float | None = None) -> BodyTargets:
    """Sits down on a seat of `height` metres and stays there."""
    lean = [(0.2, (0.0, 0.0)), (1.15, (34.0, 12.0)), (1.75, (16.0, 11.0)), (2.4, (-6.0, 5.0))]
    return _between_standing_and_sitting(
        stage, height, down=[(0.35, 0.0), (1.75, 1.0)], back=[(0.25, 0.0), (1.45, 1.0)], lean=lean
    )


def stand_up(stage: Stage, *, height: float | None = None) -> BodyTargets:
    """Stands up from a seat of `height` metres."""
    lean = keyed(
        (0.0, 0.15, 0.85, 1.15, 2.1), ((-6.0, 5.0), (-6.0, 5.0), (36.0, 18.0), (38.0, 14.0), (0.0, 0.0))
    )
    return _between_standing_and_sitting(
        stage, height, down=[(0.80, 1.0), (1.95, 0.0)], back=[(0.70, 1.0), (1.75, 0.0)], lean=lean
    )


def _between_standing_and_sitting(
    stage: Stage, height: float | None, *, down: Keys, back: Keys, lean: Keys
) -> BodyTargets:
    body = stage.body
    seat = (
        _USUAL_SEAT * body.height if height is None else within("a seat's height", height, (0.25, 0.75), "m")
    )
    hips = seat + _SEAT_TO_HIP * body.height
    drop = standing_height(stage) - (body.pelvis_height - body.hip_height) - hips
    # When seated, shanks are near the vertical, thighs lead to the seat.
    rise = np.clip(body.ankle_height + body.shank - hips, -0.95 * body.thigh, 0.95 * body.thigh)
    distance = float(np.sqrt(body.thigh**2 - rise**2)) - 0.03 * scale(stage)
    lower, behind = track(stage.clock, down), track(stage.clock, back)
    leaning, hanging = angles(stage, lean), arm(stage)
    # The arms come forward with the lean and rest on the thighs when seated.
    forward = 0.55 * (leaning[:, 0] + leaning[:, 1])
    slack = np.radians(0.5 * (stage.style.elbows + stage.style.arms_forward))
    resting = Arm(
        flexion=hanging.flexion + forward + lower * np.radians(17.0),
        abduction=hanging.abduction + lower * np.radians(5.0),
        twist=hanging.twist + lower * np.radians(16.0),
        elbow=hanging.elbow + lower * (np.radians(38.0) - slack),
        pronation=hanging.pronation + lower * np.radians(45.0),
        wrist=hanging.wrist + lower * np.radians(10.0),
    )
    targets = posed(stage, feet=stance(stage, width=0.115), arms={"left": resting, "right": resting})
    targets.pelvis[:, 1] -= lower * drop
    targets.pelvis[:, 2] -= behind * distance
    targets.pelvis_turn[:, 0] += leaning[:, 0]
    targets.spine[:, 0] += leaning[:, 1]
    targets.gaze[:, 0] += 0.35 * (leaning[:, 0] + leaning[:, 1])
    return replace(targets, upright=1.0 - lower)
