"""Throwing and kicking: an overhand throw in the order of a pitch, and an instep kick.

The throw is wind-up, stride, cocking, release, follow-through: the lead foot lands, the pelvis turns, then the trunk,
then the shoulder, the elbow last (Fleisig et al. 1996, "Kinematic and kinetic comparison between baseball pitching and
football passing"). The kick is a step to the plant foot, the leg drawn back, and thigh, shank and foot let go one after
the other (Lees et al. 2010, "The biomechanics of kicking in soccer: a review").
"""

import numpy as np

from poise.performer.posing import BodyTargets, mirrored
from poise.performer.stage import (
    ALWAYS,
    HIP_WIDTH_STANCE,
    Place,
    Stage,
    arm,
    foot,
    keyed,
    one_of,
    posed,
    scale,
    standing_height,
)
from poise.performer.tracks import Key, track
from poise.types import Array

_IMPACT = 1.06  # seconds of a kick, by the stage's clock


def throw(stage: Stage, *, hand: str = "right") -> BodyTargets:
    """Throws overhand once, with the "right" or the "left" hand, towards +Z."""
    one_of("hand", hand, ("right", "left"))
    size = 0.4 + 0.6 * stage.style.amplitude
    step = 0.76 * (0.5 + 0.5 * stage.style.amplitude)
    # The lead foot is drawn in under the raised knee, then thrown ahead.
    striding = [(0.30, (0.01, 0.0, 0.17)), (0.76, (0.0, 0.0, 0.02)), (1.25, (0.05, 0.0, step))]
    # It points at the target during the stride, then folds against the chest.
    glove_arm = arm(
        stage,
        flexion=keyed((0.0, 0.72, 1.08, 1.32, 1.5, 1.9, 2.7), (30.0, 42.0, 4.0, 10.0, 18.0, -22.0, 2.0)),
        abduction=keyed((0.0, 0.72, 1.08, 1.24, 1.48, 1.9, 2.7), (6.0, 8.0, 82.0, 78.0, 22.0, 24.0, 7.0)),
        across=[(0.72, 0.0), (1.08, 14.0), (1.3, 10.0), (1.5, 0.0)],
        twist=[(0.0, 40.0), (0.72, 42.0), (1.08, 30.0), (1.48, 42.0), (2.7, 12.0)],
        elbow=keyed((0.0, 0.72, 1.08, 1.22, 1.46, 1.9, 2.7), (104.0, 112.0, 26.0, 40.0, 122.0, 74.0, 14.0)),
        pronation=[(0.0, 20.0), (1.1, 60.0), (1.5, 20.0)],
    )
    # The hands part; the arm swings down and back, is cocked, lags behind the trunk, and whips across the body.
    throwing_arm = arm(
        stage,
        flexion=keyed((0.0, 0.72, 1.0, 1.18, 1.9, 2.7), (30.0, 42.0, -4.0, 0.0, 0.0, 2.0)),
        abduction=keyed(
            (0.0, 0.72, 1.0, 1.20, 1.46, 1.62, 1.9, 2.7), (6.0, 8.0, 44.0, 88.0, 96.0, 78.0, 46.0, 7.0)
        ),
        across=keyed(
            (0.8, 1.05, 1.25, 1.40, 1.46, 1.62, 1.9, 2.6), (0.0, -22.0, -26.0, 0.0, 12.0, 62.0, 84.0, 0.0)
        ),
        twist=keyed(
            (0.0, 0.72, 1.0, 1.20, 1.37, 1.46, 1.58, 1.9, 2.7),
            (40.0, 42.0, 10.0, -62.0, -92.0 - 12.0 * size, -78.0, -8.0, 30.0, 12.0),
        ),
        elbow=keyed(
            (0.0, 0.72, 1.0, 1.22, 1.36, 1.46, 1.55, 1.9, 2.7),
            (106.0, 114.0, 46.0, 92.0, 88.0, 22.0, 14.0, 34.0, 14.0),
        ),
        pronation=[(0.0, 20.0), (1.2, 40.0), (1.44, 10.0), (1.6, 75.0), (2.6, 20.0)],
        wrist=keyed((0.0, 1.2, 1.40, 1.48, 1.8, 2.7), (4.0, -10.0, -42.0, 30.0, 20.0, 4.0)),
        shoulder_up=[(0.8, 0.0), (1.2, 9.0), (1.5, 10.0), (2.0, 0.0)],
        shoulder_forward=[(0.8, 0.0), (1.25, -14.0), (1.46, 6.0), (1.65, 20.0), (2.5, 0.0)],
    )
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
                free=lambda times: (scale(stage) * track(times, striding), np.zeros(len(times))),
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
        arms={"left": glove_arm, "right": throwing_arm},
    )
    return targets if hand == "right" else mirrored(targets)


def kick(stage: Stage, *, foot: str = "right") -> BodyTargets:
    """Steps up and kicks once with the "right" or the "left" foot, towards +Z."""
    one_of("foot", foot, ("right", "left"))
    targets = _right_kick(stage)
    return targets if foot == "right" else mirrored(targets)


def _right_kick(stage: Stage) -> BodyTargets:
    size, width, body = 0.4 + 0.6 * stage.style.amplitude, HIP_WIDTH_STANCE, stage.body
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
    thigh = keyed(
        (0.5, 0.80, 0.95, 1.06, 1.24, 1.55, 1.95), (-16.0, -30.0 * size, 8.0, 38.0, 78.0 * size, 44.0, 6.0)
    )
    knee = keyed(
        (0.5, 0.66, 0.88, 1.06, 1.14, 1.26, 1.5, 1.95), (20.0, 45.0, 96.0 * size, 26.0, 9.0, 14.0, 66.0, 22.0)
    )
    ankle = [(0.5, -20.0), (0.9, -34.0), (1.15, -34.0), (1.5, -8.0), (1.95, 0.0)]

    def kicking_leg(times: Array) -> tuple[Array, Array]:
        """The ankle and the foot's pitch from the angles of thigh and knee, hung from where the hip will be."""
        bend, flex, point = (np.radians(track(times, keys)) for keys in (thigh, knee, ankle))
        to_side = [-0.5 * body.height * body.proportions.hip_width, 0.0, 0.0]
        hip = scale(stage) * track(times, pelvis) + to_side
        hip[:, 1] += standing_height(stage) + body.hip_height - body.pelvis_height
        ahead = body.thigh * np.sin(bend) + body.shank * np.sin(bend - flex)
        down = body.thigh * np.cos(bend) + body.shank * np.cos(bend - flex)
        inward = 0.10 * scale(stage) * np.exp(-(((times - _IMPACT) / 0.25) ** 2))
        return hip + np.stack([inward, -down, ahead], axis=-1), flex - bend - point

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
                heel=keyed((0.12, 0.30, 0.55, 0.70, 0.95, 1.25, 1.6), (0.0, 38.0, 3.0, 0.0, 0.0, 9.0, 0.0)),
                lift=0.05,
            ),
            "right": foot(
                stage,
                [Place(-ALWAYS, 0.62, -width, 0.0, -6.0), Place(2.0, ALWAYS, -width, far, -6.0)],
                heel=[(0.35, 0.0), (0.62, 55.0), (1.96, 14.0), (2.12, 0.0)],
                free=kicking_leg,
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
