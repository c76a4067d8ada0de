"""Measures of a body: the same in every unit and every rest pose, and right for real performers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poise
from bodies import HEIGHT, bone_aligned_axes, moving, person, with_other_axes
from poise.skeleton import Skeleton
from poise.skeleton.measure import leg_length, length_between, longest_way, segment_lengths, standing_height
from real_data import recordings


def test_height_is_from_sole_to_crown():
    assert standing_height(person()) == pytest.approx(HEIGHT, abs=0.02)


@given(st.floats(1e-3, 1e3))
def test_height_scales_with_the_unit(factor):
    assert standing_height(person().scaled(factor)) == pytest.approx(
        factor * standing_height(person()), rel=1e-9
    )


def test_height_does_not_depend_on_the_rest_pose():
    motion = moving(person(), frames=2)
    stick = with_other_axes(motion, bone_aligned_axes(motion.skeleton)).skeleton
    assert standing_height(stick) == pytest.approx(HEIGHT, abs=0.03)


def test_missing_crown_is_filled_in():
    body = person()
    offsets = body.offsets.copy()
    offsets[body.index("head_end")] = 0.0
    assert standing_height(body.with_offsets(offsets)) == pytest.approx(HEIGHT, abs=0.06)


def test_missing_names_change_nothing():
    body = person()
    nameless = Skeleton(tuple(f"j{n}" for n in range(len(body))), body.parents, body.offsets, body.orders)
    assert standing_height(nameless) == pytest.approx(standing_height(body))


def test_zero_length_helper_joints_change_nothing():
    body = person()
    hip = body.index("left_thigh")
    names = (*body.names[:hip], "LHipJoint", *body.names[hip:])
    parents = [p + (p >= hip) for p in body.parents.tolist()]
    parents = [*parents[:hip], 0, hip, *parents[hip + 1 :]]
    offsets = np.insert(body.offsets, hip, 0.0, axis=0)
    orders = (*body.orders[:hip], "ZYX", *body.orders[hip:])
    assert standing_height(Skeleton(names, parents, offsets, orders)) == pytest.approx(standing_height(body))


def test_segment_lengths():
    lengths = segment_lengths(person())
    assert lengths["left_thigh"] == pytest.approx(0.43)
    assert lengths["right_forearm"] == pytest.approx(0.26)
    assert lengths["trunk"] == pytest.approx(0.52)
    assert lengths["neck"] == pytest.approx(0.11)


def test_leg_length_is_the_mean_of_both():
    body = person()
    offsets = body.offsets.copy()
    offsets[body.index("left_foot")] = [0.0, -0.45, 0.0]
    assert leg_length(body.with_offsets(offsets)) == pytest.approx(0.87)


def test_length_between_joints_that_are_not_in_line_is_zero():
    assert length_between(person(), "left_hand", "right_hand") == 0.0
    assert length_between(person(), "left_hand", "no such joint") == 0.0


def test_a_body_without_legs_is_as_long_as_its_longest_way():
    chain = Skeleton(
        ("a", "b", "c"), np.array([-1, 0, 0]), np.array([[0.0, 0, 0], [1.0, 0, 0], [0.0, 2.0, 0]])
    )
    assert standing_height(chain) == pytest.approx(3.0)
    assert longest_way(chain) == pytest.approx(3.0)


def test_cmu_performers_are_between_one_and_a_half_and_two_metres():
    heights = {file.name: poise.read(file).skeleton.height for file in recordings("cmu")[::9]}
    assert all(1.5 < height < 2.0 for height in heights.values()), heights


def test_bandai_performers_are_people():
    heights = [poise.read(file).skeleton.height for file in recordings("bandai")[::40]]
    assert all(1.4 < height < 2.0 for height in heights), heights
