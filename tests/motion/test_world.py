"""Positions, facing, velocities and accelerations in the world."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poise
from bodies import bone_aligned_axes, moving, person, stepping, with_other_axes
from poise.geometry import rotations
from poise.motion import (
    Motion,
    accelerations,
    angular_velocities,
    facing_directions,
    headings,
    joint_positions,
    joint_transforms,
    moved,
    velocities,
)
from poise.motion.world import derivative, second_derivative
from poise.skeleton import Skeleton
from real_data import recording

BODY = person()


def standing(turn, frames=1):
    q = np.tile(rotations.IDENTITY, (frames, len(BODY), 1))
    q[:, 0] = rotations.quaternion_from_expmap(np.array(turn, dtype=float))
    return Motion(BODY, 60.0, np.zeros((frames, 3)), q)


def test_positions_at_rest_are_sums_of_offsets():
    positions = joint_positions(standing([0, 0, 0]))[0]
    np.testing.assert_allclose(positions[BODY.index("left_foot")], [0.09, -0.89, 0.0], atol=1e-12)


@given(st.floats(-3.1, 3.1))
def test_heading_is_the_turn_about_up(angle):
    assert headings(standing([0, angle, 0]))[0] == pytest.approx(angle, abs=1e-9)
    np.testing.assert_allclose(
        facing_directions(standing([0, angle, 0]))[0], [np.sin(angle), 0.0, np.cos(angle)], atol=1e-9
    )


@pytest.mark.parametrize("lean", [-1.2, -0.5, 0.5, 1.2])
def test_leaning_does_not_change_the_heading(lean):
    assert headings(standing([lean, 0, 0]))[0] == pytest.approx(0.0, abs=1e-9)


def test_heading_is_unwrapped_over_many_turns():
    q = np.tile(rotations.IDENTITY, (200, len(BODY), 1))
    turn = np.linspace(0.0, 20.0, 200)
    q[:, 0] = rotations.quaternion_from_expmap(np.outer(turn, [0.0, 1.0, 0.0]))
    np.testing.assert_allclose(headings(Motion(BODY, 60.0, np.zeros((200, 3)), q)), turn, atol=1e-9)


def test_lying_on_a_side_takes_the_heading_around_it():
    q = np.tile(rotations.IDENTITY, (21, len(BODY), 1))
    roll = np.concatenate([np.linspace(0.0, np.pi / 2, 11), np.linspace(np.pi / 2, 0.0, 11)[1:]])
    q[:, 0] = rotations.quaternion_from_expmap(np.outer(roll, [0.0, 0.0, 1.0]))
    np.testing.assert_allclose(headings(Motion(BODY, 60.0, np.zeros((21, 3)), q)), 0.0, atol=1e-9)


def test_heading_does_not_depend_on_the_joints_axes():
    motion = moving(BODY)
    np.testing.assert_allclose(
        headings(with_other_axes(motion, bone_aligned_axes(BODY))), headings(motion), atol=1e-9
    )


def test_a_thing_without_limbs_faces_as_its_root_does():
    stick = Skeleton(("a", "b"), np.array([-1, 0]), np.array([[0.0, 0, 0], [0.0, 1.0, 0]]))
    q = np.tile(rotations.IDENTITY, (1, 2, 1))
    q[:, 0] = rotations.quaternion_from_expmap(np.array([0.0, 0.5, 0.0]))
    assert headings(Motion(stick, 30.0, np.zeros((1, 3)), q))[0] == pytest.approx(0.5)


@pytest.mark.parametrize("fps", [24.0, 30.0, 59.94, 120.0])
def test_derivatives_are_exact_for_parabolas_ends_included(fps):
    time = np.arange(12) / fps
    values = np.stack([3.0 * time**2 - time, 5.0 * time + 1.0], axis=-1)
    np.testing.assert_allclose(
        derivative(values, fps), np.stack([6.0 * time - 1.0, np.full(12, 5.0)], -1), atol=1e-9
    )
    np.testing.assert_allclose(second_derivative(values, fps), np.tile([6.0, 0.0], (12, 1)), atol=1e-7)


def test_second_derivative_is_exact_for_cubics_ends_included():
    time = np.arange(12) / 60.0
    np.testing.assert_allclose(second_derivative(time**3, 60.0), 6.0 * time, atol=1e-9)


@pytest.mark.parametrize("frames", [1, 2, 3, 4])
def test_short_motions_have_derivatives_too(frames):
    motion = moving(BODY)[:frames]
    for values in (velocities(motion), accelerations(motion), angular_velocities(motion)):
        assert values.shape == (frames, len(BODY), 3)
        assert np.all(np.isfinite(values))


def test_velocities_of_a_steady_walk():
    walk = moved(stepping(BODY, stride=1.3), turn=np.pi / 2)
    np.testing.assert_allclose(velocities(walk)[:, 0], np.tile([1.3, 0.0, 0.0], (len(walk), 1)), atol=1e-9)
    np.testing.assert_allclose(accelerations(walk)[:, 0], 0.0, atol=1e-8)


def test_angular_velocity_of_a_steady_spin():
    q = np.tile(rotations.IDENTITY, (50, len(BODY), 1))
    spin = np.array([0.3, -2.0, 1.0])
    q[:, 3] = rotations.quaternion_from_expmap(np.outer(np.arange(50) / 60.0, spin))
    found = angular_velocities(Motion(BODY, 60.0, np.zeros((50, 3)), q))
    np.testing.assert_allclose(found[:, 3], np.tile(spin, (50, 1)), atol=1e-9)
    np.testing.assert_allclose(found[:, 4], 0.0, atol=1e-12)


def test_transforms_carry_children():
    positions, world = joint_transforms(moving(BODY))
    child, parent = BODY.index("left_hand"), BODY.index("left_forearm")
    carried = positions[:, parent] + world[:, parent] @ BODY.offsets[child]
    np.testing.assert_allclose(positions[:, child], carried, atol=1e-12)


def test_a_real_walker_faces_where_he_goes():
    motion = poise.read(recording("cmu", "07_01.bvh"))
    way = motion.root_positions[-1] - motion.root_positions[0]
    way[1] = 0.0
    assert np.mean(facing_directions(motion) @ (way / np.linalg.norm(way))) > 0.97
