"""Styles: the same action done tired, proud, sneaky ... as numbers that act on posture, timing and amplitude.

The directions follow studies of how mood and age show in gait: Montepare, Goldstein and Clausen (1987) and Michalak et
al. (2009) for slumped and heavy against upright and light walking, Judge, Davis and Ounpuu (1996) for age. The amounts
are ours. Angles are in degrees, factors multiply the neutral value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Style:
    """The manner of an action. The defaults are the neutral style."""

    name: str = "neutral"
    # timing
    speed: float = 1.0  # of the pace chosen when none is asked for
    cadence: float = 1.0  # strides a second at the same speed; more means shorter steps
    tempo: float = 1.0  # punches, waves, jumps a second
    # amplitude
    amplitude: float = 1.0  # of gestures, jumps, strikes
    arm_swing: float = 1.0
    sway: float = 1.0  # of the hips and shoulders
    bounce: float = 1.0
    knee_lift: float = 1.0
    foot_roll: float = 1.0  # heel strike and push-off; small is a shuffle
    tiptoe: float = 0.0  # heel up when the foot lands
    # posture
    lean: float = 0.0  # of the whole trunk, forward
    slump: float = 0.0  # rounding of the back, forward
    head_down: float = 0.0
    shoulders_up: float = 0.0
    shoulders_forward: float = 0.0
    crouch: float = 0.0  # share of the leg's length
    elbows: float = 0.0  # extra bend
    arms_out: float = 0.0
    arms_forward: float = 0.0
    step_width: float = 1.0
    toes_out: float = 0.0
    # irregularity
    variation: float = 1.0
    asymmetry: float = 0.0  # of the left leg's and arm's share: a limp
    tremor: float = 0.0


STYLES: Mapping[str, Style] = MappingProxyType(
    {
        style.name: style
        for style in (
            Style(),
            Style(
                "tired",
                speed=0.72,
                cadence=0.92,
                tempo=0.85,
                amplitude=0.75,
                arm_swing=0.55,
                sway=1.5,
                bounce=0.9,
                knee_lift=0.85,
                foot_roll=0.7,
                lean=4.0,
                slump=22.0,
                head_down=24.0,
                shoulders_up=-5.0,
                shoulders_forward=14.0,
                crouch=0.015,
                elbows=-4.0,
                arms_forward=8.0,
                step_width=1.2,
                variation=1.6,
            ),
            Style(
                "proud",
                speed=1.05,
                cadence=0.93,
                tempo=0.95,
                amplitude=1.1,
                arm_swing=1.05,
                sway=1.25,
                bounce=1.25,
                knee_lift=1.12,
                foot_roll=1.1,
                lean=-3.0,
                slump=-14.0,
                head_down=-9.0,
                shoulders_up=2.0,
                shoulders_forward=-12.0,
                elbows=8.0,
                arms_out=10.0,
                step_width=1.1,
                toes_out=6.0,
                variation=0.7,
            ),
            Style(
                "sneaky",
                speed=0.55,
                cadence=0.85,
                tempo=0.8,
                amplitude=0.9,
                arm_swing=0.5,
                sway=0.8,
                bounce=0.6,
                knee_lift=1.55,
                foot_roll=0.35,
                tiptoe=20.0,
                lean=16.0,
                slump=16.0,
                head_down=-4.0,
                shoulders_up=9.0,
                shoulders_forward=12.0,
                crouch=0.105,
                elbows=62.0,
                arms_out=9.0,
                arms_forward=14.0,
                step_width=0.75,
                variation=1.1,
            ),
            Style(
                "energetic",
                speed=1.2,
                cadence=1.06,
                tempo=1.12,
                amplitude=1.25,
                arm_swing=1.3,
                sway=1.2,
                bounce=1.5,
                knee_lift=1.2,
                foot_roll=1.15,
                lean=1.0,
                slump=-6.0,
                head_down=-4.0,
                shoulders_forward=-4.0,
                elbows=34.0,
                arms_out=3.0,
                variation=1.1,
            ),
            Style(
                "old",
                speed=0.55,
                cadence=1.18,
                tempo=0.78,
                amplitude=0.6,
                arm_swing=0.4,
                sway=1.1,
                bounce=0.6,
                knee_lift=0.8,
                foot_roll=0.45,
                lean=10.0,
                slump=30.0,
                head_down=4.0,
                shoulders_up=3.0,
                shoulders_forward=18.0,
                crouch=0.05,
                elbows=28.0,
                arms_out=4.0,
                arms_forward=6.0,
                step_width=1.45,
                toes_out=6.0,
                variation=1.5,
                asymmetry=0.12,
                tremor=1.0,
            ),
        )
    }
)
