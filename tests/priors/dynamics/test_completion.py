"""Missing dimensions come back from those that are known."""

import numpy as np
import pytest

from made_once import learned
from poise.errors import InvalidValueError
from poise.motion import Motion
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.sequences import Sequences
from poise.priors.dynamics.simulation import complete, place_features


@pytest.fixture(scope="module")
def prior(motions: list[Motion]) -> DynamicsPrior:
    return learned(DynamicsPrior, motions, topology="gpdm", steps=60)


@pytest.mark.slow
def test_half_of_a_pose_tells_the_other_half(
    prior: DynamicsPrior, sequences: Sequences, rng: np.random.Generator
) -> None:
    whole = sequences.y[5::9]
    partly = np.where(rng.random(whole.shape) < 0.5, np.nan, whole)
    found = complete(prior, partly)
    missing = np.isnan(partly)
    np.testing.assert_array_equal(found[~missing], whole[~missing])
    spread = np.broadcast_to(sequences.y.std(axis=0), whole.shape)[missing]
    assert np.square(found - whole)[missing].sum() < 0.1 * np.square(spread).sum()


def test_training_poses_lie_where_they_were_learned(prior: DynamicsPrior, sequences: Sequences) -> None:
    found = place_features(prior, sequences.y[::10])
    assert np.median(np.linalg.norm(found - prior.model.latents[::10], axis=1)) < 0.3


def test_mistakes_are_named(prior: DynamicsPrior, sequences: Sequences) -> None:
    with pytest.raises(InvalidValueError, match="at least one must be known"):
        complete(prior, np.full((1, sequences.y.shape[1]), np.nan))
    with pytest.raises(InvalidValueError, match="features, with NaN for missing ones; got 3"):
        complete(prior, np.zeros((1, 3)))
