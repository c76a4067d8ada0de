"""Colours of markers: their hues, looks for detection, and tints for labelling."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.types import Array
from poise.vision.blobs import COLOURFUL, HUE_RANGE, Look, tint_of

HUES = {
    "red": 0.0, "orange": 0.08, "yellow": 0.16, "green": 0.33, "cyan": 0.5, "blue": 0.64, "purple": 0.76, "pink": 0.9
}  # fmt: skip
CLOSEST = 0.05  # smallest distinguishable difference of hues, as a share of the circle
DULL = 0.35  # of full light: smallest brightness of a coloured marker, which is less bright than a reflecting one
LIT = 0.95  # of full light: brightness of a simulated marker


@dataclass(frozen=True)
class Colours:
    """Hues by label, and hues without a known wearer. Markers without a hue are bright."""

    worn: Mapping[str, float] = field(default_factory=dict)
    others: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for first, second in combinations(self.hues, 2):
            if _apart(first, second) < CLOSEST:
                raise InvalidValueError(
                    f"markers whose hues differ by under {CLOSEST} cannot be distinguished: {first:g} and {second:g}"
                )

    @classmethod
    def from_text(cls, text: str) -> Colours:
        """From words such as `red`, `0.33`, or `LFIN=red,RFIN=green`, with commas between."""
        pairs = [word.strip().rpartition("=") for word in text.split(",") if word.strip()]
        worn = {label.strip(): hue_of(hue.strip()) for label, is_worn, hue in pairs if is_worn}
        return cls(worn, tuple(hue_of(hue.strip()) for _, is_worn, hue in pairs if not is_worn))

    @property
    def hues(self) -> list[float]:
        """All hues, each once."""
        return sorted({*self.worn.values(), *self.others})

    def looks(self, labels: Sequence[str] | None = None) -> tuple[Look, ...]:
        """The looks to detect for these markers, or for unnamed ones."""
        found = []
        for hue in self.hues:
            halves = [0.5 * _apart(hue, other) for other in self.hues if other != hue]
            found.append(Look(brightness=DULL, hue=hue, hue_range=min([HUE_RANGE, *halves])))
        return (*found, Look()) if self._some_are_bright(labels) else tuple(found)

    def tints(self, labels: Sequence[str]) -> Float[Array, "markers 3"]:
        """Red, green and blue of each marker, the strongest being 1; NaN if unknown."""
        self._check(labels)
        unknown = (1.0, 1.0, 1.0) if self.worn and self._some_are_bright(labels) else (np.nan,) * 3
        rows = [tint_of(self.worn[name]) if name in self.worn else unknown for name in labels]
        return np.array(rows)

    def lights(self, labels: Sequence[str]) -> dict[str, tuple[float, float, float]]:
        """The appearance of simulated markers; a single unassigned hue is worn by all others."""
        self._check(labels)
        if len(self.others) > 1:
            raise InvalidValueError("assign colours to markers, such as LFIN=red,RFIN=green")
        hues = {**dict.fromkeys(labels, self.others[0] if self.others else None), **self.worn}
        return {
            name: colorsys.hsv_to_rgb(hue, COLOURFUL, LIT) for name, hue in hues.items() if hue is not None
        }

    def _some_are_bright(self, labels: Sequence[str] | None) -> bool:
        return not self.others and (labels is None or not set(labels) <= set(self.worn))

    def _check(self, labels: Sequence[str]) -> None:
        for name in self.worn:
            if name not in labels:
                raise UnknownNameError("marker", name, labels)


def hue_of(colour: object) -> float:
    """A hue from 0 to 1, by number or by name."""
    if isinstance(colour, str) and colour in HUES:
        return HUES[colour]
    try:
        hue = float(colour)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        hue = np.nan
    if not 0 <= hue <= 1:
        raise InvalidValueError(
            f"a colour must be {', '.join(HUES)}, or a hue from 0 (red) over 0.33 (green) to 1; got {colour!r}"
        )
    return hue


def _apart(first: float, second: float) -> float:
    """The cyclic distance of two hues."""
    gap = abs(first - second)
    return min(gap, 1.0 - gap)
