"""What all poses say through the active ones: against plain Gaussian process regression, and that more is known."""

import numpy as np
import pytest

from poise.gp.covariance import Kernel
from poise.gp.process import Posterior, projected

KERNEL = Kernel.of("rbf", np.log([1.3, 20.0, 2.0]))


@pytest.fixture
def latents(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(30, 2))


def test_when_every_pose_is_active_it_is_gaussian_process_regression(
    latents: np.ndarray, rng: np.random.Generator
) -> None:
    outputs, x = rng.normal(size=(30, 4)), rng.normal(size=(7, 2))
    plain = Posterior.given(KERNEL, latents, outputs)
    through = projected(KERNEL, latents, latents, outputs)
    for one, other in zip(plain.predict(x), through.predict(x), strict=True):
        np.testing.assert_allclose(one, other, atol=5e-3)


def test_more_poses_leave_less_open(latents: np.ndarray, rng: np.random.Generator) -> None:
    outputs, x = rng.normal(size=(30, 4)), rng.normal(size=(50, 2))
    _, few = Posterior.given(KERNEL, latents[:10], outputs[:10]).predict(x)
    _, many = projected(KERNEL, latents[:10], latents, outputs).predict(x)
    assert np.all(many < few + 1e-4)
    assert np.all(many > KERNEL.noise_variance * 0.999)
