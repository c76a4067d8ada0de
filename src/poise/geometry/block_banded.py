"""Symmetric block-banded systems along a sequence, factored by Cholesky in time linear in the number of frames.

A sequence solved as a whole gives such a system: one block of unknowns per frame, coupled as far as the differences
in the objective reach (two frames for accelerations: a block-pentadiagonal matrix).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.linalg.lapack import dpbtrf, dpbtrs

from poise.errors import InvalidValueError
from poise.types import Array


class BlockBanded:
    """A symmetric matrix of `count` by `count` blocks; blocks farther than `reach` from the diagonal are zero.

    `bands[k][i]` is the block in row i + k and column i, so bands[0] is the diagonal.
    """

    def __init__(self, count: int, size: int, *, reach: int = 2) -> None:
        if count < 1 or size < 1 or reach < 0:
            raise InvalidValueError(
                f"a banded matrix needs `count` >= 1, `size` >= 1 and `reach` >= 0; "
                f"got {count}, {size}, {reach}"
            )
        self.count, self.size, self.reach = count, size, min(reach, count - 1)
        self.bands = [np.zeros((count - k, size, size)) for k in range(self.reach + 1)]

    def add_differences(
        self,
        coefficients: Sequence[float],
        weights: Float[Array, "part"] | Float[Array, "part part"] | Float[Array, "terms part part"],
        *,
        first: int = 0,
    ) -> None:
        """Add the precision of |sum_k c_k x_(i+k)|^2 for all i from `first`, such as (1, -2, 1) for accelerations.

        The weights are those of the first unknowns of every block; given for each i, they also say for how many.
        """
        weights = np.diag(weights) if weights.ndim == 1 else weights
        own, part = slice(weights.shape[-1]), self.count - first - len(coefficients) + 1
        part = len(weights) if weights.ndim == 3 else part
        for a, leading in enumerate(coefficients):
            for b, second in enumerate(coefficients[: a + 1]):
                if part > 0:
                    self.bands[a - b][first + b : first + b + part, own, own] += leading * second * weights

    def times(self, vectors: Float[Array, "count size"]) -> Float[Array, "count size"]:
        """The matrix times a vector of blocks."""
        product = np.einsum("iab,ib->ia", self.bands[0], vectors)
        for k, band in enumerate(self.bands[1:], start=1):
            product[k:] += np.einsum("iab,ib->ia", band, vectors[:-k])
            product[:-k] += np.einsum("iab,ia->ib", band, vectors[k:])
        return product

    def dense(self) -> Float[Array, "rows rows"]:
        """The whole matrix as one array, to inspect small ones."""
        whole = np.zeros((self.count, self.size, self.count, self.size))
        for k, band in enumerate(self.bands):
            for i, block in enumerate(band):
                whole[i + k, :, i, :], whole[i, :, i + k, :] = block, block.T
        return whole.reshape(self.count * self.size, -1)

    def factored(self) -> BandedFactor:
        """Return the Cholesky factor; raise if the matrix is not positive definite."""
        size, depth = self.size, (self.reach + 1) * self.size
        lower = np.zeros((self.count, size, depth))  # LAPACK's: by columns, from the diagonal down
        for k, band in enumerate(self.bands):
            for column in range(size):
                first = 0 if k else column
                place = slice(k * size + first - column, (k + 1) * size - column)
                lower[: self.count - k, column, place] = band[:, first:, column]
        factor, failed = dpbtrf(lower.reshape(-1, depth).T, lower=1, overwrite_ab=1)
        if failed:
            block = (failed - 1) // size
            raise InvalidValueError(f"the banded matrix is not positive definite at block {block}")
        return BandedFactor(factor)


class BandedFactor:
    """The lower Cholesky factor of a banded matrix."""

    def __init__(self, factor: Float[Array, "depth rows"]) -> None:
        self._factor = factor

    def solve(self, right: Float[Array, "count size *columns"]) -> Float[Array, "count size *columns"]:
        """x with A x = right, for one right-hand side or several."""
        rows = self._factor.shape[1]
        x, _ = dpbtrs(self._factor, right.reshape(rows, -1), lower=1)
        return np.asarray(x).reshape(right.shape)

    @property
    def log_determinant(self) -> float:
        """Log-determinant of the factored matrix."""
        return float(2.0 * np.log(self._factor[0]).sum())
