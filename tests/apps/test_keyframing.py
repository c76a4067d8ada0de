"""Keyframe scripts: what they may say, what they may not, and the motions made of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.apps.keyframing import fewest_keys, keyframe, script_text, watched
from poise.apps.keyframing_script import read_script
from poise.errors import InvalidValueError, ParseError, PoiseError, SkeletonError
from poise.formats import read
from poise.geometry import rotations
from poise.motion.edit import resample, trim
from poise.motion.motion import Motion
from poise.motion.world import joint_positions
from poise.priors import model_file
from poise.priors.gaussian import GaussianPrior
from poise.priors.style.prior import StylePrior
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.skeleton import Skeleton
from poise.solvers.bearing import heading_of, overhang
from real_data import recording

STANDING = """
duration = 0.5
fps = 20
floor = true
[handles.right_hand]
keys = [ { time = 0.0, at = [-0.25, 0.9, 0.15] }, { time = 0.5, at = [-0.3, 1.2, 0.3], tangent = [0, 0, 0] } ]
[[pins]]
handle = "left_foot"
at = [0.1, 0.09, 0.0]
[[pins]]
handle = "right_foot"
at = [-0.1, 0.09, 0.1]
"""


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=3.0, fps=30, seed=1)


@pytest.fixture(scope="module")
def style(walk: Motion) -> StylePrior:
    return learned(StylePrior, [walk], dimensions=3, active=40)


@pytest.fixture(scope="module")
def gaussian(walk: Motion) -> GaussianPrior:
    return GaussianPrior.learn([walk], clusters=15)


def _script(folder: Path, text: str) -> Path:
    path = folder / "script.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_hips_face_as_the_feet_go(walk: Motion, tmp_path: Path) -> None:
    """Two ankles do not say which way their owner faces; over a stride they do, whichever way that is."""
    quarter = rotations.quaternion_from_expmap(np.array([0.0, np.pi / 2, 0.0]))
    turned = walk.rotations.copy()
    turned[:, 0] = rotations.multiply(quarter, turned[:, 0])
    aside = walk.with_frames(rotations.rotate(quarter, walk.root_positions), turned)
    text = script_text(trim(aside, 0.5, 2.0), ["left_foot", "right_foot"], fps=15.0)
    made = keyframe(UniversalPrior(walk.skeleton), read_script(_script(tmp_path, text)))
    headings = np.array([heading_of(pose) for pose in made.motion])
    assert np.degrees(np.arccos(headings @ [1.0, 0.0, 0.0])).max() < 25.0


def test_the_weight_stays_over_feet_that_are_keyed(walk: Motion, tmp_path: Path) -> None:
    text = STANDING.replace("[-0.3, 1.2, 0.3]", "[-0.45, 1.1, 0.85]").replace(
        "0.1, 0.09, 0.0", "0.12, 0.08, 0.0"
    )
    script = _script(
        tmp_path, text.replace("-0.1, 0.09, 0.1", "-0.12, 0.08, 0.0").replace("fps = 20", "fps = 10")
    )
    over = []
    for balance in (True, False):
        made = keyframe(UniversalPrior(walk.skeleton), script, balance=balance)
        space, last = made.space, made.motion[len(made.motion) - 1]
        over.append(overhang(last, space.centre_of_mass(space.q_from_pose(last))[0]))
        assert made.worst < 1e-3
    assert over[0] < 0.0 < 0.05 < over[1]


def test_a_body_that_is_keyed_by_its_feet_does_not_fall_behind_them(tmp_path: Path) -> None:
    walk = performer.act("walk", seconds=4.0, fps=30)
    places, feet = joint_positions(walk), ("left_foot", "right_foot")
    text = "duration = 3.9\nfps = 30\nfloor = true\n"
    for name in feet:
        way = places[::15, walk.skeleton.index(name)].tolist()
        keys = [f"{{ time = {0.5 * number}, at = {at} }}" for number, at in enumerate(way)]
        text += f"[handles.{name}]\nkeys = [{', '.join(keys)}]\n"
    made = keyframe(UniversalPrior(walk.skeleton), _script(tmp_path, text)).motion
    roles = [walk.skeleton.index(name) for name in ("pelvis", *feet)]
    hips, left, right = np.moveaxis(joint_positions(made)[:, roles], 1, 0)
    assert np.linalg.norm((hips - (left + right) / 2)[:, [0, 2]], axis=1).max() < 0.2


def test_arms_of_a_walk_that_is_keyed_by_its_feet_do_not_jerk(walk: Motion, tmp_path: Path) -> None:
    """Keys at three contacts; knees and elbows accelerate at most twice as much as those of a walk."""
    feet = {"right_foot": (-0.09, 0.35, -0.35), "left_foot": (0.09, -0.35, 0.35)}
    text = "duration = 1.2\nfps = 30\nfloor = true\n"
    for name, (x, *ahead) in feet.items():
        keys = [
            f"{{ time = {0.6 * step}, at = [{x}, {0.09 if z > 0 else 0.14}, {0.7 * step + z}] }}"
            for step, z in enumerate([*ahead, ahead[0]])
        ]
        text += f"[handles.{name}]\nkeys = [{', '.join(keys)}]\n"
    made = keyframe(UniversalPrior(walk.skeleton), _script(tmp_path, text)).motion
    joints = [
        walk.skeleton.index(f"{side}_{part}") for part in ("shin", "forearm") for side in ("left", "right")
    ]
    own, usual = (_accelerations(motion)[:, joints] for motion in (made, walk))
    assert np.all(own.mean(axis=0) < 2.0 * usual.mean(axis=0))
    assert np.all(own.max(axis=0) < 2.0 * usual.max(axis=0))


def _accelerations(motion: Motion) -> np.ndarray:
    places, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    return np.linalg.norm(np.diff(places, n=2, axis=0), axis=-1) * motion.fps**2


@pytest.mark.parametrize("kind", ["style", "gaussian"])
def test_handles_are_on_their_paths_and_pins_hold(
    kind: str, style: StylePrior, gaussian: GaussianPrior, tmp_path: Path
) -> None:
    made = keyframe(style if kind == "style" else gaussian, read_script(_script(tmp_path, STANDING)))
    assert len(made.motion) == 11
    assert made.worst < 2e-3
    assert made.misses() == []
    positions, _ = made.space.forward(made.q)
    left = positions[:, made.motion.skeleton.index("left_foot")]
    np.testing.assert_allclose(left, np.tile([0.1, 0.09, 0.0], (11, 1)), atol=2e-3)


TURNED = """
[handles.head]
curve = "linear"
keys = [ { time = 0.1, rotation = [0, 0, 0] }, { time = 0.4, rotation = [0.9659258, 0, 0.2588190, 0] } ]
"""


@pytest.mark.parametrize("kind", ["style", "gaussian"])
def test_keyed_rotations_are_followed(
    kind: str, style: StylePrior, gaussian: GaussianPrior, tmp_path: Path
) -> None:
    script = read_script(_script(tmp_path, STANDING + TURNED))
    made = keyframe(style if kind == "style" else gaussian, script)
    assert made.worst < 2e-3
    assert made.worst_turn < np.radians(0.2)
    head = made.motion.skeleton.index("head")
    _, turned = made.space.forward(made.q)
    for frame, degrees in [(2, 0.0), (5, 15.0), (8, 30.0)]:
        heading = rotations.matrix_from_euler(np.radians([degrees]), "Y")
        np.testing.assert_allclose(turned[frame, head], heading, atol=5e-3)
    assert np.isnan(made.angles["head"][[0, 1, 9, 10]]).all()


def test_degrees_turn_the_heading_first_then_x_then_z(tmp_path: Path) -> None:
    text = "duration = 1\n[handles.head]\nturn_tolerance = 90\nkeys = [{ time = 0, rotation = [10, 20, 30] }]"
    (turn,) = read_script(_script(tmp_path, text)).turns
    y, x, z = np.radians([20.0, 10.0, 30.0])
    expected = rotations.quaternion_from_euler(np.array([y, x, z]), "YXZ")
    np.testing.assert_allclose(turn.turns, expected[None])
    assert turn.tolerance == pytest.approx(np.pi / 2)


def test_a_turn_out_of_reach_is_told(gaussian: GaussianPrior, tmp_path: Path) -> None:
    text = (
        STANDING.replace("tangent = [0, 0, 0] }", "tangent = [0, 0, 0], rotation = [0, 0, 0] }")
        + """
[handles.Spine]
keys = [ { time = 0.0, rotation = [0, 0, 0] } ]
[handles.Neck]
keys = [ { time = 0.0, rotation = [180, 0, 0] } ]
"""
    )
    misses = keyframe(gaussian, read_script(_script(tmp_path, text))).misses()
    assert any("Neck cannot rotate to its keys at 0.00 s" in miss for miss in misses), misses


def test_a_path_out_of_reach_is_told_with_its_times(style: StylePrior, tmp_path: Path) -> None:
    made = keyframe(
        style, read_script(_script(tmp_path, STANDING.replace("-0.3, 1.2, 0.3", "-0.3, 4.0, 0.3")))
    )
    (miss,) = [text for text in made.misses() if text.startswith("right_hand")]
    assert "right_hand cannot reach its path in" in miss
    assert "to 0.50 s" in miss
    assert made.worst > 1.0


def test_two_handles_of_one_joint_are_told_apart(style: StylePrior, tmp_path: Path) -> None:
    palm = '\n[[pins]]\nhandle = "right_hand"\noffset = [0.0, 0.08, 0.0]\nfrom = 0.2\nto = 0.3\n'
    made = keyframe(style, read_script(_script(tmp_path, STANDING + palm)))
    hands = [handle for handle in made.distances if handle.joint == "right_hand"]
    assert [handle.offset for handle in hands] == [(0.0, 0.0, 0.0), (0.0, 0.08, 0.0)]
    assert np.isnan(made.distances[hands[1]][0])
    assert np.isfinite(made.distances[hands[0]]).all()


def test_a_pin_without_a_place_holds_where_the_body_is(
    style: StylePrior, walk: Motion, tmp_path: Path
) -> None:
    text = script_text(walk[20:35], ["left_foot", "right_foot"], fps=30.0)
    text += '\n[[pins]]\nhandle = "right_hand"\nfrom = 0.2\n'
    made = keyframe(style, read_script(_script(tmp_path, text)))
    held = made.space.forward(made.q)[0][6:, made.motion.skeleton.index("right_hand")]
    assert np.ptp(held, axis=0).max() < 3e-3


def test_styles_come_in_over_their_time(style: StylePrior, tmp_path: Path) -> None:
    model_file.save(style, tmp_path / "other.poise")
    text = '[styles]\nother = "other.poise"\n[[style]]\ntime = 0.1\nname = "other"\nover = 0.3\n'
    script = read_script(_script(tmp_path, STANDING + text))
    names, weights = script.weights()
    assert names == ["model", "other"]
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(weights[:, 1][[0, 2, 5, 8, 10]], [0.0, 0.0, 0.5, 1.0, 1.0], atol=1e-12)
    assert np.all(np.diff(weights[:, 1]) >= 0)
    assert keyframe(style, script).worst < 2e-3


def test_no_smoothness_leaves_every_frame_to_itself(style: StylePrior, tmp_path: Path) -> None:
    assert keyframe(style, read_script(_script(tmp_path, "smoothness = 0\n" + STANDING))).worst < 2e-3


def test_a_script_taken_from_a_clip_gives_its_paths_back(walk: Motion, tmp_path: Path) -> None:
    script = read_script(_script(tmp_path, script_text(walk[:45], ["left_foot", "left_hand"])))
    assert script.duration == pytest.approx(44 / 30, abs=1e-3)
    assert any(pin.handle.joint == "left_foot" for pin in script.pins)
    times = np.arange(0, 45) / 30
    hand = next(path for path in script.paths if path.handle.joint == "left_hand")
    way = world_transforms(walk.skeleton, walk.root_positions, walk.rotations)[0][
        :45, walk.skeleton.index("left_hand")
    ]
    assert np.nanmax(np.linalg.norm(hand.at(times) - way, axis=1)) < 0.022


def test_fewest_keys_of_a_line_are_its_ends() -> None:
    times = np.linspace(0.0, 1.0, 20)
    assert fewest_keys(times, times[:, None] * [1.0, 2.0, 3.0], 0.001) == [0, 19]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("duration = 1\nfps = x", r"script.toml:2: not TOML: Invalid value"),
        ("duration = ", r"script.toml: not TOML: Invalid value"),
        ("fps = 30", r"script.toml: duration: is missing"),
        ("duration = -1", r"duration: expected a number above 0 and of at most 600; got -1"),
        ("duration = nan", r"duration: expected a number; got nan"),
        ('duration = "long"', r"duration: expected a number; got 'long'"),
        ("duration = 1\nfsp = 30", r"fsp: no key 'fsp'; did you mean fps\?"),
        ("duration = 1", r"handles: no handle has a key or a pin"),
        ("duration = 1\nfps = 1000", r"fps: expected a number from 1 to 240; got 1000"),
        ("duration = 1\nhandles = 3", r"handles: expected a table \[handles\]; got 3"),
        ("duration = 1\n[handles.head]\nkeys = []", r"handles.head.keys: a handle needs at least one key"),
        (
            "duration = 1\n[handles.head]\nkeys = [{ time = 2, at = [0, 0, 0] }]",
            r"handles.head.keys\[1\].time: is outside the duration, 0 to 1 s; got 2 s",
        ),
        (
            "duration = 1\n[handles.head]\nkeys = [{ time = 1 }]",
            r"keys\[1\].at: is missing; a key needs a position \(at\), a rotation or both",
        ),
        (
            "duration = 1\n[handles.head]\nkeys = [{ time = 1, rotation = [1, 1, 1, 1] }]",
            r"keys\[1\].rotation: expected a unit quaternion \(wxyz\); got \[1.0, 1.0, 1.0, 1.0\]",
        ),
        (
            "duration = 1\n[handles.head]\nkeys = [{ time = 1, rotation = 30 }]",
            r"keys\[1\].rotation: expected 3 finite numbers or 4 finite numbers; got 30",
        ),
        (
            "duration = 1\n[handles.head]\nkeys = [{ time = 1, at = [0, nan, 0] }]",
            r"handles.head.keys\[1\].at: expected 3 finite numbers",
        ),
        (
            "duration = 1\n[handles.head]\nkeys = [{ time = 1, at = [0, 0, 0] }, { time = 1, at = [0, 0, 0] }]",
            r"handles.head.keys\[2\].time: key times must increase",
        ),
        (
            "duration = 1\n[handles.head]\nkeys = [{ time = 1, at = [0, 0, 0], tangnet = [0, 0, 0] }]",
            r"keys\[1\].tangnet: no key 'tangnet'; did you mean tangent\?",
        ),
        (
            'duration = 1\n[handles.head]\ncurve = "bezier"\nkeys = [{ time = 1, at = [0, 0, 0] }]',
            r"handles.head.curve: no choice 'bezier'",
        ),
        (
            'duration = 1\n[[pins]]\nhandle = "head"\nfrom = 0.6\nto = 0.5',
            r"pins\[1\].to: a pin must end after it begins",
        ),
        (
            'duration = 1\n[[pins]]\nhandle = "head"\n[[pins]]\nhandle = "head"',
            r"pins\[2\]: head is already pinned until 1 s",
        ),
        (
            'duration = 1\n[handles.head]\nkeys = [{ time = 0.5, at = [0, 0, 0] }]\n[[pins]]\nhandle = "head"',
            r"pins\[1\]: head has a key at 0.5 s, within 0 to 1 s",
        ),
        ('duration = 1\n[[style]]\nname = "sneaky"', r"style\[1\].name: no choice 'sneaky'"),
        (
            'duration = 1\n[styles]\nmodel = "a.poise"',
            r"styles.model: 'model' is the name of the model that solves the script",
        ),
        (
            'duration = 2\n[styles]\na = "a"\n[[style]]\nname = "a"\nover = 1\n[[style]]\nname = "model"\ntime = 0.5',
            r"style\[2\].time: the previous change ends at 1 s",
        ),
        ("duration = 1\nfloor = 'low'", r"floor: expected a number or true or false; got 'low'"),
    ],
)
def test_mistakes_are_told_with_their_key(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=message):
        read_script(_script(tmp_path, text))


def test_files_that_are_no_scripts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PoiseError, match="does not exist"):
        read_script(tmp_path / "none.toml")
    (tmp_path / "noise.toml").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(ParseError, match="not UTF-8 text"):
        read_script(tmp_path / "noise.toml")


def test_unknown_joints_and_missing_styles_are_told(style: StylePrior, tmp_path: Path) -> None:
    with pytest.raises(PoiseError, match=r"handles.right_hnd: .*did you mean right_hand"):
        keyframe(style, read_script(_script(tmp_path, STANDING.replace("right_hand", "right_hnd"))))
    text = '[styles]\nsneaky = "sneaky.poise"\n[[style]]\nname = "sneaky"\n'
    with pytest.raises(PoiseError, match=r"sneaky.poise does not exist"):
        keyframe(style, read_script(_script(tmp_path, STANDING + text)))


def test_a_style_of_another_skeleton_is_refused(style: StylePrior, tmp_path: Path) -> None:
    names = ("hips", "spine", "neck")
    chain = Skeleton(
        names, np.array([-1, 0, 1]), np.array([[0.0, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.3, 0.0]])
    )
    turned = np.tile([1.0, 0.0, 0.0, 0.0], (8, 3, 1))
    turned[:, 1:, 1] = np.linspace(0.0, 0.3, 8)[:, None]
    turned /= np.linalg.norm(turned, axis=-1, keepdims=True)
    other = GaussianPrior.learn([Motion(chain, 30.0, np.zeros((8, 3)), turned)], clusters=2)
    model_file.save(other, tmp_path / "c.poise")
    text = '[styles]\nc = "c.poise"\n[[style]]\nname = "c"\n'
    with pytest.raises(SkeletonError, match="style 'c' has another skeleton"):
        keyframe(style, read_script(_script(tmp_path, STANDING + text)))


def test_a_watched_file_comes_round_when_it_is_saved(tmp_path: Path) -> None:
    path = _script(tmp_path, STANDING)
    pauses = iter([lambda: None, lambda: path.unlink(), lambda: _script(tmp_path, "duration = 1"), _stop])
    rounds: Iterator[None] = watched(path, pause=lambda _seconds: next(pauses)())
    next(rounds)
    next(rounds)
    assert path.read_text() == "duration = 1"
    with pytest.raises(KeyboardInterrupt):
        next(rounds)


def _stop() -> None:
    raise KeyboardInterrupt


def test_keys_need_handles_and_frames(walk: Motion) -> None:
    with pytest.raises(InvalidValueError, match="at least one handle"):
        script_text(walk, [])
    with pytest.raises(InvalidValueError, match="two frames or more"):
        script_text(walk[:1], ["head"])


@pytest.mark.slow
def test_a_recorded_pitch_is_re_keyed_into_a_side_arm_pitch(tmp_path: Path) -> None:
    clip = read(recording("cmu", "124_01.bvh"))
    assert isinstance(clip, Motion)
    style = learned(StylePrior, [resample(clip, 30)], dimensions=3, active=40)
    pitch = trim(clip, 3.0, 4.0)
    feet = read_script(_script(tmp_path, script_text(pitch, ["left_foot", "right_foot", "right_hand"])))
    hand = next(path for path in feet.paths if path.handle.joint == "right_hand")
    low = np.where(hand.points[:, 1:2] > 0.95, [0.0, 1.0, 0.0], 0.0) * (0.95 - hand.points)
    paths = [replace(path, points=path.points + low) if path is hand else path for path in feet.paths]
    made = keyframe(style, replace(feet, paths=paths))
    assert made.worst < 0.01
    assert _roughness(made.motion) < 1.3 * _roughness(resample(pitch, feet.fps))


def _roughness(motion: Motion) -> float:
    positions, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    return float(np.linalg.norm(np.diff(positions, n=2, axis=0), axis=-1).mean())


def test_a_script_taken_with_rotations_holds_them(tmp_path: Path) -> None:
    pitch = performer.act("throw", seconds=1.5, fps=30.0)
    text = script_text(pitch, ["right_hand", "head"], close=0.01, turned=np.radians(2.0))
    script = read_script(_script(tmp_path, text))
    turns = {path.handle.joint: path for path in script.turns}
    _, axes = world_transforms(pitch.skeleton, pitch.root_positions, pitch.rotations)
    times = np.arange(len(pitch)) / pitch.fps
    for name, path in turns.items():
        wanted = rotations.quaternion_from_matrix(axes[:, pitch.skeleton.index(name)])
        found = path.at(times)
        assert np.degrees(rotations.geodesic_distance(found, wanted).max()) < 2.1
        assert len(path.times) < 0.5 * len(pitch)
