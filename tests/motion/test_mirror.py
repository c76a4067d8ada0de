"""Mirroring: twice is nothing, positions swap sides, on any skeleton."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poise
from bodies import bone_aligned_axes, moving, person, stepping, with_other_axes
from poise.geometry import rotations
from poise.motion import foot_contacts, headings, joint_positions, mirror, moved
from poise.skeleton.symmetry import mirror_joints
from real_data import recordings

BODY = person()


def assert_mirrored(motion, tolerance=1e-6):
    """Every joint is where its partner's mirror image was."""
    expected = joint_positions(motion)[:, mirror_joints(motion.skeleton)] * [-1.0, 1.0, 1.0]
    np.testing.assert_allclose(joint_positions(mirror(motion)), expected, atol=tolerance)


@settings(max_examples=25)
@given(st.integers(0, 50), st.floats(0.05, 1.0))
def test_twice_is_the_identity(seed, size):
    motion = moving(BODY, seed=seed, size=size, frames=20)
    back = mirror(mirror(motion))
    np.testing.assert_allclose(back.root_positions, motion.root_positions)
    assert rotations.geodesic_distance(back.rotations, motion.rotations).max() < 1e-7


def test_positions_swap_sides():
    assert_mirrored(moving(BODY, size=0.7))


def test_positions_swap_sides_on_a_rig_with_bone_aligned_axes():
    assert_mirrored(with_other_axes(moving(BODY, frames=100, size=0.5), bone_aligned_axes(BODY)))


def test_positions_swap_sides_below_a_root_that_is_turned():
    assert_mirrored(moved(moving(BODY), turn=1.2, shift=(2.0, 0.0, 1.0)))


def test_rest_pose_that_faces_sideways():
    quarter = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    sideways = BODY.with_offsets(BODY.offsets @ quarter.T)
    assert_mirrored(moving(sideways))


def test_contacts_and_headings_swap():
    walk = moved(stepping(BODY), turn=0.5)
    np.testing.assert_array_equal(foot_contacts(mirror(walk)).feet[:, ::-1], foot_contacts(walk).feet)
    np.testing.assert_allclose(headings(mirror(walk)), -headings(walk), atol=1e-6)


def test_limb_lengths_stay_where_they_are():
    offsets = BODY.offsets.copy()
    offsets[BODY.index("left_foot")] *= 1.1
    motion = moving(BODY.with_offsets(offsets))
    assert mirror(motion).skeleton == motion.skeleton


def test_joints_of_one_side_only_keep_their_rotations():
    motion = moving(person(leave_out=("left_toes", "left_toes_end")))
    toes = motion.skeleton.index("right_toes")
    np.testing.assert_array_equal(mirror(motion).rotations[:, toes], motion.rotations[:, toes])
    back = mirror(mirror(motion))
    assert rotations.geodesic_distance(back.rotations, motion.rotations).max() < 1e-7


@pytest.mark.parametrize(("collection", "tolerance"), [("bandai", 0.002), ("cmu", 0.08)])
def test_real_motions_swap_sides(collection, tolerance):
    """Bandai's body is symmetric; CMU's performers have limbs that differ by centimetres from side to side."""
    for file in recordings(collection)[::30]:
        motion = poise.read(file)[::10]
        assert_mirrored(motion, tolerance)
        back = mirror(mirror(motion))
        assert rotations.geodesic_distance(back.rotations, motion.rotations).max() < 1e-6
