"""Palms and soles lie flat on what they touch, and what bears load moves the balance."""

import math

import numpy as np
import pytest

import poise
from poise import Against
from poise.performer import PERFORMERS
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton import Pose
from poise.skeleton.surfaces import surfaces_of

WALL = (0.0, 0.0, -1.0)
PUSH = [Against("left_palm", (0.18, 1.25, 0.62), WALL), Against("right_palm", (-0.18, 1.25, 0.62), WALL)]


def facing(pose: Pose, name: str) -> np.ndarray:
    """The way a palm or sole faces."""
    surface = surfaces_of(pose.skeleton)[name]
    return pose.world[1][pose.skeleton.index(surface.joint)] @ np.array(surface.facing)


def place(pose: Pose, name: str) -> np.ndarray:
    """Where it is."""
    joint, offset = poise.Handle(name).on(pose.skeleton)
    return pose.world[0][joint] + pose.world[1][joint] @ np.array(offset)


def bend(pose: Pose, *roles: str) -> float:
    """The bend of the middle joint of three, in degrees."""
    top, middle, end = (pose.positions[role] for role in roles)
    cosine = (top - middle) @ (end - middle) / np.linalg.norm(top - middle) / np.linalg.norm(end - middle)
    return 180.0 - math.degrees(math.acos(cosine))


@pytest.mark.parametrize("body", [None, "performer"], ids=["typical", "performer"])
def test_a_push_leans_and_lunges_with_flat_palms(body: str | None) -> None:
    model = None if body is None else UniversalPrior(next(iter(PERFORMERS.values())).skeleton)
    pose = poise.pose(PUSH, model).pose
    for name, at in (("left_palm", 0.18), ("right_palm", -0.18)):
        np.testing.assert_allclose(place(pose, name), (at, 1.25, 0.62), atol=0.002)
        assert facing(pose, name)[2] > math.cos(math.radians(15.0))
    ahead, behind = pose.positions["left_foot"], pose.positions["right_foot"]
    assert ahead[2] - behind[2] > 0.2 * pose.skeleton.height, "a lunge"
    trunk = pose.positions["head"] - pose.positions["pelvis"]
    assert math.degrees(math.atan2(trunk[2], trunk[1])) > 10.0, "a lean"
    assert bend(pose, "right_thigh", "right_shin", "right_foot") < 40.0
    for side in ("left", "right"):
        assert 20.0 < bend(pose, f"{side}_upper_arm", f"{side}_forearm", f"{side}_hand") < 100.0


def test_a_body_turns_to_the_wall_that_it_pushes() -> None:
    pose = poise.pose(
        [
            Against("left_palm", (0.62, 1.25, -0.18), (-1, 0, 0)),
            Against("right_palm", (0.62, 1.25, 0.18), (-1, 0, 0)),
        ]
    ).pose
    across = pose.positions["left_thigh"] - pose.positions["right_thigh"]
    assert -across[2] > 0.9 * np.linalg.norm(across)


def test_with_one_palm_the_other_foot_is_ahead() -> None:
    right, left = (poise.pose([one]).pose for one in PUSH[::-1])
    assert right.positions["left_foot"][2] > right.positions["right_foot"][2] + 0.2
    assert left.positions["right_foot"][2] > left.positions["left_foot"][2] + 0.2


@pytest.mark.parametrize("name", ["right_palm", "left_palm"])
def test_a_palm_on_the_floor_lies_flat(name: str) -> None:
    aside = 0.2 if name == "left_palm" else -0.2
    pose = poise.pose({name: (aside, 0.0, 0.45)}).pose
    assert facing(pose, name)[1] < -math.cos(math.radians(10.0))
    assert np.asarray(pose.positions)[:, 1].min() > -0.005


def test_fingertips_can_touch_the_floor_without_the_palm() -> None:
    pose = poise.pose({"right_fingertips": (-0.2, 0.0, 0.45)}).pose
    np.testing.assert_allclose(place(pose, "right_fingertips"), (-0.2, 0.0, 0.45), atol=0.002)
    assert pose.positions["right_hand"][1] > 0.05


def test_a_sole_lies_flat_on_a_step() -> None:
    pose = poise.pose([Against("right_sole", (-0.1, 0.3, 0.35))]).pose
    np.testing.assert_allclose(place(pose, "right_sole"), (-0.1, 0.3, 0.35), atol=0.002)
    assert facing(pose, "right_sole")[1] < -math.cos(math.radians(10.0))


def test_a_table_carries_hands_that_rest_on_it() -> None:
    pose = poise.pose([Against("left_palm", (0.2, 0.8, 0.5)), Against("right_palm", (-0.2, 0.8, 0.5))]).pose
    for name in ("left_palm", "right_palm"):
        assert facing(pose, name)[1] < -math.cos(math.radians(10.0))
    assert bend(pose, "left_thigh", "left_shin", "left_foot") < 60.0


def test_a_normal_of_no_length_is_refused() -> None:
    with pytest.raises(poise.PoiseError, match="must not be zero"):
        poise.pose([Against("right_palm", (0.0, 1.0, 0.5), (0, 0, 0))])
