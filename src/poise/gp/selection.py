"""Choosing active points: greedily, that of largest predictive variance (Lawrence et al. 2003).

Variances are updated as each point joins, which is a pivoted incomplete Cholesky factorisation of the kernel matrix.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.gp.covariance import JITTER, Kernel, curves_of, kernel_curves
from poise.types import Array


def select_active(kernel: Kernel, inputs: Float[Array, "n inputs"], count: int) -> Int[Array, "active"]:
    """The points, at most `count`, whose variance given those chosen before them is largest; the most central first."""
    chosen = np.empty(min(count, len(inputs)), dtype=np.int64)
    first = int(np.argmin(np.square(inputs - inputs.mean(axis=0)).sum(axis=1)))
    inputs, jitter = np.ascontiguousarray(inputs), JITTER * kernel.signal_variance
    noise, variances = kernel.noise_variance + jitter, kernel.diagonal(inputs) + jitter
    _select(kernel.number, kernel.parameters, inputs, first, noise, variances, chosen)
    return np.sort(chosen)


@compiled
def _select(
    kind: int, parameters: Array, inputs: Array, pick: int, noise: float, remaining: Array, chosen: Array
) -> None:
    """Fill `chosen`, from the first pick on; `remaining` holds all variances and is used up."""
    count = len(inputs)
    rows = np.empty((len(chosen), count))  # of the factor, one per chosen point
    curves, taken = curves_of(inputs), np.zeros(count, dtype=np.bool_)
    for step in range(len(chosen)):
        chosen[step], taken[pick] = pick, True
        row = rows[step]
        kernel_curves(kind, parameters, inputs[pick], inputs, curves)
        row[:] = curves.rows[0]
        row[pick] += noise
        for before in range(step):
            share = rows[before, pick]
            for i in range(count):
                row[i] -= share * rows[before, i]
        root = np.sqrt(max(remaining[pick], noise))
        largest = -np.inf
        for i in range(count):
            row[i] /= root
            remaining[i] -= row[i] * row[i]
            if not taken[i] and remaining[i] > largest:
                largest, pick = remaining[i], i
