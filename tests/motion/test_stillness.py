"""Still joints: those that vary by no more than a thousandth of a radian."""

import numpy as np
import pytest

import poise
from bodies import moving, person
from poise.errors import SkeletonError
from poise.geometry import rotations
from poise.motion import still_joints
from real_data import recording

BODY = person()


def driven(**sizes):
    """The named joints swing by so many radians from lowest to highest, about an offset; the others do not move."""
    motion = moving(BODY, size=0.0)
    q, time = motion.rotations.copy(), np.linspace(0.0, 2 * np.pi, len(motion))
    for role, size in sizes.items():
        swing = 0.4 + 0.5 * size * np.sin(time)
        q[:, BODY.index(role)] = rotations.quaternion_from_expmap(np.outer(swing, [0.0, 0.0, 1.0]))
    return motion.with_frames(motion.root_positions, q)


def test_threshold_is_a_thousandth_of_a_radian():
    still = still_joints(driven(left_hand=0.0009, right_hand=0.0011, head=0.5))
    assert "left_hand" in still
    assert "right_hand" not in still
    assert "head" not in still


def test_held_at_an_angle_is_still():
    assert "left_shin" in still_joints(driven(left_shin=0.0))


def test_end_sites_are_not_listed():
    assert not [name for name in still_joints(driven()) if name.endswith("_end")]


def test_a_joint_that_moves_in_one_clip_is_not_still():
    both = [driven(left_hand=0.0), driven(left_hand=0.3)]
    assert "left_hand" not in still_joints(both)
    assert "left_hand" in still_joints(both[:1])


def test_joints_held_differently_in_two_clips_are_not_still():
    first, second = driven(head=0.0), moving(BODY, size=0.0)
    assert "head" not in still_joints([first, second])


def test_unlike_skeletons_are_refused():
    with pytest.raises(SkeletonError):
        still_joints([driven(), moving(person({"head": "Kopf"}))])


def test_cmu_helper_joints_are_still():
    still = still_joints(poise.read(recording("cmu", "07_01.bvh")))
    assert {"LHipJoint", "RHipJoint"} <= set(still)
    assert not {"LeftUpLeg", "RightForeArm", "Head"} & set(still)
