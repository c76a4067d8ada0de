"""The primal step: the same answer as the dual step's, for many soft rows, limits and hard rows beside them."""

import numpy as np
import pytest

from poise.motion import Motion
from poise.motion.virtual_markers import optical_layout
from poise.priors.gaussian import GaussianPrior
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import read_only
from poise.solvers import dual_step
from poise.solvers.constraints import Constraint, Position
from poise.solvers.problem import Problem
from poise.solvers.rows import evaluate
from poise.solvers.solve import solve


@pytest.fixture(scope="module")
def markers(space: PoseSpace, walk: Motion, pose_vectors_of_walk: np.ndarray) -> list[Constraint]:
    layout = optical_layout(walk.skeleton, samples=walk.rotations)
    handles = space.handles(list(layout.values()))
    points, _ = space.handle_positions(pose_vectors_of_walk[40], handles)
    return [Position(h, p, tolerance=0.01) for h, p in zip(layout.values(), points, strict=True)]


@pytest.fixture(scope="module")
def pose_vectors_of_walk(space: PoseSpace, walk: Motion) -> np.ndarray:
    return space.q_from_frames(walk.root_positions, walk.rotations)


def step_by(form: object, problem: Problem, q: np.ndarray, covariance: np.ndarray, gap: np.ndarray):
    work = dual_step.workspace(len(problem.rows), problem.space.freedoms)
    work.gap[:] = gap
    errors = np.empty(len(problem.rows))
    evaluate(q, problem.body, problem.blocks, errors, work.jacobian)
    dual_step.spread_rows(work.jacobian, covariance, work.spread, work.gram)
    included, variances = np.ones(len(errors), dtype=np.bool_), problem.rows[:, 0].copy()
    form(q, errors, problem.rows, variances, included, covariance, problem.limits, work)
    return work.step.copy(), work.pull.copy(), work.active_limits.copy()


@pytest.mark.parametrize("with_hard_row", [False, True])
@pytest.mark.parametrize("with_limits", [False, True])
def test_primal_and_dual_steps_agree(
    space: PoseSpace,
    markers: list[Constraint],
    pose_vectors_of_walk: np.ndarray,
    *,
    with_hard_row: bool,
    with_limits: bool,
) -> None:
    hard = [Position("left_hand", (0.2, 1.1, 0.9))] if with_hard_row else []
    problem = Problem(space, [*markers, *hard])
    q = pose_vectors_of_walk[30].copy()
    rng = np.random.default_rng(0)
    root = rng.normal(size=(space.freedoms, space.freedoms)) / 20
    covariance, gap = root @ root.T + 1e-3 * np.eye(space.freedoms), 0.05 * rng.normal(size=space.freedoms)
    if with_limits:
        limits = problem.limits.copy()
        limits[0, 6:], limits[1, 6:] = q[7:] - 0.02, q[7:] + 0.02
        problem.limits = read_only(limits)
    dual = step_by(dual_step.constrained_step, problem, q, covariance, gap)
    primal = step_by(dual_step.step_under, problem, q, covariance, gap)
    assert (primal[2] != 0).any() == with_limits
    for own, other in zip(primal, dual, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-6 * np.abs(other).max() + 1e-9)


def test_rows_of_infinite_variance_say_nothing(
    space: PoseSpace, markers: list[Constraint], pose_vectors_of_walk: np.ndarray
) -> None:
    problem, q = Problem(space, markers), pose_vectors_of_walk[30].copy()
    covariance, gap = 0.1 * np.eye(space.freedoms), np.zeros(space.freedoms)
    problem.rows[30:, 0] = np.inf
    hidden = step_by(dual_step.step_under, problem, q, covariance, gap)[0]
    fewer = step_by(dual_step.constrained_step, Problem(space, markers[:10]), q, covariance, gap)[0]
    np.testing.assert_allclose(hidden, fewer, atol=1e-9)


def test_the_conditioned_covariance_is_that_of_the_textbook() -> None:
    rng = np.random.default_rng(1)
    root, jacobian = rng.normal(size=(9, 9)), rng.normal(size=(12, 9))
    S, R = root @ root.T, np.full(12, 0.5)
    matrix, _ = dual_step.information(jacobian, np.zeros(12), R, np.ones(12, dtype=np.bool_), np.zeros(9))
    expected = np.linalg.inv(np.linalg.inv(S) + jacobian.T @ jacobian / 0.5)
    np.testing.assert_allclose(dual_step.conditioned(S, matrix), expected, atol=1e-9)


def test_many_hard_handles_are_met_too(
    prior: GaussianPrior, markers: list[Constraint], pose_vectors_of_walk: np.ndarray
) -> None:
    hard = [Position(marker.handle, marker.target) for marker in markers]  # type: ignore[attr-defined]
    solution = solve(prior, hard, start=pose_vectors_of_walk[38])
    assert solution.reached, solution
