"""The active set: greedy by predictive variance, with incremental updates."""

import numpy as np
import pytest

from poise.gp.covariance import KERNELS, Kernel
from poise.gp.latent import select_active


def variances(kernel: Kernel, latents: np.ndarray, chosen: list[int]) -> np.ndarray:
    """Eq. 5 at every pose, computed afresh."""
    K, k = kernel.noisy(latents[chosen]), kernel.matrix(latents, latents[chosen])
    return kernel.diagonal(latents) - np.einsum("nm,nm->n", k @ np.linalg.inv(K), k)


@pytest.mark.parametrize("kind", KERNELS)
def test_each_pose_chosen_has_the_largest_variance_given_the_others(
    kind: str, rng: np.random.Generator
) -> None:
    kernel, latents = Kernel.of(kind, np.full(len(KERNELS[kind].names), 0.3)), rng.normal(size=(30, 2))
    chosen = list(select_active(kernel, latents, 1))
    for count in range(2, 9):
        free = np.setdiff1d(np.arange(30), chosen)
        best = free[np.argmax(variances(kernel, latents, chosen)[free])]
        chosen.append(int(best))
        assert sorted(chosen) == list(select_active(kernel, latents, count))


def test_no_pose_is_chosen_twice_even_among_duplicates(rng: np.random.Generator) -> None:
    latents = np.repeat(rng.normal(size=(3, 2)), 10, axis=0)
    chosen = select_active(Kernel.of("rbf", np.array([0.0, 13.0, 0.0])), latents, 20)
    assert len(set(chosen)) == 20


def test_it_asks_for_no_more_than_there_are(rng: np.random.Generator) -> None:
    assert list(select_active(Kernel.of("rbf"), rng.normal(size=(5, 2)), 100)) == [0, 1, 2, 3, 4]
