"""Local models as Chai and Hodgins 2005 published them."""

from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.capture.matching import WITH_HEAD, marker_layout
from poise.capture.performance import Performance
from poise.errors import UnknownNameError
from poise.evaluation.published.chai2005 import (
    PublishedMarkers,
    estimate_errors,
    left_out,
    smallest_dimension,
)
from poise.evaluation.published.subspaces import Baseline
from poise.priors import model_file
from poise.priors.local.prior import LocalPrior


@pytest.fixture(scope="module")
def prior() -> LocalPrior:
    clips = [performer.act("walk", seconds=4.0, fps=30, seed=seed) for seed in range(3)]
    return LocalPrior.learn(clips, method="chai2005")


@pytest.mark.slow
def test_leave_one_out_judges_the_estimated_pose() -> None:
    """Of six directions in which poses differ, markers follow two: more than those make poses worse."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(60, 6)) * np.array([1.0, 0.9, 0.3, 0.3, 0.3, 0.3])
    angles = hidden @ np.linalg.qr(rng.normal(size=(20, 6)))[0].T
    markers = hidden[:, :2] @ rng.normal(size=(2, 9)) + 0.3 * rng.normal(size=(60, 9))
    pieces = np.repeat(np.arange(10), 6)
    errors = left_out(angles, markers, pieces, 10.0, 6).mean(axis=0)
    assert errors[1] < 0.7 * errors[0]
    assert errors.min() > 0.8 * errors[1]


def test_a_larger_subspace_has_to_be_better_by_more_than_chance() -> None:
    chance = np.array([-0.3, -0.1, 0.1, 0.3])[:, None]
    means = np.array([3.0, 1.05, 1.2, 1.0])
    assert smallest_dimension(means + chance) == 2
    assert smallest_dimension(means + 0.1 * chance) == 4


def test_an_estimate_is_the_minimum_of_equation_9() -> None:
    rng = np.random.default_rng(1)
    angles, markers = rng.normal(size=(30, 8)), rng.normal(size=(30, 6))
    mean, centre = angles.mean(axis=0), markers.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(angles.T, bias=True))
    basis, variances = vectors[:, ::-1][:, :3], values[::-1][:3]
    scores = (angles - mean) @ basis
    moved = (markers - centre).T @ scores / (30 * variances)
    pose, seen = rng.normal(size=8), rng.normal(size=6)
    w = np.linalg.solve(np.diag(1 / variances) + 5.0 * moved.T @ moved, 5.0 * moved.T @ (seen - centre))
    expected = np.sum((pose - mean - basis @ w) ** 2)
    assert estimate_errors(angles, markers, pose, seen, 5.0, 3)[2] == pytest.approx(expected)


@pytest.mark.slow
def test_a_performance_is_nearer_than_the_nearest_example(prior: LocalPrior) -> None:
    clip = performer.act("walk", seconds=2.0, fps=30, seed=7)
    layout = marker_layout(clip.skeleton, WITH_HEAD)
    performance = Performance(prior, layout, skeleton=clip.skeleton, fps=30)
    body = prior.examples.on_body(clip.skeleton)
    nearest = Baseline(body, performance.handles)
    truth = performance.space.q_from_frames(clip.root_positions, clip.rotations)
    markers = performance.space.points(truth, performance.handles)
    found = np.stack([performance.step(points).q for points in markers])
    plain = np.stack([nearest.step(points) for points in markers])
    assert np.abs(found - truth)[:, 7:].mean() < np.abs(plain - truth)[:, 7:].mean()
    assert isinstance(performance.guide, PublishedMarkers)
    assert len(performance.guide.model.variances) <= 12


def test_missing_markers_leave_a_pose(prior: LocalPrior) -> None:
    performance = Performance(prior, marker_layout(prior.space.skeleton, WITH_HEAD), fps=30)
    points = prior.space.points(prior.examples.q[20:22], performance.handles)
    performance.step(points[0])
    points[1, :4] = np.nan
    assert np.abs(performance.step(points[1]).q[7:] - prior.examples.maps[21]).mean() < 0.1


@pytest.mark.slow
def test_units_are_chosen_by_the_library_or_set(prior: LocalPrior, tmp_path: Path) -> None:
    layout = marker_layout(prior.space.skeleton, WITH_HEAD)
    clip = performer.act("walk", seconds=2.0, fps=30)
    given = LocalPrior.learn([clip], method="chai2005", control_unit=0.05, smoothness_unit=0.5)
    model_file.save(given, tmp_path / "given.poise")
    again = model_file.load(tmp_path / "given.poise")
    assert (again.method, again.units) == ("chai2005", given.units)
    assert Performance(again, layout).guide.noise == pytest.approx(0.05 / np.sqrt(0.8))
    assert Performance(prior, layout).guide.local.unit in (0.003, 0.01, 0.03, 0.1)
    with pytest.raises(UnknownNameError, match="chai2005"):
        LocalPrior.learn([clip], method="chai2004")
