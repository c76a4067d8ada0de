"""Cutting, resampling, placing and joining motions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bodies import moving, person, stepping
from poise.errors import InvalidValueError, SkeletonError
from poise.geometry import rotations
from poise.motion import (
    concatenate,
    face,
    headings,
    joint_positions,
    moved,
    place,
    resample,
    root_relative,
    trim,
    world_from_root_relative,
)

BODY = person()
MOTION = moving(BODY, frames=61, fps=60.0)


def assert_same_motion(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a.root_positions, b.root_positions, atol=tolerance)
    assert rotations.geodesic_distance(a.rotations, b.rotations).max() < max(tolerance, 1e-7)


# --- trim ----------------------------------------------------------------------------------------------------------


def test_trim_is_in_seconds():
    part = trim(MOTION, 0.25, 0.75)
    assert len(part) == 30
    np.testing.assert_array_equal(part.root_positions, MOTION.root_positions[15:45])
    assert len(trim(MOTION, 0.5)) == 31
    assert len(trim(MOTION)) == 61


@pytest.mark.parametrize(("start", "end"), [(-1.0, 0.5), (0.0, 9.0), (0.5, 0.5), (0.7, 0.2)])
def test_trim_outside_the_motion_says_how_long_it_lasts(start, end):
    with pytest.raises(InvalidValueError, match=r"lasts 0 \.\. 1\.01667 s"):
        trim(MOTION, start, end)


# --- resample ------------------------------------------------------------------------------------------------------


def test_same_rate_is_exact():
    np.testing.assert_array_equal(resample(MOTION, 60.0).rotations, MOTION.rotations)


@pytest.mark.parametrize("factor", [2, 3, 5])
def test_recorded_frames_survive_up_and_down_exactly(factor):
    up = resample(MOTION, 60.0 * factor)
    assert len(up) == 60 * factor + 1
    np.testing.assert_array_equal(up.rotations[::factor], MOTION.rotations)
    down = resample(up, 60.0)
    np.testing.assert_array_equal(down.root_positions, MOTION.root_positions)
    np.testing.assert_array_equal(down.rotations, MOTION.rotations)


@given(st.floats(7.0, 240.0))
def test_any_rate_keeps_the_time_and_stays_on_the_way(fps):
    other = resample(MOTION, fps)
    assert (len(other) - 1) / fps == pytest.approx(1.0, abs=1.0 / fps)
    assert (len(other) - 1) / fps <= 1.0 + 1e-9
    at = np.arange(len(other)) * 60.0 / fps
    for axis in range(3):
        expected = np.interp(at, np.arange(61), MOTION.root_positions[:, axis])
        np.testing.assert_allclose(other.root_positions[:, axis], expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(other.rotations, axis=-1), 1.0)


def test_halfway_frames_are_slerped():
    up = resample(MOTION, 120.0)
    halfway = rotations.slerp(MOTION.rotations[:-1], MOTION.rotations[1:], 0.5)
    assert rotations.geodesic_distance(up.rotations[1::2], halfway).max() < 1e-7


def test_a_single_frame_can_be_resampled():
    one = MOTION[np.array([3])]
    assert len(resample(one, 30.0)) == 1
    assert resample(one, 30.0).fps == 30.0


@pytest.mark.parametrize("fps", [0.0, -30.0, np.nan, np.inf])
def test_impossible_rates_are_refused(fps):
    with pytest.raises(InvalidValueError, match="must be positive"):
        resample(MOTION, fps)


# --- place and face ------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.floats(-3.0, 3.0), st.floats(-5.0, 5.0), st.floats(-5.0, 5.0))
def test_placed_motions_stand_and_face_as_told(heading, x, z):
    placed = place(MOTION, at=(x, z), heading=heading, frame=10)
    np.testing.assert_allclose(placed.root_positions[10, [0, 2]], [x, z], atol=1e-9)
    turned = headings(placed)[10] - heading
    assert np.cos(turned) == pytest.approx(1.0, abs=1e-9)


@given(st.floats(-3.0, 3.0))
def test_facing_turns_on_the_spot_and_keeps_the_shape(heading):
    turned = face(MOTION, heading)
    np.testing.assert_allclose(turned.root_positions[0], MOTION.root_positions[0], atol=1e-9)
    before, after = joint_positions(MOTION), joint_positions(turned)
    for frames in (before, after):
        frames -= frames[:, :1]
    np.testing.assert_allclose(np.linalg.norm(after, axis=-1), np.linalg.norm(before, axis=-1), atol=1e-9)
    np.testing.assert_allclose(after[..., 1], before[..., 1], atol=1e-9)


def test_moving_there_and_back():
    away = moved(MOTION, turn=0.7, shift=(1.0, 2.0, 3.0))
    back = moved(moved(away, shift=(-1.0, -2.0, -3.0)), turn=-0.7)
    assert_same_motion(back, MOTION)


# --- root-relative form --------------------------------------------------------------------------------------------


def test_root_relative_faces_ahead_above_the_origin_and_comes_back():
    relative = root_relative(MOTION)
    np.testing.assert_allclose(headings(relative.motion), 0.0, atol=1e-9)
    np.testing.assert_array_equal(relative.motion.root_positions[:, [0, 2]], 0.0)
    assert_same_motion(world_from_root_relative(relative), MOTION)


def test_root_relative_form_does_not_know_where_the_motion_was():
    other = root_relative(moved(MOTION, turn=1.0, shift=(3.0, 0.0, -2.0)))
    assert_same_motion(other.motion, root_relative(MOTION).motion)
    np.testing.assert_allclose(other.steps, root_relative(MOTION).steps, atol=1e-9)


def test_steps_of_a_straight_walk_go_forward():
    walk = moved(stepping(BODY, fps=60.0, stride=1.2), turn=0.8)
    steps = root_relative(walk).steps
    np.testing.assert_allclose(steps, np.tile([0.0, 1.2 / 60.0, 0.0], (len(walk), 1)), atol=1e-6)


# --- concatenate ---------------------------------------------------------------------------------------------------


def test_plain_concatenation_is_frame_after_frame():
    both = concatenate([MOTION, MOTION], align=False)
    assert len(both) == 122
    np.testing.assert_array_equal(both.rotations[61:], MOTION.rotations)


def test_aligned_motions_go_on_where_the_one_before_ends():
    walk = moved(stepping(BODY), turn=2.0)
    other = moved(stepping(BODY), turn=-1.0, shift=(4.0, 0.0, 4.0))
    both = concatenate([walk, other])
    join = len(walk)
    np.testing.assert_allclose(both.root_positions[join, [0, 2]], walk.root_positions[-1, [0, 2]], atol=1e-9)
    assert headings(both)[join] == pytest.approx(headings(both)[join - 1], abs=1e-6)


def test_blending_overlaps_and_is_smooth():
    walk, other = stepping(BODY, fps=60.0), moving(BODY, frames=120, fps=60.0)
    hard, soft = concatenate([walk, other]), concatenate([walk, other], blend=0.5)
    assert len(soft) == len(hard) - 30

    def largest_jump(motion):
        return rotations.geodesic_distance(motion.rotations[1:], motion.rotations[:-1]).max()

    assert largest_jump(soft) < 0.5 * largest_jump(hard)
    np.testing.assert_array_equal(soft.rotations[: len(walk) - 30], walk.rotations[:-30])
    np.testing.assert_allclose(soft.rotations[len(walk) + 1 :, 1:], other.rotations[31:, 1:], atol=1e-12)


def test_other_rates_are_resampled_to_the_first():
    both = concatenate([MOTION, resample(MOTION, 120.0)], align=False)
    assert both.fps == 60.0
    assert len(both) == 122


def test_what_cannot_be_joined_is_refused():
    with pytest.raises(InvalidValueError, match="at least one motion"):
        concatenate([])
    with pytest.raises(InvalidValueError, match="needs longer motions"):
        concatenate([MOTION, MOTION], blend=5.0)
    with pytest.raises(SkeletonError, match="retarget"):
        concatenate([MOTION, moving(BODY.scaled(1.1))])
    with pytest.raises(SkeletonError, match="'left_foot' here, 'Foot' in the target"):
        concatenate([MOTION, moving(person({"left_foot": "Foot"}))])


def test_a_motion_is_not_resampled_beyond_what_fits_in_memory() -> None:
    still = moving(BODY, frames=600, fps=1.0)
    with pytest.raises(InvalidValueError, match="5,990,001 frames at 10000 Hz do not fit in memory"):
        resample(still, 10_000.0)
    for fps in (1e-320, 1e12, np.nan):
        with pytest.raises(InvalidValueError, match="between 1 and 10,000 frames a second"):
            resample(still, fps)
