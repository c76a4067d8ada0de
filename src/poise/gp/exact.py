"""Exact Gaussian processes: the likelihood of outputs with its gradients, and predictions given data.

-ln p(Y | X) = D/2 ln |K| + sum_k w_k^2 y_k' K^-1 y_k / 2 - N sum_k ln w_k, up to a constant, for N points of D outputs
at scales w (Rasmussen and Williams 2006, Eq. 5.8; the scales are those of Grochow et al. 2004, Eq. 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack

from poise.gp.covariance import Kernel
from poise.types import Array

Scaling = Literal["none", "one", "each"]

VARIANCE_FLOOR = 1e-3  # of the noise: lower bound of a predicted variance, against rounding


@dataclass(frozen=True, eq=False)
class Likelihood:
    """-ln p of outputs, or a bound on it, and its gradients (partial ones if the scales are optimised)."""

    value: float
    in_logs: Float[Array, "parameters"]
    in_inputs: Float[Array, "n inputs"]
    in_outputs: Float[Array, "n outputs"]
    scales: Float[Array, "outputs"]
    fits: Float[Array, "outputs"]  # w_k^2 y_k' K^-1 y_k: equal to N if the scales are optimal


@dataclass(frozen=True, eq=False)
class Posterior:
    """A process given data: f(x) = k(x)' weights, with variance k(x, x) - k(x)' inverse k(x)."""

    kernel: Kernel
    inputs: Float[Array, "m inputs"]
    inverse: Float[Array, "m m"]
    weights: Float[Array, "m outputs"]

    @classmethod
    def given(
        cls, kernel: Kernel, inputs: Float[Array, "m inputs"], outputs: Float[Array, "m outputs"]
    ) -> Posterior:
        """The posterior given outputs at inputs (Rasmussen and Williams 2006, Eqs. 2.25 and 2.26)."""
        inverse, _ = inverse_of(kernel.noisy(inputs))
        return cls(kernel, inputs, inverse, inverse @ outputs)

    def mean(self, x: Float[Array, "n inputs"]) -> Float[Array, "n outputs"]:
        """f(x)."""
        return np.asarray(self.kernel.matrix(x, self.inputs) @ self.weights)

    def variance(self, x: Float[Array, "n inputs"]) -> Float[Array, "n"]:
        """sigma^2(x), with noise."""
        k = self.kernel.matrix(x, self.inputs)
        return self._variances(x, k, k @ self.inverse)

    def predict(self, x: Float[Array, "n inputs"]) -> tuple[Float[Array, "n outputs"], Float[Array, "n"]]:
        """Means, and variances with noise."""
        k = self.kernel.matrix(x, self.inputs)
        return k @ self.weights, self._variances(x, k, k @ self.inverse)

    def variance_slopes(
        self, x: Float[Array, "n inputs"], k: Float[Array, "n m"], dk: Float[Array, "n m inputs"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n inputs"]]:
        """Variances with noise and their gradients by x, from k(x) and its gradient."""
        solved = k @ self.inverse
        slopes = self.kernel.diagonal_slopes(x) - 2.0 * np.einsum("nma,nm->na", dk, solved)
        return self._variances(x, k, solved), slopes

    def _variances(
        self, x: Float[Array, "n inputs"], k: Float[Array, "n m"], solved: Float[Array, "n m"]
    ) -> Float[Array, "n"]:
        left = self.kernel.diagonal(x) - np.einsum("nm,nm->n", k, solved)
        return np.maximum(left, VARIANCE_FLOOR * self.kernel.noise_variance)


def exact_loss(
    outputs: Float[Array, "n outputs"],
    inputs: Float[Array, "n inputs"],
    kernel: Kernel,
    *,
    scales: Scaling | Float[Array, "outputs"],
) -> Likelihood:
    """-ln p of outputs at given or optimal scales (see `best_scales`), and its gradients (Eq. 5.9)."""
    covariance, (count, size) = kernel.at(inputs), outputs.shape
    dK, log_determinant = inverse_of(covariance.K)
    solved = dK @ outputs
    fits = np.einsum("nk,nk->k", outputs, solved)
    chosen = best_scales(fits, count, scales) if isinstance(scales, str) else scales
    fits *= chosen**2
    value = 0.5 * size * log_determinant + 0.5 * fits.sum() - count * np.log(chosen).sum()
    solved *= chosen
    dK *= 0.5 * size  # dL/dK = (D K^-1 - K^-1 Y W^2 Y' K^-1) / 2, in place
    dK -= (0.5 * solved) @ solved.T
    return Likelihood(float(value), *covariance.in_logs_and_x(dK), solved * chosen, chosen, fits)


def best_scales(fits: Float[Array, "outputs"], count: int, scaling: Scaling) -> Float[Array, "outputs"]:
    """Maximum-likelihood scales, one per output or one for all, given y_k' K^-1 y_k; or ones."""
    if scaling == "each":
        return np.sqrt(count / fits)
    return np.full(len(fits), np.sqrt(count / fits.mean()) if scaling == "one" else 1.0)


def inverse_of(K: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], float]:
    """The inverse of a positive definite matrix by its Cholesky factor, and its log-determinant."""
    factor, failed = lapack.dpotrf(K.T, lower=1, clean=1)
    if failed:
        raise np.linalg.LinAlgError("the kernel matrix is not positive definite")
    log_determinant = 2.0 * float(np.log(np.diag(factor)).sum())
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    diagonal = np.diag(inverse).copy()
    inverse += inverse.T
    np.einsum("ii->i", inverse)[:] = diagonal
    return inverse, log_determinant
