"""A Gaussian process on inducing points, for many frames: Titsias' bound (2009) with a hand-written reverse pass.

The covariance of the data is Q + noise, Q = K_nm K_mm^-1 K_mn; the bound adds what Q leaves out of the variance, so
that inducing points never pay for explaining noise. All goes through the root of K_mm: products with its inverse would
drown small gains in rounding where inducing points lie close. Time goes with frames times the square of the inducing
points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.linalg import cholesky, solve_triangular

from poise.priors.style.covariance import JITTER, Kernel
from poise.priors.style.objective import inverse_of

Array = np.ndarray
Scaling = Literal["none", "one", "each"]


@dataclass(frozen=True, eq=False)
class SparseLoss:
    """The bound on -ln p of outputs, and its gradients."""

    value: float
    in_logs: Float[Array, "3"]
    in_inputs: Float[Array, "frames inputs"]
    in_inducing: Float[Array, "inducing inputs"]
    in_outputs: Float[Array, "frames outputs"]
    scales: Float[Array, "outputs"]
    weights: Float[Array, "inducing outputs"]  # the mean at x is k(x, inducing) weights


def sparse_loss(
    outputs: Float[Array, "frames outputs"],
    inputs: Float[Array, "frames inputs"],
    inducing: Float[Array, "inducing inputs"],
    kernel: Kernel,
    *,
    scaling: Scaling,
) -> SparseLoss:
    """The bound with an RBF kernel; outputs are as they are, or at the scales that make them most likely."""
    count, size = outputs.shape
    noise, alpha = kernel.noise_variance, kernel.signal_variance
    Knm, Kmm = kernel.matrix(inputs, inducing), kernel.matrix(inducing, inducing)
    np.einsum("ii->i", Kmm)[:] += JITTER * alpha
    L = cholesky(Kmm, lower=True)
    A = solve_triangular(L, Knm.T, lower=True)  # so that Q = A' A
    AA = A @ A.T
    B, log_determinant = inverse_of(AA + noise * np.eye(len(AA)))  # inverted
    weights = solve_triangular(L, B @ (A @ outputs), lower=True, trans="T")
    solved = (outputs - Knm @ weights) / noise
    squares = np.einsum("nk,nk->k", outputs, solved)
    scales = _best_scales(squares, count, scaling)
    P, S = weights * scales, solved * scales
    missed, fit = count * alpha - float(np.trace(AA)), float(scales**2 @ squares)
    value = (
        0.5 * size * ((count - len(AA)) * np.log(noise) + log_determinant)
        + 0.5 * fit
        + 0.5 * size * missed / noise
        - count * float(np.log(scales).sum())
    )
    unit = np.eye(len(AA))
    dKnm = size * solve_triangular(L, (B - unit / noise) @ A, lower=True, trans="T").T - S @ P.T
    dKmm = 0.5 * size * _both_sides(L, noise * B - unit + AA / noise) + 0.5 * P @ P.T
    in_noise = (
        0.5 * size * ((count - len(AA)) / noise + float(np.trace(B)))
        + 0.5 / noise * float(np.vdot(P, Kmm @ P))
        - 0.5 * fit / noise
        - 0.5 * size * missed / noise**2
    )
    logs, in_inputs, in_inducing = _through_kernel(kernel, inputs, inducing, Knm, dKnm)
    own, first, second = _through_kernel(kernel, inducing, inducing, Kmm, dKmm)
    in_logs = logs + own + np.array([0.5 * size * count * alpha / noise, -noise * in_noise, 0.0])
    return SparseLoss(
        float(value), in_logs, in_inputs, in_inducing + first + second, S * scales, scales, weights
    )


def _best_scales(squares: Float[Array, "outputs"], count: int, scaling: Scaling) -> Float[Array, "outputs"]:
    """None, one for all outputs, or one for each, where y' (Q + noise)^-1 y is the number of frames."""
    if scaling == "each":
        return np.sqrt(count / squares)
    return np.full(len(squares), np.sqrt(count / squares.mean()) if scaling == "one" else 1.0)


def _through_kernel(
    kernel: Kernel, a: Float[Array, "n inputs"], b: Float[Array, "m inputs"], K: Array, dK: Array
) -> tuple[Float[Array, "3"], Float[Array, "n inputs"], Float[Array, "m inputs"]]:
    """Gradients in the RBF kernel's logarithms and in both sets of points, from those in a kernel matrix."""
    gamma = kernel.parameters[2]
    weighed = dK * K
    in_a = -gamma * (weighed.sum(axis=1)[:, None] * a - weighed @ b)
    in_b = -gamma * (weighed.sum(axis=0)[:, None] * b - weighed.T @ a)
    in_width = 0.5 * (float(np.vdot(a, in_a)) + float(np.vdot(b, in_b)))
    return np.array([weighed.sum(), 0.0, in_width]), in_a, in_b


def _both_sides(L: Float[Array, "n n"], inner: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """L'^-1 inner L^-1."""
    half = solve_triangular(L, inner, lower=True, trans="T")
    return np.asarray(solve_triangular(L, half.T, lower=True, trans="T"))
