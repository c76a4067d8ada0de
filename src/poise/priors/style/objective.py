"""What learning minimises: L_GP over all unknowns (Eq. 2) and L_IK over the x of poses (Eq. 3), with gradients.

Features come centred (their mean subtracted). L_GP is the negative log-posterior, so dL/dK here is minus a half of what
the paper prints in Eq. 15. Kernel parameters and scales are taken in logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack

from poise.priors.style.covariance import Kernel, KernelMatrix
from poise.priors.style.posterior import Posterior

Array = np.ndarray

VARIANCE_FLOOR = 1e-3  # of the noise, below which rounding must not bring a predicted variance


@dataclass(frozen=True, eq=False)
class TrainingLoss:
    """L_GP and its gradients."""

    value: float
    in_latents: Float[Array, "poses latent"]
    in_logs: Float[Array, "parameters"]
    in_log_scales: Float[Array, "features"]


def training_loss(
    centred: Float[Array, "poses features"],
    latents: Float[Array, "poses latent"],
    *,
    kernel: Kernel,
    scales: Float[Array, "features"],
) -> TrainingLoss:
    """L_GP (Eq. 2) with its gradients (Eqs. 15, 20 to 23)."""
    covariance = kernel.at(latents)
    inverse, log_determinant = inverse_of(covariance.K)
    return _training_loss(centred, covariance, scales, (inverse, log_determinant, inverse @ centred))


def profiled_loss(
    centred: Float[Array, "poses features"], latents: Float[Array, "poses latent"], kernel: Kernel
) -> tuple[TrainingLoss, Float[Array, "features"]]:
    """L_GP at the scales that minimise it for this kernel matrix, and those scales.

    The gradient in everything else is the partial one, since the gradient in the scales is zero there.
    """
    covariance = kernel.at(latents)
    inverse, log_determinant = inverse_of(covariance.K)
    solved = inverse @ centred
    scales = best_scales(centred, solved)
    return _training_loss(centred, covariance, scales, (inverse, log_determinant, solved)), scales


def best_scales(
    centred: Float[Array, "poses features"], solved: Float[Array, "poses features"]
) -> Float[Array, "features"]:
    """w_k = sqrt(N / Y_k' K^-1 Y_k), where L_GP is least (appendix B); `solved` is K^-1 Y."""
    return np.sqrt(len(centred) / np.einsum("nk,nk->k", centred, solved))


def inverse_of(K: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], float]:
    """The inverse of a positive definite matrix and the logarithm of its determinant."""
    factor, failed = lapack.dpotrf(K.T, lower=1, clean=1)
    if failed:
        raise np.linalg.LinAlgError("the kernel matrix is not positive definite")
    log_determinant = 2.0 * float(np.log(np.diag(factor)).sum())
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    diagonal = np.diag(inverse).copy()
    inverse += inverse.T
    np.einsum("ii->i", inverse)[:] = diagonal
    return inverse, log_determinant


def _training_loss(
    centred: Float[Array, "poses features"],
    covariance: KernelMatrix,
    scales: Float[Array, "features"],
    factors: tuple[Float[Array, "poses poses"], float, Float[Array, "poses features"]],
) -> TrainingLoss:
    inverse, log_determinant, solved = factors
    kernel, latents = covariance.kernel, covariance.x
    count, dimension = centred.shape
    fits = scales**2 * np.einsum("nk,nk->k", centred, solved)
    value = (
        0.5 * dimension * log_determinant
        + 0.5 * fits.sum()
        + 0.5 * np.vdot(latents, latents)
        + kernel.logs.sum()  # ln(alpha beta gamma): p(alpha, beta, gamma) is flat in the logarithms' exponentials
        - count * np.log(scales).sum()
    )
    scaled = solved * scales
    dK = inverse  # its last use: overwritten
    dK *= 0.5 * dimension
    dK -= (0.5 * scaled) @ scaled.T
    in_logs, in_latents = covariance.gradients(dK)
    return TrainingLoss(float(value), in_latents + latents, in_logs + 1.0, fits - count)


@dataclass(frozen=True, eq=False)
class PoseLoss:
    """L_IK(x, y) of many poses at once, given the active set (Eqs. 3 to 6) or a posterior of more poses."""

    kernel: Kernel
    latents: Float[Array, "active latent"]
    outputs: Float[Array, "active features"]
    scales: Float[Array, "features"]
    posterior: Posterior | None = None

    @cached_property
    def inverse(self) -> Float[Array, "active active"]:
        """The inverse of the active set's kernel matrix, or what the posterior has in its place."""
        if self.posterior is not None:
            return self.posterior.inverse
        return inverse_of(self.kernel.noisy(self.latents))[0]

    @cached_property
    def scaled_weights(self) -> Float[Array, "active features"]:
        """W f(x) = k(x) scaled_weights, the mean left out."""
        if self.posterior is not None:
            return self.posterior.weights * self.scales
        return self.inverse @ (self.outputs * self.scales)

    @cached_property
    def gram(self) -> Float[Array, "active active"]:
        """Inner products of the scaled weights."""
        return self.scaled_weights @ self.scaled_weights.T

    def value(
        self, x: Float[Array, "poses latent"], centred: Float[Array, "poses features"]
    ) -> Float[Array, "poses"]:
        """L_IK of each pose at its x (Eq. 3)."""
        return self._value(x, *self.misfit(x, centred))

    def misfit(
        self, x: Float[Array, "poses latent"], centred: Float[Array, "poses features"]
    ) -> tuple[Float[Array, "poses features"], Float[Array, "poses"]]:
        """W (y - f(x)) and sigma^2(x) of each pose (Eqs. 4, 5)."""
        k = self.kernel.matrix(x, self.latents)
        return centred * self.scales - k @ self.scaled_weights, self._variance(x, k, k @ self.inverse)

    def shape(
        self, x: Float[Array, "poses latent"], centred: Float[Array, "poses features"]
    ) -> tuple[Float[Array, "poses"], Float[Array, "poses latent"], Float[Array, "poses latent latent"]]:
        """L_IK, its gradient in x (Eqs. 17 to 19) and the Gauss-Newton (Fisher) approximation of its Hessian."""
        k, dk = self.kernel.slopes_in_x(x, self.latents)
        gaps = centred * self.scales - k @ self.scaled_weights
        solved = k @ self.inverse
        variance = self._variance(x, k, solved)
        d_variance = self.kernel.diagonal_slopes(x) - 2.0 * np.einsum("nma,nm->na", dk, solved)
        d_fit = -np.einsum("nma,nm->na", dk, gaps @ self.scaled_weights.T)
        dimension = centred.shape[1]
        surplus = dimension - np.einsum("nk,nk->n", gaps, gaps) / variance
        gradient = x + (d_fit + 0.5 * surplus[:, None] * d_variance) / variance[:, None]
        turned = np.matmul(dk.transpose(0, 2, 1), self.gram)
        hessian = np.matmul(turned, dk) / variance[:, None, None] + np.eye(x.shape[1])
        relative = d_variance / variance[:, None]
        hessian += 0.5 * dimension * relative[:, :, None] * relative[:, None, :]
        return self._value(x, gaps, variance), gradient, hessian

    def _variance(
        self,
        x: Float[Array, "poses latent"],
        k: Float[Array, "poses active"],
        solved: Float[Array, "poses active"],
    ) -> Float[Array, "poses"]:
        left = self.kernel.diagonal(x) - np.einsum("nm,nm->n", k, solved)
        return np.maximum(left, VARIANCE_FLOOR * self.kernel.noise_variance)

    def _value(
        self,
        x: Float[Array, "poses latent"],
        gaps: Float[Array, "poses features"],
        variance: Float[Array, "poses"],
    ) -> Float[Array, "poses"]:
        fit = np.einsum("nk,nk->n", gaps, gaps) / variance
        return 0.5 * (fit + gaps.shape[1] * np.log(variance) + np.einsum("na,na->n", x, x))
