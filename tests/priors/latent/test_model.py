"""A learned style: its predictions, its likelihood map, and that it survives being kept."""

import time
from dataclasses import replace

import numpy as np
import pytest

from differences import gradient
from poise.errors import InvalidValueError, UnknownNameError
from poise.gp.covariance import Kernel
from poise.priors.latent.model import LatentModel


def test_without_noise_prediction_interpolates_the_active_poses(model: LatentModel) -> None:
    """f(x) is RBF interpolation of the training poses (section 5)."""
    paper = replace(model, speakers="active")
    exact = paper.with_kernel(Kernel.of("rbf", np.array([0.0, 14.0, np.log(30.0)])))
    predicted = exact.predict(exact.active_latents)
    np.testing.assert_allclose(predicted, exact.mean + exact.outputs, atol=1e-3)
    between = exact.active_latents[:1] * 0.7 + 0.3 * exact.active_latents[1:2]
    distances = np.square(between - exact.active_latents).sum(axis=1)
    centres = np.square(exact.active_latents[:, None] - exact.active_latents).sum(axis=2)
    bumps = np.exp(-15.0 * centres) + 2e-6 * np.eye(len(centres))
    interpolated = exact.mean + np.exp(-15.0 * distances) @ np.linalg.solve(bumps, exact.outputs)
    np.testing.assert_allclose(exact.predict(between)[0], interpolated, atol=1e-2)


def test_variance_is_least_near_the_data_and_full_far_away(model: LatentModel) -> None:
    near = model.variance(model.active_latents)
    far = model.variance(np.array([[50.0, 50.0]]))
    assert near.max() < 0.5 * far[0]
    np.testing.assert_allclose(far, model.kernel.signal_variance + model.kernel.noise_variance)


def test_one_point_and_many_agree(model: LatentModel, rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 4, 2))
    assert model.predict(x).shape == (3, 4, model.features.dimension)
    np.testing.assert_allclose(model.predict(x)[1, 2], model.predict(x[1, 2]), atol=1e-12)
    np.testing.assert_allclose(model.variance(x)[1, 2], model.variance(x[1, 2]), atol=1e-12)


def test_the_likelihood_map_is_that_of_figure_1_and_quick(model: LatentModel) -> None:
    axis = np.linspace(-3.0, 3.0, 100)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    started = time.process_time()
    likelihood = model.likelihood_map(grid)
    assert time.process_time() - started < 1.0
    expected = -0.5 * model.features.dimension * np.log(model.variance(grid[77])) - 0.5 * grid[77] @ grid[77]
    np.testing.assert_allclose(likelihood[77], expected)


def test_the_likelihood_map_is_smooth(model: LatentModel) -> None:
    x = np.array([0.3, -0.2])
    slopes = gradient(lambda x: float(model.likelihood_map(x[None])[0]), x)
    assert np.all(np.isfinite(slopes))


def test_it_is_restored_from_what_it_gave(model: LatentModel) -> None:
    again = LatentModel.restored(model.features.space, arrays=model.arrays(), header=model.header())
    x = np.array([[0.3, -0.2]])
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    np.testing.assert_array_equal(again.variance(x), model.variance(x))
    np.testing.assert_array_equal(again.annealed.logs, model.annealed.logs)
    assert again.features.dimension == model.features.dimension


def test_it_cannot_be_written_to(model: LatentModel) -> None:
    with pytest.raises(ValueError, match="read-only"):
        model.latents[0, 0] = 1.0


def test_shapes_that_do_not_fit_are_told(model: LatentModel) -> None:
    with pytest.raises(InvalidValueError, match="needs a mean and scales"):
        replace(model, mean=model.mean[1:])


def test_predictions_at_training_poses_are_better_when_all_speak(model: LatentModel) -> None:
    def error(speakers: str) -> float:
        one = replace(model, speakers=speakers)
        return float(np.square(one.predict(one.latents) - one.mean - one.recorded).mean())

    assert error("all") < error("active")


def test_who_speaks_is_checked(model: LatentModel) -> None:
    with pytest.raises(UnknownNameError, match="valid: all, active"):
        replace(model, speakers="some")
