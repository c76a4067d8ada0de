"""Multi-variate Gaussian IK as Huang et al. 2017 published it."""

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError
from poise.evaluation.published.huang2017 import PublishedRun
from poise.priors.clusters import BETA
from poise.priors.gaussian import GaussianPrior
from poise.solvers.constraints import Position
from poise.solvers.problem import Problem
from poise.solvers.solve import Solver, solve

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")


@pytest.fixture(scope="module")
def prior() -> GaussianPrior:
    clips = [performer.act("walk", seconds=4.0, fps=30, seed=seed) for seed in range(2)]
    return GaussianPrior.learn(clips, clusters=12, method="huang2017")


def test_at_a_clusters_own_targets_equation_9_is_that_cluster(prior: GaussianPrior) -> None:
    handles = prior.space.handles(HANDLES)
    guide = prior.guide(handles)
    own = prior.space.points_in_root_frame(prior.means, handles)
    for k in (0, 5):
        mean, covariance = guide(own[k])
        np.testing.assert_allclose(guide.weights(own[k]), np.arange(12) == k, atol=1e-9)
        np.testing.assert_allclose(mean, prior.means[k], atol=1e-9)
        np.testing.assert_allclose(covariance, prior.covariances[k], atol=1e-9)


def test_weights_may_be_negative_and_the_covariance_is_repaired(prior: GaussianPrior) -> None:
    handles = prior.space.handles(HANDLES)
    guide = prior.guide(handles)
    own = prior.space.points_in_root_frame(prior.means, handles)
    between = [0.5 * (own[i] + own[j]) + 0.05 for i in range(12) for j in range(i)]
    assert min(guide.weights(targets).min() for targets in between) < 0.0
    assert all(np.linalg.eigvalsh(guide(targets)[1])[0] > 0.99 * BETA for targets in between)


def test_a_step_is_equation_17(prior: GaussianPrior) -> None:
    q = prior.space.standing(prior.means[2])
    targets = prior.space.points(q[None], prior.space.handles(HANDLES))[0] + 0.02
    problem = Problem(
        prior.space, [Position(*pair) for pair in zip(HANDLES, targets, strict=True)], root="given"
    )
    run = PublishedRun(prior.guide(problem.handles), problem)
    state = run._predicted(q)
    errors, jacobian = problem.errors(q)
    step = run._step(q, state.maps[0], errors, jacobian)[6:]
    J, inverse = jacobian[:, 6:], np.linalg.inv(state.covariance[6:, 6:])
    weight = np.linalg.norm(errors) * prior.balance.prior
    left = 2 * J.T @ J + 2 * prior.balance.step * np.eye(len(step)) + weight * inverse
    right = 2 * J.T @ errors + weight * inverse @ (state.maps[0] - q[7:])
    np.testing.assert_allclose(step, np.linalg.solve(left, right), atol=1e-9)


def test_training_poses_are_regenerated_and_targets_reached(prior: GaussianPrior) -> None:
    clip = performer.act("walk", seconds=4.0, fps=30, seed=0)
    truth = prior.space.q_from_frames(clip.root_positions, clip.rotations)
    targets = prior.space.points(truth, prior.space.handles(HANDLES))
    solver = Solver(prior, [Position(name, (0.0, 0.0, 0.0)) for name in HANDLES], root="given")
    assert solver.method == "huang2017"
    for k in (10, 40, 80):
        start = np.concatenate([truth[k, :7], prior.mean])
        solution = solver.solve(start, targets=targets[k])
        assert solution.reached
        assert np.abs(solution.q[7:] - truth[k, 7:]).mean() < 0.06


def test_it_needs_a_model_learned_by_it() -> None:
    other = GaussianPrior.learn([performer.act("walk", seconds=2.0, fps=30)], clusters=4)
    with pytest.raises(InvalidValueError, match="huang2017"):
        solve(other, {"head": (0.0, 1.6, 0.0)}, method="huang2017")
