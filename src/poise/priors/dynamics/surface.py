"""The surface of a latent space with phases: a closed curve per phase, a line for every other dimension.

The curve is a Fourier series in the phase through the training points. A point's phase is that of the nearest point of
the curve. A simulated gait stays on the surface, so it neither spirals inward nor loses its beat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.priors.dynamics.structure import Structure
from poise.skeleton.skeleton import read_only
from poise.types import Array

HARMONICS = 4
PLACES = 360  # sampled points of a curve; the nearest is refined
REFINED = 3  # Newton steps of the refinement
LEAST_BEND = 0.1  # of the curvature on the curve: Newton's method is not used below this fraction


@dataclass(frozen=True, eq=False)
class Ring:
    """One closed curve in two latent dimensions."""

    source: str
    dimensions: tuple[int, int]
    series: Float[Array, "waves 2"]

    def at(self, radians: Float[Array, "*n"], derivative: int = 0) -> Float[Array, "*n 2"]:
        """The point at a phase, or a derivative of it."""
        return np.asarray(waves(radians, derivative=derivative) @ self.series)

    def phase_of(self, points: Float[Array, "n 2"]) -> Float[Array, "n"]:
        """The phase of the nearest point of the curve, from 0 to 2 pi."""
        radians = ((points[:, None] - self._table) ** 2).sum(axis=2).argmin(axis=1) * (2.0 * np.pi / PLACES)
        start = radians
        for _ in range(REFINED):
            off = (self.at(radians) - points) * self.at(radians, 1)
            radians = radians - off.sum(axis=1) / self._stiffness(radians, points)
        return np.asarray(np.clip(radians, start - np.pi / PLACES, start + np.pi / PLACES) % (2.0 * np.pi))

    def phase_slopes(self, radians: Float[Array, "n"], points: Float[Array, "n 2"]) -> Float[Array, "n 2"]:
        """The gradient of the phase of the nearest point (given in `radians`) by the point."""
        return np.asarray(self.at(radians, 1) / self._stiffness(radians, points)[:, None])

    def _stiffness(self, radians: Float[Array, "n"], points: Float[Array, "n 2"]) -> Float[Array, "n"]:
        """Half the second derivative of the squared distance along the curve; near the centre, where it vanishes, its
        value on the curve itself."""
        ahead = (self.at(radians, 1) ** 2).sum(axis=1)
        bent = ahead + ((self.at(radians) - points) * self.at(radians, 2)).sum(axis=1)
        return np.asarray(np.where(bent > LEAST_BEND * ahead, bent, np.maximum(ahead, 1e-12)))

    @cached_property
    def _table(self) -> Float[Array, "places 2"]:
        return self.at(np.arange(PLACES) * (2.0 * np.pi / PLACES))


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
        """The phase changes when points at these phases make these moves."""
        parts = zip(self.rings, radians.T, strict=True)
        found = [
            (ring.phase_slopes(own, ring.at(own)) * moves[:, ring.dimensions]).sum(axis=1)
            for ring, own in parts
        ]
        return np.column_stack([np.empty((len(moves), 0)), *found])

    def ahead(
        self,
        x: Float[Array, "n latent"],
        radians: Float[Array, "phases"],
        elsewhere: Float[Array, "latent latent"],
    ) -> Float[Array, "n latent latent"]:
        """Jacobians by x of the points `radians` ahead on the surface; `elsewhere` holds those of other dimensions."""
        slopes = np.tile(elsewhere, (len(x), 1, 1))
        for ring, own, beat in zip(self.rings, self.phases_of(x).T, radians, strict=False):
            turned = ring.phase_slopes(own, x[:, ring.dimensions])
            slopes[:, ring.dimensions] = 0.0
            slopes[:, np.array(ring.dimensions)[:, None], ring.dimensions] = (
                ring.at(own + beat, 1)[:, :, None] * turned[:, None]
            )
        return slopes

    def at(self, radians: Float[Array, "n phases"], x: Float[Array, "n latent"]) -> Float[Array, "n latent"]:
        """The points at these phases, with the other dimensions from x."""
        out = x.copy()
        for ring, own in zip(self.rings, radians.T, strict=True):
            out[:, ring.dimensions] = ring.at(own)
        return out


NO_SURFACE = Surface(())


def surface_through(
    structure: Structure, latents: Float[Array, "frames latent"], phases: Mapping[str, Float[Array, "frames"]]
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


def cyclic_surface(
    structure: Structure, latents: Float[Array, "frames latent"], phases: Mapping[str, Float[Array, "frames"]]
) -> Surface:
    """The surface whose rings are the limit cycles of a model's dynamics; published models have none."""
    return NO_SURFACE if structure.published else surface_through(structure, latents, phases)


def waves(
    radians: Float[Array, "*n"], harmonics: int = HARMONICS, derivative: int = 0
) -> Float[Array, "*n waves"]:
    """A constant and the cosines and sines of a phase and its multiples, or a derivative of them."""
    multiples = np.arange(1, harmonics + 1)
    turns = np.multiply.outer(radians, multiples) + derivative * (np.pi / 2.0)
    constant = np.full((*turns.shape[:-1], 1), float(derivative == 0))
    return np.concatenate(
        [constant, multiples**derivative * np.cos(turns), multiples**derivative * np.sin(turns)], axis=-1
    )
