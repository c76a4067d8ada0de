"""Adding poses to a learned style: nearly as good as learning all again, for a fifth of the work or less."""

from dataclasses import dataclass

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError
from poise.gp import process
from poise.gp.latent import PlacingLoss
from poise.priors.latent.model import LatentModel
from poise.priors.style.prior import TrainingPoses, add_poses, laid_out, learn_model, learn_style
from tests.priors.style.test_learning import mean_evidence


@dataclass
class Work:
    """What learning costs: kernel matrices inverted, and poses whose L_IK is asked for with its slope."""

    inversions: int = 0
    placings: int = 0


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    counted, inverse_of, shape = Work(), process.inverse_of, PlacingLoss.shape

    def inverted(K: np.ndarray) -> tuple[np.ndarray, float]:
        counted.inversions += 1
        return inverse_of(K)

    def shaped(
        self: PlacingLoss, x: np.ndarray, centred: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        counted.placings += len(x)
        return shape(self, x, centred)

    monkeypatch.setattr(process, "inverse_of", inverted)
    monkeypatch.setattr(PlacingLoss, "shape", shaped)
    return counted


def test_added_poses_are_learned_nearly_as_well_for_a_fifth_of_the_work(work: Work) -> None:
    clip = performer.act("walk", seconds=8.0, fps=30.0, seed=1)
    space, first, _ = learn_style([clip[:200]], dimensions=3, active=100)
    y = first.features.of_frames(space.q_from_frames(clip.root_positions, clip.rotations), 30.0)
    work.inversions = work.placings = 0
    added = add_poses(first, y[200:])
    inversions, placings = work.inversions, work.placings
    work.inversions = work.placings = 0
    again = learn_model(TrainingPoses(first.features, y), dimensions=3, active=100)
    assert work.inversions > 5 * inversions > 0
    assert work.placings > 5 * placings > 0
    assert len(added.latents) == len(y)
    assert len(added.active) == 100
    np.testing.assert_allclose(added.mean, y.mean(axis=0))
    np.testing.assert_allclose(added.outputs, y[added.active] - added.mean)
    assert mean_evidence(added, y) > 0.95 * mean_evidence(again, y)


@pytest.mark.slow
def test_another_action_is_taken_in_if_not_quite_as_well() -> None:
    """A walk knows nothing of throws: places good for both are found only by learning all again."""
    walk = performer.act("walk", seconds=5.0, fps=30.0, seed=1)
    throw = performer.act("throw", fps=30.0, seed=1)
    space, first, _ = learn_style([walk], dimensions=3, active=100)
    y = first.features.of_frames(space.q_from_frames(throw.root_positions, throw.rotations), 30.0)
    added = add_poses(first, y)
    whole = np.concatenate([first.recorded + first.mean, y])
    again = learn_model(TrainingPoses(first.features, whole), dimensions=3, active=100)
    assert mean_evidence(added, whole) > 0.85 * mean_evidence(again, whole)


def test_a_style_of_few_poses_grows_its_active_set() -> None:
    clip = performer.act("walk", seconds=4.0, fps=30.0, seed=1)
    space, first, _ = learn_style([clip[:60]], dimensions=3)
    y = first.features.of_frames(space.q_from_frames(clip.root_positions, clip.rotations), 30.0)
    assert len(first.active) == 60
    assert len(add_poses(first, y[60:]).active) == len(y)


def test_places_that_are_linear_in_features_are_continued(rng: np.random.Generator) -> None:
    centred = rng.normal(size=(4000, 5))
    places = centred @ rng.normal(size=(5, 2))
    found = laid_out(places[:3000], centred)
    np.testing.assert_allclose(found, places[3000:] / 1.1, atol=0.1)  # held back by the ridge


def test_poses_of_other_features_cannot_be_added(model: LatentModel) -> None:
    with pytest.raises(InvalidValueError, match="poses added to this style need"):
        add_poses(model, np.zeros((3, 5)))
