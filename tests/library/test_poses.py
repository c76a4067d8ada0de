"""All poses as one array: markers in the root's frame, on any body."""

import numpy as np
import pytest

from bodies import moving, person
from poise.errors import SkeletonError
from poise.library import Poses
from poise.motion import moved
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.pose_space import Handle

MARKERS = [Handle("left_hand", (0.1, 0.0, 0.0)), Handle("head"), Handle("right_foot", (0.0, -0.05, 0.1))]


def expected_markers(motion, skeleton):
    """By the definition: forward kinematics with the root at the origin, unturned."""
    turns = motion.rotations.copy()
    turns[:, 0] = (1.0, 0.0, 0.0, 0.0)
    places, matrices = world_transforms(skeleton, np.zeros_like(motion.root_positions), turns)
    return np.stack(
        [
            places[:, skeleton.index(h.joint)] + matrices[:, skeleton.index(h.joint)] @ np.array(h.offset)
            for h in MARKERS
        ],
        axis=1,
    )


def test_markers_of_the_same_body(motions):
    clips = list(motions.values())
    found = Poses.of_motions(clips).marker_positions(MARKERS)
    expected = np.concatenate([expected_markers(clip, clips[0].skeleton) for clip in clips])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_markers_of_another_body(motions):
    clip = motions["reach"]
    taller = clip.skeleton.scaled(1.1)
    found = Poses.of_motions([clip]).marker_positions(MARKERS, skeleton=taller)
    np.testing.assert_allclose(found, expected_markers(clip, taller), atol=1e-5)


def test_markers_do_not_depend_on_where_the_root_is(motions):
    clip = motions["reach"]
    there = Poses.of_motions([moved(clip, turn=1.0, shift=(1.0, 0.0, 2.0))])
    np.testing.assert_allclose(
        there.marker_positions(MARKERS), Poses.of_motions([clip]).marker_positions(MARKERS), atol=1e-6
    )


def test_frames_belong_to_clips(motions):
    poses = Poses.of_motions(list(motions.values()))
    for number, name in enumerate(poses.names):
        assert np.all(poses.clip_of[poses.frames_of(name)] == number)


def test_clips_of_one_topology_only(motions):
    with pytest.raises(SkeletonError, match="has another skeleton"):
        Poses.of_motions([motions["reach"], moving(person(leave_out=("head_end",)))])
