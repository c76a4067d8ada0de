"""A style's latent space as the page sees it: a plane with a likelihood map, training points, and a pose everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.pictures.latent_map import LatentPlane, mapped
from poise.priors.style.prior import StylePrior
from poise.skeleton.kernels import ROOT_SIZE
from poise.studio import messages
from poise.studio.arrays import packed

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class PlaneOfStyle:
    """The plane in which a style is drawn; a place of it stands for the training points' depth near by."""

    prior: StylePrior
    plane: LatentPlane

    def seen(self, x: Float[Array, "latent"]) -> tuple[float, float]:
        """Where a latent point appears."""
        across, up = self.plane.split(x[None])[0][0]
        return float(across), float(up)

    def latent(self, point: tuple[float, float]) -> Float[Array, "latent"]:
        """The latent point that a place of the plane stands for."""
        seen, depths = self._known
        gaps = np.linalg.norm(seen - np.array(point), axis=1)
        shares = np.exp((gaps.min() - gaps) / max(self._spacing, 1e-9))
        depth = shares @ depths / shares.sum()
        return self.plane.joined(np.array([point]), depth[None])[0]

    def pose_at(self, point: tuple[float, float], start: Float[Array, "size"]) -> Float[Array, "size"]:
        """The style's pose of a place, where the start stands: its heading, and its lowest joint as low."""
        x, space, q = self.latent(point), self.prior.space, start.copy()
        q[ROOT_SIZE:] = self.prior.pose_at(x)
        up_now = rotations.matrix_from_quaternion(start[3:ROOT_SIZE])[1]
        q[3:ROOT_SIZE] = rotations.multiply(
            start[3:ROOT_SIZE], rotations.quaternion_between(self.prior.up_at(x), up_now)
        )
        lowest = space.forward(start)[0][:, 1].min() - space.forward(q)[0][:, 1].min()
        q[1] += lowest
        return q

    def map(self, model: str) -> messages.LatentMap:
        """All that the page draws."""
        values, extent = mapped(self.prior.model, self.plane)
        seen, _ = self._known
        active = np.zeros(len(seen))
        active[self.prior.model.active] = 1
        height, width = values.shape
        return messages.LatentMap(
            model=model, width=width, height=height, extent=extent, values=packed(values), points=packed(seen),
            active=packed(active, "u1"), cylinder=False,
        )  # fmt: skip

    @cached_property
    def _known(self) -> tuple[Float[Array, "points 2"], Float[Array, "points depths"]]:
        return self.plane.split(self.prior.model.latents)

    @cached_property
    def _spacing(self) -> float:
        """How far a training point is from its nearest neighbour, typically."""
        seen, _ = self._known
        gaps = np.linalg.norm(seen[:, None] - seen[None], axis=2)
        np.fill_diagonal(gaps, np.inf)
        return float(np.median(gaps.min(axis=1)))


def plane_of(prior: StylePrior) -> PlaneOfStyle:
    """The plane of a style."""
    return PlaneOfStyle(prior, LatentPlane.of(prior.model.latents))
