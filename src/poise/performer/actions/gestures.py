"""Standing idly and waving."""

import numpy as np

from poise.performer.checks import one_of
from poise.performer.posing import Arm, BodyTargets, mirrored
from poise.performer.stage import Stage
from poise.performer.standing import arm, posed, repeated, stance, starts
from poise.performer.tracks import Key


def idle(stage: Stage) -> BodyTargets:
    """Stands, breathes, shifts its weight from leg to leg and looks around."""
    shifts = _weight_shifts(stage)
    feet = stance(stage, width=0.11)
    return posed(
        stage,
        pelvis=[(time, (0.065 * side, -0.012 * abs(side), 0.0)) for time, side in shifts],
        pelvis_turn=[(time, (0.0, 5.0 * side, 6.0 * side)) for time, side in shifts],
        spine=[(time + 0.15, (1.0, -4.0 * side, -8.0 * side)) for time, side in shifts],
        gaze=_glances(stage),
        feet=feet,
        arms={"left": arm(stage), "right": arm(stage)},
    )


def wave(stage: Stage, *, hand: str = "right") -> BodyTargets:
    """Raises one hand ("right" or "left") and waves."""
    one_of("hand", hand, ("right", "left"))
    size = stage.style.amplitude
    period = 3.6
    begins = starts(stage, period)
    tilt = [
        (0.0, (0.0, 0.0, 0.0)),
        (0.7, (0.0, 0.0, -2.0 * size)),
        (2.6, (0.0, 0.0, -2.0 * size)),
        (3.4, (0.0, 0.0, 0.0)),
    ]
    targets = posed(
        stage,
        pelvis=repeated(
            [
                (0.1, (0.0, 0.0, 0.0)),
                (0.8, (0.02, 0.0, 0.0)),
                (2.7, (0.02, 0.0, 0.0)),
                (3.4, (0.0, 0.0, 0.0)),
            ],
            begins,
        ),
        pelvis_turn=repeated(tilt, begins),
        spine=repeated([(time, (0.0, 2.0 * roll[2], 1.5 * roll[2])) for time, roll in tilt], begins),
        gaze=repeated(
            [
                (0.0, (0.0, 0.0, 0.0)),
                (0.7, (-3.0, 0.0, 3.0)),
                (2.6, (-3.0, 0.0, 3.0)),
                (3.4, (0.0, 0.0, 0.0)),
            ],
            begins,
        ),
        feet=stance(stage),
        arms={"left": arm(stage), "right": _waving_arm(stage, begins, size)},
    )
    return targets if hand == "right" else mirrored(targets)


def _waving_arm(stage: Stage, begins: np.ndarray, size: float) -> Arm:
    """The hand rises to the shoulder; then the forearm swings, and the hand lags behind."""
    beats = 0.85 + 0.24 * np.arange(8)
    swings = [(time, 74.0 + 24.0 * size * (-1) ** number) for number, time in enumerate(beats)]
    drags = [(time + 0.07, -14.0 * size * (-1) ** number) for number, time in enumerate(beats)]
    lift = 62.0 + 12.0 * size
    return arm(
        stage,
        flexion=repeated([(0.0, 2.0), (0.75, 28.0), (2.6, 28.0), (3.4, 2.0)], begins),
        abduction=repeated([(0.05, 7.0), (0.75, lift), (2.6, lift), (3.4, 7.0)], begins),
        twist=repeated([(0.0, 12.0), (0.7, -64.0), (2.6, -64.0), (3.3, 12.0)], begins),
        elbow=repeated([(0.0, 14.0), (0.45, 92.0), *swings, (3.35, 14.0)], begins),
        pronation=repeated([(0.0, 20.0), (0.7, 62.0), (2.6, 62.0), (3.4, 20.0)], begins),
        wrist=repeated([(0.0, 4.0), (0.6, -8.0), *drags, (3.4, 4.0)], begins),
        shoulder_up=repeated([(0.0, 0.0), (0.7, 9.0), (2.6, 9.0), (3.4, 0.0)], begins),
    )


def _weight_shifts(stage: Stage) -> list[tuple[float, float]]:
    """(time, side) with side 1 on the left leg and -1 on the right, held for a few seconds each."""
    generator = stage.generator("weight")
    time, side, shifts = 0.0, float(generator.choice([-1.0, 1.0])), []
    while time < stage.beats + 6.0:
        held = generator.uniform(1.6, 3.4)
        amount = side * generator.uniform(0.6, 1.0)
        shifts += [(time, amount), (time + held, amount)]
        time, side = time + held + generator.uniform(0.8, 1.2), -side
    return shifts


def _glances(stage: Stage) -> list[Key]:
    generator = stage.generator("glances")
    time, keys = 0.0, [(0.0, (3.0, 0.0, 0.0))]
    while time < stage.beats + 4.0:
        time += generator.uniform(1.0, 2.6)
        yaw = generator.uniform(-38.0, 38.0)
        keys += [
            (time, keys[-1][1]),
            (time + 0.35 + abs(yaw) / 120.0, (generator.uniform(-3.0, 9.0), yaw, 0.05 * yaw)),
        ]
        time = keys[-1][0]
    return keys
