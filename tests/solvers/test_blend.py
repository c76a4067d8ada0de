"""Solving with blends: the ends are the components' own answers, and posture changes steadily in between."""

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.priors.blend import BlendPrior
from poise.priors.gaussian import GaussianPrior
from poise.priors.prior import Prior
from poise.priors.style.prior import StylePrior
from poise.skeleton.skeleton import Pose
from poise.solvers.constraints import Pinned, Position
from poise.solvers.solve import Solver, solve, track

FEET = ("left_foot", "right_foot", "left_toes", "right_toes")


@pytest.fixture(scope="module")
def walks() -> list:
    return [performer.act("walk", style=style, seconds=3.0, fps=30) for style in ("old", "proud")]


@pytest.fixture(scope="module")
def styles(walks: list) -> list[Prior]:
    return [learned(StylePrior, [walk], dimensions=2, active=40, velocity=False) for walk in walks]


@pytest.fixture(scope="module")
def feet(walks: list, styles: list[Prior]) -> list[Position]:
    space, walk = styles[0].space, walks[0]
    q = space.q_from_frames(walk.root_positions[40], walk.rotations[40])
    points, _ = space.handle_positions(q, space.handles(FEET))
    return [Position(foot, point) for foot, point in zip(FEET, points, strict=True)]


def lean(pose: Pose, prior: Prior) -> float:
    positions = prior.space.forward(prior.space.q_from_pose(pose))[0]
    trunk = positions[pose.skeleton.index("neck")] - positions[pose.skeleton.index("pelvis")]
    return float(np.degrees(np.arccos(trunk[1] / np.linalg.norm(trunk))))


def test_the_ends_are_the_components_own_solutions(styles: list[Prior], feet: list[Position]) -> None:
    for number, weights in enumerate(([1.0, 0.0], [0.0, 1.0])):
        ours, theirs = solve(BlendPrior(styles, weights), feet), solve(styles[number], feet)
        assert np.array_equal(ours.q, theirs.q)


@pytest.mark.slow
def test_posture_changes_steadily_from_one_style_to_the_other(
    styles: list[Prior], feet: list[Position]
) -> None:
    leans = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        blend = BlendPrior(styles, [1 - share, share])
        solution = solve(blend, feet)
        assert solution.reached, solution
        leans.append(lean(solution.pose, blend))
    assert np.all(np.diff(leans) < 1.0), leans
    assert leans[0] > leans[2] + 2.0 > leans[4] + 4.0, leans


def test_a_style_blends_with_a_gaussian(styles: list[Prior], walks: list, feet: list[Position]) -> None:
    blend = BlendPrior([styles[0], GaussianPrior.learn([walks[1]], clusters=10)], [0.4, 0.6])
    solution = solve(blend, feet)
    assert solution.reached, solution
    ends = [lean(solve(part, feet).pose, part) for part in blend.components]
    assert min(ends) - 3.0 < lean(solution.pose, blend) < max(ends) + 3.0


def test_tracking_is_smooth_and_repeatable(styles: list[Prior], feet: list[Position]) -> None:
    targets = np.array([foot.target for foot in feet]) + np.linspace(0, 0.1, 12)[:, None, None] * (
        0.0,
        0.0,
        1.0,
    )
    blend = BlendPrior(styles, [0.5, 0.5])

    def track() -> np.ndarray:
        return np.array([solution.q for solution in Solver(blend, feet).track(targets)])

    first = track()
    assert np.array_equal(first, track())
    assert np.abs(np.diff(first[:, 7:], axis=0)).max() < 0.2


def test_pinned_joints_stay_and_far_targets_are_told(styles: list[Prior]) -> None:
    blend = BlendPrior(styles, [0.5, 0.5])
    start = np.concatenate([[0, 1, 0, 1, 0, 0, 0], blend.mean])
    pinned = Pinned(["RightArm"], start)
    solution = solve(blend, [Position("left_hand", (0.3, 1.2, 0.3)), pinned], start=start)
    (slot,) = pinned.slots(blend.space)
    assert np.array_equal(solution.q[7 + 3 * slot : 10 + 3 * slot], start[7 + 3 * slot : 10 + 3 * slot])
    far = solve(blend, [Position("left_hand", (9, 9, 9)), Position("right_hand", (-9, 0, 0))])
    assert np.all(np.isfinite(far.q))
    assert not far.reached


def test_a_blend_of_styles_that_know_velocities_moves_more_evenly() -> None:
    walks = [performer.act("walk", style=style, seconds=3.0, fps=30) for style in ("old", "proud")]
    blend = BlendPrior([learned(StylePrior, [walk], dimensions=2, active=40) for walk in walks], [0.5, 0.5])
    steps = performer.act("walk", style="old", seconds=1.5, fps=60, seed=2)
    q = blend.space.q_from_frames(steps.root_positions, steps.rotations)
    names = ("left_foot", "right_foot")
    frames = [
        [
            Position(name, point)
            for name, point in zip(
                names, blend.space.handle_positions(one, blend.space.handles(names))[0], strict=True
            )
        ]
        for one in q
    ]

    def unevenness(fps: float | None) -> float:
        found = track(blend, frames, starts=list(q), root="given", fps=fps)
        assert all(solution.reached for solution in found)
        poses = np.stack([solution.q for solution in found])
        return float(np.sqrt(np.mean(np.diff(poses[3:, 7:], n=2, axis=0) ** 2)))

    assert unevenness(60.0) < 0.8 * unevenness(None)


def test_at_first_frames_a_blend_that_knows_velocities_is_as_one_that_does_not(
    styles: list[Prior], feet: list[Position]
) -> None:
    blend = BlendPrior(styles, [0.5, 0.5])
    assert np.array_equal(solve(blend, feet).q, solve(blend, feet, fps=30.0).q)
