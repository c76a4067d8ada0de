"""Gaussian processes with inducing points, for large data: Titsias' bound (2009), and the projected process.

The covariance of the data is Q + noise, Q = K_nm K_mm^-1 K_mn; the bound adds the variance that Q leaves out, so that
inducing points are not used to explain noise. Everything goes through the root of K_mm: products with its inverse
would lose small gains to rounding when inducing points are close. The cost is N times the squared number of inducing
points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from poise.gp.covariance import Kernel, KernelMatrix, NoisyMatrix
from poise.gp.exact import Likelihood, Posterior, Scaling, best_scales, exact_loss, inverse_of
from poise.types import Array

_BLOCK = 4096  # data points per block, to limit memory


@dataclass(frozen=True, eq=False)
class Bound(Likelihood):
    """A bound on -ln p of outputs, with gradients by the inducing points too."""

    in_inducing: Float[Array, "m inputs"]
    weights: Float[Array, "m outputs"]  # the mean at x is k(x, inducing) weights


def sparse_loss(
    outputs: Float[Array, "n outputs"],
    inputs: Float[Array, "n inputs"],
    inducing: Float[Array, "m inputs"],
    kernel: Kernel,
    *,
    scaling: Scaling,
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
    outputs: Float[Array, "n outputs"],
    inputs: Float[Array, "n inputs"],
    kernel: Kernel,
    *,
    scaling: Scaling,
    inducing: Int[Array, "m"] | None,
) -> Likelihood:
    """-ln p of outputs: exact, or the bound with the inputs `inducing` as inducing points."""
    if inducing is None:
        return exact_loss(outputs, inputs, kernel, scales=scaling)
    loss = sparse_loss(outputs, inputs, inputs[inducing], kernel, scaling=scaling)
    np.add.at(loss.in_inputs, inducing, loss.in_inducing)
    return loss


def projected(
    kernel: Kernel,
    inducing: Float[Array, "m inputs"],
    inputs: Float[Array, "n inputs"],
    outputs: Float[Array, "n outputs"],
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


def _both_sides(L: Float[Array, "n n"], inner: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """L'^-1 inner L^-1 for a symmetric `inner`."""
    half = solve_triangular(L, inner, lower=True, trans="T")
    return np.asarray(solve_triangular(L, half.T, lower=True, trans="T"))
