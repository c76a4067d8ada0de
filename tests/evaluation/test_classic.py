"""The classic methods: what they reach, what they keep, and the property each paper is known for."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from poise.errors import UnknownNameError
from poise.evaluation.classic import METHODS
from poise.evaluation.classic.bodies import NOTHING, aligning_turn, with_pair
from poise.evaluation.classic.sdls import GREATEST_TURN, damped_step
from poise.evaluation.classic.task import ClassicTask
from poise.geometry import rotations
from poise.performer import act
from poise.skeleton import Skeleton
from poise.skeleton.pose_space import Handle, Handles, PoseSpace

JOINTS = 31
FIVE = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
UPPER_ARM, FOREARM = 0.3, 0.25

every_method = pytest.mark.parametrize("method", METHODS)


def run(
    method: str,
    space: PoseSpace,
    handles: Handles,
    targets: np.ndarray,
    q: np.ndarray,
    *,
    bounds: tuple[np.ndarray, np.ndarray] | None = None,
    free_root: bool = False,
    tolerance: float = 0.001,
    max_iterations: int = 300,
) -> tuple[np.ndarray, int]:
    lower, upper = bounds or (np.full(space.freedoms, -np.inf), np.full(space.freedoms, np.inf))
    moved = q.copy()
    task = ClassicTask(
        *space.tree,
        handles.joints,
        handles.offsets,
        targets,
        lower,
        upper,
        free_root,
        tolerance,
        max_iterations,
    )
    return moved, METHODS[method](moved, task)


def positions(space: PoseSpace, handles: Handles, q: np.ndarray) -> np.ndarray:
    return space.handle_positions(q, handles)[0]


def farthest(space: PoseSpace, handles: Handles, q: np.ndarray, targets: np.ndarray) -> float:
    return float(np.linalg.norm(positions(space, handles, q) - targets, axis=1).max())


def squared(space: PoseSpace, handles: Handles, q: np.ndarray, targets: np.ndarray) -> float:
    return float(np.sum((positions(space, handles, q) - targets) ** 2))


def arm_space() -> PoseSpace:
    names, parents = ("root", "shoulder", "elbow", "wrist"), np.array([-1, 0, 1, 2])
    offsets = np.array([[0, 0, 0], [0, 0, 0], [UPPER_ARM, 0, 0], [FOREARM, 0, 0]], dtype=float)
    return PoseSpace(Skeleton(names, parents, offsets))


def arm_pose(space: PoseSpace, bend: float = 0.3) -> np.ndarray:
    q = np.zeros(space.size)
    q[3] = 1.0
    q[7:13] = (0.1, 0.05, -0.2, 0.0, 0.1, bend)
    return q


def random_tree(seed: int, *, still: float = 0.2) -> PoseSpace:
    rng = np.random.default_rng(seed)
    parents = np.array([-1, *(rng.integers(max(0, j - 4), j) for j in range(1, JOINTS))])
    offsets = rng.normal(scale=0.12, size=(JOINTS, 3)) * (rng.random((JOINTS, 1)) < 0.9)
    references = rotations.normalize(rng.normal(size=(JOINTS, 4)))
    skeleton = Skeleton(tuple(f"j{j}" for j in range(JOINTS)), parents, offsets)
    return PoseSpace(skeleton, references=references, moving=rng.random(JOINTS) >= still)


def random_handles(space: PoseSpace, rng: np.random.Generator) -> Handles:
    joints = rng.integers(0, JOINTS, size=5)
    offsets = rng.normal(scale=0.1, size=(5, 3)) * (rng.random((5, 1)) < 0.5)
    return space.handles([Handle(f"j{j}", tuple(offset)) for j, offset in zip(joints, offsets, strict=True)])


def random_q(space: PoseSpace, rng: np.random.Generator) -> np.ndarray:
    maps = rng.normal(scale=0.2, size=space.size - 7)
    return np.concatenate([rng.normal(size=3), rotations.normalize(rng.normal(size=4)), maps])


def nearby(space: PoseSpace, q: np.ndarray, rng: np.random.Generator, *, free_root: bool) -> np.ndarray:
    step = rng.normal(scale=0.3, size=space.freedoms)
    step[:6] *= free_root
    return space.integrate(q, step)


def random_bounds(
    space: PoseSpace, rng: np.random.Generator, widest: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    upper = np.concatenate([np.full(6, np.inf), rng.uniform(0, widest, space.freedoms - 6)])
    lower = np.concatenate([np.full(6, -np.inf), -rng.uniform(0, widest, space.freedoms - 6)])
    return lower, upper


# --- reaching --------------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("distance", [0.2, 0.4, 0.52])
def test_two_bones_end_at_the_angle_of_the_cosine_law(method: str, distance: float) -> None:
    space = arm_space()
    wrist = space.handles(["wrist"])
    target = distance * np.array([[0.6, 0.64, 0.48]])
    q, _ = run(method, space, wrist, target, arm_pose(space), tolerance=1e-6, max_iterations=3000)
    assert farthest(space, wrist, q, target) < 1e-5
    _, matrices = space.forward(q)
    cosine = (distance**2 - UPPER_ARM**2 - FOREARM**2) / (2 * UPPER_ARM * FOREARM)
    assert matrices[1][:, 0] @ matrices[2][:, 0] == pytest.approx(cosine, abs=1e-3)


@pytest.mark.parametrize("free_root", [False, True])
@pytest.mark.parametrize(
    ("method", "share"), [("transpose", 0.8), ("sdls", 1.0), ("ccd", 0.95), ("fabrik", 0.95)]
)
def test_most_poses_of_random_trees_are_reached_within_10_mm(
    method: str, share: float, free_root: bool
) -> None:
    reached = []
    for seed in range(40):
        rng, space = np.random.default_rng(seed), random_tree(seed)
        handles, q = random_handles(space, rng), random_q(space, rng)
        targets = positions(space, handles, nearby(space, q, rng, free_root=free_root))
        moved, _ = run(method, space, handles, targets, q, free_root=free_root, max_iterations=1000)
        reached.append(farthest(space, handles, moved, targets) <= 0.01)
    assert np.mean(reached) >= share


@every_method
def test_a_walk_is_followed_by_its_head_wrists_and_ankles(method: str) -> None:
    walk = act("walk", seconds=2.0)
    space = PoseSpace.of_rotations(walk.skeleton, walk.rotations)
    handles, frames = space.handles(FIVE), space.q_from_frames(walk.root_positions, walk.rotations)[::4]
    q, reached = frames[0].copy(), []
    for frame in frames:
        q[:7] = frame[:7]
        targets = positions(space, handles, frame)
        q, _ = run(method, space, handles, targets, q, tolerance=0.01, max_iterations=200)
        reached.append(farthest(space, handles, q, targets) <= 0.01)
    assert np.mean(reached) == 1.0


@every_method
def test_a_pose_that_is_there_already_is_left_alone(method: str) -> None:
    space, rng = random_tree(3), np.random.default_rng(3)
    handles, q = random_handles(space, rng), random_q(space, rng)
    moved, iterations = run(method, space, handles, positions(space, handles, q), q, free_root=True)
    assert iterations == 0
    np.testing.assert_array_equal(moved, q)


@every_method
def test_no_handles_ask_for_nothing(method: str) -> None:
    space, q = arm_space(), arm_pose(arm_space())
    moved, iterations = run(method, space, space.handles([]), np.empty((0, 3)), q, free_root=True)
    assert iterations == 0
    np.testing.assert_array_equal(moved, q)


@every_method
def test_several_handles_on_one_joint_turn_it_as_they_say(method: str) -> None:
    space = arm_space()
    marks = ((0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1))
    cluster = space.handles([Handle("elbow", mark) for mark in marks])
    there = space.integrate(arm_pose(space), np.array([0.0] * 6 + [0.2, -0.1, 0.3, 0.3, 0.2, 0.1]))
    targets = positions(space, cluster, there)
    q, _ = run(method, space, cluster, targets, arm_pose(space), tolerance=1e-4, max_iterations=2000)
    assert farthest(space, cluster, q, targets) < 0.002
    assert Rotation.from_matrix(space.forward(q)[1][2].T @ space.forward(there)[1][2]).magnitude() < 0.03


@every_method
def test_an_interior_handle_and_the_end_beyond_it_are_both_reached(method: str) -> None:
    space = arm_space()
    both = space.handles(["elbow", "wrist"])
    targets = np.array([[0.0, 0.0, UPPER_ARM], [0.0, FOREARM, UPPER_ARM]])
    q, _ = run(method, space, both, targets, arm_pose(space), max_iterations=2000)
    assert farthest(space, both, q, targets) < 0.002


@every_method
def test_a_free_root_comes_to_its_handle(method: str) -> None:
    space = arm_space()
    both, targets = space.handles(["root", "wrist"]), np.array([[2.0, 0.0, -1.0], [2.0, 0.4, -1.0]])
    q, _ = run(method, space, both, targets, arm_pose(space), free_root=True, max_iterations=2000)
    assert farthest(space, both, q, targets) < 0.002
    assert np.linalg.norm(q[3:7]) == pytest.approx(1.0, abs=1e-12)


# --- what cannot be reached ------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("distance", [0.56, 1.0, 1000.0])
def test_out_of_reach_the_chain_stretches_towards_the_target(method: str, distance: float) -> None:
    space = arm_space()
    wrist, direction = space.handles(["wrist"]), np.array([0.6, -0.64, 0.48])
    q, _ = run(method, space, wrist, distance * direction[None], arm_pose(space), max_iterations=2000)
    assert positions(space, wrist, q)[0] @ direction == pytest.approx(UPPER_ARM + FOREARM, abs=0.003)


@pytest.mark.parametrize("method", ["ccd", "fabrik"])
def test_a_straight_chain_turns_round_to_a_target_behind_it(method: str) -> None:
    space = arm_space()
    wrist, target, q = space.handles(["wrist"]), np.array([[-0.5, 0.0, 0.0]]), arm_pose(space)
    q[7:] = 0.0
    moved, _ = run(method, space, wrist, target, q)
    assert farthest(space, wrist, moved, target) <= UPPER_ARM + FOREARM - 0.5 + 1e-9


@every_method
def test_contradictory_targets_of_one_point_are_met_half_way(method: str) -> None:
    space = arm_space()
    twice, targets = space.handles(["wrist", "wrist"]), np.array([[0.3, 0.3, 0.0], [0.3, 0.1, 0.0]])
    q, _ = run(method, space, twice, targets, arm_pose(space), max_iterations=1000)
    np.testing.assert_allclose(positions(space, twice, q)[0], (0.3, 0.2, 0.0), atol=0.003)


@every_method
@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([0.0, 0.01, 1.0, 100.0]), free_root=st.booleans())
def test_whatever_is_asked_the_pose_is_finite_and_within_bounds(
    method: str, seed: int, scale: float, free_root: bool
) -> None:
    rng, space = np.random.default_rng(seed), random_tree(seed)
    handles, q = random_handles(space, rng), random_q(space, rng)
    bounds = random_bounds(space, rng)
    targets = scale * rng.normal(size=(5, 3))
    moved, _ = run(method, space, handles, targets, q, bounds=bounds, free_root=free_root, max_iterations=50)
    assert np.all(np.isfinite(moved))
    assert np.all(moved[7:] >= bounds[0][6:])
    assert np.all(moved[7:] <= bounds[1][6:])
    if not free_root:
        np.testing.assert_array_equal(moved[:7], q[:7])


# --- what is kept ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "share"), [("transpose", 0.75), ("sdls", 0.9), ("ccd", 0.8), ("fabrik", 0.3)]
)
def test_poses_within_bounds_are_reached_within_bounds(method: str, share: float) -> None:
    reached = []
    for seed in range(30):
        rng, space = np.random.default_rng(seed), random_tree(seed)
        handles, q, bounds = random_handles(space, rng), random_q(space, rng), random_bounds(space, rng)
        q[7:] = np.clip(q[7:], bounds[0][6:], bounds[1][6:])
        there = np.concatenate([q[:7], rng.uniform(bounds[0][6:], bounds[1][6:])])
        targets = positions(space, handles, there)
        moved, _ = run(method, space, handles, targets, q, bounds=bounds, max_iterations=500)
        reached.append(farthest(space, handles, moved, targets) <= 0.01)
    assert np.mean(reached) >= share


@every_method
def test_a_bound_that_matters_is_met_exactly(method: str) -> None:
    space = arm_space()
    lower, upper = np.full(space.freedoms, -np.inf), np.full(space.freedoms, np.inf)
    lower[9:12], upper[9:12] = (0.0, 0.0, -0.1), (0.0, 0.0, 0.5)  # an elbow that bends about Z by 0.5 at most
    wrist, target = space.handles(["wrist"]), np.array([[0.0, 0.1, 0.0]])
    q, _ = run(method, space, wrist, target, arm_pose(space), bounds=(lower, upper), max_iterations=2000)
    assert abs(q[12] - 0.5) < 1e-6
    assert np.all(q[10:12] == 0.0)


@every_method
def test_the_same_problem_gives_the_same_bits(method: str) -> None:
    space, rng = random_tree(8), np.random.default_rng(8)
    handles, q = random_handles(space, rng), random_q(space, rng)
    targets = positions(space, handles, nearby(space, q, rng, free_root=True))
    first, second = (run(method, space, handles, targets, q, free_root=True) for _ in range(2))
    assert first[1] == second[1]
    assert first[0].tobytes() == second[0].tobytes()


# --- each paper's own property ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["transpose", "ccd"])
@pytest.mark.parametrize("bounded", [False, True])
def test_every_iteration_of_a_descent_comes_closer(method: str, bounded: bool) -> None:
    space, rng = random_tree(5), np.random.default_rng(5)
    handles, q = random_handles(space, rng), random_q(space, rng)
    bounds = random_bounds(space, rng) if bounded else None
    targets = positions(space, handles, q) + rng.normal(scale=0.3, size=(5, 3))
    distances = []
    for _ in range(15):  # one at a time: a longer run would hide a step that leads away behind the best pose
        q, _ = run(method, space, handles, targets, q, bounds=bounds, free_root=True, max_iterations=1)
        distances.append(squared(space, handles, q, targets))
    assert all(after < before for before, after in pairwise(distances))


def test_transpose_takes_the_step_of_the_survey() -> None:
    space, rng = random_tree(11), np.random.default_rng(11)
    handles, q = random_handles(space, rng), random_q(space, rng)
    targets = positions(space, handles, space.integrate(q, rng.normal(scale=0.01, size=space.freedoms)))
    points, jacobian = space.handle_positions(q, handles)
    error = (targets - points).ravel()
    pulled = jacobian @ jacobian.T @ error
    expected = space.integrate(q, error @ pulled / (pulled @ pulled) * jacobian.T @ error)
    moved, _ = run("transpose", space, handles, targets, q, free_root=True, tolerance=1e-9, max_iterations=1)
    np.testing.assert_allclose(moved, expected, atol=1e-12)


def test_selective_damping_is_the_pseudoinverse_away_from_singular_poses() -> None:
    rng = np.random.default_rng(0)
    jacobian, errors = rng.normal(size=(6, 20)), rng.normal(scale=0.01, size=(2, 3))
    np.testing.assert_allclose(damped_step(jacobian, errors), np.linalg.pinv(jacobian) @ errors.ravel())


@pytest.mark.parametrize("bend", [1e-2, 1e-4, 1e-8])
def test_selective_damping_stays_calm_near_singular_poses(bend: float) -> None:
    space = arm_space()
    q = arm_pose(space, bend)
    q[7:12] = 0.0
    points, jacobian = space.handle_positions(q, space.handles(["wrist"]))
    jacobian[:, :6] = 0.0
    inwards = -0.05 * points / np.linalg.norm(points)  # along the nearly straight arm, its singular direction
    step = damped_step(jacobian, inwards)
    assert np.abs(np.linalg.pinv(jacobian) @ inwards.ravel()).max() > 4 * GREATEST_TURN
    assert np.abs(step).max() <= GREATEST_TURN
    moved = positions(space, space.handles(["wrist"]), space.integrate(q, step))
    assert np.linalg.norm(moved - points) < 2 * np.linalg.norm(inwards)


def test_selective_damping_does_not_shake_at_the_end_of_its_reach() -> None:
    space = arm_space()
    wrist, target, q = space.handles(["wrist"]), np.array([[0.6, 0.1, 0.0]]), arm_pose(space)
    distances, steps = [], []
    for _ in range(60):
        points, jacobian = space.handle_positions(q, wrist)
        jacobian[:, :6] = 0.0
        steps.append(damped_step(jacobian, target - points))
        q = space.integrate(q, steps[-1])
        distances.append(squared(space, wrist, q, target))
    assert all(after < before for before, after in pairwise(distances))
    assert np.abs(steps[-1]).max() < 1e-4


def test_one_sweep_of_ccd_points_a_single_bone_at_its_target() -> None:
    space = PoseSpace(
        Skeleton(("root", "a", "b"), np.array([-1, 0, 1]), np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.2, 0]]))
    )
    q, target = np.zeros(space.size), np.array([[0.4, 0.5, 0.6]])
    q[3] = 1.0
    moved, _ = run("ccd", space, space.handles(["b"]), target, q, max_iterations=1)
    bone = positions(space, space.handles(["b"]), moved)[0] - (0.1, 0, 0)
    goal = target[0] - (0.1, 0, 0)
    assert bone @ goal == pytest.approx(0.2 * np.linalg.norm(goal), abs=1e-12)


def test_one_pair_is_aligned_by_the_smallest_turn() -> None:
    point, goal = (0.1, 0.2, -0.3), (0.5, 0.1, 0.2)
    w, *xyz = aligning_turn(with_pair(NOTHING, point, goal))
    cosine = np.dot(point, goal) / np.linalg.norm(point) / np.linalg.norm(goal)
    assert 2 * np.arccos(w) == pytest.approx(np.arccos(cosine))
    turned = Rotation.from_quat([*xyz, w]).apply(point)
    np.testing.assert_allclose(np.cross(turned, goal), 0.0, atol=1e-12)


@given(seed=st.integers(0, 10_000))
def test_repeated_alignment_comes_to_the_least_squares_rotation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(4, 3))
    goals = Rotation.random(random_state=seed).apply(points) + rng.normal(scale=0.05, size=(4, 3))
    best = Rotation.align_vectors(goals, points)[0]
    turn = Rotation.identity()
    for _ in range(50):
        profile = NOTHING
        for point, goal in zip(turn.apply(points), goals, strict=True):
            profile = with_pair(profile, tuple(point.tolist()), tuple(goal.tolist()))
        w, *xyz = aligning_turn(profile)
        turn = Rotation.from_quat([*xyz, w]) * turn
    least, found = (np.sum((rotation.apply(points) - goals) ** 2) for rotation in (best, turn))
    assert found < least + 0.001


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_fabrik_places_the_joints_of_a_chain_as_the_paper_does(iterations: int) -> None:
    rng = np.random.default_rng(2)
    count = 6
    offsets = np.concatenate([np.zeros((2, 3)), rng.normal(scale=0.2, size=(count - 1, 3))])
    names = tuple(f"j{j}" for j in range(count + 1))
    space = PoseSpace(Skeleton(names, np.arange(-1, count), offsets))
    q, target = np.zeros(space.size), np.array([0.2, 0.3, -0.1])
    q[3] = 1.0
    expected = published_fabrik(space.forward(q)[0][1:], target, iterations)
    moved, done = run(
        "fabrik",
        space,
        space.handles([names[-1]]),
        target[None],
        q,
        tolerance=1e-12,
        max_iterations=iterations,
    )
    assert done == iterations
    np.testing.assert_allclose(space.forward(moved)[0][1:], expected, atol=1e-12)


def published_fabrik(points: np.ndarray, target: np.ndarray, iterations: int) -> np.ndarray:
    """Algorithm 1 of the paper, for one chain whose target is within reach."""
    points, base = points.copy(), points[0].copy()
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    for _ in range(iterations):
        points[-1] = target
        for i in range(len(points) - 2, -1, -1):
            share = lengths[i] / np.linalg.norm(points[i + 1] - points[i])
            points[i] = (1 - share) * points[i + 1] + share * points[i]
        points[0] = base
        for i in range(len(points) - 1):
            share = lengths[i] / np.linalg.norm(points[i + 1] - points[i])
            points[i + 1] = (1 - share) * points[i] + share * points[i + 1]
    return points


# --- the registry ----------------------------------------------------------------------------------------------------


def test_the_methods_are_listed_by_name() -> None:
    assert tuple(METHODS) == ("transpose", "sdls", "ccd", "fabrik")
    assert "ccd" in METHODS
    assert "map" not in METHODS
    with pytest.raises(UnknownNameError, match="fabrik"):
        METHODS.named("fabrick")


def test_naming_the_methods_imports_no_compiler() -> None:
    program = "import sys, poise.evaluation.classic as c; list(c.METHODS); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
