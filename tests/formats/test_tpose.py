"""A T-pose put before a recording is found; one that belongs to the recording, or is the recording, is kept."""

from pathlib import Path

import numpy as np
import pytest

from bodies import WITHOUT_ARMS
from poise.formats import bvh
from poise.formats.bvh import added_frames, stands_in_tpose, without_added_tpose
from poise.geometry import rotations
from poise.motion import Motion
from poise.skeleton import Skeleton

NAMES = (*WITHOUT_ARMS, "LeftArm", "LeftForeArm", "LeftHand", "RightArm", "RightForeArm", "RightHand")
PARENTS = np.array([-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 7, 10, 11, 7, 13, 14])
LEG = [[0, -0.4, 0], [0, -0.4, 0]]
OFFSETS = np.array(
    [
        *([0, 0, 0], [0.1, 0, 0], *LEG, [-0.1, 0, 0], *LEG),
        *([0, 0.2, 0], [0, 0.3, 0], [0, 0.15, 0]),
        *([0.15, 0.25, 0], [0.3, 0, 0], [0.25, 0, 0]),
        *([-0.15, 0.25, 0], [-0.3, 0, 0], [-0.25, 0, 0]),
    ]
)


@pytest.fixture
def body() -> Skeleton:
    return Skeleton(NAMES, PARENTS, OFFSETS, ("ZYX",) * len(NAMES))


def frames_of(body: Skeleton, *arms_down: float) -> Motion:
    """One frame per angle (degrees) by which both arms hang down from the T."""
    turns = np.tile(rotations.IDENTITY, (len(arms_down), len(body), 1))
    for frame, angle in enumerate(np.radians(arms_down)):
        turns[frame, body.index("LeftArm")] = rotations.quaternion_from_euler(np.array([-angle]), "Z")
        turns[frame, body.index("RightArm")] = rotations.quaternion_from_euler(np.array([angle]), "Z")
    return Motion(body, 120.0, np.tile([0.0, 0.9, 0.0], (len(arms_down), 1)), turns)


def test_a_tpose_before_a_recording_is_left_out_and_said(body: Skeleton) -> None:
    motion = frames_of(body, 0, 80, 79.5, 79, 78.5)
    kept = without_added_tpose(motion)
    assert len(kept) == 4
    assert kept.origin.dropped_first_frame
    assert "T-pose" in kept.origin.warnings[-1]
    np.testing.assert_array_equal(kept.rotations, motion.rotations[1:])


@pytest.mark.parametrize(
    ("blank", "words"), [(1, "as was the blank frame"), (2, "as were the 2 blank frames")]
)
def test_blank_frames_behind_it_are_left_out_too(body: Skeleton, blank: int, words: str) -> None:
    motion = frames_of(body, 0, *[0] * blank, 80, 79.5, 79)
    positions = motion.root_positions.copy()
    positions[: 1 + blank] = 0.0
    kept = without_added_tpose(motion.with_frames(positions, motion.rotations))
    assert len(kept) == 3
    assert words in kept.origin.warnings[-1]


@pytest.mark.parametrize(
    "arms_down",
    [
        pytest.param((0, 1, 2, 3, 4), id="moves on from the T"),
        pytest.param((0, 0, 0, 0), id="stays in the T"),
        pytest.param((80, 79, 0, 0), id="a T later on"),
        pytest.param((80, 0, 1, 2), id="does not start in a T"),
        pytest.param((0,), id="a T alone"),
        pytest.param((45, 80, 79, 78), id="an A-pose"),
    ],
)
def test_other_beginnings_are_kept(body: Skeleton, arms_down: tuple[float, ...]) -> None:
    motion = frames_of(body, *arms_down)
    assert added_frames(motion) == 0
    assert without_added_tpose(motion) is motion


def test_bent_or_raised_limbs_are_no_tpose(body: Skeleton) -> None:
    motion = frames_of(body, 0)
    assert stands_in_tpose(motion)
    for joint, axis in (("LeftForeArm", "Y"), ("RightLeg", "X"), ("LeftUpLeg", "X"), ("Hips", "Z")):
        turns = motion.rotations.copy()
        turns[0, body.index(joint)] = rotations.quaternion_from_euler(np.radians([70.0]), axis)
        assert not stands_in_tpose(motion.with_frames(motion.root_positions, turns)), joint


def test_a_body_without_arms_has_no_tpose() -> None:
    skeleton = Skeleton(("a", "b"), np.array([-1, 0]), np.array([[0.0, 0, 0], [0, 1, 0]]))
    assert not stands_in_tpose(
        Motion(skeleton, 30.0, np.zeros((1, 3)), np.tile(rotations.IDENTITY, (1, 2, 1)))
    )


def test_the_reader_leaves_it_out_unless_told_to_keep_it(tmp_path: Path, body: Skeleton) -> None:
    bvh.write(frames_of(body, 0, 80, 79.5, 79), tmp_path / "clip.bvh")
    assert len(bvh.read(tmp_path / "clip.bvh")) == 3
    kept = bvh.read(tmp_path / "clip.bvh", keep_first=True)
    assert (len(kept), kept.origin.dropped_first_frame, kept.origin.warnings) == (4, False, ())


def test_a_joint_named_as_a_role_that_hangs_elsewhere_does_not_hold_up_reading(body: Skeleton) -> None:
    names = tuple({"Head": "left_hand"}.get(name, name) for name in NAMES)
    strange = Skeleton(names, PARENTS, OFFSETS, body.orders)
    assert not stands_in_tpose(frames_of(strange, 60.0, 60.0))
    by_hand = body.with_roles(left_hand="RightLeg")
    assert not stands_in_tpose(frames_of(by_hand, 0.0, 0.0))
