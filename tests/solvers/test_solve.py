"""The solver's promises: exact where it can be, honest where it cannot, inside the limits, the same every time."""

import numpy as np
import pytest

from made_once import learned
from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.motion import Motion
from poise.priors.gaussian import GaussianPrior
from poise.priors.style.prior import StylePrior
from poise.skeleton import JointLimits, Pose
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import (
    CentreOfMass,
    Constraint,
    Distance,
    LookAt,
    Orientation,
    Pinned,
    Position,
    Projection,
    floor,
)
from poise.solvers.problem import Problem, Root, Settings
from poise.solvers.solution import NotSolvedError, Status
from poise.solvers.solve import Solver, solve, solve_batch, track

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")


def handle_targets(space: PoseSpace, q: np.ndarray) -> np.ndarray:
    return space.handle_positions(q, space.handles(HANDLES))[0]


def positions(targets: np.ndarray, **shared: object) -> list[Constraint]:
    return [Position(name, target, **shared) for name, target in zip(HANDLES, targets, strict=True)]  # type: ignore[arg-type]


def box(space: PoseSpace, maps: np.ndarray, margin: float) -> JointLimits:
    lower, upper = np.zeros((len(space.skeleton), 3)), np.zeros((len(space.skeleton), 3))
    lower[space.moving] = (maps.min(axis=0) - margin).reshape(-1, 3)
    upper[space.moving] = (maps.max(axis=0) + margin).reshape(-1, 3)
    return JointLimits(space.references, lower, upper)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_reachable_handles_are_met_as_exactly_as_asked(
    space: PoseSpace, pose_vectors: np.ndarray, tolerance: float
) -> None:
    start = pose_vectors[5]
    for goal in pose_vectors[10::25]:
        targets = handle_targets(space, goal)
        solution = solve(space, positions(targets), start=start, settings=Settings(tolerance=tolerance))
        assert solution.reached, solution
        distances = np.linalg.norm(handle_targets(space, solution.q) - targets, axis=1)
        assert distances.max() <= tolerance


def test_the_prior_makes_unseen_poses_more_natural_than_plain_least_squares(
    prior: GaussianPrior, other_walk: Motion
) -> None:
    errors = {"map": [], "dls": []}
    for frame in range(0, len(other_walk), 7):
        truth = prior.space.q_from_pose(other_walk[frame])
        start = truth.copy()
        start[7:] = prior.mean
        for method, found in errors.items():
            constraints = positions(handle_targets(prior.space, truth))
            solution = solve(prior, constraints, start=start, root="given", method=method)
            assert solution.reached, solution
            assert np.array_equal(solution.q[:7], truth[:7])
            angles = rotations.geodesic_distance(solution.pose.rotations, other_walk.rotations[frame])
            found.append(np.degrees(angles).mean())
    assert np.mean(errors["map"]) < 0.8 * np.mean(errors["dls"])


def test_the_root_is_found_from_handles_alone(prior: GaussianPrior, other_walk: Motion) -> None:
    for frame in (3, 20, 40):
        truth = prior.space.q_from_pose(other_walk[frame])
        handles = prior.space.handles([*HANDLES, "pelvis"])
        targets, _ = prior.space.handle_positions(truth, handles)
        constraints = [Position(name, t) for name, t in zip([*HANDLES, "pelvis"], targets, strict=True)]
        solution = solve(prior, constraints)
        assert solution.reached, solution
        assert rotations.geodesic_distance(solution.q[3:7], truth[3:7]) < np.radians(20)


def test_an_unreachable_handle_is_named_with_its_remaining_distance(
    space: PoseSpace, pose_vectors: np.ndarray
) -> None:
    start = pose_vectors[0]
    targets = handle_targets(space, start)
    targets[1] += (3.0, 0.0, 0.0)
    solution = solve(space, positions(targets), start=start, root="given")
    assert solution.status in (Status.RELAXED, Status.OUT_OF_TIME)
    assert "position of left_hand" in {residual.label for residual in solution.relaxed}
    hand = next(residual for residual in solution.relaxed if residual.label == "position of left_hand")
    actual = np.linalg.norm(handle_targets(space, solution.q)[1] - targets[1])
    assert hand.value == pytest.approx(actual)
    assert "mm off" in str(solution)
    with pytest.raises(NotSolvedError, match="left_hand"):
        solution.or_raise()


def test_priority_decides_between_contradictory_handles(space: PoseSpace, pose_vectors: np.ndarray) -> None:
    start = pose_vectors[0]
    hand = handle_targets(space, start)[1]
    aside = np.array([0.05, 0.0, 0.0])
    near, far = hand + aside, hand - aside
    for first, second in ((1, 0), (0, 1)):
        both = [Position("left_hand", near, priority=first), Position("left_hand", far, priority=second)]
        solution = solve(space, both, start=start, root="given")
        met = [residual.met for residual in solution.residuals]
        assert met == [first > second, second > first], solution
    evenly = [Position("left_hand", near), Position("left_hand", far)]
    solution = solve(space, evenly, start=start, root="given")
    np.testing.assert_allclose(handle_targets(space, solution.q)[1], hand, atol=1e-3)
    assert len(solution.relaxed) == 2


@pytest.mark.parametrize("steps", [(0, 1), (0, 2), (78, 0), (0, 1, 2, 3, 4), (40, 30, 2, -7, -300)])
def test_priorities_do_not_keep_constraints_from_being_met_together(
    space: PoseSpace, pose_vectors: np.ndarray, steps: tuple[int, ...]
) -> None:
    for truth in pose_vectors[::40]:
        targets = handle_targets(space, truth)
        constraints = [
            Position(handle, target, priority=priority)
            for handle, target, priority in zip(HANDLES, targets, steps, strict=False)
        ]
        solution = solve(space, constraints, start=pose_vectors[0])
        assert solution.reached, solution


def test_of_three_that_contradict_each_other_the_first_is_met_and_the_rest_still_reach(
    space: PoseSpace, pose_vectors: np.ndarray
) -> None:
    start = pose_vectors[0]
    targets = handle_targets(space, start)
    hand, aside = targets[1], np.array([0.05, 0.0, 0.0])
    both = [Position("left_hand", hand + (2 - k) * aside, priority=10 * k) for k in range(3)]
    other = Position("right_hand", targets[2] + aside, priority=-5)
    solution = solve(space, [*both, other], start=start, root="given")
    assert [residual.met for residual in solution.residuals] == [False, False, True, True], solution


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_start_needs_a_root_that_is_turned_somehow(space: PoseSpace, pose_vectors: np.ndarray) -> None:
    truth = pose_vectors[0]
    constraints = positions(handle_targets(space, truth))
    nowhere, long, far = truth.copy(), truth.copy(), truth.copy()
    nowhere[3:7], long[3:7], far[0] = 0.0, 2.0 * truth[3:7], 1e6
    with pytest.raises(InvalidValueError, match="quaternion of length zero"):
        solve(space, constraints, start=nowhere)
    with pytest.raises(InvalidValueError, match="within 10,000 m"):
        solve(space, constraints, start=far)
    solution = solve(space, constraints, start=long)
    assert solution.reached
    np.testing.assert_allclose(np.linalg.norm(solution.q[3:7]), 1.0, atol=1e-9)
    with pytest.raises(InvalidValueError, match="within 10,000 m"):
        Solver(space, constraints).solve(truth, targets=np.full((5, 3), 1e8))


def test_settings_and_frame_rates_are_plausible(space: PoseSpace) -> None:
    with pytest.raises(InvalidValueError, match="settings must be between 0 and 1,000,000"):
        Settings(finish_steps=10**12)
    with pytest.raises(InvalidValueError, match="between 1 and 10,000 frames a second; got 1e-320"):
        solve(space, [], fps=1e-320)


def test_duplicate_and_zero_weight_constraints_do_no_harm(space: PoseSpace, pose_vectors: np.ndarray) -> None:
    start, targets = pose_vectors[0], handle_targets(space, pose_vectors[40])
    twice = [*positions(targets), *positions(targets)]
    assert solve(space, twice, start=start).reached
    ignored = Position("left_hand", (9.0, 9.0, 9.0), weight=0.0)
    solution = solve(space, [*positions(targets), ignored], start=start)
    assert solution.reached
    assert "position of left_hand: ignored, its weight is 0" in str(solution)


@pytest.mark.usefixtures("unchecked_shapes")
def test_nan_and_wrong_shapes_are_errors_before_solving(space: PoseSpace, pose_vectors: np.ndarray) -> None:
    targets = handle_targets(space, pose_vectors[0])
    with pytest.raises(InvalidValueError, match="finite"):
        solve(space, positions(np.full((5, 3), np.nan)), start=pose_vectors[0])
    with pytest.raises(InvalidValueError, match="finite numbers"):
        solve(space, positions(targets), start=np.full(space.size, np.nan))
    solver = Solver(space, positions(targets))
    with pytest.raises(InvalidValueError, match=r"\(5, 3\) finite numbers"):
        solver.solve(pose_vectors[0], targets=targets[:3])
    with pytest.raises(UnknownNameError, match="no method 'fabrick'; did you mean fabrik"):
        solve(space, positions(targets), method="fabrick")
    with pytest.raises(InvalidValueError, match="needs a learned prior"):
        solve(space, positions(targets), method="map")


@pytest.mark.slow
def test_no_limit_is_ever_violated(space: PoseSpace, pose_vectors: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    limits = box(space, pose_vectors[:, 7:], margin=0.05)
    body = PoseSpace(space.skeleton.with_limits(limits), references=space.references, moving=space.is_moving)
    lower, upper = limits.lower[space.moving].ravel(), limits.upper[space.moving].ravel()
    relaxed = 0
    for _ in range(300):
        goal, start = (
            pose_vectors[rng.integers(len(pose_vectors))],
            pose_vectors[rng.integers(len(pose_vectors))],
        )
        targets = handle_targets(space, goal) + rng.normal(scale=0.1, size=(5, 3))
        solution = solve(body, positions(targets), start=start)
        assert np.all(solution.q[7:] >= lower - 1e-9)
        assert np.all(solution.q[7:] <= upper + 1e-9)
        assert solution.status is not Status.BROKEN
        assert solution.reached == (not solution.relaxed)
        relaxed += not solution.reached
    assert 0 < relaxed < 300  # the box is tight enough to matter and loose enough to be met


def test_handles_that_limits_allow_are_met(space: PoseSpace, pose_vectors: np.ndarray) -> None:
    limits = box(space, pose_vectors[:, 7:], margin=0.02)
    body = PoseSpace(space.skeleton.with_limits(limits), references=space.references, moving=space.is_moving)
    for goal in pose_vectors[::9]:
        start = goal.copy()
        start[7:] = pose_vectors[60, 7:]
        solution = solve(body, positions(handle_targets(space, goal)), start=start, root="given")
        assert solution.reached, solution


def test_feet_stay_above_the_floor_and_may_rise(space: PoseSpace, pose_vectors: np.ndarray) -> None:
    start = pose_vectors[0]
    feet = handle_targets(space, start)[3:]
    height = feet[:, 1].max() + 0.02
    solution = solve(space, floor(["left_foot", "right_foot"], height=height), start=start, root="given")
    assert solution.reached, solution
    assert np.all(handle_targets(space, solution.q)[3:, 1] >= height - 1e-3)
    lifted = [*floor(["left_foot"]), Position("left_foot", feet[0] + (0.0, 0.2, 0.0))]
    assert solve(space, lifted, start=start, root="given").reached


def test_soft_pixels_pull_as_far_as_soft_places_do(space: PoseSpace, pose_vectors: np.ndarray) -> None:
    start, camera = pose_vectors[0], Camera.looking_at((0.0, 1.0, 0.0), eye=(0.0, 1.5, 4.0))
    hand = handle_targets(space, start)[1] + (0.1, 0.15, 0.0)
    problem = Problem(
        space, [Projection("left_hand", camera, camera.project(hand), tolerance=1.0)], root="given"
    )
    q = start.copy()
    problem.run(q, start[7:], np.diag(0.2**2 * problem.diagonal()[0]))
    found = camera.project(handle_targets(space, q)[1])
    np.testing.assert_allclose(found, camera.project(hand), atol=1.0)  # it began some 30 pixels off


def test_mixed_constraints_hold_together(space: PoseSpace, pose_vectors: np.ndarray) -> None:
    start, goal = pose_vectors[0], pose_vectors[30]
    targets = handle_targets(space, goal)
    turns, _ = space.handle_orientations(goal, space.handles(["right_hand"]))
    camera = Camera.looking_at((0.0, 1.0, 0.0), eye=(2.0, 1.5, 4.0))
    centre, _ = space.centre_of_mass(goal)
    constraints = [
        Position("left_foot", targets[3]),
        Position("right_foot", targets[4]),
        Projection("left_hand", camera, camera.project(targets[1])),
        Orientation("right_hand", rotations.quaternion_from_matrix(turns[0])),
        Distance("left_hand", "right_hand", float(np.linalg.norm(targets[1] - targets[2]))),
        LookAt("head", (0.5, 1.6, 5.0)),
        CentreOfMass(
            [(centre[0] + x, centre[2] + z) for x, z in ((-0.1, -0.1), (0.1, -0.1), (0.1, 0.1), (-0.1, 0.1))]
        ),
    ]
    solution = solve(space, constraints, start=start)
    assert solution.reached, solution
    np.testing.assert_allclose(
        camera.project(space.handle_positions(solution.q, space.handles(["left_hand"]))[0][0]),
        camera.project(targets[1]), atol=0.5,
    )  # fmt: skip


def test_pinned_joints_stay_exactly(space: PoseSpace, prior: GaussianPrior, pose_vectors: np.ndarray) -> None:
    start = pose_vectors[0]
    pinned = Pinned(["RightArm", "RightForeArm"], start)
    target = handle_targets(space, start)[1] + (0.05, 0.1, 0.05)
    for model in (space, prior):
        solution = solve(model, [Position("left_hand", target), pinned], start=start, root="given")
        assert solution.reached, solution
        for slot in pinned.slots(space):
            assert np.array_equal(
                solution.q[7 + 3 * slot : 10 + 3 * slot], start[7 + 3 * slot : 10 + 3 * slot]
            )


def test_soft_constraints_weigh_against_the_prior(prior: GaussianPrior, pose_vectors: np.ndarray) -> None:
    start = pose_vectors[10]
    target = handle_targets(prior.space, start)[1] + (0.15, 0.15, 0.15)
    distances = []
    for tolerance in (0.001, 0.05, 1.0):
        solution = solve(
            prior, [Position("left_hand", target, tolerance=tolerance)], start=start, root="given"
        )
        distances.append(float(np.linalg.norm(handle_targets(prior.space, solution.q)[1] - target)))
    assert distances[0] < distances[1] < distances[2]
    assert distances[0] < 0.005


def test_likelihood_ranks_training_poses_above_strange_ones(
    prior: GaussianPrior, pose_vectors: np.ndarray
) -> None:
    usual = np.mean([prior.percentile(q) for q in pose_vectors[::10]])
    strange = pose_vectors[0].copy()
    strange[7:] += 1.0
    assert usual > 30
    assert prior.percentile(strange) == 0.0
    solution = solve(prior, [], start=pose_vectors[0], root="given")
    assert solution.log_likelihood == prior.log_likelihood(solution.q)


def test_solves_are_deterministic_in_sequence_and_in_batch(prior: GaussianPrior, other_walk: Motion) -> None:
    space = prior.space
    truth = space.q_from_frames(other_walk.root_positions, other_walk.rotations)[:20]
    frames = [positions(handle_targets(space, q)) for q in truth]
    starts = [np.concatenate([q[:7], prior.mean]) for q in truth]
    first = solve_batch(prior, frames, starts=starts, root="given")
    second = solve_batch(prior, frames, starts=starts, root="given", threads=1)
    assert all(np.array_equal(a.q, b.q) for a, b in zip(first, second, strict=True))
    sequence = track(space, frames)
    assert all(solution.reached for solution in sequence)
    assert np.array_equal(sequence[-1].q, track(space, frames)[-1].q)


@pytest.mark.parametrize("method", ["dls", "transpose", "sdls", "ccd", "fabrik"])
def test_classic_methods_answer_the_same_call(
    space: PoseSpace, pose_vectors: np.ndarray, method: str
) -> None:
    start, goal = pose_vectors[12], pose_vectors[13]
    targets = handle_targets(space, goal)
    solution = solve(space, positions(targets), start=start, method=method, settings=Settings(tolerance=0.01))
    assert solution.reached, solution
    assert max(residual.value for residual in solution.residuals) <= 0.01
    assert solution.iterations > 0


def test_classic_methods_say_that_they_take_positions_only(space: PoseSpace) -> None:
    with pytest.raises(InvalidValueError, match="position constraints only"):
        solve(space, floor(["left_foot"]), method="ccd")


def test_a_start_of_another_skeleton_is_refused(prior: GaussianPrior, space: PoseSpace) -> None:
    other = space.skeleton.__class__(("a", "b"), np.array([-1, 0]), np.zeros((2, 3)))
    with pytest.raises(InvalidValueError, match="same skeleton"):
        solve(prior, [], start=Pose.rest(other))


@pytest.mark.parametrize("root", ["given", "solved"])
def test_a_batch_answers_as_one_solve_after_the_other(
    prior: GaussianPrior, pose_vectors: np.ndarray, root: Root
) -> None:
    q = pose_vectors[::12]
    frames = [positions(handle_targets(prior.space, one)) for one in q]
    starts = [np.concatenate([one[:7], prior.mean]) for one in q]
    together = solve_batch(prior, frames, starts=starts, root=root, threads=2)
    for frame, start, solution in zip(frames, starts, together, strict=True):
        alone = solve(prior, frame, start=start, root=root)
        np.testing.assert_array_equal(solution.q, alone.q)
        assert solution.status is alone.status
        assert solution.residuals == alone.residuals


def test_a_solve_does_not_depend_on_those_before_it(walk: Motion) -> None:
    style = learned(StylePrior, [walk[:60]], dimensions=2, active=20)
    targets = [handle_targets(style.space, style.space.q_from_frames(*one)) for one in _frames(walk, (5, 30))]
    first, second = (solve(style, positions(points)) for points in targets)
    again = solve(style, positions(targets[0]), start=None)
    np.testing.assert_array_equal(first.q, again.q)
    from_second = solve(style, positions(targets[0]), start=second.q)
    fresh = Solver(style, positions(targets[0])).solve(second.q)
    np.testing.assert_array_equal(from_second.q, fresh.q)


def _frames(motion: Motion, numbers: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(motion.root_positions[number], motion.rotations[number]) for number in numbers]
