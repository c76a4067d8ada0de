"""Blends: Gaussians in the log domain, charts between pose spaces, files, and mistakes."""

from pathlib import Path

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.errors import InvalidValueError, SkeletonError
from poise.geometry import rotations
from poise.priors.blend import BlendPrior, Chart, weighed
from poise.priors.gaussian import GaussianPrior
from poise.priors.model_file import load, save
from poise.priors.prior import Information
from poise.priors.style.prior import StylePrior
from poise.skeleton.pose_space import PoseSpace


@pytest.fixture(scope="module")
def space() -> PoseSpace:
    return learned(StylePrior, [performer.act("walk", seconds=1.0, fps=30)], dimensions=1, active=5).space


@pytest.fixture(scope="module")
def models() -> tuple[StylePrior, GaussianPrior]:
    old, proud = (performer.act("walk", style=style, seconds=2.0, fps=30) for style in ("old", "proud"))
    return learned(StylePrior, [old], dimensions=2, active=30), GaussianPrior.learn([proud], clusters=8)


def one_gaussian(space: PoseSpace, mean: np.ndarray, variance: float) -> GaussianPrior:
    return GaussianPrior(space, mean[None], variance * np.eye(mean.size)[None], shares=np.ones(1))


def expected(blend: BlendPrior) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the pose without any handles."""
    guide, none = blend.guide(blend.space.handles([])), np.empty((0, 3))
    q = np.concatenate([[0, 0, 0, 1, 0, 0, 0], blend.mean])
    return guide.expectation(q, guide.resumed(q, none))


def turned(space: PoseSpace, angle: float, rng: np.random.Generator) -> PoseSpace:
    turns = rotations.quaternion_from_expmap(angle * rng.normal(size=(len(space.skeleton), 3)))
    return PoseSpace(
        space.skeleton, references=rotations.multiply(space.references, turns), moving=space.is_moving
    )


def information(pull: np.ndarray, precision: np.ndarray) -> Information:
    """A Gaussian of the maps alone, over all freedoms."""
    whole = np.zeros((6 + len(pull), 6 + len(pull)))
    whole[6:, 6:] = precision
    return Information(np.concatenate([np.zeros(6), pull]), whole)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_gaussians_of_one_covariance_blend_to_the_mean_between(space: PoseSpace, share: float) -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(scale=0.1, size=(2, space.size - 7))
    blend = BlendPrior([one_gaussian(space, mean, 0.02) for mean in (one, other)], [1 - share, share])
    mean, covariance = expected(blend)
    np.testing.assert_allclose(mean, (1 - share) * one + share * other, atol=1e-9)
    np.testing.assert_allclose(covariance, 0.02 * np.eye(mean.size), atol=1e-9)


def test_a_narrower_gaussian_counts_for_more(space: PoseSpace) -> None:
    zero, one = np.zeros(space.size - 7), np.full(space.size - 7, 0.1)
    blend = BlendPrior([one_gaussian(space, zero, 0.01), one_gaussian(space, one, 0.03)], [0.5, 0.5])
    mean, covariance = expected(blend)
    np.testing.assert_allclose(mean, 0.025, atol=1e-9)
    np.testing.assert_allclose(np.diag(covariance), 0.015, atol=1e-9)


def test_charts_lead_to_other_references_and_back(space: PoseSpace) -> None:
    rng = np.random.default_rng(1)
    other = turned(space, 0.4, rng)
    chart, maps = Chart(other, space), rng.normal(scale=0.3, size=space.size - 7)
    q = np.concatenate([[0, 0, 0, 1, 0, 0, 0], maps])
    same = np.concatenate([q[:7], chart.own_maps(maps)])
    distances = rotations.geodesic_distance(space.pose_from_q(q).rotations, other.pose_from_q(same).rotations)
    assert distances[space.moving].max() < 1e-9
    np.testing.assert_allclose(chart.common_maps(chart.own_maps(maps)), maps, atol=1e-9)


def test_a_gaussian_seen_from_other_references_has_its_mean_where_it_was(space: PoseSpace) -> None:
    rng = np.random.default_rng(2)
    other = turned(space, 0.3, rng)
    blend = BlendPrior([one_gaussian(space, np.zeros(space.size - 7), 0.01)] * 2, [0.5, 0.5])
    chart = Chart(other, space)
    maps = rng.normal(scale=0.2, size=space.size - 7)
    mean, root = chart.own_maps(maps), rng.normal(size=(maps.size, maps.size))
    precision = root @ root.T / maps.size + np.eye(maps.size)
    q = np.concatenate([[0, 0, 0, 1, 0, 0, 0], maps])
    seen = chart.seen(q, information(precision @ (mean - chart.own_maps(maps)), precision))
    towards, stiffness = seen.pull[6:], seen.precision[6:, 6:]
    np.testing.assert_allclose(towards, 0.0, atol=1e-9)
    step = 1e-6 * rng.normal(size=maps.size)
    moved = chart.own_maps(maps + step) - mean
    assert step @ stiffness @ step == pytest.approx(moved @ precision @ moved, rel=1e-4)
    gaussians = [(0.5, own.seen(q, information(-maps, np.eye(maps.size)))) for own in blend.charts]
    pull, precision = weighed(gaussians)
    assert maps + np.linalg.solve(precision[6:, 6:], pull[6:]) == pytest.approx(0.0, abs=1e-9)


def test_joints_that_are_still_in_one_component_hardly_move(space: PoseSpace) -> None:
    moving = space.is_moving.copy()
    moving[space.moving[:2]] = False
    stiff = PoseSpace(space.skeleton, references=space.references, moving=moving)
    one = one_gaussian(space, np.full(space.size - 7, 0.2), 1.0)
    blend = BlendPrior([one, one_gaussian(stiff, np.zeros(stiff.size - 7), 1.0)], [0.5, 0.5])
    mean, _ = expected(blend)
    assert np.abs(mean[:6]).max() < 1e-3
    np.testing.assert_allclose(mean[6:], 0.1, atol=1e-9)


def test_one_file_holds_all_components(models: tuple[StylePrior, GaussianPrior], tmp_path: Path) -> None:
    blend = BlendPrior(models, [0.3, 0.7])
    save(blend, tmp_path / "blend.poise")
    again = load(tmp_path / "blend.poise")
    assert isinstance(again, BlendPrior)
    assert [type(part) for part in again.components] == [StylePrior, GaussianPrior]
    q = np.concatenate([[0, 0, 0, 1, 0, 0, 0], blend.mean])
    assert again.log_likelihood(q) == blend.log_likelihood(q)
    assert again.percentile(q) == blend.percentile(q)
    np.testing.assert_array_equal(again.mean, blend.mean)


def test_the_likelihood_is_the_components_own_by_weight(models: tuple[StylePrior, GaussianPrior]) -> None:
    for weights in ([1.0, 0.0], [0.0, 1.0]):
        blend, alone = BlendPrior(models, weights), models[int(weights[1])]
        q = np.concatenate([[0, 0, 0, 1, 0, 0, 0], alone.mean])
        assert blend.log_likelihood(q) == pytest.approx(alone.log_likelihood(q))
        assert blend.space is alone.space


@pytest.mark.parametrize("weights", [[0.5, 0.6], [-0.1, 1.1], [np.nan, 1.0], [1.0]])
def test_weights_that_are_no_shares_are_refused(
    models: tuple[StylePrior, GaussianPrior], weights: list[float]
) -> None:
    with pytest.raises(InvalidValueError, match="weight"):
        BlendPrior(models, weights)


def test_other_skeletons_do_not_blend(models: tuple[StylePrior, GaussianPrior]) -> None:
    from poise.skeleton.skeleton import Skeleton

    rod = Skeleton(("root", "tip"), np.array([-1, 0]), np.array([[0.0, 0, 0], [0, 1.0, 0]]), ("XYZ", "XYZ"))
    other = one_gaussian(PoseSpace(rod), np.zeros(3), 1.0)
    with pytest.raises(SkeletonError, match="same joints"):
        BlendPrior([models[0], other], [0.5, 0.5])
