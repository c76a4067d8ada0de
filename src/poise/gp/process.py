"""Gaussian processes given data: exact and sparse likelihoods with gradients, predictions, and L-BFGS.

The exact likelihood is -ln p(Y | X) = D/2 ln |K| + sum_k w_k^2 y_k' K^-1 y_k / 2 - N sum_k ln w_k, up to a constant,
for N points of D outputs at scales w (Rasmussen and Williams 2006, Eq. 5.8; the scales are those of Grochow et al.
2004, Eq. 2).

Large data have inducing points: Titsias' bound (2009), and the projected process. The covariance of the data is Q +
noise, Q = K_nm K_mm^-1 K_mn; the bound adds the variance that Q leaves out, so that inducing points are not used to
explain noise. Everything goes through the root of K_mm: products with its inverse would lose small gains to rounding
when inducing points are close. The cost is N times the squared number of inducing points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_factor, cho_solve, cholesky, lapack, solve_triangular

from poise.gp.covariance import Kernel, KernelMatrix, NoisyMatrix
from poise.types import Array, ShareProgress

Scaling = Literal["none", "one", "each"]
VARIANCE_FLOOR = 1e-3  # of the noise: lower bound of a predicted variance, against rounding
_BLOCK = 4096  # data points per block, to limit memory

Inputs = Float[Array, "n inputs"]
Outputs = Float[Array, "n outputs"]
Scales = Float[Array, "outputs"]
Square = Float[Array, "n n"]

# --- exact ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Likelihood:
    """-ln p of outputs, or a bound on it, and its gradients (partial ones if the scales are optimised)."""

    value: float
    in_logs: Float[Array, "parameters"]
    in_inputs: Inputs
    in_outputs: Outputs
    scales: Scales
    fits: Scales  # w_k^2 y_k' K^-1 y_k: equal to N if the scales are optimal


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

    def mean(self, x: Inputs) -> Outputs:
        """f(x)."""
        return np.asarray(self.kernel.matrix(x, self.inputs) @ self.weights)

    def variance(self, x: Inputs) -> Float[Array, "n"]:
        """sigma^2(x), with noise."""
        k = self.kernel.matrix(x, self.inputs)
        return self._variances(x, k, k @ self.inverse)

    def predict(self, x: Inputs) -> tuple[Outputs, Float[Array, "n"]]:
        """Means, and variances with noise."""
        k = self.kernel.matrix(x, self.inputs)
        return k @ self.weights, self._variances(x, k, k @ self.inverse)

    def variance_slopes(
        self, x: Inputs, k: Float[Array, "n m"], dk: Float[Array, "n m inputs"]
    ) -> tuple[Float[Array, "n"], Inputs]:
        """Variances with noise and their gradients by x, from k(x) and its gradient."""
        solved = k @ self.inverse
        slopes = self.kernel.diagonal_slopes(x) - 2.0 * np.einsum("nma,nm->na", dk, solved)
        return self._variances(x, k, solved), slopes

    def _variances(self, x: Inputs, k: Float[Array, "n m"], solved: Float[Array, "n m"]) -> Float[Array, "n"]:
        left = self.kernel.diagonal(x) - np.einsum("nm,nm->n", k, solved)
        return np.maximum(left, VARIANCE_FLOOR * self.kernel.noise_variance)


def exact_loss(outputs: Outputs, inputs: Inputs, kernel: Kernel, *, scales: Scaling | Scales) -> Likelihood:
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


def best_scales(fits: Scales, count: int, scaling: Scaling) -> Scales:
    """Maximum-likelihood scales, one per output or one for all, given y_k' K^-1 y_k; or ones."""
    if scaling == "each":
        return np.sqrt(count / fits)
    return np.full(len(fits), np.sqrt(count / fits.mean()) if scaling == "one" else 1.0)


def inverse_of(K: Square) -> tuple[Square, float]:
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


# --- sparse -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bound(Likelihood):
    """A bound on -ln p of outputs, with gradients by the inducing points too."""

    in_inducing: Float[Array, "m inputs"]
    weights: Float[Array, "m outputs"]  # the mean at x is k(x, inducing) weights


def sparse_loss(
    outputs: Outputs, inputs: Inputs, inducing: Float[Array, "m inputs"], kernel: Kernel, *, scaling: Scaling
) -> Bound:
    """The bound (Titsias 2009, Eq. 9) under a stationary kernel, with a hand-written reverse pass."""
    count, size = outputs.shape
    noise, alpha = kernel.noise_variance, kernel.signal_variance
    across, among = KernelMatrix(kernel, inputs, inducing), NoisyMatrix(kernel, inducing, noise=False)
    L = cholesky(among.K, lower=True)
    A = solve_triangular(L, across.K.T, lower=True)  # so that Q = A' A
    AA, unit = A @ A.T, np.eye(len(L))
    B, log_determinant = inverse_of(AA + noise * unit)  # inverted
    weights = solve_triangular(L, B @ (A @ outputs), lower=True, trans="T")
    solved = (outputs - across.K @ weights) / noise
    fits = np.einsum("nk,nk->k", outputs, solved)
    scales = best_scales(fits, count, scaling)
    fits *= scales**2
    P, S, missed = weights * scales, solved * scales, count * alpha - float(np.trace(AA))
    value = (
        0.5 * size * ((count - len(AA)) * np.log(noise) + log_determinant)
        + 0.5 * fits.sum()
        + 0.5 * size * missed / noise
        - count * float(np.log(scales).sum())
    )
    dKnm = size * solve_triangular(L, (B - unit / noise) @ A, lower=True, trans="T").T - S @ P.T
    dKmm = 0.5 * size * _both_sides(L, noise * B - unit + AA / noise) + 0.5 * P @ P.T
    in_noise = 0.5 * size * (
        (count - len(AA)) / noise + float(np.trace(B)) - missed / noise**2
    ) + 0.5 / noise * (float(np.vdot(P, among.K @ P)) - fits.sum())
    in_logs, in_inputs, in_inducing = across.gradients(dKnm)
    own, in_own = among.in_logs_and_x(dKmm)
    in_logs += own
    in_logs[:2] += 0.5 * size * count * alpha / noise, -noise * in_noise
    return Bound(float(value), in_logs, in_inputs, S * scales, scales, fits, in_inducing + in_own, weights)


def process_loss(
    outputs: Outputs, inputs: Inputs, kernel: Kernel, *, scaling: Scaling, inducing: Int[Array, "m"] | None
) -> Likelihood:
    """-ln p of outputs: exact, or the bound with the inputs `inducing` as inducing points."""
    if inducing is None:
        return exact_loss(outputs, inputs, kernel, scales=scaling)
    loss = sparse_loss(outputs, inputs, inputs[inducing], kernel, scaling=scaling)
    np.add.at(loss.in_inputs, inducing, loss.in_inducing)
    return loss


def projected(
    kernel: Kernel, inducing: Float[Array, "m inputs"], inputs: Inputs, outputs: Outputs
) -> Posterior:
    """The process given all data, through inducing points (the projected process of Seeger, Williams, Lawrence 2003).

    Given the values there, data are independent: inverse = K_mm^-1 - Q, weights = Q K_mn outputs / noise,
    with Q^-1 = K_mm + K_mn K_nm / noise.
    """
    lower = cholesky(NoisyMatrix(kernel, inducing, noise=False).K, lower=True)
    seen, projected = np.eye(len(lower)), np.zeros((len(lower), outputs.shape[1]))
    for first in range(0, len(inputs), _BLOCK):
        block = slice(first, first + _BLOCK)
        whitened = solve_triangular(lower, kernel.matrix(inducing, inputs[block]), lower=True)
        seen += whitened @ whitened.T / kernel.noise_variance
        projected += whitened @ outputs[block] / kernel.noise_variance
    unit = np.eye(len(lower))
    left = cho_solve(cho_factor(seen, lower=True), np.hstack([unit, projected]))
    inverse = _both_sides(lower, unit - left[:, : len(unit)])
    weights = solve_triangular(lower, left[:, len(unit) :], lower=True, trans="T")
    return Posterior(kernel, inducing, 0.5 * (inverse + inverse.T), weights)


def _both_sides(L: Square, inner: Square) -> Square:
    """L'^-1 inner L^-1 for a symmetric `inner`."""
    half = solve_triangular(L, inner, lower=True, trans="T")
    return np.asarray(solve_triangular(L, half.T, lower=True, trans="T"))


# --- L-BFGS -----------------------------------------------------------------------------------------------------------


def descend(
    loss: Callable[[Array], tuple[float, Array]],
    start: Float[Array, "unknowns"],
    *,
    bounds: Sequence[tuple[float | None, float | None]],
    steps: int,
    memory: int = 20,
    progress: ShareProgress = lambda _: None,
) -> tuple[Float[Array, "unknowns"], Float[Array, "steps"]]:
    """Minimise `loss` (value and gradient) in at most `steps` steps; return the unknowns and the loss per step."""
    from scipy.optimize import minimize  # only now: it takes half a second

    curve: list[float] = []

    def after_step(intermediate_result: object) -> None:
        curve.append(float(intermediate_result.fun))  # type: ignore[attr-defined]
        progress(min(1.0, len(curve) / steps))

    options = {"maxiter": steps, "maxcor": memory}
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=after_step, options=options
    )
    return found.x, np.array(curve or [float(found.fun)])
