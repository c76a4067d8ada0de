"""Multi-variate Gaussian IK as published (Huang et al. 2017): learn with `--kind gaussian --method huang2017`.

Poses are clustered by their angles, every cluster has its own covariance plus beta I (section 4.2), one Laplacian
kernel over all targets weights means and covariances alike (Eqs. 8 and 9), and poses are solved by Eq. 17 with the
schedule of section 4.5 (`solvers.published`). Decision 0008 says what our own gaussian models do instead, and why.

Eq. 9's weights may be negative, and its sum is then not a covariance; eigenvalues below beta are raised to beta. The
paper does not say how delta was chosen: here it is the candidate that predicts held-out clusters best. Its lambdas
were set by hand; ours were set on walks of CMU 16, so that all targets are reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from poise.geometry.alignment import closest_root
from poise.gp.covariance import LAPLACIAN
from poise.gp.regression import REACHES, Groups, weighed_squares
from poise.priors.clusters import BETA
from poise.priors.poses import handle_positions
from poise.priors.predicting import PredictingGuide
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.types import Array

if TYPE_CHECKING:
    from poise.priors.gaussian import GaussianPrior


NAME = "huang2017"


@dataclass(frozen=True)
class Balance:
    """The weights of Eq. 10: lambda_1 of the step, and lambda_0, which the residual scales to lambda_2."""

    step: float = 1e-3
    prior: float = 1e-3


class PublishedGuide(PredictingGuide):
    """Eq. 9 for one set of handles."""

    solving = NAME

    def __init__(self, prior: GaussianPrior, handles: Handles) -> None:
        super().__init__(prior.space, handles)
        self.balance = prior.balance
        self._means, self._covariances = prior.means, prior.covariances
        self._points = np.ascontiguousarray(handle_positions(prior.space, prior.means, handles))
        self._inputs = self._points.reshape(len(prior.means), -1)
        self._constant = prior.mean, prior.covariances.mean(axis=0) + np.cov(prior.means.T, bias=True)
        if len(handles):
            self.delta = self._best_delta(prior)
            self._inverse = np.linalg.inv(self._kernel(self._inputs, self._inputs))

    def weights(self, targets: Float[Array, "handles 3"]) -> Float[Array, "clusters"]:
        """k' K^-1 of Eq. 9; elements may be negative."""
        return np.asarray(self._kernel(targets.reshape(1, -1), self._inputs)[0] @ self._inverse)

    def covariance(self, targets: Float[Array, "handles 3"]) -> Float[Array, "maps maps"]:
        """Sigma* of Eq. 9 unchanged; it need not be positive definite."""
        return np.einsum("k,kij->ij", self.weights(targets), self._covariances)

    def __call__(
        self, targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of Eq. 9, with eigenvalues of at least beta."""
        if targets.size == 0:
            return self._constant
        values, vectors = np.linalg.eigh(self.covariance(targets))
        return self.weights(targets) @ self._means, (vectors * np.maximum(values, BETA)) @ vectors.T

    def place_root(self, targets: Float[Array, "handles 3"]) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root of the cluster whose handles fit best in a rigid alignment."""
        root = np.empty(ROOT_SIZE)
        closest_root(self._points, np.ascontiguousarray(targets), root, False)
        return root[:3], root[3:]

    def _kernel(self, x: Float[Array, "n columns"], y: Float[Array, "m columns"]) -> Float[Array, "n m"]:
        """Eq. 8."""
        return np.exp(-np.linalg.norm(x[:, None] - y[None], axis=-1) / self.delta)

    def _best_delta(self, prior: GaussianPrior) -> float:
        unit, columns = np.zeros(self._inputs.shape[1], dtype=np.int64), [np.arange(prior.means.shape[1])]
        distances = np.sqrt(weighed_squares(self._inputs, np.ones(len(unit))))
        typical = float(np.median(distances[distances > 0])) if np.any(distances > 0) else 1.0
        apart = prior.blocks if np.any(prior.blocks != prior.blocks[0]) else np.arange(len(prior.blocks))

        def error(delta: float) -> float:
            groups = Groups.of(LAPLACIAN, unit, columns, weights=np.full((1, 1), delta**-2), noise=1e-6)
            return float(np.sum(groups.held_out(self._inputs, prior.means, apart) ** 2))

        return min((reach * typical for reach in REACHES), key=error)
