"""The compiled L_IK against Eq. 3 in NumPy, its minimum, and the local shape it gives the solver."""

import pickle

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.priors.latent import local_gaussian as shape
from poise.priors.latent.model import LatentModel
from poise.priors.latent.prior import up_aims
from poise.priors.style.prior import StylePrior


@pytest.fixture(scope="module")
def prior() -> StylePrior:
    walk = performer.act("walk", seconds=2.0, fps=30, seed=7)
    return learned(StylePrior, [walk], dimensions=2, active=25, velocity=False)


@pytest.fixture
def pose(prior: StylePrior) -> np.ndarray:
    walk = performer.act("walk", seconds=1.0, fps=30, seed=8)
    return prior.space.q_from_pose(walk[11])


def test_the_objective_is_equation_3(prior: StylePrior, pose: np.ndarray) -> None:
    model, x = prior.model, prior.model.active_latents[3] + 0.1
    y = model.features.of_pose(pose)
    misfit = np.sum((model.scales * (y - model.predict(x))) ** 2)
    variance = float(model.variance(x))
    expected = misfit / (2 * variance) + len(y) / 2 * np.log(variance) + x @ x / 2
    value = shape.objective(prior.stages()[-1], prior.mean, up_aims(model, pose), pose[7:].copy(), x)
    assert value == pytest.approx(expected, rel=1e-6)


def test_a_pose_is_placed_where_its_objective_is_least(prior: StylePrior, pose: np.ndarray) -> None:
    x, value = prior.place(pose)
    style, aims = prior.stages()[-1], up_aims(prior.model, pose)
    for direction in np.vstack([np.eye(2), -np.eye(2)]):
        nearby = shape.objective(style, prior.mean, aims, pose[7:].copy(), x + 1e-3 * direction)
        assert nearby >= value - 1e-6


def test_at_the_best_place_of_a_predicted_pose_the_latent_step_follows_the_objective(
    prior: StylePrior,
) -> None:
    """Without rows (no pull) the latent step is the Newton step of the terms in x alone."""
    style, x = prior.stages()[-1], prior.model.active_latents[5] + 0.05
    maps, none = prior.pose_at(x), np.zeros(style.checks.shape[1])
    local = shape.room(style, 0)
    shape.local_shape(style, prior.mean, none, maps, x, local)
    step = shape.latent_step(local, np.zeros(maps.size))
    before = _terms_in_x(prior, style, none, x)
    assert _terms_in_x(prior, style, none, x + 0.1 * step) <= before + 1e-9


def test_the_covariance_is_the_residuals_plus_the_latent_directions(prior: StylePrior) -> None:
    style, x = prior.stages()[-1], prior.model.active_latents[2].copy()
    maps, none = prior.pose_at(x), np.zeros(style.checks.shape[1])
    local = shape.room(style, 0)
    variance = shape.local_shape(style, prior.mean, none, maps, x, local)
    assert variance == pytest.approx(float(prior.model.variance(x)), rel=1e-6)
    step = 1e-6
    numeric = np.stack(
        [(prior.pose_at(x + step * d) - prior.pose_at(x - step * d)) / (2 * step) for d in np.eye(2)]
    )
    np.testing.assert_allclose(local.slopes, numeric, atol=1e-5)
    expected = variance * prior.noise + numeric.T @ local.inverse_curvature @ numeric
    np.testing.assert_allclose(local.covariance, expected, atol=1e-6)
    assert np.linalg.eigvalsh(local.covariance).min() > 0


def test_likelihood_is_high_for_training_poses_and_low_for_strange_ones(prior: StylePrior) -> None:
    walk = performer.act("walk", seconds=2.0, fps=30, seed=7)
    usual = [prior.percentile(prior.space.q_from_pose(walk[frame])) for frame in range(0, len(walk), 6)]
    strange = prior.space.q_from_pose(walk[0])
    strange[7:] += 0.8
    assert np.mean(usual) > 30
    assert prior.percentile(strange) == 0.0


def test_a_model_without_some_poses_has_the_others(model: LatentModel) -> None:
    out = np.arange(len(model.latents)) < 20
    left = model.without(out)
    np.testing.assert_array_equal(left.recorded, model.recorded[20:])
    np.testing.assert_array_equal(left.outputs, model.recorded[model.active[model.active >= 20]])


def test_another_process_gets_the_same_read_only_model(prior: StylePrior) -> None:
    prior.stages()  # all that a used model has worked out
    again = pickle.loads(pickle.dumps(prior))
    for ours, theirs in zip(prior.stages(), again.stages(), strict=True):
        assert not theirs.parameters.flags.writeable
        assert theirs.actives.flags.writeable == ours.actives.flags.writeable
        np.testing.assert_array_equal(ours.weights, theirs.weights)


def _terms_in_x(prior: StylePrior, style: shape.LatentArrays, none: np.ndarray, x: np.ndarray) -> float:
    return shape.objective(style, prior.mean, none, prior.pose_at(x), x)
