"""Foot contacts: known walks, any size and rate, tilted floors, jumps, and real recordings."""

import numpy as np
import pytest

import poise
from bodies import moving, person, stepping
from poise.errors import SkeletonError
from poise.motion import Motion, floor_height, foot_contacts, foot_slide, moved, resample, retarget
from poise.performer import act, acted
from poise.skeleton import Skeleton
from real_data import recording

BODY = person()


def known_contacts(walk, cadence=1.0):
    """Which foot stands in `stepping`: for the first 0.6 of each of its cycles."""
    cycle = cadence * np.arange(len(walk)) / walk.fps
    return np.stack([cycle % 1.0 < 0.6, (cycle - 0.5) % 1.0 < 0.6], axis=-1)


def agreement(found, known):
    return float(np.mean(found == known))


@pytest.mark.parametrize("fps", [25.0, 30.0, 60.0, 120.0, 240.0])
def test_walk_at_any_rate(fps):
    walk = stepping(BODY, fps=fps)
    assert agreement(foot_contacts(walk).feet, known_contacts(walk)) > 0.9


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.5])
def test_walk_of_any_size(factor):
    """A body twice as long walks at the square root of twice the pace of time, as pendulums do."""
    walk = stepping(BODY, fps=120.0)
    scaled = Motion(
        BODY.scaled(factor), 120.0 / np.sqrt(factor), walk.root_positions * factor, walk.rotations
    )
    assert agreement(foot_contacts(scaled).feet, foot_contacts(walk).feet) > 0.97


@pytest.mark.parametrize(("action", "fps"), [("walk", 120.0), ("walk", 30.0), ("run", 120.0)])
def test_performers_feet_stand_when_planned(action, fps):
    performance = acted(action, fps=fps)
    planned = np.stack([performance.grounded(side) for side in ("left", "right")], axis=-1)
    assert agreement(foot_contacts(performance.motion).feet, planned) > 0.9


def test_short_contacts_of_a_fast_run_at_30_hz():
    run = act("run", speed=5.5, seconds=3.0, fps=120, seed=3)
    fast, slow = foot_contacts(run), foot_contacts(resample(run, 30.0), brief=True)
    for side in (0, 1):
        np.testing.assert_allclose(slow.landings(side), fast.landings(side) / 4.0, atol=1.25)


def test_floor_may_be_anywhere():
    walk = stepping(BODY)
    raised = moved(walk, shift=(0.0, 3.7, 0.0))
    np.testing.assert_array_equal(foot_contacts(raised).feet, foot_contacts(walk).feet)
    assert floor_height(raised) - floor_height(walk) == pytest.approx(3.7)


def test_tilted_floor():
    walk = stepping(BODY)
    slope = walk.root_positions[:, 2] * 0.02
    tilted = walk.with_frames(walk.root_positions + np.outer(slope, [0.0, 1.0, 0.0]), walk.rotations)
    assert agreement(foot_contacts(tilted).feet, known_contacts(walk)) > 0.85


def test_noise_does_not_break_contacts():
    walk = stepping(BODY, fps=120.0)
    noise = np.random.default_rng(0).normal(scale=0.0015, size=(len(walk), 3))
    noisy = walk.with_frames(walk.root_positions + noise, walk.rotations)
    changes = np.abs(np.diff(foot_contacts(noisy).feet.astype(int), axis=0)).sum()
    assert changes <= np.abs(np.diff(known_contacts(walk).astype(int), axis=0)).sum() + 2
    assert agreement(foot_contacts(noisy).feet, known_contacts(walk)) > 0.88


def test_jump_leaves_the_floor_and_standing_does_not():
    time = np.arange(180) / 60.0
    flight = np.clip(time - 1.0, 0.0, 0.5)
    height = np.where(flight < 0.5, 9.81 * flight * (0.5 - flight) / 2.0, 0.0)
    still = moving(BODY, frames=180, size=0.0)
    jump = still.with_frames(np.outer(height + 0.95, [0.0, 1.0, 0.0]), still.rotations)
    feet = foot_contacts(jump).feet
    assert np.all(feet[:55])
    assert np.all(feet[100:])
    assert not np.any(feet[67:83])


def test_a_foot_held_up_does_not_stand():
    walk = stepping(BODY, seconds=2.0)
    held = walk.rotations.copy()
    held[:] = held[:1]
    held[:, BODY.index("left_thigh")] = [np.cos(-0.7), np.sin(-0.7), 0.0, 0.0]
    held[:, BODY.index("left_shin")] = [np.cos(0.7), np.sin(0.7), 0.0, 0.0]
    pose = walk.with_frames(np.tile([0.0, 0.95, 0.0], (len(walk), 1)), held)
    feet = foot_contacts(pose).feet
    assert not np.any(feet[:, 0])
    assert np.all(feet[:, 1])


def test_given_floor_is_used():
    walk = stepping(BODY)
    contacts = foot_contacts(walk, floor=-2.0)
    assert contacts.floor == -2.0
    np.testing.assert_array_equal(contacts.left, contacts.feet[:, 0])
    np.testing.assert_array_equal(contacts.right, contacts.feet[:, 1])


@pytest.mark.parametrize("frames", [1, 2, 3])
def test_very_short_motions(frames):
    assert foot_contacts(stepping(BODY)[:frames]).feet.shape == (frames, 2)


def test_slide_is_the_speed_of_the_standing_foot():
    walk = stepping(BODY, stride=1.2)
    contacts = foot_contacts(walk)
    assert np.median(foot_slide(walk, contacts)[contacts.feet]) < 0.02
    skating = walk.with_frames(walk.root_positions * [1.0, 1.0, 1.1], walk.rotations)
    assert np.median(foot_slide(skating, contacts)[contacts.feet]) == pytest.approx(0.12, abs=0.03)


def test_bodies_without_feet_say_which_role_is_missing():
    stick = Skeleton(("a", "b"), np.array([-1, 0]), np.array([[0.0, 0, 0], [0.0, 1.0, 0]]))
    with pytest.raises(SkeletonError, match="left_foot"):
        foot_contacts(moving(stick))


def test_retargeted_walk_stands_on_the_same_floor_with_the_same_steps():
    walk = moved(stepping(BODY), shift=(0.0, 0.5, 0.0))
    offsets = BODY.offsets * 1.0
    for side in ("left", "right"):
        offsets[BODY.index(f"{side}_shin")] *= 1.3
        offsets[BODY.index(f"{side}_foot")] *= 1.3
    taller = retarget(walk, BODY.with_offsets(offsets))
    assert floor_height(taller) == pytest.approx(floor_height(walk), abs=1e-6)
    contacts = foot_contacts(taller)
    assert agreement(contacts.feet, known_contacts(walk)) > 0.85
    assert np.median(foot_slide(taller, contacts)[contacts.feet]) < 0.03
    assert floor_height(retarget(walk, BODY.with_offsets(offsets), keep_floor=False)) != pytest.approx(
        floor_height(walk)
    )


def test_a_real_walk_takes_its_steps_in_turn():
    feet = foot_contacts(poise.read(recording("cmu", "07_01.bvh"))).feet
    assert np.mean(feet.any(axis=-1)) > 0.97  # someone who walks never flies
    assert 0.4 < feet[:, 0].mean() < 0.75
    assert 0.4 < feet[:, 1].mean() < 0.75
    landings = sorted(
        (int(f), s) for s in (0, 1) for f in np.flatnonzero(np.diff(feet[:, s].astype(int)) > 0)
    )
    assert [side for _, side in landings] == [0, 1, 0, 1]


def test_a_real_run_flies_between_steps():
    feet = foot_contacts(poise.read(recording("cmu", "09_01.bvh"))).feet
    assert not np.any(feet.all(axis=-1))
    assert np.mean(feet.any(axis=-1)) < 0.7
