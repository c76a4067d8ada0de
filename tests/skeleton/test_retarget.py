"""Retargeting a pose: rotations kept, places scaled, differences named."""

import numpy as np
import pytest

from bodies import moving, person
from poise.errors import SkeletonError
from poise.skeleton import Skeleton
from poise.skeleton.retarget import check_same_topology, retarget_pose, size_ratio


def test_rotations_are_kept_and_the_root_is_scaled_by_leg_length():
    pose, target = moving(person())[7], person().scaled(1.2)
    moved = retarget_pose(pose, target)
    np.testing.assert_array_equal(moved.rotations, pose.rotations)
    np.testing.assert_allclose(moved.root_position, 1.2 * pose.root_position)
    assert moved.skeleton == target


def test_there_and_back_is_the_same_pose():
    pose = moving(person())[3]
    back = retarget_pose(retarget_pose(pose, person().scaled(0.6)), person())
    np.testing.assert_allclose(back.root_position, pose.root_position)


def test_longer_arms_do_not_move_the_root():
    body = person()
    offsets = body.offsets.copy()
    offsets[[body.index("left_hand"), body.index("left_forearm")]] *= 1.5
    assert size_ratio(body, body.with_offsets(offsets)) == pytest.approx(1.0)


def test_bodies_without_legs_scale_as_a_whole():
    tail = Skeleton(("a", "b"), np.array([-1, 0]), np.array([[0.0, 0, 0], [1.0, 0, 0]]))
    assert size_ratio(tail, tail.scaled(3.0)) == pytest.approx(3.0)


def test_first_differing_joint_is_named():
    body = person()
    other = person({"left_foot": "LeftFoot"})
    with pytest.raises(SkeletonError, match="joint 3: 'left_foot' here, 'LeftFoot' in the target"):
        check_same_topology(body, other)


def test_other_parent_is_named():
    body = person()
    parents = body.parents.copy()
    parents[body.index("head")] = body.index("chest")
    other = Skeleton(body.names, parents, body.offsets, body.orders)
    with pytest.raises(SkeletonError, match="'head' has the parent 'neck' here and 'chest' in the target"):
        retarget_pose(moving(body)[0], other)


@pytest.mark.parametrize(
    ("ours", "theirs", "where"), [((), ("right_hand_end",), "source"), (("right_hand_end",), (), "target")]
)
def test_joints_too_many_are_named(ours, theirs, where):
    with pytest.raises(SkeletonError, match=f"the {where} has 1 joints more; the first is 'right_hand_end'"):
        check_same_topology(person(leave_out=ours), person(leave_out=theirs))
