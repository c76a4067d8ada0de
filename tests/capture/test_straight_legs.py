"""One camera in front of a person hardly tells a bent knee from a straight one, and people stand on straight legs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from poise import performer
from poise.capture.people.take import capture_person, straightening
from poise.evaluation.video import SIZE, _camera, as_detected
from poise.motion.motion import Motion
from poise.priors.universal.prior import UniversalPrior
from poise.vision.people.person import INDEX
from poise.vision.people.unknown_camera import level_camera, with_focal


def bends(motion: Motion) -> np.ndarray:
    """The bend of the straighter knee in every frame, in degrees."""
    places, found = np.asarray(motion.positions), []
    for side in ("left", "right"):
        hip, knee, ankle = (
            places[:, motion.skeleton.index(f"{side}_{at}")] for at in ("thigh", "shin", "foot")
        )
        up, down = hip - knee, ankle - knee
        cosine = np.sum(up * down, axis=1) / np.linalg.norm(up, axis=1) / np.linalg.norm(down, axis=1)
        found.append(180.0 - np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
    return np.min(found, axis=0)


@pytest.mark.parametrize(("action", "most"), [("idle", 15.0), ("sit", math.inf)])
def test_knees_seen_from_the_front(action: str, most: float) -> None:
    motion = performer.act(action, seconds=1.0, fps=12)
    seen = as_detected(motion, [_camera(motion, 0.0)], np.random.default_rng(0))
    watched = with_focal(replace(seen, cameras=[level_camera(SIZE)]))
    found = np.median(bends(capture_person(watched, known=False).motion))
    assert found <= most
    assert abs(found - np.median(bends(motion))) < 15.0


def test_a_body_gets_legs_that_reach_the_ground_when_they_are_straight() -> None:
    skeleton = UniversalPrior.of_people().space.skeleton
    shapes = np.zeros((5, len(INDEX), 3))
    leg = 0.9 * sum(
        float(np.linalg.norm(skeleton.offsets[skeleton.index(f"left_{at}")])) for at in ("shin", "foot")
    )
    for side in ("left", "right"):
        shapes[:, INDEX[f"{side}_ankle"], 1] = -leg
    assert straightening(skeleton, shapes) == pytest.approx(0.9 / 0.995, rel=0.02)
    assert straightening(skeleton, 0.6 * shapes) == 1.0, "legs that are bent throughout say nothing"
