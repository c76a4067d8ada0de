"""Choosing the active set: greedily, the pose of largest predictive variance (appendix B; Lawrence et al. 2003).

Variances are updated as each pose joins, which is a pivoted incomplete Cholesky factorisation of the kernel matrix.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.priors.style.compiled_covariance import kernel_vector
from poise.priors.style.covariance import JITTER, Kernel

Array = np.ndarray


def select_active(kernel: Kernel, latents: Float[Array, "poses latent"], count: int) -> Int[Array, "active"]:
    """The poses, at most `count`, whose variance given those chosen before them is largest; the most central first."""
    chosen = np.empty(min(count, len(latents)), dtype=np.int64)
    jitter = JITTER * kernel.signal_variance
    first = int(np.argmin(np.square(latents - latents.mean(axis=0)).sum(axis=1)))
    latents = np.ascontiguousarray(latents)
    _select(
        kernel.number,
        kernel.parameters,
        latents,
        first,
        kernel.noise_variance + jitter,
        kernel.diagonal(latents) + jitter,
        chosen,
    )
    return np.sort(chosen)


@compiled
def _select(
    kind: int, parameters: Array, latents: Array, pick: int, noise: float, remaining: Array, chosen: Array
) -> None:
    """Fill `chosen`, from the first pick on; `remaining` holds all variances and is used up."""
    count = len(latents)
    rows = np.empty((len(chosen), count))  # of the factor, one per chosen pose
    slopes = np.empty_like(latents)
    taken = np.zeros(count, dtype=np.bool_)
    for step in range(len(chosen)):
        chosen[step], taken[pick] = pick, True
        row = rows[step]
        kernel_vector(kind, parameters, latents[pick], latents, row, slopes)
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
