"""What the poses of a style say about any place of its latent space, summed up at the active ones.

Prediction and variance are f(x) = k(x)' weights and k(x, x) - k(x)' inverse k(x), k(x) against the active poses alone.
In the paper only the active poses speak (Eqs. 4 to 6). All poses can, at no cost to a solve: given their values at
the active places, the others are taken to be independent (the projected process of Seeger, Williams and Lawrence 2003).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from poise.priors.style.covariance import JITTER, Kernel

Array = np.ndarray

ALL, ACTIVE = "all", "active"
SPEAKERS = (ALL, ACTIVE)
_BLOCK = 4096  # poses taken in at once, which bounds memory


class Posterior(NamedTuple):
    """A Gaussian process given poses, seen from the active ones."""

    inverse: Float[Array, "active active"]
    weights: Float[Array, "active features"]


def of_active(
    kernel: Kernel, actives: Float[Array, "active latent"], outputs: Float[Array, "active features"]
) -> Posterior:
    """Given the active poses only (Eqs. 4 to 6)."""
    K = kernel.noisy(actives)
    inverse = cho_solve(cho_factor(K, lower=True), np.eye(len(K)))
    return Posterior(_symmetric(inverse), inverse @ outputs)


def of_all(
    kernel: Kernel,
    actives: Float[Array, "active latent"],
    latents: Float[Array, "poses latent"],
    outputs: Float[Array, "poses features"],
) -> Posterior:
    """Given all poses, through the active ones: inverse = K^-1 - Q, weights = Q k(poses)' outputs / noise.

    K is the active poses' kernel matrix without noise, Q^-1 = K + k k' / noise.
    """
    count = len(actives)
    K = kernel.matrix(actives, actives) + JITTER * kernel.signal_variance * np.eye(count)
    lower = cholesky(K, lower=True)
    seen, said = np.eye(count), np.zeros((count, outputs.shape[1]))
    for first in range(0, len(latents), _BLOCK):
        block = slice(first, first + _BLOCK)
        whitened = solve_triangular(lower, kernel.matrix(actives, latents[block]), lower=True)
        seen += whitened @ whitened.T / kernel.noise_variance
        said += whitened @ outputs[block] / kernel.noise_variance
    left = cho_solve(cho_factor(seen, lower=True), np.column_stack([np.eye(count), said]))
    roots = solve_triangular(lower, np.eye(count), lower=True)
    inverse = roots.T @ (np.eye(count) - left[:, :count]) @ roots
    return Posterior(_symmetric(inverse), roots.T @ left[:, count:])


def _symmetric(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    return np.asarray(0.5 * (matrix + matrix.T))
