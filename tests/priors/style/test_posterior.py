"""What all poses say through the active ones: against plain Gaussian process regression, and that more is known."""

from dataclasses import replace

import numpy as np
import pytest

from poise.errors import UnknownNameError
from poise.priors.style import posterior
from poise.priors.style.covariance import Kernel
from poise.priors.style.model import StyleModel

KERNEL = Kernel("rbf", np.log([1.3, 20.0, 2.0]))


@pytest.fixture
def latents(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(30, 2))


def predicted(said: posterior.Posterior, actives: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    k = KERNEL.matrix(x, actives)
    return k @ said.weights, KERNEL.diagonal(x) - np.einsum("nm,mk,nk->n", k, said.inverse, k)


def test_when_every_pose_is_active_it_is_gaussian_process_regression(
    latents: np.ndarray, rng: np.random.Generator
) -> None:
    outputs, x = rng.normal(size=(30, 4)), rng.normal(size=(7, 2))
    plain = posterior.of_active(KERNEL, latents, outputs)
    through = posterior.of_all(KERNEL, latents, latents, outputs)
    for one, other in zip(predicted(plain, latents, x), predicted(through, latents, x), strict=True):
        np.testing.assert_allclose(one, other, atol=5e-3)


def test_more_poses_leave_less_open(latents: np.ndarray, rng: np.random.Generator) -> None:
    outputs, x = rng.normal(size=(30, 4)), rng.normal(size=(50, 2))
    _, few = predicted(posterior.of_active(KERNEL, latents[:10], outputs[:10]), latents[:10], x)
    _, many = predicted(posterior.of_all(KERNEL, latents[:10], latents, outputs), latents[:10], x)
    assert np.all(many < few + 1e-4)
    assert np.all(many > KERNEL.noise_variance * 0.999)


def test_predictions_at_training_poses_are_better_when_all_speak(model: StyleModel) -> None:
    def error(speakers: str) -> float:
        one = replace(model, speakers=speakers)
        return float(np.square(one.predict(one.latents) - one.mean - one.recorded).mean())

    assert error("all") < error("active")


def test_who_speaks_is_checked(model: StyleModel) -> None:
    with pytest.raises(UnknownNameError, match="valid: all, active"):
        replace(model, speakers="some")
