"""The protocol `video`: what it measures, and what it asks for."""

from dataclasses import replace

import numpy as np
import pytest

from poise.errors import InvalidValueError
from poise.evaluation import video_measures as video
from poise.evaluation.report import Request, evaluate
from poise.performer import act


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


def test_errors_are_seen_from_the_hips() -> None:
    walk = act("walk", seconds=1.0, fps=10, seed=1)
    moved = replace(walk, root_positions=np.add(walk.root_positions, (3.0, 0.0, 1.0)))
    np.testing.assert_allclose(video._joints(moved), video._joints(walk), atol=1e-9)
    assert video._degrees(video._joints(walk), video._joints(walk)) == pytest.approx(0.0, abs=1e-3)
    assert np.all(video._facing(video._joints(walk)) * video._facing(-video._joints(walk)) < 0.0)
