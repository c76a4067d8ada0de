"""What a body does unasked: heading, balance, arms that hang, feet on the floor."""

from dataclasses import replace

import numpy as np
import pytest

from poise.apps.posing import pose
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.clearance import depths
from poise.skeleton.skeleton import Pose
from poise.solvers import bearing
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
