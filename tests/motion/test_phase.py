"""Phase: continuous, never falling, a turn per cycle, in step with the feet."""

import numpy as np
import pytest

import poise
from bodies import moving, person, stepping
from poise.geometry import rotations
from poise.motion import Motion, phase, resample
from poise.motion.phase import phase_from_frequency
from poise.skeleton import Skeleton
from real_data import recording

BODY = person()


@pytest.mark.parametrize("cadence", [0.7, 1.0, 1.6])
def test_walk_gains_a_turn_per_cycle(cadence):
    walk = stepping(BODY, seconds=6.0, cadence=cadence)
    found = phase(walk)
    assert found.source == "contacts"
    assert found.frequency == pytest.approx(cadence, rel=0.03)
    assert (found.radians[-1] - found.radians[0]) / (2 * np.pi) == pytest.approx(6.0 * cadence, rel=0.05)


def test_left_foot_lands_at_whole_turns():
    found = phase(stepping(BODY, seconds=5.0, fps=60.0))
    for second in (1, 2, 3, 4):
        turns = found.radians[60 * second] / (2 * np.pi)
        assert abs(turns - round(turns)) < 0.08


def test_phase_rises_steadily():
    steps = np.diff(phase(stepping(BODY, seconds=5.0)).radians)
    assert np.all(steps > 0)
    assert steps.max() < 1.5 * np.median(steps)


def test_phase_does_not_depend_on_the_rate():
    walk = stepping(BODY, seconds=5.0, fps=120.0)
    slow = phase(resample(walk, 30.0)).radians
    fast = phase(walk).radians[::4]
    np.testing.assert_allclose(slow - slow[0], (fast - fast[0])[: len(slow)], atol=0.5)


def waving(frequency, *, seconds=6.0, fps=60.0):
    time = np.arange(round(seconds * fps)) / fps
    q = np.tile(rotations.IDENTITY, (len(time), len(BODY), 1))
    swing = 0.6 * np.sin(2 * np.pi * frequency * time)
    q[:, BODY.index("left_upper_arm")] = rotations.quaternion_from_expmap(np.outer(swing, [0.0, 0.0, 1.0]))
    return Motion(BODY, fps, np.tile([0.0, 0.95, 0.0], (len(time), 1)), q)


@pytest.mark.parametrize("frequency", [0.5, 1.0, 2.5])
def test_without_steps_the_dominant_frequency_counts(frequency):
    found = phase(waving(frequency))
    assert found.source == "frequency"
    assert found.frequency == pytest.approx(frequency, rel=0.05)
    assert (found.radians[-1] - found.radians[0]) / (2 * np.pi) == pytest.approx(6.0 * frequency, abs=0.3)
    assert np.all(np.diff(found.radians) >= 0)


def test_feet_that_land_together_are_no_gait():
    time = np.arange(300) / 60.0
    flight = time % 1.0 * 2.0
    height = np.where(flight < 1.0, 0.0, 0.6 * (flight - 1.0) * (2.0 - flight))
    still = moving(BODY, frames=300, size=0.0).rotations
    jumps = Motion(BODY, 60.0, np.outer(height + 0.95, [0.0, 1.0, 0.0]), still)
    found = phase(jumps)
    assert found.source == "frequency"
    assert found.frequency == pytest.approx(1.0, rel=0.05)


def test_stillness_has_no_phase():
    found = phase(
        moving(BODY, size=0.0).with_frames(
            np.tile([0.0, 1.0, 0.0], (60, 1)), moving(BODY, size=0.0).rotations
        )
    )
    assert found.source == "none"
    assert np.all(found.radians == 0.0)


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_very_short_motions(frames):
    assert phase(stepping(BODY)[:frames]).radians.shape == (frames,)


def test_bodies_without_feet_have_a_phase_too():
    arm = Skeleton(("a", "b", "c"), np.array([-1, 0, 1]), np.array([[0.0, 0, 0], [0.5, 0, 0], [0.5, 0, 0]]))
    time = np.arange(240) / 60.0
    q = np.tile(rotations.IDENTITY, (240, 3, 1))
    q[:, 1] = rotations.quaternion_from_expmap(np.outer(0.5 * np.sin(2 * np.pi * time), [0.0, 0.0, 1.0]))
    assert phase(Motion(arm, 60.0, np.zeros((240, 3)), q)).frequency == pytest.approx(1.0, rel=0.05)


def test_both_ways_agree_on_a_walk():
    walk = stepping(BODY, seconds=6.0)
    assert phase_from_frequency(walk).frequency == pytest.approx(phase(walk).frequency, rel=0.1)


@pytest.mark.parametrize(
    ("clip", "cycles_per_second"),
    [("07_01.bvh", (0.7, 1.2)), ("09_01.bvh", (1.1, 1.8)), ("35_01.bvh", (0.7, 1.3))],
)
def test_real_gaits(clip, cycles_per_second):
    motion = poise.read(recording("cmu", clip))
    found = phase(motion)
    assert found.source == "contacts"
    assert cycles_per_second[0] < found.frequency < cycles_per_second[1]
    assert np.all(np.diff(found.radians) > 0)
