"""The gaussian prior: its clusters, its prediction, and what it promises far outside the data."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise import performer
from poise.errors import InvalidValueError
from poise.motion import Motion
from poise.priors.clusters import cluster
from poise.priors.gaussian import GaussianPrior
from poise.priors.poses import handle_positions
from poise.priors.prior import Prior

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=4.0, fps=30, seed=3)


@pytest.fixture(scope="module")
def prior(walk: Motion) -> GaussianPrior:
    return GaussianPrior.learn([walk], clusters=15)


def test_it_is_a_prior(prior: GaussianPrior) -> None:
    assert isinstance(prior, Prior)


def test_predictions_at_cluster_targets_are_the_cluster_means(prior: GaussianPrior) -> None:
    handles = prior.space.handles(HANDLES)
    predict = prior.guide(handles)
    targets = handle_positions(prior.space, prior.means, handles)
    for mean, target in zip(prior.means, targets, strict=True):
        predicted, _ = predict(target)
        assert np.abs(predicted - mean).max() < 0.05


@pytest.mark.parametrize("names", [("left_hand",), ("left_hand", "right_hand"), HANDLES])
def test_any_handles_may_be_chosen_at_run_time(prior: GaussianPrior, names: tuple[str, ...]) -> None:
    handles = prior.space.handles(names)
    mean, covariance = prior.guide(handles)(handle_positions(prior.space, prior.means[:1], handles)[0])
    assert mean.shape == prior.mean.shape
    assert covariance.shape == (mean.size, mean.size)


def test_without_handles_the_whole_data_is_the_prediction(prior: GaussianPrior) -> None:
    mean, covariance = prior.guide(prior.space.handles([]))(np.empty((0, 3)))
    np.testing.assert_array_equal(mean, prior.mean)
    assert np.linalg.eigvalsh(covariance).min() > 0


@given(
    scale=st.floats(0.0, 1e6),
    direction=st.lists(st.floats(-1.0, 1.0), min_size=15, max_size=15),
)
def test_covariances_are_positive_definite_for_every_input(
    prior: GaussianPrior, scale: float, direction: list[float]
) -> None:
    predict = prior.guide(prior.space.handles(HANDLES))
    mean, covariance = predict(scale * np.array(direction).reshape(5, 3))
    assert np.all(np.isfinite(mean))
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > 1e-6


def test_a_low_rank_prior_predicts_nearly_the_same(walk: Motion, prior: GaussianPrior) -> None:
    few = GaussianPrior.learn([walk], clusters=15, rank=8)
    handles = prior.space.handles(HANDLES)
    target = handle_positions(prior.space, prior.means[:1], handles)[0]
    (mean, full), (few_mean, low) = prior.guide(handles)(target), few.guide(handles)(target)
    np.testing.assert_allclose(few_mean, mean, atol=1e-12)
    assert np.linalg.norm(low - full) < 0.2 * np.linalg.norm(full)


def test_predictions_are_prepared_once_per_set_of_handles_and_body(prior: GaussianPrior) -> None:
    handles = prior.space.handles(HANDLES)
    assert prior.guide(handles) is prior.guide(prior.space.handles(HANDLES))
    assert prior.guide(prior.space.handles(HANDLES[:2])) is not prior.guide(handles)
    assert prior.on_body(prior.space.skeleton).guide(handles) is not prior.guide(handles)


def test_joints_beyond_the_handles_follow_the_clusters_alone(prior: GaussianPrior) -> None:
    """Of the covariance of all data, what ties a hand's turn to the arm is left out."""
    predict = prior.guide(prior.space.handles(HANDLES))
    slots = {int(joint): slot for slot, joint in enumerate(prior.space.moving)}
    hand, arm = (3 * slots[prior.space.skeleton.index(role)] for role in ("left_hand", "left_upper_arm"))
    assert np.all(predict.predictor.floor[hand : hand + 3, arm : arm + 3] == 0.0)
    assert np.any(predict.predictor.floor[arm : arm + 3, arm : arm + 3] != 0.0)


def test_learning_is_deterministic_and_needs_frames_of_one_skeleton(walk: Motion) -> None:
    again = GaussianPrior.learn([walk], clusters=15)
    assert np.array_equal(again.means, GaussianPrior.learn([walk], clusters=15).means)
    with pytest.raises(InvalidValueError, match="at least two frames"):
        GaussianPrior.learn([walk[:1]])
    small = Motion(
        walk.skeleton.__class__(("a", "b"), np.array([-1, 0]), np.zeros((2, 3))),
        30.0,
        np.zeros((4, 3)),
        np.tile([1.0, 0.0, 0.0, 0.0], (4, 2, 1)),
        name="small",
    )
    with pytest.raises(InvalidValueError, match="small has another skeleton than walk"):
        GaussianPrior.learn([walk, small])


def test_duplicate_frames_and_more_clusters_than_poses_are_harmless(walk: Motion) -> None:
    still = walk[np.repeat(np.arange(3), 20)]
    prior = GaussianPrior.learn([still], clusters=50)
    assert len(prior.means) <= 3
    assert np.isfinite(prior.log_likelihood(np.concatenate([[0, 0, 0, 1, 0, 0, 0], prior.mean])))


def test_medoids_are_members_and_beat_their_start() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=10.0, size=(6, 4))
    points = np.concatenate([centre + rng.normal(size=(50, 4)) for centre in centres])
    chosen, labels = cluster(points, 6, rng=np.random.default_rng(1))
    assert len(chosen) == 6
    assert sorted(np.bincount(labels)) == [50] * 6
    for k, medoid in enumerate(chosen):
        members = points[labels == k]
        sums = np.linalg.norm(members[:, None] - members, axis=-1).sum(axis=1)
        assert np.linalg.norm(members - points[medoid], axis=1).sum() == pytest.approx(sums.min())


def test_without_handles_nothing_is_compiled_again() -> None:
    """A predictor of other types would be: fifteen seconds in the middle of a gesture."""
    prior = GaussianPrior.learn([performer.act("walk", seconds=1.0, fps=30)], clusters=3)
    some, none = (prior.guide(prior.space.handles(names)).predictor for names in (["left_hand"], []))
    assert numba.typeof(some) == numba.typeof(none)
