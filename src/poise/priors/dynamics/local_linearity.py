"""The locally linear prior: each latent coordinate is what its neighbours say it is (Urtasun et al. 2008, Eqs. 4, 5).

Weights come from squared distances alone (Roweis and Saul 2000, kernelised): the Gram matrix of frame i's neighbours,
seen from i, is C_jk = (D_ij + D_ik - D_jk) / 2. Each latent dimension may have distances, neighbours and weights of
its own.
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
REGULARISED = 1e-2  # of the trace of C, added to its diagonal: neighbours may be more than dimensions
LEAST_TRACE = 1e-3  # of C, as the regularisation sees it: frames that nearly coincide share their weights
LEAST_DEVIATION = (
    0.1  # of the latent space's unit: frames are not asked to agree better, or an axis shrinks to nothing
)


@dataclass(frozen=True, eq=False)
class LocalWeights:
    """Per frame its neighbours and their weights, which sum to one."""

    neighbours: Int[Array, "frames near"]
    weights: Float[Array, "frames near"]

    def left_over(self, coordinate: Float[Array, "frames"]) -> Float[Array, "frames"]:
        """x_i less what its neighbours say."""
        return coordinate - np.einsum("nk,nk->n", self.weights, coordinate[self.neighbours])

    def smoothed(self, coordinate: Float[Array, "frames"], strength: float) -> Float[Array, "frames"]:
        """The coordinate that is nearest to one given and agrees with its neighbours, so much more of the latter."""
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
        """The gradient in the coordinate, from that in what is left over."""
        out = in_left.copy()
        np.add.at(out, self.neighbours.ravel(), (-self.weights * in_left[:, None]).ravel())
        return out


def local_weights(
    squared: Float[Array, "frames frames"],
    *,
    neighbours: int = NEIGHBOURS,
    across: Bool[Array, "frames frames"] | None = None,
) -> LocalWeights:
    """The nearest frames of each and the weights that make it of them (Eq. 4).

    Where frames lead across, from one activity into another, up to half of the neighbours are taken from those.
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
    """-ln p(x | w) of one latent dimension at the deviation that makes it most likely (Eq. 5), and its gradient."""
    left = local.left_over(coordinate)
    count = len(left)
    variance = float(left @ left) / count + LEAST_DEVIATION**2
    return 0.5 * count * np.log(variance), local.spread_back(left / variance)
