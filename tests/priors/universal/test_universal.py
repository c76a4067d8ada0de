"""The universal prior: on CMU's body and on others, with any handles, with a root that is given or free."""

import time
from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.errors import SkeletonError
from poise.evaluation.handles import HandlesOptions
from poise.evaluation.report import Request, evaluate
from poise.formats import write
from poise.geometry import rotations
from poise.motion import Motion
from poise.priors.blend import BlendPrior
from poise.priors.gaussian import GaussianPrior
from poise.priors.prior import Asked
from poise.priors.universal import layout, network
from poise.priors.universal.body import fitted
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton import Skeleton
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handle
from poise.solvers.constraints import Constraint, LookAt, Orientation, Position
from poise.solvers.solve import Solver, solve, solve_batch

FIVE = ("head", "left_hand", "right_hand", "left_foot", "right_foot")


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=1.0, fps=30, seed=3)


@pytest.fixture(scope="module")
def other(walk: Motion) -> UniversalPrior:
    """On a body whose joints are not CMU's."""
    return UniversalPrior(walk.skeleton)


def recorded(prior: UniversalPrior, motion: Motion, frame: int) -> np.ndarray:
    return prior.space.q_from_frames(motion.root_positions, motion.rotations)[frame]


def missed(prior: UniversalPrior, q: np.ndarray, true: np.ndarray) -> float:
    found, truth = (prior.space.forward(pose)[0] for pose in (q, true))
    return float(np.linalg.norm(found - truth, axis=1).mean())


def test_the_file_is_small_and_quick_and_says_what_it_was_learned_from() -> None:
    assert network.FILE.stat().st_size < 2.5e6
    network.shipped.cache_clear()
    begun = time.process_time()
    weights = network.shipped()
    assert time.process_time() - begun < 0.5
    performers = {clip.split("_")[0] for clip in weights.header["learned_from"]}
    held = {name for draw in weights.header["strangers"] for name in draw} | set(weights.header["chosen_on"])
    assert len(performers) > 50
    assert not performers & held
    assert "CMU" in weights.header["database"]


@pytest.mark.parametrize(("name", "shape"), [("first.weight", (1, 6)), ("mean.weight", (4, 1))])
def test_matrices_in_bytes_are_off_by_half_a_step(name: str, shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32) * np.arange(6, dtype=np.float32)
    kept = network.in_bytes(name, matrix)
    scale = kept[name + network.SCALE].astype(np.float32)
    assert (kept[name].dtype, scale.shape) == (np.int8, shape)
    assert np.all(np.abs(kept[name] * scale - matrix) <= 0.501 * scale)


def test_five_handles_and_the_root_pose_another_body(other: UniversalPrior, walk: Motion) -> None:
    q = recorded(other, walk, 11)
    targets, _ = other.space.handle_positions(q, other.space.handles(FIVE))
    start = np.concatenate([q[:ROOT_SIZE], other.mean])
    solution = solve(
        other, [Position(*pair) for pair in zip(FIVE, targets, strict=True)], start=start, root="given"
    )
    assert solution.reached
    assert missed(other, solution.q, q) < 0.03


def test_handles_are_met_by_the_legs_rather_than_the_back_but_claims_stay(
    other: UniversalPrior, walk: Motion
) -> None:
    handles, q = other.space.handles(FIVE), recorded(other, walk, 11)
    guide = other.guide(handles)
    state = guide.seen_from(q, other.space.handle_positions(q, handles)[0], given=True)
    (form,), _ = guide.forms(q, state, ())
    moving = [other.space.skeleton.names[joint] for joint in other.space.moving]
    grown = np.sqrt(np.diag(form.covariance) / np.diag(state.covariance))[6:].reshape(-1, 3)
    assert grown[moving.index("LeftLeg")] == pytest.approx(1.25)
    assert grown[moving.index("Spine1")] == pytest.approx(0.85)
    assert guide.gaussian(q, state).covariance[6:, 6:] == pytest.approx(state.covariance[6:, 6:])


def test_a_free_root_is_found_wherever_the_body_stands_and_faces(other: UniversalPrior, walk: Motion) -> None:
    q = recorded(other, walk, 11)
    names = (*FIVE, "pelvis")
    turn = rotations.quaternion_from_expmap(np.array([0.0, 2.0, 0.0]))
    q[:3] = rotations.rotate(turn, q[:3])
    q[:3] += [3.0, 0.0, -2.0]
    q[3:ROOT_SIZE] = rotations.multiply(turn, q[3:ROOT_SIZE])
    targets, _ = other.space.handle_positions(q, other.space.handles(names))
    solution = solve(other, [Position(*pair) for pair in zip(names, targets, strict=True)])
    assert solution.reached
    assert missed(other, solution.q, q) < 0.04


def test_a_body_is_seen_from_where_its_handles_carry_it(other: UniversalPrior, walk: Motion) -> None:
    handles, q = other.space.handles(FIVE), recorded(other, walk, 5)
    targets = other.space.points(q[None], handles)[0]
    way = np.array([0.4, 0.0, 0.3])  # further than a body is taken for the one of the frame before
    here, there = (
        other.guide(handles).starts(q, places, free_root=True)[0].q for places in (targets, targets + way)
    )
    assert there[:3] == pytest.approx(here[:3] + way, abs=1e-6)
    assert there[3:] == pytest.approx(here[3:], abs=1e-6)


def test_turning_the_world_turns_what_is_expected(other: UniversalPrior, walk: Motion) -> None:
    q = recorded(other, walk, 20)
    handles = other.space.handles(FIVE)
    targets, _ = other.space.handle_positions(q, handles)
    turn = rotations.quaternion_from_expmap(np.array([0.0, 1.3, 0.0]))
    turned = q.copy()
    turned[3:ROOT_SIZE] = rotations.multiply(turn, q[3:ROOT_SIZE])
    turned[:3] = rotations.rotate(turn, q[:3])
    guide = other.guide(handles)
    here = guide.seen_from(q, targets, given=False)
    there = guide.seen_from(turned, rotations.rotate(turn, targets), given=False)
    np.testing.assert_allclose(there.mean[ROOT_SIZE:], here.mean[ROOT_SIZE:], atol=1e-4)
    np.testing.assert_allclose(there.mean[:3], rotations.rotate(turn, here.mean[:3]), atol=1e-4)
    np.testing.assert_allclose(there.covariance[6:, 6:], here.covariance[6:, 6:], atol=1e-4)


def test_covariances_are_positive_definite_for_any_handles(other: UniversalPrior, walk: Motion) -> None:
    rng = np.random.default_rng(0)
    q = recorded(other, walk, 5)
    for count in (0, 1, 3, 9):
        chosen = [
            Handle(str(name)) for name in rng.choice(list(other.space.skeleton.roles), count, replace=False)
        ]
        handles = other.space.handles(chosen)
        targets = rng.normal(size=(count, 3))
        for free in (False, True):
            expected = other.guide(handles).starts(q, targets, free_root=free)[0].state
            assert np.linalg.eigvalsh(expected.covariance).min() > 0.0
            assert np.all(np.isfinite(expected.mean))


def facing_of(prior: UniversalPrior, q: np.ndarray) -> np.ndarray:
    return prior.space.forward(q)[1][prior.space.skeleton.index("pelvis")][:, 2]


def test_a_body_of_which_only_the_head_is_known_faces_as_the_head_is_turned(
    other: UniversalPrior, walk: Motion
) -> None:
    turn = rotations.quaternion_from_expmap(np.array([0.0, 2.2, 0.0]))
    q = recorded(other, walk, 11)
    head, ahead = other.space.forward(q)[0][other.space.skeleton.index("head")], facing_of(other, q)
    solution = solve(other, [Position("head", head), Orientation("head", turn)])
    assert solution.reached
    turned = rotations.rotate(turn, np.array([0.0, 0.0, 1.0]))
    assert facing_of(other, solution.q) @ turned > 0.9
    assert ahead @ turned < 0.0


def test_a_body_of_which_little_is_known_is_claimed_no_closer_than_it_is(
    other: UniversalPrior, walk: Motion
) -> None:
    shares, hand = [], other.space.skeleton.index("left_hand")
    for angle in (-2.0, -1.0, 1.0, 2.0):
        q = recorded(other, walk, 11)
        turn = rotations.quaternion_from_expmap(np.array([0.0, angle, 0.0]))
        q[3:ROOT_SIZE], q[:3] = rotations.multiply(turn, q[3:ROOT_SIZE]), rotations.rotate(turn, q[:3])
        places, _ = other.space.forward(q)
        solver = Solver(other, [Position("left_hand", places[hand])])
        first = solver.solve()
        for solution in (first, solver.solve(first.q)):  # cold, and from the pose before
            off = np.linalg.norm(other.space.forward(solution.q)[0] - places, axis=1)
            shares.append(np.mean(off <= np.asarray(solution.uncertainty.radii(0.95))))
    assert np.mean(shares) > 0.75  # of a hand alone; 0.4 if a predicted root is taken for known


def test_orientations_and_a_gaze_are_shown_to_the_network_unless_they_are_loose(
    other: UniversalPrior,
) -> None:
    hands = [Position("left_hand", (0.3, 1.1, 0.4)), Position("right_hand", (-0.3, 1.1, 0.4))]
    bent = rotations.quaternion_from_expmap(np.array([1.2, 0.0, 0.0]))

    def expected(*more: Constraint) -> np.ndarray:
        solver = Solver(other, [*hands, *more])
        solver.solve()
        return solver.runner.spread(solver.runner.found[0].q)[1]

    plain = expected()
    np.testing.assert_array_equal(expected(Orientation("left_hand", bent, tolerance=1.0)), plain)
    for shown in (
        Orientation("chest", bent),
        LookAt("head", (0.5, 0.2, 1.0)),
        Orientation("chest", bent, tolerance=0.1),
    ):
        assert np.abs(expected(shown) - plain).max() > 1e-3


def test_orientations_of_hands_and_feet_lower_the_error(other: UniversalPrior, walk: Motion) -> None:
    shown, errors = ("left_hand", "right_hand", "left_foot", "right_foot"), np.zeros(2)
    for frame in (3, 11, 20):
        q = recorded(other, walk, frame)
        places, turns = other.space.forward(q)
        at = {role: other.space.skeleton.index(role) for role in FIVE}
        known = [Position(role, places[joint]) for role, joint in at.items()]
        turned = [Orientation(role, rotations.quaternion_from_matrix(turns[at[role]])) for role in shown]
        start = np.concatenate([q[:ROOT_SIZE], other.mean])
        found = [solve(other, asked, start=start, root="given") for asked in (known, known + turned)]
        errors += [missed(other, solution.q, q) for solution in found]
    assert errors[1] < 0.8 * errors[0]


def test_a_handle_off_its_joint_is_a_point_of_the_joint(other: UniversalPrior, walk: Motion) -> None:
    q = recorded(other, walk, 11)
    handles = [Handle("left_hand", (0.05, 0.02, 0.0)), Handle("right_foot", (0.0, 0.0, 0.1)), Handle("head")]
    targets, _ = other.space.handle_positions(q, other.space.handles(handles))
    expected = other.guide(other.space.handles(handles)).starts(q, targets, free_root=False)[0].q
    points, _ = other.space.handle_positions(expected, other.space.handles(handles))
    assert np.linalg.norm(points - targets, axis=1).max() < 0.2


def test_on_the_canonical_body_maps_are_the_networks_own() -> None:
    weights = network.shipped()
    prior = UniversalPrior.of_people()
    assert prior.space.skeleton.names == layout.JOINTS
    assert fitted(prior.space.skeleton, weights).is_canonical
    assert prior.space.freedoms == layout.FREEDOMS


@pytest.mark.parametrize("joint", ["left_hand", "left_shin"])
@pytest.mark.parametrize("length", [0.0, 1e-320])
def test_a_body_with_a_bone_of_no_length_is_posed(joint: str, length: float) -> None:
    body = performer.act("walk", seconds=0.2, fps=10).skeleton
    offsets = body.offsets.copy()
    offsets[body.index(joint)] = (0.0, -length, 0.0)
    short = Skeleton(body.names, body.parents, offsets, orders=body.orders)
    found = solve(UniversalPrior(short), [Position("right_hand", (-0.3, 1.2, 0.3))])
    assert np.isfinite(found.q).all()


def test_a_body_whose_hand_is_the_end_of_its_arm_is_posed() -> None:
    body = performer.act("walk", seconds=0.2, fps=10).skeleton.with_roles(left_hand="LeftHand_end")
    found = solve(UniversalPrior(body), [Position("left_hand", (0.3, 1.2, 0.3))])
    assert found.reached


def test_a_chain_is_refused() -> None:
    chain = Skeleton(("a", "b"), np.array([-1, 0]), np.array([[0.0, 0, 0], [0, 1, 0]]))
    with pytest.raises(SkeletonError, match="needs a humanoid; this skeleton lacks pelvis"):
        UniversalPrior(chain)


def test_speeds_of_handles_are_taken_in_where_there_is_a_frame_before(
    other: UniversalPrior, walk: Motion
) -> None:
    handles = other.space.handles(FIVE)
    before, q = recorded(other, walk, 10), recorded(other, walk, 11)
    targets, _ = other.space.handle_positions(q, handles)
    guide = other.guide(handles, fps=30.0)
    still = guide.seen_from(q, targets, given=True).mean
    guide.ask(Asked([before]))
    assert np.abs(guide.seen_from(q, targets, given=True).mean - still).max() > 1e-3
    guide.ask(Asked())
    np.testing.assert_array_equal(guide.seen_from(q, targets, given=True).mean, still)


def test_a_solve_takes_the_same_path_twice(other: UniversalPrior, walk: Motion) -> None:
    q = recorded(other, walk, 11)
    targets, _ = other.space.handle_positions(q, other.space.handles(FIVE))
    solver = Solver(other, [Position(name, (0.0, 0.0, 0.0)) for name in FIVE])
    np.testing.assert_array_equal(solver.solve(targets=targets).q, solver.solve(targets=targets).q)


def test_evaluation_needs_nothing_to_learn_from(walk: Motion, tmp_path: Path) -> None:
    path = write(walk, tmp_path / "walk.bvh")
    request = Request(
        "handles", test=[path], methods=["dls", "universal", "auto"], options=HandlesOptions(stride=10)
    )
    rows = {row["method"]: row for row in evaluate(request).rows}
    assert all(row["failed"] == 0 for row in rows.values())
    assert rows["universal"]["mpjpe_cm"] < rows["dls"]["mpjpe_cm"]
    assert rows["auto"]["deg_per_joint"] == rows["universal"]["deg_per_joint"]


def test_a_blend_of_parts_without_a_state_does_not_depend_on_the_frame_before(
    other: UniversalPrior, walk: Motion
) -> None:
    blend = BlendPrior([other, GaussianPrior.learn([walk], clusters=5)], [0.25, 0.75])
    poses = blend.space.q_from_frames(walk.root_positions, walk.rotations)[[0, 16]]
    targets = [blend.space.handle_positions(q, blend.space.handles(FIVE))[0] for q in poses]

    def answers(solver: Solver, frames: tuple[int, ...]) -> np.ndarray:
        for frame in frames:
            start = np.concatenate([poses[frame][:ROOT_SIZE], blend.mean])
            q = solver.solve(start, targets=targets[frame]).q
        return q

    handles = [Position(name, (0.0, 0.0, 0.0)) for name in FIVE]
    followed, alone = (Solver(blend, handles, root="given") for _ in range(2))
    np.testing.assert_allclose(answers(followed, (0, 1)), answers(alone, (1,)), atol=1e-9)


def test_hands_near_the_floor_bend_the_body_instead_of_sinking_it() -> None:
    people = UniversalPrior.of_people()
    handles = people.space.handles(("left_hand", "right_hand"))
    targets = np.array([[0.15, 0.15, 0.3], [-0.15, 0.15, 0.3]])
    start = people.space.standing(people.mean)
    low, high = (
        people.guide(handles).starts(start, targets + up, free_root=True)[0].q
        for up in (0.0, [0.0, 9.0, 0.0])
    )
    assert people.space.forward(low)[0][:, 1].min() > -0.25
    assert people.space.forward(high)[0][:, 1].min() < 8.6  # nothing is known of a floor there: it stands


def test_a_hand_near_the_floor_leaves_several_kinds_of_poses_open() -> None:
    prior, hand = UniversalPrior.of_people(), (0.3, 0.35, 0.3)
    solution = solve(prior, {"left_hand": hand})
    modes = solution.uncertainty.modes
    shares = [mode.share for mode in modes]
    assert len(modes) > 2
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)
    bodies = [solution.space.pose_from_q(mode.q).positions for mode in modes]
    for body, mode in zip(bodies, modes, strict=True):
        assert np.linalg.norm(body["left_hand"] - np.array(hand)) < 0.002
        assert facing_of(prior, mode.q) @ facing_of(prior, solution.q) > 0.7
    knees = [body["left_shin"][1] - body["left_foot"][1] for body in bodies]
    assert min(knees) < 0.15 < 0.35 < max(knees)  # kneeling, and on their feet
    apart = np.linalg.norm(np.asarray(bodies[0]) - np.asarray(bodies[1]), axis=-1)
    assert apart.mean() > 0.08
    assert any(np.array_equal(modes[0].q, other) for other in solution.uncertainty.alternatives(5))


def test_what_handles_say_closely_is_one_kind(other: UniversalPrior, walk: Motion) -> None:
    q = recorded(other, walk, 10)
    targets, _ = other.space.handle_positions(q, other.space.handles(FIVE))
    solution = solve(other, dict(zip(FIVE, targets, strict=True)), start=q, root="given")
    (mode,) = solution.uncertainty.modes
    assert mode.share == pytest.approx(1.0)
    assert missed(other, mode.q, solution.q) < 0.08


def test_a_single_kind_is_the_solved_pose_also_where_a_handle_is_out_of_reach() -> None:
    solution = solve(
        UniversalPrior.of_people(), {"right_hand": (0.8, 1.5, 0.9), "left_upper_arm": (0.2, 1.4, 0.0)}
    )
    (mode,) = solution.uncertainty.modes
    np.testing.assert_array_equal(mode.q, solution.q)
    assert solution.uncertainty.kinds == []


def test_modes_are_of_the_handles_that_were_solved_for() -> None:
    prior = UniversalPrior.of_people()
    solver = Solver(prior, [Position("left_hand", (0.3, 0.35, 0.3))])
    first, (low,) = solver.solve(), solver.problem.targets
    solver.solve(targets=np.array([[0.3, 1.8, 0.3]]))
    held = [first.space.pose_from_q(mode.q).positions["left_hand"] for mode in first.uncertainty.modes]
    assert np.linalg.norm(np.array(held) - low, axis=-1).max() < 0.002
    assert solver.problem.targets[0, 1] == 1.8


def test_a_batch_gives_the_poses_of_solves_one_by_one(other: UniversalPrior, walk: Motion) -> None:
    names, frames = ("head", "left_hand", "right_hand"), []
    for frame in range(0, 24, 3):
        q = recorded(other, walk, frame)
        targets, _ = other.space.handle_positions(q, other.space.handles(names))
        frames.append([Position(*pair) for pair in zip(names, targets, strict=True)])
    for ours, alone in zip(
        solve_batch(other, frames, threads=2), (solve(other, one) for one in frames), strict=True
    ):
        np.testing.assert_array_equal(ours.q, alone.q)
        assert ours.status is alone.status
