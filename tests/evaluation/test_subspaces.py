"""Local subspaces: query, leave-one-out, energies and their gradient."""

import numpy as np
import pytest

from poise import performer
from poise.evaluation.published.subspaces import (
    BASELINES,
    energy,
    leave_one_out,
    principal_subspace,
    synthesize,
)
from poise.priors.local.examples import Examples, Query

MARKERS = (
    "left_hand",
    "right_hand",
    "left_foot",
    "right_foot",
    "left_upper_arm",
    "right_upper_arm",
    "pelvis",
)


@pytest.fixture(scope="module")
def examples() -> Examples:
    return Examples.of_motions([performer.act("walk", seconds=4.0, fps=30, seed=s) for s in range(2)])


def test_the_query_finds_what_brute_force_finds() -> None:
    rng = np.random.default_rng(0)
    markers, maps = rng.normal(size=(200, 4, 3)), rng.normal(size=(200, 6))
    wanted, going = rng.normal(size=(4, 3)), rng.normal(size=6)
    wanted[2] = np.nan
    near, squares = Query(markers, maps)(wanted, going, 5)
    of_markers = np.nansum((markers - wanted) ** 2, axis=(1, 2)) / markers.var(axis=0).sum()
    of_maps = ((maps - going) ** 2).sum(axis=1) / maps.var(axis=0).sum()
    expected = 0.8 * of_markers + 0.2 * of_maps
    np.testing.assert_array_equal(near, np.argsort(expected)[:5])
    np.testing.assert_allclose(squares, np.sort(expected)[:5], rtol=1e-4)


def test_leave_one_out_is_near_what_fitting_again_gives() -> None:
    rng = np.random.default_rng(2)
    data = rng.normal(size=(40, 4)) @ rng.normal(size=(4, 20)) + 0.1 * rng.normal(size=(40, 20))
    whole = principal_subspace(data, 6)
    quick = leave_one_out(data - whole.mean, whole.basis, whole.variances)
    for dimension in (2, 4):
        errors = []
        for k in range(20):
            others = principal_subspace(np.delete(data, k, axis=0), dimension)
            errors.append(np.sum((others.project(data[k]) - data[k]) ** 2))
        of_components = (1.0 - dimension / 21) ** 2
        assert quick[dimension - 1] * of_components == pytest.approx(np.mean(errors), rel=0.25)


def test_the_gradient_of_the_energy_meets_finite_differences(examples: Examples) -> None:
    space, handles = examples.space, examples.space.handles(MARKERS)
    subspace = principal_subspace(examples.maps, 5)
    targets = space.points(examples.q[3:4], handles)[0]
    count = 3 * len(MARKERS) + 5 + subspace.mean.size
    residuals, jacobian, scratch = np.empty(count), np.empty((count, 5)), np.empty((count, 5))
    w, q = np.full(5, 0.1), examples.q[3].copy()
    chain = (*space.tree, handles.joints, handles.offsets, targets)
    rest = (chain, (subspace.mean, subspace.basis, subspace.variances), examples.maps[0])
    energy(w, q, *rest, residuals, jacobian)
    for b in range(5):
        step = np.zeros(5)
        step[b] = 1e-6
        ahead, behind = np.empty(count), np.empty(count)
        energy(w + step, q, *rest, ahead, scratch)
        energy(w - step, q, *rest, behind, scratch)
        np.testing.assert_allclose(jacobian[:, b], (ahead - behind) / 2e-6, atol=1e-4)


def test_synthesis_comes_close_to_markers_within_the_subspace(examples: Examples) -> None:
    space, handles = examples.space, examples.space.handles(MARKERS)
    truth = examples.q[40]
    targets = space.points(truth[None], handles)[0]
    q = synthesize(
        space, handles, root=truth[:7], targets=targets, subspace=principal_subspace(examples.maps, 12),
        start=examples.maps[0], expected=None,
    )  # fmt: skip
    gap = np.linalg.norm(space.points(q[None], handles)[0] - targets, axis=1)
    assert gap.mean() < 0.02


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_answers_markers_with_a_pose(examples: Examples, name: str) -> None:
    handles = examples.space.handles(MARKERS)
    baseline = BASELINES[name](examples, handles)
    for k in (10, 11, 12):
        q = baseline.step(examples.space.points(examples.q[k : k + 1], handles)[0])
    assert np.linalg.norm(q[:3] - examples.q[12, :3]) < 0.1
    assert np.abs(q[7:] - examples.maps[12]).mean() < 0.1
