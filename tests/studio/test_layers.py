"""A base motion and corrections over it."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise.geometry import rotations
from poise.performer import act
from poise.skeleton.skeleton import Pose
from poise.studio.layers import Correction, Layers, changed_frames

CLIP = act("walk", seconds=2.0, fps=30)
EASE = 8
# A server of another test may still run in this process, and websockets draws its pings from the `random` module.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")


def bent(frame: int, by: float = 0.3) -> Pose:
    pose = CLIP[frame]
    turn = rotations.quaternion_from_expmap(np.array([by, 0.0, -by]))
    return Pose(
        pose.skeleton,
        pose.root_position + np.array([0.0, by, 0.0]),
        rotations.multiply(pose.rotations, turn),
    )


def correction(frame: int, *, ease: int = EASE, by: float = 0.3) -> Correction:
    return Correction.between(CLIP[frame], bent(frame, by), frame=frame, ease=ease)


def test_only_frames_within_the_ease_change() -> None:
    motion = Layers(CLIP, (correction(30),)).motion
    assert changed_frames(CLIP, motion) == (30 - EASE, 30 + EASE + 1)
    np.testing.assert_array_equal(motion.rotations[: 30 - EASE], CLIP.rotations[: 30 - EASE])
    np.testing.assert_array_equal(motion.root_positions[39:], CLIP.root_positions[39:])
    np.testing.assert_allclose(motion.root_positions[30], bent(30).root_position, atol=1e-12)
    gap = rotations.geodesic_distance(motion.rotations[30], bent(30).rotations)
    assert gap.max() < 1e-7


@given(st.lists(st.tuples(st.integers(0, 59), st.integers(0, 80)), min_size=1, max_size=6))
def test_every_corrected_frame_is_as_it_was_made(places: list[tuple[int, int]]) -> None:
    layers = Layers(CLIP)
    for number, (frame, ease) in enumerate(places):
        layers = layers.with_correction(correction(frame, ease=ease, by=0.1 * (number + 1)))
    latest = dict(zip((frame for frame, _ in places), range(len(places)), strict=True))
    for frame, number in latest.items():
        goal = bent(frame, 0.1 * (number + 1))
        np.testing.assert_allclose(layers.motion.root_positions[frame], goal.root_position, atol=1e-12)
    for frame, _ in places:
        layers = layers.without(frame)
    assert layers.motion is CLIP


def test_a_correction_fades_without_a_jump() -> None:
    height = Layers(CLIP, (correction(30, ease=15),)).motion.root_positions[:, 1] - CLIP.root_positions[:, 1]
    assert np.abs(np.diff(height)).max() < 0.3 * 1.6 / 16


def test_layers_are_kept_without_what_they_add_up_to() -> None:
    layers = Layers(CLIP, (correction(5),))
    again = pickle.loads(pickle.dumps(layers))
    np.testing.assert_array_equal(again.motion.rotations, layers.motion.rotations)
    assert len(pickle.dumps(layers)) < 1.1 * len(pickle.dumps(CLIP))


def test_a_motion_is_cut_or_held() -> None:
    layers = Layers(CLIP, (correction(50), correction(10)))
    assert [each.frame for each in layers.resized(20, 30.0).corrections] == [10]
    longer = layers.resized(70, 15.0).motion
    np.testing.assert_array_equal(longer.rotations[69], longer.rotations[60])
    assert longer.fps == 15.0
