"""The performers' bodies: segment lengths as fractions of standing height, made into a skeleton.

Joint-to-joint lengths follow de Leva (1996), "Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters",
table 4; heights above the floor and foot and hand lengths follow Drillis and Contini (1966) as drawn in Winter (2009),
"Biomechanics and Motor Control of Human Movement", figure 4.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from poise.errors import InvalidValueError
from poise.skeleton.skeleton import Skeleton, read_only
from poise.types import Array

SHORTEST, TALLEST = 0.8, 2.5  # metres; beyond them "a person" is a typing mistake


@dataclass(frozen=True)
class Proportions:
    """Segment lengths as fractions of standing height; the head takes what is left."""

    ankle_height: float = 0.039
    shank: float = 0.247
    thigh: float = 0.240
    trunk: float = 0.325  # hip joints to the base of the neck
    neck: float = 0.052
    hip_width: float = 0.100  # between the hip joints
    shoulder_width: float = 0.226  # between the shoulder joints
    upper_arm: float = 0.162
    forearm: float = 0.154
    hand: float = 0.100
    foot: float = 0.152

    @property
    def head(self) -> float:
        """From the top of the neck to the crown."""
        return 1.0 - (self.ankle_height + self.shank + self.thigh + self.trunk + self.neck)


def _length(name: str, doc: str) -> Any:
    return property(lambda body: body.height * getattr(body.proportions, name), doc=doc)


@dataclass(frozen=True)
class Body:
    """One performer's body: a height in metres and proportions. It rests in a T-pose facing +Z, left at +X."""

    name: str = "someone"
    height: float = 1.75
    proportions: Proportions = field(default_factory=Proportions)

    def __post_init__(self) -> None:
        if not SHORTEST <= self.height <= TALLEST:
            raise InvalidValueError(f"a performer's height is {SHORTEST} to {TALLEST} m; got {self.height}")
        if not 0.05 <= self.proportions.head <= 0.2:
            raise InvalidValueError(
                f"these proportions leave {self.proportions.head:.3f} of the height for the head; expected 0.05 to 0.2"
            )

    @cached_property
    def skeleton(self) -> Skeleton:
        """27 joints named as MotionBuilder and Mixamo name them, end sites included."""
        p = self.proportions  # offsets as fractions of height, parents first
        hips = p.ankle_height + p.shank + p.thigh + _HIPS_ABOVE_HIP_JOINTS
        spine, sternum = p.trunk - _HIPS_ABOVE_HIP_JOINTS, 0.012
        joints = [
            ("Hips", "", (0.0, hips, 0.0)),
            ("Spine", "Hips", (0.0, 0.13 * spine, -0.004)),
            ("Spine1", "Spine", (0.0, 0.24 * spine, 0.002)),
            ("Spine2", "Spine1", (0.0, 0.26 * spine, -0.004)),
            ("Neck", "Spine2", (0.0, 0.37 * spine, -0.008)),
            ("Head", "Neck", (0.0, p.neck, 0.010)),
            ("Head_end", "Head", (0.0, p.head, 0.004)),
        ]
        for side, x in (("Left", 1.0), ("Right", -1.0)):
            joints += [
                (f"{side}Shoulder", "Spine2", (x * sternum, 0.31 * spine, 0.010)),
                (f"{side}Arm", f"{side}Shoulder", (x * (p.shoulder_width / 2 - sternum), -0.004, -0.016)),
                (f"{side}ForeArm", f"{side}Arm", (x * p.upper_arm, 0.0, 0.0)),
                (f"{side}Hand", f"{side}ForeArm", (x * p.forearm, 0.0, 0.0)),
                (f"{side}Hand_end", f"{side}Hand", (x * p.hand, 0.0, 0.0)),
            ]
        ball, toes = (_BALL_FROM_HEEL - _ANKLE_FROM_HEEL) * p.foot, (1.0 - _BALL_FROM_HEEL) * p.foot
        for side, x in (("Left", 1.0), ("Right", -1.0)):
            joints += [
                (f"{side}UpLeg", "Hips", (x * p.hip_width / 2, -_HIPS_ABOVE_HIP_JOINTS, 0.0)),
                (f"{side}Leg", f"{side}UpLeg", (0.0, -p.thigh, 0.0)),
                (f"{side}Foot", f"{side}Leg", (0.0, -p.shank, 0.0)),
                (f"{side}ToeBase", f"{side}Foot", (0.0, _BALL_HEIGHT - p.ankle_height, ball)),
                (f"{side}ToeBase_end", f"{side}ToeBase", (0.0, -0.5 * _BALL_HEIGHT, toes)),
            ]
        names = [name for name, _, _ in joints]
        parents = [names.index(parent) if parent else -1 for _, parent, _ in joints]
        offsets = self.height * np.array([offset for _, _, offset in joints])
        orders = tuple("" if name.endswith("_end") else "ZXY" if name == "Hips" else "ZYX" for name in names)
        return Skeleton(tuple(names), np.array(parents), offsets, orders)

    thigh = _length("thigh", "Hip to knee, in metres.")
    shank = _length("shank", "Knee to ankle, in metres.")
    upper_arm = _length("upper_arm", "Shoulder to elbow, in metres.")
    forearm = _length("forearm", "Elbow to wrist, in metres.")
    hand = _length("hand", "Wrist to fingertips, in metres.")
    ankle_height = _length("ankle_height", "The ankle above the sole of a flat foot, in metres.")
    _foot = _length("foot", "The sole, in metres.")

    @property
    def leg(self) -> float:
        """Hip to ankle with a straight knee, in metres."""
        return self.thigh + self.shank

    @property
    def hip_height(self) -> float:
        """The hip joints above the floor in the rest pose, in metres."""
        return self.ankle_height + self.leg

    @property
    def pelvis_height(self) -> float:
        """The root joint above the floor in the rest pose, in metres."""
        return self.hip_height + self.height * _HIPS_ABOVE_HIP_JOINTS

    @cached_property
    def heel(self) -> Array:
        """The back of the sole, from the ankle, in the foot's frame."""
        return read_only([0.0, -self.ankle_height, -self._foot * _ANKLE_FROM_HEEL])

    @cached_property
    def ball(self) -> Array:
        """The joint at the base of the toes, from the ankle, in the foot's frame."""
        return read_only(self.skeleton.offsets[self.skeleton.names.index("LeftToeBase")])

    @cached_property
    def toe_tip(self) -> Array:
        """The front of the sole, from the base of the toes, in the toes' frame."""
        return read_only([0.0, -self.height * _BALL_HEIGHT, self._foot * (1.0 - _BALL_FROM_HEEL)])


_HIPS_ABOVE_HIP_JOINTS = 0.012  # fraction of height
_BALL_HEIGHT = 0.012  # fraction of height
_ANKLE_FROM_HEEL, _BALL_FROM_HEEL = 0.25, 0.72  # fractions of the foot's length


_PERFORMERS: dict[str, tuple[float, dict[str, float]]] = {
    "alex": (1.75, {}),
    "maya": (1.64, {"thigh": 0.232, "trunk": 0.331, "hip_width": 0.106, "shoulder_width": 0.208}),
    "otto": (1.93, {"thigh": 0.248, "shank": 0.252, "trunk": 0.316, "upper_arm": 0.166, "forearm": 0.158}),
    "rosa": (
        1.55,
        {"thigh": 0.230, "shank": 0.241, "trunk": 0.336, "hip_width": 0.110, "shoulder_width": 0.214},
    ),
    "kofi": (1.84, {"shoulder_width": 0.244, "upper_arm": 0.167, "forearm": 0.160, "hip_width": 0.097}),
    "june": (1.38, {"thigh": 0.230, "shank": 0.238, "trunk": 0.325, "neck": 0.050, "shoulder_width": 0.210}),
}
PERFORMERS: Mapping[str, Body] = MappingProxyType(
    {name: Body(name, height, Proportions(**own)) for name, (height, own) in _PERFORMERS.items()}
)
