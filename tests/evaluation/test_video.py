"""The protocol `video`: what it measures, and what it asks for."""

from dataclasses import replace

import numpy as np
import pytest

from poise.capture.people.take import capture_person
from poise.errors import InvalidValueError
from poise.evaluation import video
from poise.evaluation.report import Request, evaluate
from poise.geometry.alignment import rigid_fit
from poise.motion.motion import Motion
from poise.performer import act
from poise.priors.motion.carrying import Frames
from poise.priors.motion.prior import interpolated
from poise.vision.people import models
from poise.vision.people.person import TORSO
from poise.vision.people.unknown_camera import level_camera, with_focal


def test_a_recording_must_be_given() -> None:
    with pytest.raises(InvalidValueError, match="pip download --no-deps pose2sim"):
        evaluate(Request("video"))


def test_slide_and_jitter_see_what_is_wrong() -> None:
    walk = act("walk", seconds=2.0, fps=30, seed=1)
    steps = np.arange(len(walk))
    sliding = replace(walk, root_positions=walk.root_positions + 0.004 * steps[:, None] * [1.0, 0.0, 0.0])
    assert video._slide(sliding) > video._slide(walk) + 0.02
    shaken = replace(walk, root_positions=walk.root_positions + 0.01 * (steps % 2)[:, None])
    assert video._jitter(shaken) > 1.5 * video._jitter(walk)


def test_a_simulated_detector_is_as_far_off_as_a_real_one() -> None:
    walk = act("walk", seconds=2.0, fps=30, seed=1)
    camera = video._camera(walk, 0.0)
    seen = [video.as_detected(walk, [camera], np.random.default_rng(seed)) for seed in range(8)]
    pixels = np.stack([one.pixels / one.sides[..., None, None] for one in seen])
    staying, changing = pixels.mean(axis=1).std(axis=0).mean(), (pixels - pixels.mean(axis=0)).std()
    assert 0.006 < staying < 0.010
    assert changing == pytest.approx(np.hypot(video.STAYS, video.CHANGES), rel=0.2)
    steps = np.diff(pixels - pixels.mean(axis=0), axis=1).std()
    assert steps < 0.8 * np.sqrt(2.0) * video.CHANGES  # errors of frames in a row are alike


def test_errors_are_seen_from_the_hips() -> None:
    walk = act("walk", seconds=1.0, fps=10, seed=1)
    moved = replace(walk, root_positions=np.add(walk.root_positions, (3.0, 0.0, 1.0)))
    np.testing.assert_allclose(video._joints(moved), video._joints(walk), atol=1e-9)
    assert video._degrees(video._joints(walk), video._joints(walk)) == pytest.approx(0.0, abs=1e-3)
    assert np.all(video._facing(video._joints(walk)) * video._facing(-video._joints(walk)) < 0.0)


@pytest.mark.slow
@pytest.mark.skipif(
    not models.available(), reason="the networks that find people: run tools/page.py, install poise[video]"
)
def test_the_detector_finds_the_mannequin_where_it_is() -> None:
    walk = act("walk", seconds=0.3, fps=10, seed=1)
    camera = video._camera(walk, 0.0)
    seen, share = video.as_rendered(walk, [camera], np.random.default_rng(0))
    assert seen is not None
    assert share == 1.0
    true = video.as_detected(walk, [camera], np.random.default_rng(0))
    trunks = [one.pixels[:, 0, list(TORSO)].mean(axis=1) for one in (seen, true)]  # whichever side is left
    assert np.linalg.norm(trunks[0] - trunks[1], axis=1).max() < 0.05 * true.sides.min()


@pytest.mark.slow
def test_a_body_that_nobody_sees_for_a_while_moves_on_as_people_do() -> None:
    """Against straight lines through the frames in which it is seen."""
    walk = act("walk", seconds=2.5, fps=30, seed=1)
    hidden = (np.arange(len(walk)) >= 25) & (np.arange(len(walk)) < 48)
    seen = video.as_detected(walk, [video._camera(walk, 90.0)], np.random.default_rng(0))
    pixels = np.where(hidden[:, None, None, None], np.nan, seen.pixels)
    visible = np.where(hidden[:, None, None], 0.0, seen.visibility)
    unseen = replace(seen, pixels=pixels, visibility=visible, cameras=[level_camera(video.SIZE)])
    found, kept = capture_person(with_focal(unseen), known=False).motion, np.flatnonzero(~hidden)
    shown = Frames(found.root_positions[kept], found.rotations[kept])
    straight = found.with_frames(*interpolated(shown, kept, len(found)))

    def error(motion: Motion) -> float:
        own, true = (video._joints(one) - video.hips_of(one)[:, None] for one in (motion, walk))
        turn, shift, _ = rigid_fit(own[kept].reshape(-1, 3), true[kept].reshape(-1, 3))
        return float(np.linalg.norm(own[hidden] @ turn.T + shift - true[hidden], axis=-1).mean())

    assert error(found) < 0.85 * error(straight)
