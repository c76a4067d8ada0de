"""Learning from corrections: habits are taken over, everything else stays, constraints stay met."""

from pathlib import Path

import numpy as np
import pytest

from poise.errors import InvalidValueError, ParseError
from poise.geometry import rotations
from poise.performer import act
from poise.priors.gaussian import GaussianPrior
from poise.skeleton.skeleton import Pose
from poise.solvers.constraints import Pinned
from poise.solvers.corrections import Corrections
from poise.solvers.solve import solve

HABITS = [("left_hand", 20.0), ("head", -25.0), ("left_forearm", 20.0), ("spine", 15.0)]


@pytest.fixture(scope="module")
def prior() -> GaussianPrior:
    return GaussianPrior.learn([act("throw", seed=seed, fps=15) for seed in range(2)], clusters=5)


def problem(seed: int) -> dict[str, tuple[float, float, float]]:
    x, y, z, left, right = np.random.default_rng(seed).normal(scale=(0.1, 0.2, 0.1, 0.1, 0.1))
    return {
        "right_hand": (-0.3 + x, 1.2 + y, 0.4 + z),
        "left_foot": (0.12, 0.1, left),
        "right_foot": (-0.12, 0.1, right),
    }


def with_habit(pose: Pose, joint: str, degrees: float) -> Pose:
    turned, index = pose.rotations.copy(), pose.skeleton.index(joint)
    turned[index] = rotations.multiply(
        turned[index], rotations.quaternion_from_expmap(np.radians([degrees, 0.0, 0.0]))
    )
    return Pose(pose.skeleton, pose.root_position, turned)


def taught(prior: GaussianPrior, joint: str, degrees: float, count: int = 5) -> Corrections:
    corrections = Corrections()
    for seed in range(count):
        pose = solve(prior, problem(seed)).pose
        corrections = corrections.added(pose, with_habit(pose, joint, degrees))
    return corrections


@pytest.mark.parametrize(("joint", "degrees"), HABITS)
def test_five_corrections_take_four_fifths_of_the_error_away(
    prior: GaussianPrior, joint: str, degrees: float
) -> None:
    corrections, left, moved = taught(prior, joint, degrees), [], []
    for seed in range(100, 106):
        plain = solve(prior, problem(seed)).pose
        solution = corrections.solve(prior, problem(seed))
        assert solution.reached
        wanted = with_habit(plain, joint, degrees).rotations
        off = rotations.geodesic_distance(solution.pose.rotations, wanted)
        index = plain.skeleton.index(joint)
        left.append(off[index])
        moved.append(np.delete(off, [0, index]).mean())
    assert np.mean(left) < 0.2 * np.radians(abs(degrees))
    assert np.mean(moved) < np.radians(1.0)


def test_none_change_nothing_and_the_last_can_be_taken_back(prior: GaussianPrior) -> None:
    plain = solve(prior, problem(7))
    assert np.array_equal(Corrections().solve(prior, problem(7)).q, plain.q)
    assert len(taught(prior, "head", 20.0, count=2).without_last()) == 1


def test_a_file_holds_them(prior: GaussianPrior, tmp_path: Path) -> None:
    corrections = taught(prior, "head", 20.0, count=2)
    corrections.save(tmp_path / "habits.json")
    again = Corrections.load(tmp_path / "habits.json").solve(prior, problem(8))
    assert np.allclose(again.q, corrections.solve(prior, problem(8)).q, atol=1e-4)


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "{}", "[" * 10_000),
        '{"poise": "corrections", "version": 9, "joints": [], "corrections": []}',
        '{"poise": "corrections", "version": 1, "joints": ["a"], "corrections": [{"before": [[0, 0, 0, 0]]}]}',
    ],
)
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "habits.json").write_text(text)
    with pytest.raises(ParseError, match="not a file of corrections"):
        Corrections.load(tmp_path / "habits.json")


def test_another_skeleton_is_refused(prior: GaussianPrior) -> None:
    corrections = Corrections(("a",), np.ones((1, 1, 4)) / 2, np.ones((1, 1, 4)) / 2)
    with pytest.raises(InvalidValueError, match="another skeleton"):
        corrections.solve(prior, problem(9))


def test_soft_pins_of_other_joints_are_another_problem(prior: GaussianPrior) -> None:
    q = solve(prior, problem(1)).q
    for joint in (["Head"], ["LeftHand"], ["Head", "LeftHand"]):
        assert solve(prior, [Pinned(joint, q, tolerance=0.1)]).reached
