"""Pose to pose: keys are met, scripts are read, mistakes are explained."""

from pathlib import Path

import numpy as np
import pytest

import poise
from poise import PoseKey, Walk, performer
from poise.apps.inbetweening import Stance
from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.evaluation import inbetween as protocol
from poise.evaluation.splits import Fold
from poise.motion.world import joint_positions
from poise.priors.gaussian import GaussianPrior
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


def test_a_key_is_held_and_eased_and_a_loop_closes(walk) -> None:
    keys = [PoseKey(0.0, walk[0], hold=0.3), PoseKey(1.0, walk[20], ease="in"), PoseKey(1.6, walk[36])]
    reached = joint_positions(poise.inbetween(keys, contacts=False).motion)
    assert np.ptp(reached[:10], axis=0).max() < 1e-6
    assert np.ptp(reached[:12], axis=0).max() > 1e-3
    moved = np.abs(np.diff(reached[30:], axis=0)).max(axis=(1, 2))
    assert moved[0] < moved[8]

    looped = poise.inbetween([(0.0, walk[0]), (0.5, walk[15]), (1.0, walk[30])], contacts=False, loop=True)
    ends = looped.motion[np.array([0, 30])]
    np.testing.assert_allclose(ends.root_positions[0, 1], ends.root_positions[1, 1], atol=1e-6)
    np.testing.assert_allclose(
        np.abs(np.sum(ends.rotations[0, 1:] * ends.rotations[1, 1:], -1)), 1.0, atol=1e-9
    )


def test_a_walk_follows_its_points_by_steps(walk, tmp_path: Path) -> None:
    path = [(0.0, 0.0), (0.4, 1.0), (0.0, 2.0)]
    made = poise.inbetween([PoseKey(0.0, walk[0], hold=0.2, walk=Walk(path, speed=1.2))])
    pelvis = made.motion.positions["pelvis"]
    assert len(made.motion) == 1 + round(30 * (0.2 + Walk(path, speed=1.2).seconds))
    assert np.abs(pelvis[-1, [0, 2]] - path[-1]).max() < 0.1
    assert np.linalg.norm(pelvis[:, [0, 2]] - path[1], axis=-1).min() < 0.15
    assert np.count_nonzero(np.diff(made.standing.astype(int), axis=0) == 1) >= 2  # feet land
    walk[:2].save(tmp_path / "walk.bvh")
    script = tmp_path / "keys.toml"
    text = '[[keys]]\ntime = 0.0\npose = "walk.bvh"\nwalk = [[0, 0], [0, 1.5]]\nspeed = 1.5\n'
    script.write_text(text)
    assert len(poise.inbetween(script).motion) == 31
    script.write_text(text + '[[keys]]\ntime = 0.6\npose = "walk.bvh"\n')
    with pytest.raises(InvalidValueError, match="later time"):
        poise.inbetween(script)


def test_variants_meet_the_same_keys(walk) -> None:
    keys = [(0.0, walk[0]), (1.0, walk[40])]
    one, other = (joint_positions(poise.inbetween(keys, variant=n).motion) for n in (1, 2))
    np.testing.assert_allclose(one[[0, 30]], other[[0, 30]], atol=1e-6)
    assert np.abs(one[15] - other[15]).max() > 0.005


def test_a_foot_stands_when_the_list_says_so(walk) -> None:
    made = poise.inbetween([(0.0, walk[0]), (1.0, walk[40])], contacts=[Stance("left", 0.0, 0.4)])
    assert made.standing[:13, 0].all()
    assert not made.standing[13:].any()
    places = made.motion.positions["left_foot"]
    assert np.abs(places[1:12] - places[0]).max() < 0.004
    with pytest.raises(InvalidValueError, match="left, right"):
        poise.inbetween([(0.0, walk[0]), (1.0, walk[40])], contacts=[Stance("both", 0.0, 0.4)])


def test_handles_pins_and_models_act_between_poses(walk, tmp_path: Path) -> None:
    walk.save(tmp_path / "walk.bvh")
    script = tmp_path / "keys.toml"
    place = walk.positions["right_hand"][20] + np.array([-0.15, 0.1, 0.05])
    script.write_text(f"""
[[keys]]
time = 0.0
pose = "walk.bvh:0"
[[keys]]
time = 1.3
pose = "walk.bvh:40"
[handles.right_hand]
keys = [{{ time = 0.6, at = {place.tolist()} }}]
""")
    free, styled = poise.inbetween(script), poise.keyframe(GaussianPrior.learn([walk]), script)
    for made in (free, styled):
        np.testing.assert_allclose(made.motion.positions["right_hand"][18], place, atol=2e-3)
        keys = joint_positions(made.motion[np.array([0, 39])])
        np.testing.assert_allclose(keys, joint_positions(walk[np.array([0, 40])]), atol=1e-5)
    assert np.abs(free.motion.rotations - styled.motion.rotations).max() > 1e-3


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ({"hold": -1.0}, "0 or more seconds"),
        ({"tempo": 9.0}, "from 0.25 to 4"),
        ({"ease": "much"}, "ease is one of"),
    ],
)
def test_keys_are_checked(walk, key: dict, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        PoseKey(0.0, walk[0], **key)


def test_the_protocol_measures_interpolation_and_keeps_keys(walk) -> None:
    rows = protocol.evaluate_inbetween([Fold((), (walk,))])
    assert {row["method"] for row in rows} == set(protocol.USUAL)
    by = {(row["method"], row["past"], row["between"]): row for row in rows}
    errors = [by["interpolation", 10, between]["mpjpe_cm"] for between in protocol.BETWEEN]
    assert errors[0] < errors[1] < errors[2]
    assert by["interpolation", 10, 30]["mpjpe_cm"] == pytest.approx(by["interpolation", 1, 30]["mpjpe_cm"])
    assert by["hermite", 10, 5]["mpjpe_cm"] < by["interpolation", 10, 5]["mpjpe_cm"]
    assert max(row["key_mm"] for row in rows) < 1e-3


def test_the_windows_of_lafan1_are_those_of_its_benchmark(tmp_path: Path) -> None:
    for number, seconds in ((1, 4.0), (5, 5.0)):
        performer.act("walk", seconds=seconds, fps=30.0, seed=number).save(
            tmp_path / f"walk1_subject{number}.bvh"
        )
    request = protocol.Request(
        "inbetween", methods=["interpolation"], options=protocol.InbetweenOptions(lafan1=tmp_path)
    )
    rows = protocol.PROTOCOL.run(request, lambda *_: None)
    assert [(row["past"], row["between"]) for row in rows] == [
        (p, b) for p in (10, 1) for b in (5, 15, 30, 45)
    ]
    frames = len(poise.read(tmp_path / "walk1_subject5.bvh"))
    assert {row["windows"] for row in rows} == {len(range(0, frames - 65, 40))}
    lost = [row["l2p"] for row in rows[:4]]
    assert 0.0 < lost[0] < lost[1]
    with pytest.raises(InvalidValueError, match="subject5"):
        protocol.lafan1(tmp_path / "nothing")
