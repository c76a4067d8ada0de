"""A mixture of Gaussians on principal components, by EM: the comparison of Fig. 2 of Grochow et al. (2004).

(Bishop 1995; Redner and Walker 1984.) Its density is less smooth than the style's; it is not a prior for solving.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from poise.errors import InvalidValueError
from poise.gp.latent import principal_latents
from poise.types import Array

STEPS = 200
FLOOR = 1e-4  # of the components' unit variance, added to every covariance, so that no Gaussian collapses
ENOUGH = 1e-6  # nats per pose: EM stops when it gains less


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians over principal components, with the components of the training poses."""

    means: Float[Array, "gaussians latent"]
    covariances: Float[Array, "gaussians latent latent"]
    shares: Float[Array, "gaussians"]
    points: Float[Array, "poses latent"]
    learning_curve: Float[Array, "steps"]

    @classmethod
    def fit(
        cls, y: Float[Array, "poses features"], *, gaussians: int = 10, dimensions: int = 2, seed: int = 0
    ) -> Mixture:
        """Reduce poses by PCA to components of unit variance, and fit Gaussians to them by EM."""
        if not 1 <= gaussians <= len(y):
            raise InvalidValueError(f"{len(y)} poses allow 1 to {len(y)} Gaussians; got {gaussians}")
        points, rng = principal_latents(y - y.mean(axis=0), dimensions), np.random.default_rng(seed)
        chosen = [int(rng.integers(len(points)))]  # poses far apart, as in k-means++
        while len(chosen) < gaussians:
            squared = np.square(points[:, None] - points[chosen]).sum(axis=2).min(axis=1) + 1e-12
            chosen.append(int(rng.choice(len(points), p=squared / squared.sum())))
        means, shares = points[chosen], np.full(gaussians, 1.0 / gaussians)
        floor = np.eye(points.shape[1])
        covariances = np.tile(floor * max(1.0 / gaussians, FLOOR), (gaussians, 1, 1))
        curve: list[float] = []
        for _ in range(STEPS):
            terms = _terms(points, means, covariances, shares)
            total = logsumexp(terms, axis=1)
            curve.append(float(total.mean()))
            belongs = np.exp(terms - total[:, None])
            weights = belongs.sum(axis=0) + 1e-12
            means = belongs.T @ points / weights[:, None]
            gaps = points[:, None] - means
            covariances = np.einsum("nk,nka,nkb->kab", belongs, gaps, gaps) / weights[:, None, None]
            covariances, shares = covariances + FLOOR * floor, weights / weights.sum()
            if len(curve) > 1 and curve[-1] - curve[-2] < ENOUGH:
                break
        return cls(means, covariances, shares, points=points, learning_curve=np.array(curve))

    def log_likelihood(self, x: Float[Array, "points latent"]) -> Float[Array, "points"]:
        """The log density at points in the space of principal components."""
        return np.asarray(logsumexp(_terms(x, self.means, self.covariances, self.shares), axis=1))


def _terms(
    x: Float[Array, "points latent"],
    means: Float[Array, "k latent"],
    covariances: Float[Array, "k latent latent"],
    shares: Float[Array, "k"],
) -> Float[Array, "points k"]:
    """The log of each Gaussian's term in the density at each point."""
    terms = np.empty((len(x), len(means)))
    for number, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        factor = np.linalg.cholesky(covariance)
        whitened = solve_triangular(factor, (x - mean).T, lower=True)
        terms[:, number] = -0.5 * np.square(whitened).sum(axis=0) - np.log(np.diag(factor)).sum()
    return terms + np.log(shares) - 0.5 * x.shape[1] * np.log(2.0 * np.pi)
