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


_NAMES = ("tired", "proud", "sneaky", "energetic", "old")
_VALUES = {
    "speed": (0.72, 1.05, 0.55, 1.2, 0.55),
    "cadence": (0.92, 0.93, 0.85, 1.06, 1.18),
    "tempo": (0.85, 0.95, 0.8, 1.12, 0.78),
    "amplitude": (0.75, 1.1, 0.9, 1.25, 0.6),
    "arm_swing": (0.55, 1.05, 0.5, 1.3, 0.4),
    "sway": (1.5, 1.25, 0.8, 1.2, 1.1),
    "bounce": (0.9, 1.25, 0.6, 1.5, 0.6),
    "knee_lift": (0.85, 1.12, 1.55, 1.2, 0.8),
    "foot_roll": (0.7, 1.1, 0.35, 1.15, 0.45),
    "tiptoe": (0.0, 0.0, 20.0, 0.0, 0.0),
    "lean": (4.0, -3.0, 16.0, 1.0, 10.0),
    "slump": (22.0, -14.0, 16.0, -6.0, 30.0),
    "head_down": (24.0, -9.0, -4.0, -4.0, 4.0),
    "shoulders_up": (-5.0, 2.0, 9.0, 0.0, 3.0),
    "shoulders_forward": (14.0, -12.0, 12.0, -4.0, 18.0),
    "crouch": (0.015, 0.0, 0.105, 0.0, 0.05),
    "elbows": (-4.0, 8.0, 62.0, 34.0, 28.0),
    "arms_out": (0.0, 10.0, 9.0, 3.0, 4.0),
    "arms_forward": (8.0, 0.0, 14.0, 0.0, 6.0),
    "step_width": (1.2, 1.1, 0.75, 1.0, 1.45),
    "toes_out": (0.0, 6.0, 0.0, 0.0, 6.0),
    "variation": (1.6, 0.7, 1.1, 1.1, 1.5),
    "asymmetry": (0.0, 0.0, 0.0, 0.0, 0.12),
    "tremor": (0.0, 0.0, 0.0, 0.0, 1.0),
}
STYLES: Mapping[str, Style] = MappingProxyType(
    {"neutral": Style()}
    | {name: Style(name, **{what: row[k] for what, row in _VALUES.items()}) for k, name in enumerate(_NAMES)}
)
