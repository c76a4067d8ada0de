"""A person in one picture: 33 landmarks, and the square they were found in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.capture.people.landmarks import VISIBLE
from poise.types import Array


@dataclass(frozen=True, eq=False)
class Region:
    """A rotated square of a picture around one person: its centre, its side in pixels, and its angle in radians."""

    centre: Float[Array, "2"]
    side: float
    turn: float

    @property
    def axes(self) -> Float[Array, "2 2"]:
        """Columns: the square's own right and down, in the picture."""
        cosine, sine = np.cos(self.turn), np.sin(self.turn)
        return np.array([[cosine, -sine], [sine, cosine]])

    def to_picture(self, points: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """Pixels of points of the square, whose corners are (0, 0) and (1, 1)."""
        return np.asarray(self.centre + self.side * (points - 0.5) @ self.axes.T)


@dataclass(frozen=True, eq=False)
class Person:
    """One person in one picture: pixels, visibilities (0 to 1), and a rough shape in metres.

    The shape has its origin between the hips and the camera's axes: x right, y down, z away. It is an estimate: whole
    bodies of usual size, seen from afar. `next` is the search region in the next picture.
    """

    pixels: Float[Array, "33 2"]
    visibility: Float[Array, "33"]
    shape: Float[Array, "33 3"]
    score: float
    region: Region
    next: Region

    @cached_property
    def box(self) -> Float[Array, "4"]:
        """Left, top, right and bottom of the visible landmarks, in pixels."""
        seen = self.pixels[self.visibility > VISIBLE] if self.visibility.max() > VISIBLE else self.pixels
        return np.concatenate([seen.min(axis=0), seen.max(axis=0)])


def overlap(first: Float[Array, "4"], second: Float[Array, "4"]) -> float:
    """The intersection over union of two boxes."""
    both = _common(first, second)
    return both / max(_area(first) + _area(second) - both, 1e-9)


def shared(first: Float[Array, "4"], second: Float[Array, "4"]) -> float:
    """The share of the smaller of two boxes that is in both."""
    return _common(first, second) / max(min(_area(first), _area(second)), 1e-9)


def _common(first: Float[Array, "4"], second: Float[Array, "4"]) -> float:
    return _area(np.concatenate([np.maximum(first[:2], second[:2]), np.minimum(first[2:], second[2:])]))


def _area(box: Float[Array, "4"]) -> float:
    return float(np.prod(np.maximum(box[2:] - box[:2], 0.0)))
