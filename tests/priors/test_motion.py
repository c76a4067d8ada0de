"""The motion prior: keys are met, bodies are carried there and back, windows cover every gap."""

import itertools

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError, SkeletonError
from poise.geometry import rotations
from poise.motion.edit import resample
from poise.motion.world import joint_positions
from poise.priors.motion import layout
from poise.priors.motion.carrying import AT, Carrier, Change, Frames
from poise.priors.motion.network import LONGEST, MotionWeights, evaluated, windows_of
from poise.priors.motion.prior import MotionPrior, interpolated
from poise.priors.universal.body import typical_body
from poise.priors.universal.network import shipped as universal
from poise.skeleton.kinematics import world_transforms
from small_motion import small_weights


@pytest.fixture(scope="module")
def weights() -> MotionWeights:
    return small_weights()


@pytest.fixture(scope="module")
def walk():
    return resample(performer.act("walk", seconds=3.0), 30.0)


def test_windows_cover_every_gap_and_are_short() -> None:
    draw = np.random.default_rng(2)
    for share in (0.03, 0.2, 0.7):
        knots = draw.random(400) < share
        knots[[0, -1]] = knots[60:400:80] = True
        windows = windows_of(knots)
        at = np.flatnonzero(knots)
        for before, after in itertools.pairwise(at):
            if after > before + 1:
                assert any(first <= before and after < end for first, end in windows)
        assert all(end - first <= LONGEST and knots[first] and knots[end - 1] for first, end in windows)


def test_keys_are_met_and_frames_between_are_not_interpolated(weights: MotionWeights, walk) -> None:
    given = np.zeros(len(walk), dtype=bool)
    given[[0, 20, 41, len(walk) - 1]] = True
    found = MotionPrior(walk.skeleton, weights).filled(walk, given)
    gap = np.abs(joint_positions(found.motion) - joint_positions(walk)).max(axis=(1, 2))
    assert gap[given].max() < 1e-6
    assert gap[~given].max() > 0.05
    assert np.all(found.point_deviations[given] == 0.0)
    assert np.all(found.point_deviations[~given] > 0.0)


@pytest.mark.parametrize("fps", [24.0, 60.0, 120.0])
def test_any_frame_rate_meets_the_keys(weights: MotionWeights, walk, fps: float) -> None:
    times = (0.0, 0.35, 1.1, 2.0)
    keys = [(time, walk[round(time * 30)]) for time in times]
    motion = MotionPrior(walk.skeleton, weights).between(keys, fps=fps).motion
    assert motion.fps == fps
    for time, pose in keys:
        reached = joint_positions(motion[np.array([round(time * fps)])])[0]
        np.testing.assert_allclose(
            reached, world_transforms(walk.skeleton, pose.root_position, pose.rotations)[0], atol=1e-6
        )


def test_gaps_longer_than_a_window_are_filled(weights: MotionWeights, walk) -> None:
    motion = MotionPrior(walk.skeleton, weights).between([(0.0, walk[0]), (6.0, walk[40])], fps=30.0).motion
    assert len(motion) == 181


def test_turning_and_moving_the_keys_turns_and_moves_the_motion(weights: MotionWeights, walk) -> None:
    prior = MotionPrior(walk.skeleton, weights)
    given = np.zeros(60, dtype=bool)
    given[[0, 30, 59]] = True
    turn, shift = rotations.quaternion_from_expmap(np.array([0.0, 2.0, 0.0])), np.array([1.0, 0.0, -4.0])
    turned = walk.rotations[:60].copy()
    turned[:, 0] = rotations.multiply(turn, turned[:, 0])
    moved = walk[:60].with_frames(rotations.rotate(turn, walk.root_positions[:60]) + shift, turned)
    own = joint_positions(prior.filled(walk[:60], given).motion)
    np.testing.assert_allclose(
        joint_positions(prior.filled(moved, given).motion), rotations.rotate(turn, own) + shift, atol=1e-5
    )


@pytest.mark.parametrize("body", ["canonical", "performer"])
def test_poses_are_carried_to_the_canonical_body_and_changes_back(walk, body: str) -> None:
    frames = Frames(walk.root_positions, walk.rotations)
    carrier = Carrier(walk.skeleton)
    if body == "canonical":
        frames, carrier = carrier.canonical(frames), Carrier(typical_body(universal()))
    draw, own = np.random.default_rng(1), carrier.canonical(frames)
    shapes = (len(walk), 3), (len(walk), 3), (len(walk), len(layout.TURNING) - 1, 3)
    residual = Change(*(0.1 * draw.normal(size=shape) for shape in shapes))
    back = carrier.canonical(carrier.added(frames, residual))
    turn = rotations.quaternion_from_expmap(residual.turn)
    np.testing.assert_allclose(back.roots, own.roots + residual.shift, atol=1e-9)
    assert (
        rotations.geodesic_distance(back.turns[:, 0], rotations.multiply(turn, own.turns[:, 0])).max() < 1e-6
    )
    if body == "canonical":
        wanted = rotations.multiply(own.turns[:, AT[1:]], rotations.quaternion_from_expmap(residual.turns))
        assert rotations.geodesic_distance(back.turns[:, AT[1:]], wanted).max() < 1e-6


def test_the_network_sees_frames_relative_to_each_other(weights: MotionWeights) -> None:
    inputs = np.random.default_rng(3).normal(0, 0.2, (20, layout.WIDTH))
    first = evaluated(weights, inputs)
    assert first.shape == (20, layout.LEFT)
    changed = inputs.copy()
    changed[-1] += 1.0
    assert np.abs(evaluated(weights, changed)[0] - first[0]).max() > 0.0


def test_the_shipped_weights_know_how_people_walk(walk) -> None:
    given = np.arange(len(walk)) % 15 == 0
    given[-1] = True
    at = np.flatnonzero(given)
    straight = interpolated(Frames(walk.root_positions[at], walk.rotations[at]), at, len(walk))
    found = MotionPrior(walk.skeleton).filled(walk, given)
    true = joint_positions(walk)
    errors = [
        np.linalg.norm(joint_positions(one) - true, axis=-1)[~given].mean()
        for one in (found.motion, walk.with_frames(*straight))
    ]
    assert errors[0] < 0.8 * errors[1]
    both = (found.contacts > 0.5) & ~given[:, None]
    assert 0.2 < both.mean() < 0.8  # one foot after the other


def test_mistakes_are_explained(weights: MotionWeights, walk) -> None:
    prior = MotionPrior(walk.skeleton, weights)
    with pytest.raises(InvalidValueError, match="at least two"):
        prior.between([(0.0, walk[0])])
    with pytest.raises(InvalidValueError, match="one frame"):
        prior.between([(0.0, walk[0]), (0.5, walk[1]), (0.501, walk[2])])
    with pytest.raises(InvalidValueError, match="first and last"):
        prior.filled(walk, np.zeros(len(walk), dtype=bool))
    with pytest.raises(SkeletonError, match="skeleton"):
        MotionPrior(typical_body(universal()), weights).between([(0.0, walk[0]), (1.0, walk[1])])
