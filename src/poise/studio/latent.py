"""A style's latent space for the page: a likelihood map, training points, and a pose at every place.

Most are shown in the plane in which their training points spread most. The cylinder of a dynamics model is unrolled:
its phase goes from left to right, and the remaining dimension goes up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.pictures.latent_plane import MARGIN, Extent, LatentPlane, mapped
from poise.priors.dynamics.flow import Ring
from poise.priors.latent.model import LatentPoses
from poise.skeleton.kernels import ROOT_SIZE
from poise.studio import messages
from poise.studio.arrays import packed
from poise.types import Array

GRID = (140, 90)  # columns and rows of an unrolled cylinder


@dataclass(frozen=True, eq=False)
class LatentView(ABC):
    """A two-dimensional view of a latent space."""

    prior: LatentPoses

    @abstractmethod
    def all_seen(self, x: Float[Array, "n latent"]) -> Float[Array, "n 2"]:
        """The positions of latent points in the view."""

    @abstractmethod
    def latent(self, point: tuple[float, float]) -> Float[Array, "latent"]:
        """The latent point of a place in the view."""

    @abstractmethod
    def likelihoods(self) -> tuple[Float[Array, "rows columns"], Extent]:
        """The likelihood of the places, rows from the bottom up, and their extent."""

    wraps: ClassVar[bool] = False
    """Whether the right end continues at the left one."""

    def seen(self, x: Float[Array, "latent"]) -> tuple[float, float]:
        """The position of one latent point in the view."""
        across, up = self.all_seen(x[None])[0]
        return float(across), float(up)

    def pose_at(self, point: tuple[float, float], start: Float[Array, "size"]) -> Float[Array, "size"]:
        """The style's pose at a place, with the start's heading and lowest joint."""
        x, space, q = self.latent(point), self.prior.space, start.copy()
        q[ROOT_SIZE:] = self.prior.pose_at(x)
        up_now = rotations.matrix_from_quaternion(start[3:ROOT_SIZE])[1]
        lean = rotations.quaternion_between(self.prior.up_at(x), up_now)
        q[3:ROOT_SIZE] = rotations.multiply(start[3:ROOT_SIZE], lean)
        q[1] += space.forward(start)[0][:, 1].min() - space.forward(q)[0][:, 1].min()
        return q

    def map(self, model: str) -> messages.LatentMap:
        """Everything that the page draws."""
        values, extent = self.likelihoods()
        active = np.zeros(len(self._points))
        active[self.prior.active] = 1
        height, width = values.shape
        return messages.LatentMap(
            model=model, width=width, height=height, extent=extent, values=packed(values),
            points=packed(self._points), active=packed(active, "u1"), cylinder=self.wraps,
        )  # fmt: skip

    @cached_property
    def _points(self) -> Float[Array, "points 2"]:
        return self.all_seen(self.prior.latents)


@dataclass(frozen=True, eq=False)
class PlaneView(LatentView):
    """A plane through the latent space; a place has the depth of the nearby training points."""

    plane: LatentPlane

    def all_seen(self, x: Float[Array, "n latent"]) -> Float[Array, "n 2"]:
        """Projected to the plane."""
        return self.plane.split(x)[0]

    def latent(self, point: tuple[float, float]) -> Float[Array, "latent"]:
        """At the depth of the nearby training points."""
        depths = self.plane.split(self.prior.latents)[1]
        gaps = np.linalg.norm(self._points - np.array(point), axis=1)
        shares = np.exp((gaps.min() - gaps) / max(self._spacing, 1e-9))
        depth = shares @ depths / shares.sum()
        return self.plane.joined(np.array([point]), depth[None])[0]

    def likelihoods(self) -> tuple[Float[Array, "rows columns"], Extent]:
        """As the pictures of latent spaces show it."""
        return mapped(self.prior, self.plane)

    @cached_property
    def _spacing(self) -> float:
        """The typical distance of a training point from its nearest neighbour."""
        gaps = np.linalg.norm(self._points[:, None] - self._points[None], axis=2)
        np.fill_diagonal(gaps, np.inf)
        return float(np.median(gaps.min(axis=1)))


@dataclass(frozen=True, eq=False)
class CylinderView(LatentView):
    """A cylinder unrolled: the angle around the ring from left to right, the third dimension upwards."""

    ring: Ring
    along: int

    wraps: ClassVar[bool] = True

    def all_seen(self, x: Float[Array, "n latent"]) -> Float[Array, "n 2"]:
        """Brought onto the cylinder."""
        return np.column_stack([self.ring.phase_of(x[:, self.ring.dimensions]) - np.pi, x[:, self.along]])

    def latent(self, point: tuple[float, float]) -> Float[Array, "latent"]:
        """On the cylinder."""
        return self._rolled(np.array([point]))[0]

    def likelihoods(self) -> tuple[Float[Array, "rows columns"], Extent]:
        """All the way around, and somewhat beyond the training points upwards and downwards."""
        heights = self.prior.latents[:, self.along]
        room = MARGIN * float(np.ptp(heights)) + 1e-6
        extent = (-np.pi, np.pi, float(heights.min()) - room, float(heights.max()) + room)
        columns, rows = GRID
        across, up = np.meshgrid(np.linspace(*extent[:2], columns), np.linspace(*extent[2:], rows))
        places = self._rolled(np.column_stack([across.ravel(), up.ravel()]))
        return self.prior.likelihood_map(places).reshape(rows, columns), extent

    def _rolled(self, points: Float[Array, "n 2"]) -> Float[Array, "n latent"]:
        x = np.zeros((len(points), self.prior.latents.shape[1]))
        x[:, self.ring.dimensions] = self.ring.at(points[:, 0] + np.pi)
        x[:, self.along] = points[:, 1]
        return x


def view_of(prior: LatentPoses) -> LatentView:
    """The view of a style's latent space that suits it."""
    unrolled = getattr(prior, "unrolled", None)
    if unrolled is not None:
        return CylinderView(prior, *unrolled)
    return PlaneView(prior, LatentPlane.of(prior.latents))
