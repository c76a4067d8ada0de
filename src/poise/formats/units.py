"""Infer the unit of length of a file from the size of its body."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.motion.motion import Doubt, Origin
from poise.skeleton.measure import standing_height
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

METRES: dict[str, float] = {
    "m": 1.0,
    "cm": 0.01,
    "mm": 0.001,
    "dm": 0.1,
    "inch": 0.0254,
    "cmu": 0.0254 / 0.45,
}
"""MakeHuman uses dm; cmu is the CMU Graphics Lab's, in its ASF files and their BVH conversion."""
_ALIASES = {
    "mete": "m", "metre": "m", "metres": "m", "meter": "m", "meters": "m",
    "centimetre": "cm", "centimetres": "cm", "centimeter": "cm", "centimeters": "cm",
    "millimetre": "mm", "millimetres": "mm", "millimeter": "mm", "millimeters": "mm",
    "decimetre": "dm", "decimetres": "dm", "decimeter": "dm", "decimeters": "dm",
    "inches": "inch", "in": "inch",
}  # fmt: skip

GIVEN, STATED = (
    "given",
    "the exponents of the root's offset state it",
)  # reasons that leave no doubt about a unit
_USUAL_HEIGHT = 1.70
_SPREAD = 0.25  # of log heights; wide, because characters and children are recorded too
_RARITY = {"m": 0.0, "cm": 0.0, "mm": 1.0, "cmu": 2.0, "dm": 3.0, "inch": 4.0}  # -2 log of a unit's frequency
_SHORTEST, _TALLEST = 0.7, 2.6  # metres; outside this range the choice is reported as doubtful
_HIP_HEIGHT = 0.53  # of the stature (Winter 2009, figure 4.1)


@dataclass(frozen=True)
class Unit:
    """A unit of length, the reason for its choice, and any doubts."""

    name: str
    metres: float
    reason: str
    warnings: tuple[str, ...] = ()

    def origin(
        self, file: Path, format: str, frames: int, *, notes: Sequence[str] = (), warnings: Sequence[str] = ()
    ) -> Origin:
        """The origin of a recording in this unit."""
        return Origin(
            path=str(file), format=format, metres_per_unit=self.metres, units=self.name, units_reason=self.reason,
            frames_in_file=frames, notes=tuple(notes), warnings=(*warnings, *self.warnings),
        )  # fmt: skip


def metres_per_unit(unit: str | float) -> float:
    """Metres in a unit given by its name or as a number of metres."""
    return _given(unit).metres


def choose_unit(
    skeleton: Skeleton, root_positions: Float[Array, "frames 3"], *, units: str | float | None = None
) -> Unit:
    """The given unit, or the usual one in which the body's height is closest to a person's.

    The height is the standing height along the bones, for any rest pose; a skeleton without lengths is measured by the
    height of its root above the ground.
    """
    if units is not None:
        return _given(units)
    height = standing_height(skeleton)
    measure = f"the body's bones add up to a standing height of {height:.4g} units"
    if height <= 0:
        height = float(np.median(np.abs(root_positions[:, 1]))) / _HIP_HEIGHT
        measure = f"the root's height suggests a body of {height:.4g} units"
    if height <= 0:
        return Unit("m", 1.0, "the file has no lengths; metres assumed", ("the unit of length is a guess",))
    name = min(
        METRES,
        key=lambda unit: _RARITY[unit] + (math.log(height * METRES[unit] / _USUAL_HEIGHT) / _SPREAD) ** 2,
    )
    metres, title = height * METRES[name], "CMU's unit (2.54/0.45 cm)" if name == "cmu" else name
    doubt = f"no usual unit gives a person's height: {metres:.3g} m in {title} is the nearest (units= overrides it)"
    doubts = () if _SHORTEST <= metres <= _TALLEST else (Doubt(doubt),)
    return Unit(name, METRES[name], f"{measure}, which is {metres:.2f} m in {title}", doubts)


def _given(unit: str | float) -> Unit:
    if isinstance(unit, str):
        name = _ALIASES.get(unit.strip().lower(), unit.strip().lower())
        if name in METRES:
            return Unit(name, METRES[name], GIVEN)
        try:
            unit = float(name)
        except ValueError:
            raise UnknownNameError("unit of length", name, (*METRES, "a number of metres")) from None
    if isinstance(unit, bool) or not (math.isfinite(unit) and 1e-9 <= unit <= 1e9):
        raise InvalidValueError(f"a unit of length must be a positive number of metres; got {unit}")
    named = next((name for name, metres in METRES.items() if math.isclose(metres, unit, rel_tol=1e-6)), None)
    return Unit(named or f"{float(unit):g} m", float(unit), GIVEN)
