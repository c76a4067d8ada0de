"""Joint zeros: learned from clips, kept in files, and known better the more was seen."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poise.motion import Motion
from poise.performer import act
from poise.priors.model_file import load, save
from poise.priors.universal import layout
from poise.priors.universal.body import of_anyone
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kernels import ROOT_SIZE

TURNED = np.array([0.0, 0.3, 0.0])
JOINT = layout.MOVING.index("LeftFingerBase")


def recorded(prior: UniversalPrior, offset: np.ndarray) -> Motion:
    """Upright poses that the prior knows, twice a second, with one joint calibrated otherwise."""
    maps, ups = prior.known_poses()
    poses = np.stack([prior.space.standing(pose, up) for pose, up in zip(maps, ups, strict=True)])
    poses[:, ROOT_SIZE + 3 * JOINT : ROOT_SIZE + 3 * JOINT + 3] += offset
    return Motion(prior.space.skeleton, 2.0, *prior.space.frames_from_q(poses))


@pytest.fixture(scope="module")
def people() -> UniversalPrior:
    return UniversalPrior.of_people()


@pytest.fixture(scope="module")
def learned(people: UniversalPrior) -> UniversalPrior:
    return UniversalPrior.learn([recorded(people, TURNED)])


def test_clips_say_how_a_joint_was_calibrated(people: UniversalPrior, learned: UniversalPrior) -> None:
    usual = UniversalPrior.learn([recorded(people, np.zeros(3))])
    own = slice(3 + 3 * JOINT, 6 + 3 * JOINT)
    np.testing.assert_allclose((learned.zeros.mean - usual.zeros.mean)[own], TURNED, atol=0.15)
    assert np.trace(learned.zeros.spread) < 0.5 * np.trace(people.zeros.spread)


def test_what_clips_said_stays_known_on_other_limbs_and_in_a_file(
    people: UniversalPrior, learned: UniversalPrior, tmp_path: Path
) -> None:
    save(learned, tmp_path / "performer.poise")
    again = load(tmp_path / "performer.poise")
    assert isinstance(again, UniversalPrior)
    np.testing.assert_allclose(again.zeros.mean, learned.zeros.mean)
    other = learned.on_body(people.space.skeleton)
    np.testing.assert_array_equal(other.zeros.mean, learned.zeros.mean)


def test_several_performers_are_told_apart_by_their_bones(people: UniversalPrior, tmp_path: Path) -> None:
    skeleton = people.space.skeleton
    larger = UniversalPrior(replace(skeleton, offsets=1.1 * skeleton.offsets))
    alone = [
        UniversalPrior.learn([recorded(people, TURNED)]),
        UniversalPrior.learn([recorded(larger, -TURNED)]),
    ]
    both = UniversalPrior.learn([recorded(people, TURNED), recorded(larger, -TURNED)])
    save(both, tmp_path / "both.poise")
    again = load(tmp_path / "both.poise")
    for prior in (both, again):
        for own in alone:
            found = prior.on_body(own.space.skeleton)
            assert isinstance(found, UniversalPrior)
            np.testing.assert_allclose(found.zeros.mean, own.zeros.mean, atol=1e-5)
    between = both.on_body(replace(skeleton, offsets=1.05 * skeleton.offsets))
    apart = [
        np.abs(between.zeros.mean - own.zeros.mean)[3 + 3 * JOINT : 6 + 3 * JOINT].max() for own in alone
    ]
    assert min(apart) > 0.1  # nobody's, so those of all clips together


def test_a_joint_half_a_turn_away_is_learned(people: UniversalPrior) -> None:
    own = slice(3 + 3 * JOINT, 6 + 3 * JOINT)
    usual = UniversalPrior.learn([recorded(people, np.zeros(3))]).zeros.mean[own]
    half = np.array([0.0, np.pi, 0.0]) - usual  # recorded maps lie on both sides of half a turn
    found = UniversalPrior.learn([recorded(people, half)]).zeros.mean[own]
    assert found[1] > 1.5  # most of it, from 24 frames


def test_bones_say_less_of_bodies_that_are_not_canonical(people: UniversalPrior) -> None:
    anyone = of_anyone(people.weights)
    assert np.linalg.eigvalsh(anyone.spread).min() > 0.0
    assert np.abs(people.zeros.mean - anyone.mean).max() < 0.2  # the mean body is nearly anyone's


def test_what_several_performers_said_goes_onto_a_skeleton_with_other_joints(people: UniversalPrior) -> None:
    skeleton = people.space.skeleton
    larger = UniversalPrior(replace(skeleton, offsets=1.1 * skeleton.offsets))
    both = UniversalPrior.learn([recorded(people, TURNED), recorded(larger, TURNED)])
    other = act("walk", seconds=1.0, fps=10).skeleton
    assert len(other) != len(skeleton)
    assert both.on_body(other).space.skeleton == other
