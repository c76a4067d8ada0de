"""An instep kick: a step to the plant foot, the leg drawn back, and thigh, shank and foot let go one after the other.

Sequence and angles after Lees et al. (2010), "The biomechanics of kicking in soccer: a review".
"""

import numpy as np

from poise.performer.checks import one_of
from poise.performer.posing import BodyTargets, mirrored, yawed
from poise.performer.stage import Stage
from poise.performer.standing import ALWAYS, HIP_WIDTH_STANCE, Place, arm, foot, posed, scale, standing_height
from poise.performer.steps import FreeFoot
from poise.performer.tracks import Key, track
from poise.types import Array

_IMPACT = 1.06  # seconds by the stage's clock


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
