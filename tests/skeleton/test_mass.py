"""Segment masses: they add up, they lie where the tables say, and any skeleton gets some."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poise
from bodies import HEIGHT, bone_aligned_axes, moving, person, with_other_axes
from poise.errors import InvalidValueError
from poise.motion import joint_transforms
from poise.skeleton import Skeleton
from poise.skeleton.mass import segment_masses
from real_data import recordings


def centre_of_mass(motion):
    masses = segment_masses(motion.skeleton)
    positions, world = joint_transforms(motion)
    return np.einsum(
        "j,fji->fi", masses.fraction, positions + np.einsum("fjab,jb->fja", world, masses.centre)
    )


@given(st.floats(0.0, 1.0))
def test_fractions_add_up_to_one(maleness):
    masses = segment_masses(person(), maleness=maleness)
    assert masses.fraction.sum() == pytest.approx(1.0)
    assert np.all(masses.fraction >= 0)


def test_segments_weigh_what_de_leva_says_of_men():
    masses = segment_masses(person(), maleness=1.0)
    for role, percent in (
        ("left_thigh", 14.16),
        ("right_shin", 4.33),
        ("head", 6.94),
        ("left_forearm", 1.62),
    ):
        assert 100 * masses.fraction[person().index(role)] == pytest.approx(percent, rel=1e-3)
    np.testing.assert_allclose(
        masses.centre[person().index("left_thigh")], [0.0, -0.4095 * 0.43, 0.0], atol=1e-9
    )


def test_end_sites_weigh_nothing():
    assert np.all(segment_masses(person()).fraction[person().is_end_site] == 0.0)


def test_standing_centre_of_mass_is_near_the_navel():
    motion = moving(person(), frames=2, size=0.0)
    rest = motion.with_frames(np.tile([0.0, 0.95, 0.0], (2, 1)), motion.rotations)
    centre = centre_of_mass(rest)[0]
    assert 0.53 < centre[1] / HEIGHT < 0.60
    np.testing.assert_allclose(centre[[0, 2]], 0.0, atol=0.02)


def test_symmetric_body_has_symmetric_masses():
    masses, body = segment_masses(person()), person()
    for part in ("thigh", "shin", "foot", "upper_arm", "forearm", "hand"):
        left, right = body.index(f"left_{part}"), body.index(f"right_{part}")
        assert masses.fraction[left] == pytest.approx(masses.fraction[right])
        np.testing.assert_allclose(masses.centre[left] * [-1, 1, 1], masses.centre[right], atol=1e-12)


def test_axes_do_not_matter_for_the_centre_of_mass():
    motion = moving(person(), size=0.5)
    rig = with_other_axes(motion, bone_aligned_axes(motion.skeleton))
    np.testing.assert_allclose(centre_of_mass(rig), centre_of_mass(motion), atol=5e-3)


def test_split_bones_share_their_segment():
    body = person()
    foot = body.index("left_foot")
    offsets = body.offsets.copy()
    offsets[foot] *= 0.5
    names = (*body.names[:foot], "left_shin_twist", *body.names[foot:])
    parents = [p + (p >= foot) for p in body.parents.tolist()]
    parents = [*parents[:foot], parents[foot], foot, *parents[foot + 1 :]]
    split = Skeleton(
        names,
        parents,
        np.insert(offsets, foot, offsets[foot], axis=0),
        (*body.orders[:foot], "ZYX", *body.orders[foot:]),
    )
    whole, parts = segment_masses(body), segment_masses(split)
    total = parts.fraction[split.index("left_shin")] + parts.fraction[split.index("left_shin_twist")]
    assert total == pytest.approx(whole.fraction[body.index("left_shin")])


def test_unknown_skeletons_weigh_by_length():
    arm = Skeleton(("a", "b", "c"), np.array([-1, 0, 1]), np.array([[0.0, 0, 0], [3.0, 0, 0], [1.0, 0, 0]]))
    masses = segment_masses(arm)
    np.testing.assert_allclose(masses.fraction, [0.75, 0.25, 0.0])
    np.testing.assert_allclose(masses.centre[:2], [[1.5, 0, 0], [0.5, 0, 0]])


def test_a_single_joint_carries_everything():
    point = Skeleton(("a",), np.array([-1]), np.zeros((1, 3)))
    np.testing.assert_array_equal(segment_masses(point).fraction, [1.0])


@pytest.mark.parametrize("maleness", [-0.1, 1.1, np.nan])
def test_maleness_is_a_share(maleness):
    with pytest.raises(InvalidValueError, match="between 0 and 1"):
        segment_masses(person(), maleness=maleness)


@pytest.mark.parametrize("collection", ["cmu", "bandai"])
def test_real_walkers_carry_their_centre_of_mass_at_hip_height(collection):
    motion = poise.read(
        next(file for file in recordings(collection) if "07_01" in file.name or "walk_normal" in file.name)
    )
    height = centre_of_mass(motion)[:, 1].mean() / motion.skeleton.height
    assert 0.50 < height < 0.62
