"""What a body does unasked: heading, balance, arms that hang, feet on the floor."""

from dataclasses import replace

import numpy as np
import pytest

from poise.apps.posing import pose
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.clearance import depths
from poise.skeleton.skeleton import Pose
from poise.solvers import bearing
from poise.solvers.constraints import Position
from poise.solvers.posture import Manner, Posture
from poise.solvers.solution import Solution


@pytest.fixture(scope="module")
def people() -> UniversalPrior:
    return UniversalPrior()


@pytest.fixture(scope="module")
def upright(people: UniversalPrior) -> Pose:
    return people.space.pose_from_q(people.space.standing(people.mean))


def overhang(solution: Solution, held: frozenset[str] = frozenset()) -> float:
    centre, _ = solution.space.centre_of_mass(solution.q)
    return bearing.overhang(solution.pose, centre, held=held)


def test_the_heading_of_a_pose_turns_with_it(upright: Pose) -> None:
    forward = bearing.heading_of(upright)
    assert forward is not None
    np.testing.assert_allclose(forward, [0.0, 0.0, 1.0], atol=0.1)
    turned = upright.rotations.copy()
    turned[0] = [np.cos(np.pi / 4), 0.0, np.sin(np.pi / 4), 0.0]  # a quarter turn to the left
    to_the_left = bearing.heading_of(Pose(upright.skeleton, upright.root_position, turned))
    assert to_the_left is not None
    np.testing.assert_allclose(to_the_left, [1.0, 0.0, 0.0], atol=0.1)


def test_a_lifted_foot_carries_less_and_less(upright: Pose) -> None:
    places, areas = bearing.places_of(upright), []
    for height in np.linspace(0.0, 0.2, 21):
        lifted = {
            role: at + np.array([0.0, height, 0.0]) if role in ("left_foot", "left_toes") else at
            for role, at in places.items()
        }
        corners = bearing.support(lifted, upright.skeleton, margin=0.0)
        assert corners is not None
        areas.append(float(np.linalg.norm(corners[1] - corners[0]) * np.linalg.norm(corners[3] - corners[0])))
    assert areas[-1] < 0.6 * areas[0]
    assert (
        np.abs(np.diff(areas)).max() < 0.25 * areas[0]
    )  # no step: a hand that lifts a foot does not topple it


@pytest.mark.parametrize("hand", [(-0.15, 0.5, 0.25), (0.1, 0.3, 0.3)])
def test_limbs_stay_out_of_the_body(people: UniversalPrior, hand: tuple[float, float, float]) -> None:
    def deepest(*, apart: bool) -> float:
        found = pose({"right_hand": hand}, people, apart=apart)
        assert found.status.name == "REACHED"
        inside = depths(found.space.skeleton, np.asarray(found.positions)[None])
        return max(float(depth[0]) for depth in inside.values())

    assert deepest(apart=False) > 0.02
    assert deepest(apart=True) < 0.01


def test_roles_given_by_hand_count(upright: Pose) -> None:
    bearing.places_of(upright)
    other = replace(upright, skeleton=upright.skeleton.with_roles(left_hand=upright.skeleton.roles["head"]))
    np.testing.assert_array_equal(bearing.places_of(other)["left_hand"], upright.positions["head"])


def test_hips_are_a_seat_where_they_are_held_low(upright: Pose) -> None:
    places = bearing.places_of(upright)
    seated = places | {"pelvis": np.array([0.0, 0.5, -0.4])}
    alone = bearing.support(seated, upright.skeleton)
    held = bearing.support(seated, upright.skeleton, held={"pelvis"})
    assert alone is not None
    assert held is not None
    assert held[:, 1].min() < alone[:, 1].min() - 0.2


def test_a_reach_keeps_the_balance(people: UniversalPrior) -> None:
    far = {"left_hand": np.array([0.1, 1.0, 1.3]), "left_foot": np.array([0.1, 0.08, 0.0]),
           "right_foot": np.array([-0.1, 0.08, 0.0])}  # fmt: skip
    falling = overhang(pose(far, people, balance=False))
    assert overhang(pose(far, people)) < max(falling - 0.02, 0.03)


@pytest.mark.parametrize("facing", [1.0, -1.0])
def test_handles_on_both_sides_say_which_way_to_face(people: UniversalPrior, facing: float) -> None:
    hands = {
        "left_hand": np.array([0.5 * facing, 1.1, 0.2 * facing]),
        "right_hand": np.array([-0.5 * facing, 1.1, 0.2 * facing]),
    }
    heading = bearing.heading_of(pose(hands, people).pose)
    assert heading is not None
    assert heading[2] * facing > 0.8


def test_idle_arms_hang(people: UniversalPrior) -> None:
    raised = {"right_hand": np.array([-0.3, 1.95, 0.35])}
    relaxed, unrelaxed = (pose(raised, people, balance=balance).positions for balance in (True, False))
    assert relaxed["left_hand"][1] < relaxed["left_upper_arm"][1] - 0.1
    assert relaxed["left_hand"][1] < unrelaxed["left_hand"][1] - 0.2


@pytest.mark.parametrize("side", ["left", "right"])
def test_elbows_of_idle_arms_are_slightly_bent(people: UniversalPrior, side: str) -> None:
    standing = pose({"head": np.array([0.0, 1.55, 0.0])}, people).positions
    upper = standing[f"{side}_forearm"] - standing[f"{side}_upper_arm"]
    lower = standing[f"{side}_hand"] - standing[f"{side}_forearm"]
    bend = np.arccos(upper @ lower / np.linalg.norm(upper) / np.linalg.norm(lower))
    assert np.radians(10.0) < bend < np.radians(50.0)
    assert lower[2] > upper[2]  # forward


@pytest.mark.parametrize("gaze", [(-0.8, 1.6, -3.0), (2.0, 1.6, -2.0), (3.0, 1.6, 0.5)])
def test_hips_and_feet_share_a_gaze_that_neck_and_trunk_do_not_reach(people: UniversalPrior, gaze) -> None:
    solution = pose({}, people, look_at=gaze)
    heading, straight = bearing.heading_of(solution.pose), solution.positions["pelvis"][1]
    assert heading is not None
    turned = np.degrees(np.arccos(heading @ [gaze[0], 0.0, gaze[2]] / np.hypot(gaze[0], gaze[2])))
    assert 20.0 < turned < 85.0
    assert straight > 0.5 * people.space.skeleton.height
    assert solution.beyond_people == []


def test_a_free_foot_steps_under_a_body_that_would_fall(people: UniversalPrior) -> None:
    at = people.space.pose_from_q(people.space.standing(people.mean)).positions
    aside = {"left_foot": at["left_foot"], "head": at["head"] + [-0.45, -0.15, 0.1]}
    solution = pose(aside, people)
    assert solution.reached
    assert overhang(solution, frozenset(aside)) < 0.0


def trunk_bend(solution: Solution) -> float:
    up = solution.positions["neck"] - solution.positions["pelvis"]
    return float(np.degrees(np.arccos(up[1] / np.linalg.norm(up))))


@pytest.mark.parametrize("height", [0.24, 0.28, 0.32])
def test_a_body_on_a_seat_is_upright(people: UniversalPrior, height: float) -> None:
    solution = pose({"pelvis": (0.0, height * people.space.skeleton.height, -0.3)}, people)
    assert trunk_bend(solution) < 15.0
    assert overhang(solution, frozenset({"pelvis"})) < 0.0


def test_a_kick_stretches_its_leg_and_arms_balance_it(people: UniversalPrior, upright: Pose) -> None:
    height, foot = people.space.skeleton.height, upright.positions["left_foot"]
    manner = Manner(planted=(("left_foot", tuple(foot.tolist())),), keeps_heading=True)
    kick = Position("right_foot", (-0.1, 0.48 * height, 0.43 * height))
    solution = Posture(people).solve([kick], manner)
    at = solution.positions
    leg = sum(
        np.linalg.norm(at[a] - at[b])
        for a, b in (("right_thigh", "right_shin"), ("right_shin", "right_foot"))
    )
    assert np.linalg.norm(at["right_thigh"] - at["right_foot"]) > 0.95 * leg
    for side in ("left", "right"):
        out = abs(at[f"{side}_hand"][0] - at[f"{side}_upper_arm"][0])
        assert out > 0.12 * height
    assert overhang(solution) < 0.02


def test_the_other_foot_stands_while_one_is_lifted(people: UniversalPrior) -> None:
    solution = pose({"right_foot": (-0.1, 0.84, 0.45)}, people)
    assert solution.reached
    assert solution.positions["left_toes"][1] < 0.05
