"""Constraints in Python: met exactly or softly, beside compiled ones, by their own Jacobian or by differences."""

from dataclasses import dataclass

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError
from poise.motion import Motion
from poise.priors.gaussian import GaussianPrior
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import Position
from poise.solvers.measured import MeasuredConstraint, PoseView
from poise.solvers.problem import Problem
from poise.solvers.solution import Status
from poise.solvers.solve import solve

HAND = Position("left_hand", (0.3, 1.3, 0.3))


@dataclass(frozen=True, eq=False)
class Level(MeasuredConstraint):
    """Both hands at one height."""

    def residual(self, pose: PoseView) -> np.ndarray:
        return np.array([pose.position("left_hand")[1] - pose.position("right_hand")[1]])


@dataclass(frozen=True, eq=False)
class LevelByJacobian(Level):
    """The same with a Jacobian of its own."""

    def jacobian(self, pose: PoseView) -> np.ndarray:
        return pose.position_jacobian("left_hand")[1:2] - pose.position_jacobian("right_hand")[1:2]


@dataclass(frozen=True, eq=False)
class OnSphere(MeasuredConstraint):
    """The right hand so far from a point."""

    radius: float

    def residual(self, pose: PoseView) -> np.ndarray:
        return np.linalg.norm(pose.position("right_hand") - [0.0, 1.2, 0.2]) - self.radius


@dataclass(frozen=True, eq=False)
class HeadAboveMass(MeasuredConstraint):
    """The head no further forward than the centre of mass, and upright: two rows, not below zero."""

    inequality = True

    def residual(self, pose: PoseView) -> np.ndarray:
        ahead = pose.centre_of_mass[2] - pose.position("head")[2]
        return np.array([ahead, pose.rotation("head")[1, 1] - 0.9])


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=2.0, fps=30)


@pytest.fixture(scope="module")
def prior(walk: Motion) -> GaussianPrior:
    return GaussianPrior.learn([walk], clusters=8)


@pytest.fixture
def q(walk: Motion) -> np.ndarray:
    return PoseSpace(walk.skeleton).q_from_frames(walk.root_positions, walk.rotations)[7]


@pytest.mark.parametrize("constraint", [Level(), LevelByJacobian(), OnSphere(0.25), HeadAboveMass()])
@pytest.mark.parametrize("learned", [True, False])
def test_hard_ones_are_met_beside_compiled_ones(
    prior: GaussianPrior, walk: Motion, constraint: MeasuredConstraint, learned: bool
) -> None:
    solution = solve(prior if learned else walk.skeleton, [HAND, constraint])
    assert solution.status is Status.REACHED
    left = np.atleast_1d(constraint.residual(PoseView(solution.space, solution.q)))
    assert np.all(left > -1e-3 if constraint.inequality else np.abs(left) < 1e-3)
    assert [residual.met for residual in solution.residuals] == [True, True]


def test_soft_ones_give_way_to_the_prior_by_their_tolerance(prior: GaussianPrior) -> None:
    tight, loose, free = (
        abs(solve(prior, [HAND, OnSphere(0.6, tolerance=soft)]).residuals[1].value)
        for soft in (0.001, 1.0, 10.0)
    )
    assert tight < 0.01 < loose < free


def test_what_cannot_be_met_is_reported(walk: Motion) -> None:
    solution = solve(walk.skeleton, [HAND, OnSphere(4.0)])
    assert not solution.reached
    assert solution.residuals[1].value > 0.5
    true = OnSphere(4.0).residual(PoseView(solution.space, solution.q))
    assert solution.residuals[1].value == pytest.approx(abs(true), abs=1e-9)


@pytest.mark.parametrize("constraint", [Level(), OnSphere(0.3), HeadAboveMass()])
def test_rows_are_those_of_the_constraint_and_linear_between(
    walk: Motion, q: np.ndarray, constraint: MeasuredConstraint
) -> None:
    space = PoseSpace(walk.skeleton)
    problem = Problem(space, [constraint])
    errors, jacobian = problem.errors(q)
    np.testing.assert_allclose(errors, -np.atleast_1d(constraint.residual(PoseView(space, q))), atol=1e-12)
    step = 1e-4 * np.random.default_rng(0).normal(size=space.freedoms)
    moved = space.integrate(q, step)
    np.testing.assert_allclose(problem.errors(moved)[0], errors - jacobian @ step, atol=1e-6)


def test_differences_are_the_jacobian(walk: Motion, q: np.ndarray) -> None:
    pose = PoseView(PoseSpace(walk.skeleton), q)
    np.testing.assert_allclose(Level().jacobian(pose), LevelByJacobian().jacobian(pose), atol=1e-7)


@dataclass(frozen=True, eq=False)
class Wrong(MeasuredConstraint):
    """Answers with what it was given."""

    answer: object
    slope: object = None

    def residual(self, pose: PoseView) -> np.ndarray:
        return self.answer(pose) if callable(self.answer) else self.answer  # type: ignore[return-value]

    def jacobian(self, pose: PoseView) -> np.ndarray:
        return super().jacobian(pose) if self.slope is None else self.slope  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (Wrong([np.nan]), "wrong: the residual must be one row of finite numbers; got"),
        (Wrong([[1.0, 2.0]]), "one row"),
        (Wrong([1.0], np.zeros((1, 3))), r"the Jacobian must be 1 x \d+ finite numbers; got shape \(1, 3\)"),
        (Wrong(lambda pose: np.zeros(1 + (pose.q[0] > 0.5)), np.empty((0, 0))), "the Jacobian must be"),
    ],
)
def test_wrong_answers_are_refused(walk: Motion, constraint: MeasuredConstraint, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        solve(walk.skeleton, [constraint])
