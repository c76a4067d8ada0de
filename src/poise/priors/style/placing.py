"""Placing poses in the latent space: L_IK minimised over x, for many poses at once (Eqs. 3, 17 to 19)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.priors.style.objective import PoseLoss

Array = np.ndarray

BLOCK = 1024  # poses placed at once, which bounds memory
STARTS = 3  # active poses from which the place of a new pose is searched

_FIRST_DAMPING = 1e-2
_LARGEST_DAMPING = 1e4  # beyond which a pose is taken to lie where it is
_ENOUGH = 1e-4  # nats: a pose that gains less has found its place


def place(
    loss: PoseLoss,
    centred: Float[Array, "poses features"],
    start: Float[Array, "poses latent"],
    *,
    iterations: int = 15,
) -> tuple[Float[Array, "poses latent"], Float[Array, "poses"]]:
    """Where poses lie, searched from a start each by damped Gauss-Newton steps, and L_IK there."""
    placed, values = start.copy(), np.empty(len(start))
    for first in range(0, len(start), BLOCK):
        block = slice(first, first + BLOCK)
        placed[block], values[block] = _place_block(loss, centred[block], start[block], iterations)
    return placed, values


def place_new(
    loss: PoseLoss, centred: Float[Array, "poses features"], *, iterations: int = 25
) -> tuple[Float[Array, "poses latent"], Float[Array, "poses"]]:
    """Where poses never seen lie: the best of searches from the active poses most like each."""
    placed = np.zeros((len(centred), loss.latents.shape[1]))
    values = np.full(len(centred), np.inf)
    for start in _nearest(loss, centred):
        found, value = place(loss, centred, start, iterations=iterations)
        better = value < values
        placed[better], values[better] = found[better], value[better]
    return placed, values


def log_evidence(
    loss: PoseLoss, centred: Float[Array, "poses features"], placed: Float[Array, "poses latent"]
) -> Float[Array, "poses"]:
    """ln p(y) of each pose, its x integrated out around where it lies (Laplace's approximation)."""
    value, _, hessian = loss.shape(placed, centred)
    constants = np.log(loss.scales).sum() - 0.5 * centred.shape[1] * np.log(2.0 * np.pi)
    return constants - value - 0.5 * np.linalg.slogdet(hessian)[1]


def _nearest(loss: PoseLoss, centred: Float[Array, "poses features"]) -> list[Float[Array, "poses latent"]]:
    """Per pose, x of the active poses nearest in scaled features: the nearest of all, then the next.

    Active poses are taken as they are expected: inducing frames stand for others and may be told quite other outputs.
    """
    count = min(STARTS, len(loss.latents))
    expected = loss.kernel.matrix(loss.latents, loss.latents) @ loss.scaled_weights
    gaps = np.square(expected).sum(axis=1) - 2.0 * (centred * loss.scales) @ expected.T
    order = np.argsort(gaps, axis=1)[:, :count]
    return [loss.latents[order[:, rank]] for rank in range(count)]


def _place_block(
    loss: PoseLoss, centred: Float[Array, "n features"], start: Float[Array, "n latent"], iterations: int
) -> tuple[Float[Array, "n latent"], Float[Array, "n"]]:
    x = start.copy()
    value, gradient, hessian = loss.shape(x, centred)
    damping = np.full(len(x), _FIRST_DAMPING)
    going = np.arange(len(x))
    for _ in range(iterations):
        trial = x[going] - _damped_step(gradient[going], hessian[going], damping[going])
        new_value, new_gradient, new_hessian = loss.shape(trial, centred[going])
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
