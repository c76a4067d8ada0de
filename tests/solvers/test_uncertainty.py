"""How sure a solution is: what handles settle, what they leave open, and which to add."""

import numpy as np
import pytest

from poise.errors import InvalidValueError
from poise.performer import act
from poise.priors.evidence import OF_OTHERS, kept
from poise.priors.gaussian import GaussianPrior
from poise.solvers.constraints import Position
from poise.solvers.solution import Solution
from poise.solvers.solve import solve
from poise.solvers.uncertainty import Uncertainty

HANDLES = {"right_hand": (-0.3, 1.2, 0.4), "left_foot": (0.1, 0.1, 0.0), "right_foot": (-0.1, 0.1, 0.2)}


@pytest.fixture(scope="module")
def prior() -> GaussianPrior:
    """Without any widening: its own claims."""
    learned = GaussianPrior.learn([act("throw", seed=seed, fps=15) for seed in range(2)], clusters=5)
    return kept(learned, held_out=OF_OTHERS._replace(slope=0.0, factor=1.0))


@pytest.fixture(scope="module")
def solution(prior: GaussianPrior) -> Solution:
    return solve(prior, HANDLES)


def test_handles_settle_their_joints_and_leave_others_open(solution: Solution) -> None:
    assert max(solution.deviation[name] for name in HANDLES) < 0.002
    assert solution.deviation["left_hand"] > 0.01
    assert solution.deviation["LeftHand"] == solution.deviation["left_hand"]


def test_one_more_handle_never_widens_a_deviation(prior: GaussianPrior, solution: Solution) -> None:
    """With the prior's Gaussian held, since its prediction changes with the handles."""
    more = solve(prior, {**HANDLES, "left_hand": tuple(solution.positions["left_hand"])})
    assert np.asarray(more.deviation).mean() < np.asarray(solution.deviation).mean()
    assert more.deviation["left_hand"] < 0.002


def test_samples_keep_to_the_handles_and_spread_as_claimed(solution: Solution) -> None:
    drawn = solution.uncertainty.samples(400, np.random.default_rng(0))
    joints, _ = solution.space.forward(drawn)
    skeleton, here = solution.space.skeleton, np.asarray(solution.positions)
    off = joints - here
    hand = off[:, skeleton.index("left_hand")]
    assert np.sqrt((hand**2).mean()) == pytest.approx(solution.deviation["left_hand"], rel=0.25)
    foot = np.linalg.norm(off[:, skeleton.index("left_foot")], axis=1)
    assert np.median(foot) < 0.2 * np.median(np.linalg.norm(hand, axis=1))


def test_the_suggested_handle_takes_most_away(solution: Solution) -> None:
    uncertainty, skeleton = solution.uncertainty, solution.space.skeleton
    found = uncertainty.suggestions(("left_hand", "head", "left_foot"))
    assert [one.joint for one in found][-1] == "left_foot"  # it is held already
    assert 0.0 <= found[-1].share < 0.01 < found[0].share <= 1.0
    own = 3 * skeleton.index(found[0].joint) + np.arange(3)
    places = uncertainty.places
    left = places - places[:, own] @ np.linalg.solve(places[np.ix_(own, own)] + 4e-6 * np.eye(3), places[own])
    moving = np.repeat(~skeleton.is_end_site, 3)
    spread = [np.sqrt(np.diag(part)[moving].reshape(-1, 3).sum(axis=1)).sum() for part in (left, places)]
    assert found[0].share == pytest.approx(1 - spread[0] / spread[1], abs=1e-6)


def test_a_handle_that_settles_several_joints_is_worth_more_than_one_that_halves_the_widest(
    solution: Solution,
) -> None:
    skeleton = solution.space.skeleton
    joints = [skeleton.index(name) for name in ("left_hand", "left_upper_arm", "left_forearm", "neck")]
    places = np.zeros((3 * len(skeleton),) * 2)
    for one, other, value in ((0, 0, 0.3**2), (1, 1, 0.05**2), (2, 2, 0.05**2), (3, 3, 0.05**2), (1, 2, 0.049 * 0.05),
                              (1, 3, 0.049 * 0.05), (2, 3, 0.049 * 0.05)):  # fmt: skip
        for a, b in ((joints[one], joints[other]), (joints[other], joints[one])):
            places[3 * a : 3 * a + 3, 3 * b : 3 * b + 3] = value * np.eye(3)
    several = Uncertainty(
        solution.space, solution.q, solution.uncertainty.covariance,
        record=solution.uncertainty.record, squares=1.0, rows=3.0,
    )  # fmt: skip
    several.__dict__["places"] = places
    found = several.suggestions(("left_hand", "neck", "left_forearm"))
    assert found[-1].joint == "left_hand"
    assert found[-1].share > 0.5 > found[0].share


def test_alternatives_meet_the_handles_and_differ_where_the_pose_is_open(solution: Solution) -> None:
    found = solution.uncertainty.alternatives(4)
    skeleton, joints = solution.space.skeleton, solution.space.forward(np.stack(found))[0]
    held = [skeleton.index(name) for name in HANDLES]
    assert np.linalg.norm(joints[:, held] - np.array(list(HANDLES.values())), axis=-1).max() < 0.002
    apart = np.linalg.norm(joints[:, None] - joints, axis=-1).max(axis=-1)
    assert len(found) == 4
    assert apart[np.triu_indices(4, 1)].min() > 0.05
    widest = np.linalg.norm(joints - np.asarray(solution.positions), axis=-1).max(axis=0)
    assert widest[skeleton.index("left_hand")] > 10 * widest[held].max()


def test_radii_grow_with_the_share(solution: Solution) -> None:
    half, most = solution.uncertainty.radii(0.5), solution.uncertainty.radii(0.95)
    assert 0 < half["left_hand"] < solution.deviation["left_hand"] * 2 < most["left_hand"]
    with pytest.raises(InvalidValueError, match="share"):
        solution.uncertainty.radii(1.5)


def test_a_given_root_is_certain(prior: GaussianPrior, solution: Solution) -> None:
    given = solve(prior, HANDLES, start=solution.q, root="given")
    assert given.deviation["pelvis"] == 0.0 < solution.deviation["pelvis"]


def test_it_stays_with_the_targets_of_its_own_solve(prior: GaussianPrior) -> None:
    first = solve(prior, HANDLES)
    q = first.q.copy()
    solve(prior, {name: (x, y + 0.1, z) for name, (x, y, z) in HANDLES.items()})
    assert np.array_equal(first.uncertainty.q, q)


def test_without_a_prior_nothing_is_claimed(prior: GaussianPrior) -> None:
    plain = solve(prior.space, [Position("right_hand", (-0.3, 1.2, 0.4))])
    with pytest.raises(InvalidValueError, match="learned prior"):
        _ = plain.deviation
