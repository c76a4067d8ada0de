"""Frame after frame: solvers that are kept and those that cannot be, spaces that change on the way, a new start."""

from functools import partial

import numpy as np
import pytest

from poise.errors import InvalidValueError
from poise.motion import Motion
from poise.priors.gaussian import GaussianPrior
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import CentreOfMass, Constraint, Line, Pinned, Plane, Position
from poise.solvers.solve import KEPT, Follower, Solver, track


def test_a_solver_serves_while_only_targets_change(prior: GaussianPrior) -> None:
    follower = Follower(partial(Solver, prior))
    first = follower.solver([Position("left_hand", (0.3, 1.0, 0.2))])
    assert follower.solver([Position("left_hand", (0.3, 1.1, 0.2))]) is first
    np.testing.assert_allclose(first.problem.targets, [[0.3, 1.1, 0.2]])
    assert follower.solver([Position("right_hand", (0.3, 1.1, 0.2))]) is not first
    for number in range(KEPT):
        follower.solver([Position("left_hand", (0.3, 1.0, 0.2), tolerance=0.1 + number)])
    assert follower.solver([Position("left_hand", (0.3, 1.0, 0.2))]) is not first


def _varied(prior: GaussianPrior) -> list[list[Constraint]]:
    """Constraints that look alike from frame to frame and need a solver of their own each."""
    bent = np.concatenate([np.zeros(3), [1.0, 0.0, 0.0, 0.0], prior.mean])
    more = bent.copy()
    more[7:] += 0.05
    name = prior.space.skeleton.names[int(prior.space.moving[0])]
    ray = partial(Line, "left_hand", (0.3, 1.0, 0.2), (0.0, 0.0, 1.0))
    return [
        [ray(whole_line=True)],
        [ray()],
        [Pinned([name], bent)],
        [Pinned([name], more)],
        [CentreOfMass([(0.0, 0.0)])],
        [CentreOfMass([(-0.2, -0.2), (0.2, -0.2), (0.0, 0.3)])],
    ]


def test_constraints_that_no_solver_can_retarget_get_their_own(prior: GaussianPrior) -> None:
    frames = _varied(prior)
    found = track(prior, frames)
    assert all(solution.reached for solution in found)
    pinned = found[3].q[7:10] - found[2].q[7:10]
    np.testing.assert_allclose(pinned, 0.05)


def test_frames_come_after_each_other_whatever_the_space(prior: GaussianPrior, walk: Motion) -> None:
    target = [Position("left_hand", (0.3, 1.0, 0.2))]
    follower = Follower(partial(Solver, prior))
    first = follower.step(target)
    follower.use(partial(Solver, PoseSpace(walk.skeleton)))
    second = follower.step(target)
    np.testing.assert_allclose(second.pose.rotations, first.pose.rotations, atol=1e-6)
    follower.restart()
    assert follower.last is None
    solver = follower.solver(target)
    with pytest.raises(InvalidValueError, match="targets must be for"):
        solver.problem.retarget([Position("right_hand", (0.0, 0.0, 0.0))])


def test_a_target_that_its_caller_moves_is_where_it_was_moved(prior: GaussianPrior) -> None:
    follower, place = Follower(partial(Solver, prior)), np.array([0.3, 1.0, 0.2])
    moved, plane = Position("left_hand", place), Plane("right_hand", (0.0, 1.0, 0.0))
    follower.solver([moved, plane])
    place[1] = 1.1
    solver = follower.solver([moved, plane])
    np.testing.assert_allclose(solver.problem.targets, [[0.3, 1.1, 0.2]])
    assert plane.blocks_on(prior.space) is plane.blocks_on(prior.space)
