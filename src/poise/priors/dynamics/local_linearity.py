"""The locally linear prior: each latent coordinate is predicted from its neighbours (Urtasun et al. 2008, Eqs. 4, 5).

The weights follow from squared distances alone (Roweis and Saul 2000, kernelised): the Gram matrix of frame i's
neighbours, relative to i, is C_jk = (D_ij + D_ik - D_jk) / 2. Each latent dimension may have its own distances,
neighbours and weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.sparse.linalg import spsolve

from poise.errors import InvalidValueError
from poise.types import Array

NEIGHBOURS = 8
REGULARISED = 1e-2  # of the trace of C, added to its diagonal: there may be more neighbours than dimensions
LEAST_TRACE = 1e-3  # smallest trace of C in the regularisation: nearly coincident frames share weights
LEAST_DEVIATION = (
    0.1  # of the latent space's unit: smallest deviation, so that an axis does not shrink to nothing
)


@dataclass(frozen=True, eq=False)
class LocalWeights:
    """The neighbours of each frame and their weights, which sum to one."""

    neighbours: Int[Array, "frames near"]
    weights: Float[Array, "frames near"]

    def left_over(self, coordinate: Float[Array, "frames"]) -> Float[Array, "frames"]:
        """x_i minus the prediction from its neighbours."""
        return coordinate - np.einsum("nk,nk->n", self.weights, coordinate[self.neighbours])

    def smoothed(self, coordinate: Float[Array, "frames"], strength: float) -> Float[Array, "frames"]:
        """Smooth a coordinate: trade off closeness to it and, weighted by `strength`, agreement with neighbours."""
        count = len(coordinate)
        left = sparse.eye_array(count, format="csr") - sparse.csr_array(
            (
                self.weights.ravel(),
                (np.repeat(np.arange(count), self.weights.shape[1]), self.neighbours.ravel()),
            ),
            shape=(count, count),
        )
        system = sparse.eye_array(count) + strength * (left.T @ left)
        return np.asarray(spsolve(system.tocsc(), coordinate))

    def spread_back(self, in_left: Float[Array, "frames"]) -> Float[Array, "frames"]:
        """The gradient by the coordinate, from that by the residual."""
        out = in_left.copy()
        np.add.at(out, self.neighbours.ravel(), (-self.weights * in_left[:, None]).ravel())
        return out


def local_weights(
    squared: Float[Array, "frames frames"],
    *,
    neighbours: int = NEIGHBOURS,
    across: Bool[Array, "frames frames"] | None = None,
) -> LocalWeights:
    """The nearest neighbours of each frame and the weights that reconstruct it from them (Eq. 4).

    Of the frames marked in `across`, which lead into another activity, up to half of the neighbours are taken.
    """
    count = len(squared)
    near = min(neighbours, count - 1)
    if near < 1:
        raise InvalidValueError("a locally linear prior needs at least two frames")
    chosen = _nearest(squared, near, across)
    to_each = np.take_along_axis(squared, chosen, axis=1)
    between = squared[chosen[:, :, None], chosen[:, None, :]]
    gram = 0.5 * (to_each[:, :, None] + to_each[:, None, :] - between)
    trace = np.einsum("nkk->n", gram)
    np.einsum("nkk->nk", gram)[:] += REGULARISED * np.maximum(trace, LEAST_TRACE)[:, None]
    weights = np.linalg.solve(gram, np.ones((count, near, 1)))[:, :, 0]
    return LocalWeights(chosen, weights / weights.sum(axis=1, keepdims=True))


def _nearest(
    squared: Float[Array, "frames frames"], near: int, across: Bool[Array, "frames frames"] | None
) -> Int[Array, "frames {near}"]:
    apart = squared.copy()
    np.fill_diagonal(apart, np.inf)
    if across is not None and near > 1:
        half = near // 2
        leading = np.where(across, apart, np.inf)
        first = np.argpartition(leading, half - 1, axis=1)[:, :half]
        taken = np.isfinite(np.take_along_axis(leading, first, axis=1))
        apart[across & (across.sum(axis=1) > half)[:, None]] = np.inf
        rows = np.repeat(np.arange(len(apart)), half)[taken.ravel()]
        apart[rows, first[taken]] = -1.0
    return np.sort(np.argpartition(apart, near - 1, axis=1)[:, :near], axis=1)


def local_loss(
    local: LocalWeights, coordinate: Float[Array, "frames"]
) -> tuple[float, Float[Array, "frames"]]:
    """-ln p(x | w) of one latent dimension at its maximum-likelihood deviation (Eq. 5), and its gradient."""
    left = local.left_over(coordinate)
    count = len(left)
    variance = float(left @ left) / count + LEAST_DEVIATION**2
    return 0.5 * count * np.log(variance), local.spread_back(left / variance)
