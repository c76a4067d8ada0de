"""Poses drawn from a style: likely ones, the same for the same seed, standing as the style stands."""

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.errors import InvalidValueError
from poise.priors.latent.prior import novel_latents, sample_latents, spread_latents, standing_pose
from poise.priors.style.prior import StylePrior


@pytest.fixture(scope="module")
def prior() -> StylePrior:
    throw = performer.act("throw", fps=30, seed=2)
    return learned(StylePrior, [throw], dimensions=3, active=40, velocity=False)


def test_samples_are_as_likely_as_what_was_learned_from(prior: StylePrior) -> None:
    model = prior.model
    places = sample_latents(model, 40, np.random.default_rng(1))
    assert places.shape == (40, 3)
    assert model.likelihood_map(places).min() >= model.likelihood_map(model.latents).min()
    assert len(np.unique(places, axis=0)) == 40


def test_the_seed_decides_the_samples(prior: StylePrior) -> None:
    one, same, other = (sample_latents(prior.model, 5, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_novel_places_are_farther_from_the_data_than_random_ones(prior: StylePrior) -> None:
    def gap(places: np.ndarray) -> float:
        apart = np.linalg.norm(places[:, None] - prior.model.latents[None], axis=2)
        return float(apart.min(axis=1).mean())

    rng = np.random.default_rng(0)
    assert gap(novel_latents(prior.model, 4, rng)) > 2.0 * gap(sample_latents(prior.model, 40, rng))


def test_points_that_stand_for_all_are_training_points_apart(prior: StylePrior) -> None:
    chosen = spread_latents(prior.model, 6)
    gaps = np.linalg.norm(chosen[:, None] - chosen[None], axis=2)[~np.eye(6, dtype=bool)]
    assert gaps.min() > prior.model.latents.std()
    assert all(np.any(np.all(place == prior.model.latents, axis=1)) for place in chosen)


def test_a_pose_stands_upright_on_the_floor(prior: StylePrior) -> None:
    for x in spread_latents(prior.model, 5):
        pose = standing_pose(prior, x)
        positions = prior.space.forward(prior.space.q_from_pose(pose))[0]
        assert positions[:, 1].min() == pytest.approx(0.0, abs=1e-9)
        assert positions[prior.space.skeleton.index("head"), 1] > 1.0


def test_no_sample_is_no_answer(prior: StylePrior) -> None:
    with pytest.raises(InvalidValueError, match="at least one sample; got 0"):
        sample_latents(prior.model, 0, np.random.default_rng(0))
