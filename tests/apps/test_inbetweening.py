"""Pose to pose: keys are met, scripts are read, mistakes are explained."""

from pathlib import Path

import numpy as np
import pytest

import poise
from poise import performer
from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.evaluation import inbetween as protocol
from poise.evaluation.splits import Fold
from poise.motion.world import joint_positions
from poise.priors.motion import prior
from small_motion import small_weights


@pytest.fixture(autouse=True)
def random_weights(monkeypatch) -> None:
    weights = small_weights()
    for module in (prior, protocol):
        monkeypatch.setattr(module, "shipped", lambda: weights)


@pytest.fixture(scope="module")
def walk():
    return performer.act("walk", seconds=4.0, fps=30.0)


def test_poses_and_places_of_handles_are_met(walk) -> None:
    place = (-0.4, 1.5, 0.4)
    found = poise.inbetween([(0.0, walk[0]), (0.5, {"right_hand": place}), (1.2, walk[40])])
    reached = joint_positions(found.motion)
    np.testing.assert_allclose(reached[[0, 36]], joint_positions(walk[np.array([0, 40])]), atol=1e-6)
    np.testing.assert_allclose(found.motion.positions["right_hand"][15], place, atol=2e-3)
    assert found.deviations.shape == reached.shape[:2]
    assert found.standing.shape == (37, 2)
    assert found.reached


def test_a_script_names_poses_beside_it(walk, tmp_path: Path) -> None:
    walk.save(tmp_path / "walk.bvh")
    script = tmp_path / "keys.toml"
    script.write_text(
        'fps = 60\n[[keys]]\ntime = 0.0\npose = "walk.bvh:12"\n[[keys]]\ntime = 0.8\npose = "walk.bvh"\n'
    )
    motion = poise.inbetween(script).motion
    assert (len(motion), motion.fps) == (49, 60.0)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ('pose = "walk.bvh:9000"', "got frame 9000"),
        ('pose = "../walk.bvh"', "outside"),
        ("", "needs a pose"),
        ('pose = "walk.bvh"\nhandles = { head = [0, 1, 0] }', "needs a pose"),
    ],
)
def test_mistakes_in_scripts_are_explained(walk, tmp_path: Path, key: str, words: str) -> None:
    walk[:20].save(tmp_path / "walk.bvh")
    script = tmp_path / "keys.toml"
    script.write_text(f'[[keys]]\ntime = 0.0\npose = "walk.bvh"\n[[keys]]\ntime = 1.0\n{key}\n')
    with pytest.raises((ParseError, InvalidValueError, PoiseError), match=words):
        poise.inbetween(script)


def test_the_protocol_measures_interpolation_and_keeps_keys(walk) -> None:
    rows = protocol.evaluate_inbetween([Fold((), (walk,))])
    assert {row["method"] for row in rows} == set(protocol.USUAL)
    by = {(row["method"], row["past"], row["between"]): row for row in rows}
    errors = [by["interpolation", 10, between]["mpjpe_cm"] for between in protocol.BETWEEN]
    assert errors[0] < errors[1] < errors[2]
    assert by["interpolation", 10, 30]["mpjpe_cm"] == pytest.approx(by["interpolation", 1, 30]["mpjpe_cm"])
    assert by["hermite", 10, 5]["mpjpe_cm"] < by["interpolation", 10, 5]["mpjpe_cm"]
    assert max(row["key_mm"] for row in rows) < 1e-3
