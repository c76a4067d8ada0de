"""Left and right: partners by name and by shape, and how their axes correspond."""

import numpy as np
import pytest

import poise
from bodies import bone_aligned_axes, moving, person, with_other_axes
from poise.skeleton import Skeleton
from poise.skeleton.symmetry import ACROSS, mirror_joints, reflections, without_partner
from real_data import recordings


def with_fingers(names):
    """The person with two fingers on each hand, under these names (left, left, right, right)."""
    body = person()
    hands = [body.index("left_hand")] * 2 + [body.index("right_hand")] * 2
    offsets = [[0.09, 0.0, 0.02], [0.08, 0.0, -0.02], [-0.09, 0.0, 0.02], [-0.08, 0.0, -0.02]]
    return Skeleton(
        (*body.names, *names),
        np.concatenate([body.parents, hands]),
        np.concatenate([body.offsets, offsets]),
        (*body.orders, *["ZYX"] * 4),
    )


def test_partners_of_a_person():
    body = person()
    partner = mirror_joints(body)
    for joint, name in enumerate(body.names):
        other = name.replace("left", "?").replace("right", "left").replace("?", "right")
        assert body.names[partner[joint]] == other


@pytest.mark.parametrize(
    "names",
    [
        ("LeftIndex1", "LeftIndex2", "RightIndex1", "RightIndex2"),
        ("f1.L", "f2.L", "f1.R", "f2.R"),
        ("a", "b", "c", "d"),
    ],
)
def test_fingers_are_paired_by_name_or_by_length(names):
    body = with_fingers(names)
    first = len(person())
    np.testing.assert_array_equal(mirror_joints(body)[first:], [first + 2, first + 3, first, first + 1])


def test_pairs_by_name_win_over_lengths():
    body = with_fingers(("LeftIndex1", "LeftIndex2", "RightIndex2", "RightIndex1"))
    first = len(person())
    np.testing.assert_array_equal(mirror_joints(body)[first:], [first + 3, first + 2, first + 1, first])


def test_joints_of_one_side_only_are_told():
    body = person(leave_out=("left_toes", "left_toes_end"))
    alone = without_partner(body, mirror_joints(body))
    assert [body.names[joint] for joint in np.flatnonzero(alone)] == ["right_toes", "right_toes_end"]


def test_partnership_is_mutual_and_keeps_the_tree():
    for body in (person(), with_fingers(("a", "b", "c", "d"))):
        partner = mirror_joints(body)
        np.testing.assert_array_equal(partner[partner], np.arange(len(body)))
        np.testing.assert_array_equal(partner[body.parents[1:]], body.parents[partner[1:]])


def test_world_aligned_axes_are_carried_by_the_mirror_itself():
    np.testing.assert_allclose(reflections(person()), np.tile(ACROSS, (len(person()), 1, 1)), atol=1e-12)


def test_bone_aligned_axes_are_carried_by_their_own_reflections():
    motion = moving(person(), frames=100, size=0.5)
    axes = bone_aligned_axes(motion.skeleton)
    rig = with_other_axes(motion, axes)
    partner = mirror_joints(rig.skeleton)
    expected = np.swapaxes(axes, -1, -2) @ ACROSS @ axes[partner]
    np.testing.assert_allclose(reflections(rig.skeleton, rig.rotations), expected, atol=1e-9)


@pytest.mark.parametrize("size", [0.2, 1.0])
def test_reflections_undo_each_other(size):
    motion = moving(person(), seed=5, size=size)
    rig = with_other_axes(motion, bone_aligned_axes(motion.skeleton))
    carries = reflections(rig.skeleton, rig.rotations)
    together = carries @ carries[mirror_joints(rig.skeleton)]
    np.testing.assert_allclose(together, np.tile(np.eye(3), (len(carries), 1, 1)), atol=1e-9)


def test_bandai_rigs_reverse_the_axes_of_a_whole_side():
    for file in recordings("bandai")[::25]:
        motion = poise.read(file)
        carries = reflections(motion.skeleton, motion.rotations)
        for part in ("upper_arm", "forearm", "hand", "thigh", "shin", "foot"):
            np.testing.assert_allclose(carries[motion.skeleton.index(f"left_{part}")], -np.eye(3), atol=1e-9)
