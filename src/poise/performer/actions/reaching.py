"""Reaching for points around the body: the arm, and as much of the trunk and the knees as the point asks for.

Hands move from point to point with minimum jerk (Flash and Hogan 1985).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.performer.bodies import Body
from poise.performer.checks import one_of
from poise.performer.posing import SIDES, Arm, BodyTargets, Reach
from poise.performer.stage import Stage
from poise.performer.standing import arm, posed, scale, stance
from poise.performer.tracks import Key, ease, track
from poise.types import Array

PERIOD = 1.9  # seconds by the stage's clock for one point, there and back
_ARRIVES, _LEAVES = 0.75, 1.10
_FARTHEST = 2.5  # metres


def reach(
    stage: Stage, *, points: Sequence[Sequence[float]] | None = None, hand: str = "nearest"
) -> BodyTargets:
    """Brings the fingertips to `points` in turn: (x, y, z), x to the left, y up from the floor, z ahead."""
    one_of("hand", hand, ("nearest", "left", "right"))
    goals = _invented(stage) if points is None else _checked(points, stage.body)
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


def _checked(points: Sequence[Sequence[float]], body: Body) -> Float[Array, "points 3"]:
    goals = np.asarray(points, dtype=np.float64)
    if goals.ndim == 1 and goals.shape == (3,):
        goals = goals[None]
    if goals.ndim != 2 or goals.shape[1] != 3 or len(goals) == 0 or not np.all(np.isfinite(goals)):
        raise InvalidValueError(f"points to reach for are (x, y, z) in metres; got {points!r}")
    if np.any(np.linalg.norm(goals, axis=1) > _FARTHEST):
        raise InvalidValueError(
            f"a point to reach for lies at most {_FARTHEST} m from the origin between the feet"
        )
    _check_in_reach_of_hands(goals, body)
    return goals


def _check_in_reach_of_hands(goals: Float[Array, "points 3"], body: Body) -> None:
    """The performer does not reach behind its back or into itself."""
    across, up, ahead = (goals / body.height).T
    behind = ahead < -0.06
    inside = (np.hypot(across / 0.10, ahead / 0.075) < 1.0) & (up > 0.4) & (up < 0.85)
    for wrong, where in ((behind, "behind the performer"), (inside, "inside the performer's own trunk")):
        if np.any(wrong):
            raise InvalidValueError(f"the point {tuple(goals[wrong][0].tolist())} lies {where}; z is ahead")


def _invented(stage: Stage) -> Float[Array, "points 3"]:
    """Points on a shell around the shoulders, from the shins to above the head, left and right in turn."""
    generator = stage.generator("points")
    count = max(1, int(np.ceil(stage.beats / PERIOD)))
    side = np.where((np.arange(count) + generator.integers(2)) % 2 == 0, 1.0, -1.0)
    levels = np.array([1.45, 0.75, 1.95, 1.1, 0.55])[(np.arange(count) + generator.integers(5)) % 5]
    around = np.radians(generator.uniform(5.0, 70.0, count))
    radius = np.where(levels > 1.8, 0.30, np.where(levels < 0.8, 0.45, 0.60)) * generator.uniform(
        0.9, 1.05, count
    )
    height = levels + generator.uniform(-0.08, 0.08, count)
    shoulder = 0.15
    return scale(stage) * np.stack(
        [side * (shoulder + radius * np.sin(around)), height, radius * np.cos(around)], axis=-1
    )


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
    look = np.clip(
        np.degrees(np.arctan2(1.58 - 0.25 * low - y, max(float(np.hypot(x, z)), 0.25))), -45.0, 55.0
    )
    return (
        0.10 * far * aside,
        -0.30 * low,
        0.06 * far * ahead - 0.13 * low,
        0.55 * bend * ahead + 6.0 * low,
        0.30 * yaw,
        0.45 * bend * ahead,
        0.32 * yaw,
        -0.30 * bend * aside + 6.0 * high * sign,
        0.8 * look,
        0.75 * yaw,
    )


def _there_and_back(values: list[tuple[float, ...]], *, lead: float) -> list[Key]:
    """Keys that go to each value, stay, and come most of the way back; `lead` seconds before the hand."""
    rest = tuple(0.0 for _ in values[0])
    keys: list[Key] = [(-1.0, rest)]
    for number, value in enumerate(values):
        start = number * PERIOD - lead
        keys += [
            (start + 0.08, rest),
            (start + _ARRIVES - 0.05, value),
            (start + _LEAVES, value),
            (start + 1.78, rest),
        ]
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
