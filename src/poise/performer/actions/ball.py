"""Throwing and kicking: an overhand throw in the order of a pitch, and an instep kick.

The throw is wind-up, stride, cocking, release, follow-through: the lead foot lands, the pelvis turns, then the trunk,
then the shoulder, the elbow last (Fleisig et al. 1996, "Kinematic and kinetic comparison between baseball pitching and
football passing"). The kick is a step to the plant foot, the leg drawn back, and thigh, shank and foot let go one after
the other (Lees et al. 2010, "The biomechanics of kicking in soccer: a review").
"""

import numpy as np

from poise.performer.posing import Arm, BodyTargets, mirrored, yawed
from poise.performer.stage import (
    ALWAYS,
    HIP_WIDTH_STANCE,
    Place,
    Stage,
    arm,
    foot,
    one_of,
    posed,
    scale,
    standing_height,
)
from poise.performer.steps import FreeFoot
from poise.performer.tracks import Key, track
from poise.types import Array

_IMPACT = 1.06  # seconds of a kick, by the stage's clock


def throw(stage: Stage, *, hand: str = "right") -> BodyTargets:
    """Throws overhand once, with the "right" or the "left" hand, towards +Z."""
    one_of("hand", hand, ("right", "left"))
    size = 0.4 + 0.6 * stage.style.amplitude
    step = 0.76 * (0.5 + 0.5 * stage.style.amplitude)
    targets = posed(
        stage,
        pelvis=[
            (0.0, (0.0, -0.01, 0.0)),
            (0.72, (-0.01, -0.005, -0.11)),
            (1.0, (-0.02, -0.07, 0.02)),
            (1.27, (0.0, -0.15 * size, 0.30)),
            (1.46, (0.02, -0.14 * size, 0.43)),
            (1.8, (0.04, -0.09 * size, 0.55)),
            (2.5, (0.0, -0.03, step - 0.12)),
        ],
        pelvis_turn=[
            (0.0, (0.0, -82.0, 0.0)),
            (0.72, (0.0, -82.0 - 20.0 * size, 0.0)),
            (1.08, (2.0, -88.0, -4.0)),
            (1.27, (4.0, -48.0, -4.0)),
            (1.40, (8.0, 0.0, 0.0)),
            (1.55, (14.0, 22.0 * size, 0.0)),
            (1.9, (14.0, 26.0 * size, 0.0)),
            (2.6, (2.0, 6.0, 0.0)),
        ],
        spine=[
            (0.0, (4.0, 2.0, 0.0)),
            (0.72, (12.0, -6.0, 0.0)),
            (1.1, (-2.0, -14.0, 9.0)),
            (1.30, (-14.0 * size, -34.0 * size, 2.0)),
            (1.45, (14.0, 12.0, -16.0 * size)),
            (1.62, (38.0 * size, 30.0 * size, -12.0)),
            (1.95, (36.0 * size, 28.0 * size, -4.0)),
            (2.7, (4.0, 2.0, 0.0)),
        ],
        gaze=[
            (0.0, (4.0, -25.0, 0.0)),
            (0.6, (4.0, -25.0, 0.0)),
            (1.1, (2.0, -10.0, -4.0)),
            (1.45, (8.0, 0.0, -8.0)),
            (1.9, (6.0, 0.0, 0.0)),
        ],
        feet={
            "left": foot(
                stage,
                [Place(-ALWAYS, 0.30, 0.01, 0.17, -78.0), Place(1.25, ALWAYS, 0.05, step, -24.0)],
                heel=[(0.15, 0.0), (0.32, 26.0), (1.2, -12.0 * stage.style.foot_roll), (1.34, 0.0)],
                free=_striding_foot(stage, step),
                lift=0.46 * size,
            ),
            "right": foot(
                stage,
                [Place(-ALWAYS, 1.47, 0.0, -0.15, -84.0), Place(2.15, ALWAYS, -0.18, step - 0.20, -6.0)],
                heel=[(1.05, 0.0), (1.27, 32.0), (1.50, 62.0), (2.12, 12.0), (2.3, 0.0)],
                pivot=[(1.1, 0.0), (1.5, 62.0), (2.1, 0.0)],
                lift=0.16,
            ),
        },
        arms={"left": _glove_arm(stage), "right": _throwing_arm(stage, size)},
    )
    return targets if hand == "right" else mirrored(targets)


def _striding_foot(stage: Stage, step: float) -> FreeFoot:
    """The lead foot drawn in under the raised knee, then thrown ahead."""
    places = [(0.30, (0.01, 0.0, 0.17)), (0.76, (0.0, 0.0, 0.02)), (1.25, (0.05, 0.0, step))]
    return lambda times: (scale(stage) * track(times, places), np.zeros(len(times)))


def _throwing_arm(stage: Stage, size: float) -> Arm:
    """The hands part; the arm swings down and back, is cocked, lags behind the trunk, and whips across the body."""
    return arm(
        stage,
        flexion=[(0.0, 30.0), (0.72, 42.0), (1.0, -4.0), (1.18, 0.0), (1.9, 0.0), (2.7, 2.0)],
        abduction=[
            (0.0, 6.0),
            (0.72, 8.0),
            (1.0, 44.0),
            (1.20, 88.0),
            (1.46, 96.0),
            (1.62, 78.0),
            (1.9, 46.0),
            (2.7, 7.0),
        ],
        across=[
            (0.8, 0.0),
            (1.05, -22.0),
            (1.25, -26.0),
            (1.40, 0.0),
            (1.46, 12.0),
            (1.62, 62.0),
            (1.9, 84.0),
            (2.6, 0.0),
        ],
        twist=[
            (0.0, 40.0),
            (0.72, 42.0),
            (1.0, 10.0),
            (1.20, -62.0),
            (1.37, -92.0 - 12.0 * size),
            (1.46, -78.0),
            (1.58, -8.0),
            (1.9, 30.0),
            (2.7, 12.0),
        ],
        elbow=[
            (0.0, 106.0),
            (0.72, 114.0),
            (1.0, 46.0),
            (1.22, 92.0),
            (1.36, 88.0),
            (1.46, 22.0),
            (1.55, 14.0),
            (1.9, 34.0),
            (2.7, 14.0),
        ],
        pronation=[(0.0, 20.0), (1.2, 40.0), (1.44, 10.0), (1.6, 75.0), (2.6, 20.0)],
        wrist=[(0.0, 4.0), (1.2, -10.0), (1.40, -42.0), (1.48, 30.0), (1.8, 20.0), (2.7, 4.0)],
        shoulder_up=[(0.8, 0.0), (1.2, 9.0), (1.5, 10.0), (2.0, 0.0)],
        shoulder_forward=[(0.8, 0.0), (1.25, -14.0), (1.46, 6.0), (1.65, 20.0), (2.5, 0.0)],
    )


def _glove_arm(stage: Stage) -> Arm:
    """Points at the target during the stride, then folds against the chest."""
    return arm(
        stage,
        flexion=[(0.0, 30.0), (0.72, 42.0), (1.08, 4.0), (1.32, 10.0), (1.5, 18.0), (1.9, -22.0), (2.7, 2.0)],
        abduction=[
            (0.0, 6.0),
            (0.72, 8.0),
            (1.08, 82.0),
            (1.24, 78.0),
            (1.48, 22.0),
            (1.9, 24.0),
            (2.7, 7.0),
        ],
        across=[(0.72, 0.0), (1.08, 14.0), (1.3, 10.0), (1.5, 0.0)],
        twist=[(0.0, 40.0), (0.72, 42.0), (1.08, 30.0), (1.48, 42.0), (2.7, 12.0)],
        elbow=[
            (0.0, 104.0),
            (0.72, 112.0),
            (1.08, 26.0),
            (1.22, 40.0),
            (1.46, 122.0),
            (1.9, 74.0),
            (2.7, 14.0),
        ],
        pronation=[(0.0, 20.0), (1.1, 60.0), (1.5, 20.0)],
    )


def kick(stage: Stage, *, foot: str = "right") -> BodyTargets:
    """Steps up and kicks once with the "right" or the "left" foot, towards +Z."""
    one_of("foot", foot, ("right", "left"))
    targets = _right_kick(stage)
    return targets if foot == "right" else mirrored(targets)


def _right_kick(stage: Stage) -> BodyTargets:
    size = 0.4 + 0.6 * stage.style.amplitude
    far = 0.46 * (0.5 + 0.5 * stage.style.amplitude)
    pelvis: list[Key] = [
        (0.0, (0.0, -0.01, 0.0)),
        (0.25, (-0.03, -0.02, 0.03)),
        (0.62, (0.04, -0.055, 0.72 * far)),
        (0.85, (0.075, -0.065, far - 0.06)),
        (1.06, (0.085, -0.045, far - 0.02)),
        (1.3, (0.085, -0.02, far)),
        (1.7, (0.06, -0.03, far)),
        (2.2, (0.0, -0.01, far)),
    ]
    width = HIP_WIDTH_STANCE
    return posed(
        stage,
        pelvis=pelvis,
        pelvis_turn=[
            (0.2, (0.0, 0.0, 0.0)),
            (0.80, (10.0 * size, -20.0 * size, 5.0)),
            (1.02, (-4.0, 14.0 * size, -4.0)),
            (1.25, (-14.0 * size, 22.0 * size, -4.0)),
            (1.8, (0.0, 2.0, 0.0)),
            (2.2, (0.0, 0.0, 0.0)),
        ],
        spine=[
            (0.2, (2.0, 0.0, 0.0)),
            (0.84, (-6.0, 24.0 * size, -8.0)),
            (1.08, (18.0 * size, -14.0 * size, -4.0)),
            (1.3, (24.0 * size, -28.0 * size, 0.0)),
            (1.8, (4.0, -2.0, 0.0)),
            (2.3, (1.0, 0.0, 0.0)),
        ],
        gaze=[
            (0.0, (8.0, 0.0, 0.0)),
            (0.5, (26.0, 0.0, 0.0)),
            (1.1, (28.0, 0.0, 0.0)),
            (1.5, (2.0, 0.0, 0.0)),
        ],
        feet={
            "left": foot(
                stage,
                [Place(-ALWAYS, 0.28, width, 0.0, 6.0), Place(0.60, ALWAYS, width + 0.03, far, 8.0)],
                heel=[
                    (0.12, 0.0),
                    (0.30, 38.0),
                    (0.55, 3.0),
                    (0.70, 0.0),
                    (0.95, 0.0),
                    (1.25, 9.0),
                    (1.6, 0.0),
                ],
                lift=0.05,
            ),
            "right": foot(
                stage,
                [Place(-ALWAYS, 0.62, -width, 0.0, -6.0), Place(2.0, ALWAYS, -width, far, -6.0)],
                heel=[(0.35, 0.0), (0.62, 55.0), (1.96, 14.0), (2.12, 0.0)],
                free=_kicking_leg(stage, pelvis, size),
            ),
        },
        arms={
            "left": arm(
                stage,
                flexion=[(0.1, 2.0), (0.80, -28.0), (1.08, 34.0), (1.3, 52.0), (1.9, 2.0)],
                abduction=[(0.1, 7.0), (0.80, 74.0), (1.06, 52.0), (1.3, 26.0), (2.0, 7.0)],
                elbow=[(0.1, 14.0), (0.80, 34.0), (1.2, 42.0), (2.0, 14.0)],
            ),
            "right": arm(
                stage,
                flexion=[(0.1, 2.0), (0.82, 26.0), (1.08, -22.0), (1.3, -34.0), (1.9, 2.0)],
                abduction=[(0.1, 7.0), (0.82, 18.0), (1.2, 36.0), (2.0, 7.0)],
                elbow=[(0.1, 14.0), (0.82, 52.0), (1.2, 30.0), (2.0, 14.0)],
            ),
        },
    )


def _kicking_leg(stage: Stage, pelvis: list[Key], size: float) -> FreeFoot:
    """The ankle and the foot's pitch from the angles of thigh and knee, hung from where the right hip will be."""
    body = stage.body
    thigh = [
        (0.5, -16.0),
        (0.80, -30.0 * size),
        (0.95, 8.0),
        (1.06, 38.0),
        (1.24, 78.0 * size),
        (1.55, 44.0),
        (1.95, 6.0),
    ]
    knee = [
        (0.5, 20.0),
        (0.66, 45.0),
        (0.88, 96.0 * size),
        (1.06, 26.0),
        (1.14, 9.0),
        (1.26, 14.0),
        (1.5, 66.0),
        (1.95, 22.0),
    ]
    ankle = [(0.5, -20.0), (0.9, -34.0), (1.15, -34.0), (1.5, -8.0), (1.95, 0.0)]

    def leg(times: Array) -> tuple[Array, Array]:
        bend, flex, point = (np.radians(track(times, keys)) for keys in (thigh, knee, ankle))
        hip = scale(stage) * track(times, pelvis) + [
            -0.5 * body.height * body.proportions.hip_width,
            0.0,
            0.0,
        ]
        hip[:, 1] += standing_height(stage) + body.hip_height - body.pelvis_height
        ahead = body.thigh * np.sin(bend) + body.shank * np.sin(bend - flex)
        down = body.thigh * np.cos(bend) + body.shank * np.cos(bend - flex)
        inward = 0.10 * scale(stage) * np.exp(-(((times - _IMPACT) / 0.25) ** 2))
        across = yawed(np.zeros_like(times), np.stack([inward, -down, ahead], axis=-1))
        return hip + across, flex - bend - point

    return leg
