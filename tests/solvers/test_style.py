"""Solving with a style: handles met, one answer for one question, ranked alternatives, and what dragging does."""

from itertools import pairwise

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.priors.model_file import load, save
from poise.priors.style.prior import StylePrior
from poise.solvers import core
from poise.solvers.constraints import Pinned, Position
from poise.solvers.problem import Problem
from poise.solvers.run import Runner
from poise.solvers.solve import Solver, solve, track

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")


@pytest.fixture(scope="module")
def style() -> StylePrior:
    walk = performer.act("walk", seconds=3.0, fps=30, seed=3)
    return learned(StylePrior, [walk], dimensions=2, active=40, velocity=False)


@pytest.fixture(scope="module")
def truth(style: StylePrior) -> np.ndarray:
    walk = performer.act("walk", seconds=1.5, fps=30, seed=4)
    return style.space.q_from_frames(walk.root_positions, walk.rotations)


def targets_of(style: StylePrior, q: np.ndarray, names: tuple[str, ...] = HANDLES) -> list[Position]:
    points, _ = style.space.handle_positions(q, style.space.handles(names))
    return [Position(name, point) for name, point in zip(names, points, strict=True)]


def mean_angle(style: StylePrior, q: np.ndarray, truth: np.ndarray) -> float:
    found, expected = style.space.pose_from_q(q).rotations, style.space.pose_from_q(truth).rotations
    return float(np.degrees(rotations.geodesic_distance(found, expected)[style.space.moving].mean()))


def test_handles_are_met_and_the_pose_is_more_natural_than_without_a_style(
    style: StylePrior, truth: np.ndarray
) -> None:
    with_style, without = [], []
    for q in truth[::9]:
        start = np.concatenate([q[:7], style.mean])
        solution = solve(style, targets_of(style, q), start=start, root="given")
        assert solution.reached, solution
        with_style.append(mean_angle(style, solution.q, q))
        plain = solve(style, targets_of(style, q), start=start, root="given", method="dls")
        without.append(mean_angle(style, plain.q, q))
    assert np.mean(with_style) < 0.8 * np.mean(without)


def test_tracking_goes_on_from_the_last_frame_and_is_the_same_every_time(
    style: StylePrior, truth: np.ndarray
) -> None:
    def track() -> np.ndarray:
        solver = Solver(style, targets_of(style, truth[0]), root="given")
        poses, start = [], truth[0]
        for q in truth[:15]:
            start = np.concatenate([q[:7], start[7:]])
            points, _ = style.space.handle_positions(q, style.space.handles(HANDLES))
            solution = solver.solve(start, targets=points)
            assert solution.reached, solution
            start = solution.q
            poses.append(start)
        return np.array(poses)

    first, second = track(), track()
    assert np.array_equal(first, second)
    assert np.abs(np.diff(first[:, 7:], axis=0)).max() < 0.5  # nothing pops


def test_other_starts_are_tried_where_a_tracked_pose_is_unlikely(
    style: StylePrior, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Losses rise by 20 nats at one frame, which moves by more than 4 cm; only that one is solved from all starts."""
    losses = dict(enumerate([5.0, 6.0, 26.0, 7.0]))
    frame, cold, searched = 0, Runner._cold, []
    monkeypatch.setattr(Runner, "rank", lambda _, __: (0.0, losses[frame]))
    monkeypatch.setattr(Runner, "_cold", lambda self, q: [searched.append(frame), *cold(self, q)][1:])
    monkeypatch.setattr(Problem, "farthest", lambda _, __: 0.05)
    solver = Solver(style, targets_of(style, truth[0]), root="given")
    q = truth[0]
    for frame in losses:
        solver.problem.retarget(targets_of(style, truth[frame]))
        q = solver.solve(np.concatenate([truth[frame, :7], q[7:]])).q
    assert searched == [0, 2]


def test_the_root_is_found_upright_from_handles(style: StylePrior, truth: np.ndarray) -> None:
    solution = solve(style, targets_of(style, truth[20], (*HANDLES, "pelvis")))
    assert solution.reached, solution
    up = rotations.matrix_from_quaternion(solution.q[3:7])[1]
    assert up[1] > 0.9
    assert rotations.geodesic_distance(solution.q[3:7], truth[20, 3:7]) < np.radians(25)


def test_few_handles_give_a_likely_pose_and_ranked_alternatives(style: StylePrior, truth: np.ndarray) -> None:
    solver = Solver(style, targets_of(style, truth[10], ("left_foot", "right_foot")), root="given")
    solution = solver.solve(np.concatenate([truth[10, :7], style.mean]))
    assert solution.reached
    assert solution.percentile is not None
    assert solver.runner is not None
    found = solver.runner.found
    ranks = [solver.runner.rank(optimum) for optimum in found]
    assert np.array_equal(solver.alternatives[0], solution.q)
    assert len(solver.alternatives) == len(ranks)
    assert ranks == sorted(ranks)
    for one, other in pairwise(found):
        assert np.abs(one.q[7:] - other.q[7:]).max() > 0.1


def test_pinned_joints_stay_while_dragging(style: StylePrior, truth: np.ndarray) -> None:
    start = truth[5]
    pinned = Pinned(["RightArm"], start)
    hand = targets_of(style, start, ("left_hand",))[0]
    solver = Solver(style, [hand, pinned], root="given")
    first = solver.solve(start)
    solver.dragging = True
    assert solver.dragging
    moved = solver.solve(first.q, targets=np.asarray(hand.target)[None] + (0.02, 0.05, 0.0))
    assert moved.reached, moved
    (slot,) = pinned.slots(style.space)
    assert np.array_equal(moved.q[7 + 3 * slot : 10 + 3 * slot], start[7 + 3 * slot : 10 + 3 * slot])


def test_a_saved_style_solves_the_same(style: StylePrior, truth: np.ndarray, tmp_path) -> None:
    save(style, tmp_path / "walk.poise")
    again = load(tmp_path / "walk.poise")
    start = np.concatenate([truth[8, :7], style.mean])
    ours = solve(style, targets_of(style, truth[8]), start=start, root="given")
    theirs = solve(again, targets_of(style, truth[8]), start=start, root="given")
    assert np.array_equal(ours.q, theirs.q)
    assert ours.percentile == theirs.percentile


def test_far_targets_end_in_finite_poses_and_honest_words(style: StylePrior) -> None:
    rng = np.random.default_rng(0)
    solver = Solver(style, [Position(name, (0, 0, 0)) for name in HANDLES])
    for _ in range(60):
        solution = solver.solve(targets=rng.normal(scale=3.0, size=(5, 3)))
        assert np.all(np.isfinite(solution.q))
        assert not solution.reached
        assert solution.relaxed
        assert solution.percentile == 0.0


def test_percentiles_fall_gradually_as_a_hand_is_dragged_out_of_the_data() -> None:
    clip = performer.act("box", fps=30, seed=1)
    style = learned(StylePrior, [clip], dimensions=3, active=60)
    recorded = style.space.q_from_frames(clip.root_positions, clip.rotations)[::16]
    handles, solver = style.space.handles(HANDLES), Solver(style, targets_of(style, recorded[0]))
    shares = []
    for metres in (0.0, 0.1, 0.2, 1.0):
        points = np.stack([style.space.handle_positions(q, handles)[0] for q in recorded])
        points[:, 1] += metres * np.array([0.6, 0.0, 0.8])
        shares.append(np.mean([solver.solve(targets=targets).percentile for targets in points]))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 80.0
    assert 5.0 < shares[1] < 95.0
    assert shares[-1] == 0.0


def test_what_handles_say_by_themselves_brings_poses_nearer_and_moves_them_evenly() -> None:
    clip = performer.act("walk", seconds=3.0, fps=30, seed=3)
    unseen = performer.act("walk", seconds=2.0, fps=60, seed=4)
    style = learned(StylePrior, [clip], dimensions=2, active=40)
    latent_alone = learned(StylePrior, [clip], dimensions=2, active=40, method="correlated")
    truth = style.space.q_from_frames(unseen.root_positions, unseen.rotations)
    frames = [targets_of(style, q) for q in truth]
    starts = [np.concatenate([q[:7], style.mean]) for q in truth]

    def measured(prior: StylePrior) -> tuple[float, float]:
        found = list(track(prior, frames, starts=starts, root="given"))
        assert all(solution.reached for solution in found)
        poses = np.stack([solution.q for solution in found])
        error = np.mean([mean_angle(prior, one, other) for one, other in zip(poses, truth, strict=True)])
        return float(error), float(np.abs(np.diff(poses[:, 7:], n=2, axis=0)).mean())

    (error, uneven), (error_alone, uneven_alone) = measured(style), measured(latent_alone)
    assert error < 0.7 * error_alone
    assert uneven < 0.5 * uneven_alone


def test_a_style_that_knows_velocities_moves_more_evenly() -> None:
    clip = performer.act("walk", seconds=3.0, fps=30, seed=3)
    style = learned(StylePrior, [clip], dimensions=2, active=40, method="correlated")
    unseen = performer.act("walk", seconds=2.0, fps=60, seed=4)
    truth = style.space.q_from_frames(unseen.root_positions, unseen.rotations)
    frames = [targets_of(style, q) for q in truth]
    starts = [np.concatenate([q[:7], style.mean]) for q in truth]

    def jerkiness(fps: float | None) -> tuple[float, float]:
        found = track(style, frames, starts=starts, root="given", fps=fps)
        poses = np.stack([solution.q for solution in found])
        error = np.mean([mean_angle(style, one, other) for one, other in zip(poses, truth, strict=True)])
        return float(np.abs(np.diff(poses[:, 7:], n=2, axis=0)).mean()), float(error)

    (jumpy, error), (even, error_with_motion) = jerkiness(None), jerkiness(60.0)
    assert even < 0.8 * jumpy
    assert error_with_motion < 1.2 * error


def test_frame_rates_are_checked(style: StylePrior, truth: np.ndarray) -> None:
    with pytest.raises(InvalidValueError, match="between 1 and 10,000 frames a second; got -1"):
        Solver(style, targets_of(style, truth[0]), fps=-1.0)


def test_a_style_without_a_gaussian_is_called_broken(style: StylePrior, truth: np.ndarray) -> None:
    problem = Problem(style.space, targets_of(style, truth[3], HANDLES), root="given", limits=style.limits)
    guide = style.guide(problem.handles)
    lost = np.full(style.model.dimensions, np.nan)  # as the numbers of a damaged file can lead to
    forms, steps = guide.forms(truth[3], lost, (0, 0, 4))
    status, *_ = problem.through(truth[3].copy(), lost, forms, steps)
    assert status == core.BROKEN
