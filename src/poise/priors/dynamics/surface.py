"""The surface on which a latent space with phases lies: a closed curve per phase, a line for every other dimension.

The curve is a Fourier series in the phase through the training points. The phase of a point is that of the nearest
place of the curve. A simulated gait stays on it, so it neither spirals in nor loses its beat.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.priors.dynamics.structure import Structure
from poise.skeleton.skeleton import read_only

Array = np.ndarray

HARMONICS = 4
_STEP = 1e-4  # radians, over which a curve's slope is taken
PLACES = 360  # of a curve that are tried; the best is refined between its neighbours


@dataclass(frozen=True, eq=False)
class Ring:
    """One closed curve in two latent dimensions."""

    source: str
    dimensions: tuple[int, int]
    series: Float[Array, "waves 2"]

    def at(self, radians: Float[Array, "*n"]) -> Float[Array, "*n 2"]:
        """Where a phase lies."""
        return np.asarray(waves(radians) @ self.series)

    def along(self, radians: Float[Array, "n"], moves: Float[Array, "n 2"]) -> Float[Array, "n"]:
        """How far the phase goes on when points move so: the part along the curve."""
        ahead = (self.at(radians + _STEP) - self.at(radians - _STEP)) / (2.0 * _STEP)
        return np.asarray((moves * ahead).sum(axis=1) / np.maximum((ahead**2).sum(axis=1), 1e-12))

    @cached_property
    def _table(self) -> Float[Array, "places 2"]:
        return self.at(np.arange(PLACES) * (2.0 * np.pi / PLACES))

    def phase_of(self, points: Float[Array, "n 2"]) -> Float[Array, "n"]:
        """The phase of the nearest place, from 0 to 2 pi: a parabola through the best of a table and its neighbours."""
        table = self._table
        squared = ((points[:, None] - table) ** 2).sum(axis=2)
        best = squared.argmin(axis=1)
        rows = np.arange(len(points))
        left, middle, right = (squared[rows, (best + shift) % PLACES] for shift in (-1, 0, 1))
        bend = left - 2.0 * middle + right
        shift = np.where(bend > 1e-15, 0.5 * (left - right) / np.maximum(bend, 1e-15), 0.0)
        return np.asarray((best + np.clip(shift, -0.5, 0.5)) * (2.0 * np.pi / PLACES))


@dataclass(frozen=True, eq=False)
class Surface:
    """The rings of a structure; without phases there are none and every point is on the surface."""

    rings: tuple[Ring, ...]

    def phases_of(self, x: Float[Array, "n latent"]) -> Float[Array, "n phases"]:
        """The phases of the nearest points on the surface."""
        found = [ring.phase_of(x[:, ring.dimensions]) for ring in self.rings]
        return np.column_stack([np.empty((len(x), 0)), *found])

    def along(
        self, radians: Float[Array, "n phases"], moves: Float[Array, "n latent"]
    ) -> Float[Array, "n phases"]:
        """How far phases go on when points move so."""
        parts = zip(self.rings, radians.T, strict=True)
        found = [ring.along(own, moves[:, ring.dimensions]) for ring, own in parts]
        return np.column_stack([np.empty((len(moves), 0)), *found])

    def at(self, radians: Float[Array, "n phases"], x: Float[Array, "n latent"]) -> Float[Array, "n latent"]:
        """The points of these phases, elsewhere as given."""
        out = x.copy()
        for ring, own in zip(self.rings, radians.T, strict=True):
            out[:, ring.dimensions] = ring.at(own)
        return out


def surface_through(
    structure: Structure, latents: Float[Array, "frames latent"], phases: dict[str, Float[Array, "frames"]]
) -> Surface:
    """The surface of training points with these phases."""
    rings = []
    for source in structure.phases:
        own = structure.places_of(source)
        design = waves(phases[source])
        ridge = 1e-6 * len(design) * np.eye(design.shape[1])
        series = np.linalg.solve(design.T @ design + ridge, design.T @ latents[:, own])
        rings.append(Ring(source, (own[0], own[1]), read_only(series)))
    return Surface(tuple(rings))


def waves(radians: Float[Array, "*n"], harmonics: int = HARMONICS) -> Float[Array, "*n waves"]:
    """A constant and the cosines and sines of a phase and its multiples."""
    turns = np.multiply.outer(radians, np.arange(1, harmonics + 1))
    return np.concatenate([np.ones((*turns.shape[:-1], 1)), np.cos(turns), np.sin(turns)], axis=-1)
