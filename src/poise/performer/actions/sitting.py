"""Sitting down and standing up: the trunk leans before the hips leave, so that the weight stays over the feet.

Timing and lean after Schenkman et al. (1990), "Whole-body movements during rising to standing from sitting".
"""

from dataclasses import replace

import numpy as np

from poise.performer.checks import within
from poise.performer.posing import Arm, BodyTargets
from poise.performer.stage import Stage
from poise.performer.standing import Keys, angles, arm, posed, scale, stance, standing_height
from poise.performer.tracks import track
from poise.types import Array

_SEAT_TO_HIP = 0.050  # of the height: flesh below the hip joints
_USUAL_SEAT = 0.255  # of the height


def sit(stage: Stage, *, height: float | None = None) -> BodyTargets:
    """Sits down on a seat of `height` metres and stays there."""
    down = [(0.35, 0.0), (1.75, 1.0)]
    back = [(0.25, 0.0), (1.45, 1.0)]
    lean = [(0.2, (0.0, 0.0)), (1.15, (34.0, 12.0)), (1.75, (16.0, 11.0)), (2.4, (-6.0, 5.0))]
    return _between_standing_and_sitting(stage, height, down, back, lean)


def stand_up(stage: Stage, *, height: float | None = None) -> BodyTargets:
    """Stands up from a seat of `height` metres."""
    down = [(0.80, 1.0), (1.95, 0.0)]
    back = [(0.70, 1.0), (1.75, 0.0)]
    lean = [
        (0.0, (-6.0, 5.0)),
        (0.15, (-6.0, 5.0)),
        (0.85, (36.0, 18.0)),
        (1.15, (38.0, 14.0)),
        (2.1, (0.0, 0.0)),
    ]
    return _between_standing_and_sitting(stage, height, down, back, lean)


def _between_standing_and_sitting(
    stage: Stage, height: float | None, down: Keys, back: Keys, lean: Keys
) -> BodyTargets:
    body = stage.body
    seat = (
        _USUAL_SEAT * body.height if height is None else within("a seat's height", height, (0.25, 0.75), "m")
    )
    drop = (
        standing_height(stage) - (body.pelvis_height - body.hip_height) - (seat + _SEAT_TO_HIP * body.height)
    )
    lower, behind = track(stage.clock, down), track(stage.clock, back)
    leaning = angles(stage, lean)
    targets = posed(
        stage,
        feet=stance(stage, width=0.115),
        arms={side: _resting_arm(stage, lower, leaning) for side in ("left", "right")},
    )
    targets.pelvis[:, 1] -= lower * drop
    targets.pelvis[:, 2] -= behind * _seat_distance(stage, seat)
    targets.pelvis_turn[:, 0] += leaning[:, 0]
    targets.spine[:, 0] += leaning[:, 1]
    targets.gaze[:, 0] += 0.35 * (leaning[:, 0] + leaning[:, 1])
    return replace(targets, upright=1.0 - lower)


def _seat_distance(stage: Stage, seat: float) -> float:
    """How far behind the ankles the hips are when seated: shanks near the vertical, thighs to the seat."""
    body = stage.body
    knee = body.ankle_height + body.shank
    drop = np.clip(knee - (seat + _SEAT_TO_HIP * body.height), -0.95 * body.thigh, 0.95 * body.thigh)
    return float(np.sqrt(body.thigh**2 - drop**2)) - 0.03 * scale(stage)


def _resting_arm(stage: Stage, lower: Array, leaning: Array) -> Arm:
    """Hangs while standing, comes forward with the lean, rests on the thigh when seated."""
    hanging = arm(stage)
    forward = 0.55 * (leaning[:, 0] + leaning[:, 1])
    slack = np.radians(0.5 * (stage.style.elbows + stage.style.arms_forward))
    return Arm(
        flexion=hanging.flexion + forward + lower * np.radians(17.0),
        abduction=hanging.abduction + lower * np.radians(5.0),
        twist=hanging.twist + lower * np.radians(16.0),
        elbow=hanging.elbow + lower * (np.radians(38.0) - slack),
        pronation=hanging.pronation + lower * np.radians(45.0),
        wrist=hanging.wrist + lower * np.radians(10.0),
    )
