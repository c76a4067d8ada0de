"""Symmetric block-banded systems along a sequence, factored by Cholesky in time linear in the number of frames.

A sequence solved as a whole gives such a system: one block of degrees of freedom per frame, coupled as far as the
differences in the objective reach (two frames for accelerations: a block-pentadiagonal matrix).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.linalg import LinAlgError, cholesky, solve_triangular

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
        self, coefficients: Sequence[float], weights: Float[Array, "size"] | Float[Array, "size size"]
    ) -> None:
        """Add the precision of |sum_k c_k x_(i+k)|^2 for all i, such as (1, -2, 1) for accelerations."""
        weights = np.diag(weights) if weights.ndim == 1 else weights
        terms = self.count - len(coefficients) + 1
        for a, first in enumerate(coefficients):
            for b, second in enumerate(coefficients[: a + 1]):
                if terms > 0:
                    self.bands[a - b][b : b + terms] += first * second * weights

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
        """Return the Cholesky factor, block by block; raise if the matrix is not positive definite."""
        bands = [band.copy() for band in self.bands]
        for i in range(self.count):
            try:
                bands[0][i] = cholesky(bands[0][i], lower=True, check_finite=False)
            except LinAlgError as error:
                raise InvalidValueError(f"the banded matrix is not positive definite at block {i}") from error
            below = range(1, min(self.reach, self.count - 1 - i) + 1)
            for k in below:
                bands[k][i] = solve_triangular(bands[0][i], bands[k][i].T, lower=True, check_finite=False).T
            for k in below:
                for j in range(1, k + 1):
                    bands[k - j][i + j] -= bands[k][i] @ bands[j][i].T
        return BandedFactor(bands)


class BandedFactor:
    """The lower Cholesky factor of a banded matrix."""

    def __init__(self, bands: Sequence[Float[Array, "blocks size size"]]) -> None:
        self._bands, self._count = bands, len(bands[0])

    def solve(self, right: Float[Array, "count size"]) -> Float[Array, "count size"]:
        """x with A x = right."""
        x = np.array(right, dtype=np.float64)
        for i in range(self._count):
            for k in range(1, min(len(self._bands) - 1, i) + 1):
                x[i] -= self._bands[k][i - k] @ x[i - k]
            x[i] = solve_triangular(self._bands[0][i], x[i], lower=True, check_finite=False)
        for i in reversed(range(self._count)):
            for k in range(1, min(len(self._bands) - 1, self._count - 1 - i) + 1):
                x[i] -= self._bands[k][i].T @ x[i + k]
            x[i] = solve_triangular(self._bands[0][i], x[i], lower=True, trans=1, check_finite=False)
        return x

    @property
    def log_determinant(self) -> float:
        """Log-determinant of the factored matrix."""
        return float(2.0 * np.log(np.diagonal(self._bands[0], axis1=1, axis2=2)).sum())
