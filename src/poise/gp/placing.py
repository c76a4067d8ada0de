"""Place outputs in a latent space: find the input x ~ N(0, I) of a process for each output.

The loss over x is the L_IK of Grochow et al. (2004, Eq. 3), for many outputs y at once:

    L(x, y) = |W (y - f(x))|^2 / (2 sigma^2(x)) + D/2 ln sigma^2(x) + |x|^2 / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.gp.exact import Posterior
from poise.types import Array

BLOCK = 1024  # outputs placed at once, to limit memory
STARTS = 3  # inputs from which a search starts

_FIRST_DAMPING = 1e-2
_LARGEST_DAMPING = 1e4  # beyond this the search ends
_ENOUGH = 1e-4  # nats: outputs that gain less have converged


@dataclass(frozen=True, eq=False)
class PlacingLoss:
    """L(x, y) under a process, at the scales W of its outputs."""

    process: Posterior
    scales: Float[Array, "outputs"]

    @cached_property
    def weights(self) -> Float[Array, "m outputs"]:
        """W f(x) = k(x) weights."""
        return self.process.weights * self.scales

    @cached_property
    def gram(self) -> Float[Array, "m m"]:
        """Inner products of the weights."""
        return self.weights @ self.weights.T

    def value(self, x: Float[Array, "n latent"], y: Float[Array, "n outputs"]) -> Float[Array, "n"]:
        """L of each output at its x (Eq. 3)."""
        return self._value(x, *self.misfit(x, y))

    def misfit(
        self, x: Float[Array, "n latent"], y: Float[Array, "n outputs"]
    ) -> tuple[Float[Array, "n outputs"], Float[Array, "n"]]:
        """W (y - f(x)) and sigma^2(x) of each (Eqs. 4, 5)."""
        mean, variances = self.process.predict(x)
        return (y - mean) * self.scales, variances

    def shape(
        self, x: Float[Array, "n latent"], y: Float[Array, "n outputs"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n latent"], Float[Array, "n latent latent"]]:
        """L, its gradient by x (Eqs. 17 to 19) and the Gauss-Newton (Fisher) approximation of its Hessian."""
        process, dimension = self.process, y.shape[1]
        k, dk = process.kernel.slopes_in_x(x, process.inputs)
        gaps = y * self.scales - k @ self.weights
        variance, d_variance = process.variance_slopes(x, k, dk)
        d_fit = -np.einsum("nma,nm->na", dk, gaps @ self.weights.T)
        surplus = dimension - np.einsum("nk,nk->n", gaps, gaps) / variance
        gradient = x + (d_fit + 0.5 * surplus[:, None] * d_variance) / variance[:, None]
        turned = np.matmul(dk.transpose(0, 2, 1), self.gram)
        hessian = np.matmul(turned, dk) / variance[:, None, None] + np.eye(x.shape[1])
        relative = d_variance / variance[:, None]
        hessian += 0.5 * dimension * relative[:, :, None] * relative[:, None, :]
        return self._value(x, gaps, variance), gradient, hessian

    def _value(
        self, x: Float[Array, "n latent"], gaps: Float[Array, "n outputs"], variance: Float[Array, "n"]
    ) -> Float[Array, "n"]:
        fit = np.einsum("nk,nk->n", gaps, gaps) / variance
        return 0.5 * (fit + gaps.shape[1] * np.log(variance) + np.einsum("na,na->n", x, x))


def place(
    loss: PlacingLoss,
    y: Float[Array, "n outputs"],
    start: Float[Array, "n latent"],
    *,
    iterations: int = 15,
) -> tuple[Float[Array, "n latent"], Float[Array, "n"]]:
    """Latent points of outputs, by damped Gauss-Newton steps from a start each, and L there."""
    placed, values = start.copy(), np.empty(len(start))
    for first in range(0, len(start), BLOCK):
        block = slice(first, first + BLOCK)
        placed[block], values[block] = _place_block(loss, y[block], start[block], iterations)
    return placed, values


def place_new(
    loss: PlacingLoss, y: Float[Array, "n outputs"], *, iterations: int = 25
) -> tuple[Float[Array, "n latent"], Float[Array, "n"]]:
    """Latent points of new outputs: the best of searches from the inputs whose predicted outputs are most similar."""
    placed = np.zeros((len(y), loss.process.inputs.shape[1]))
    values = np.full(len(y), np.inf)
    for start in _nearest(loss, y):
        found, value = place(loss, y, start, iterations=iterations)
        better = value < values
        placed[better], values[better] = found[better], value[better]
    return placed, values


def log_evidence(
    loss: PlacingLoss, y: Float[Array, "n outputs"], placed: Float[Array, "n latent"]
) -> Float[Array, "n"]:
    """ln p(y) of each output, with x integrated out around its latent point (Laplace's approximation)."""
    value, _, hessian = loss.shape(placed, y)
    constants = np.log(loss.scales).sum() - 0.5 * y.shape[1] * np.log(2.0 * np.pi)
    return constants - value - 0.5 * np.linalg.slogdet(hessian)[1]


def _nearest(loss: PlacingLoss, y: Float[Array, "n outputs"]) -> list[Float[Array, "n latent"]]:
    """Per output, the inputs whose predicted scaled outputs are nearest: the nearest of all, then the next.

    Predictions are compared, not recorded outputs: the outputs of inducing points stand for others.
    """
    inputs = loss.process.inputs
    expected = loss.process.kernel.matrix(inputs, inputs) @ loss.weights
    gaps = np.square(expected).sum(axis=1) - 2.0 * (y * loss.scales) @ expected.T
    order = np.argsort(gaps, axis=1)[:, :STARTS]
    return [inputs[order[:, rank]] for rank in range(order.shape[1])]


def _place_block(
    loss: PlacingLoss, y: Float[Array, "n outputs"], start: Float[Array, "n latent"], iterations: int
) -> tuple[Float[Array, "n latent"], Float[Array, "n"]]:
    x = start.copy()
    value, gradient, hessian = loss.shape(x, y)
    damping = np.full(len(x), _FIRST_DAMPING)
    going = np.arange(len(x))
    for _ in range(iterations):
        trial = x[going] - _damped_step(gradient[going], hessian[going], damping[going])
        new_value, new_gradient, new_hessian = loss.shape(trial, y[going])
        gain = value[going] - new_value
        better = gain > 0
        moved = going[better]
        x[moved], value[moved] = trial[better], new_value[better]
        gradient[moved], hessian[moved] = new_gradient[better], new_hessian[better]
        damping[going] *= np.where(better, 0.2, 8.0)
        going = going[np.where(better, gain > _ENOUGH, damping[going] < _LARGEST_DAMPING)]
        if len(going) == 0:
            break
    return x, value


def _damped_step(
    gradient: Float[Array, "n latent"], hessian: Float[Array, "n latent latent"], damping: Float[Array, "n"]
) -> Float[Array, "n latent"]:
    damped = hessian.copy()
    np.einsum("naa->na", damped)[:] *= 1.0 + damping[:, None]
    return np.linalg.solve(damped, gradient[:, :, None])[:, :, 0]
