"""Choosing the active set: greedily, the pose of largest predictive variance (appendix B; Lawrence et al. 2003).

Variances are updated as each pose joins, which is a pivoted incomplete Cholesky factorisation of the kernel matrix.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from poise.priors.style.covariance import JITTER, Kernel

Array = np.ndarray


def select_active(kernel: Kernel, latents: Float[Array, "poses latent"], count: int) -> Int[Array, "active"]:
    """The poses, at most `count`, whose variance given those chosen before them is largest; the most central first."""
    count = min(count, len(latents))
    noise = kernel.noise_variance + JITTER * kernel.signal_variance
    remaining = kernel.diagonal(latents) + JITTER * kernel.signal_variance
    rows = np.empty((count, len(latents)))  # of the factor, one per chosen pose
    chosen = np.empty(count, dtype=np.int64)
    free = np.ones(len(latents), dtype=np.bool_)
    pick = int(np.argmin(np.square(latents - latents.mean(axis=0)).sum(axis=1)))
    for step in range(count):
        chosen[step], free[pick] = pick, False
        column = kernel.matrix(latents[pick : pick + 1], latents)[0]
        column[pick] += noise
        column -= rows[:step, pick] @ rows[:step]
        rows[step] = column / np.sqrt(max(remaining[pick], noise))
        remaining -= rows[step] ** 2
        pick = int(np.argmax(np.where(free, remaining, -np.inf)))
    return np.sort(chosen)
