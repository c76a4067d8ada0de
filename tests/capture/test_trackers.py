"""Trackers over time: they are met, losses are bridged, rates and mounts do not matter, mistakes are explained."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from bodies import person
from osc_receiver import receiving
from poise import performer
from poise.capture.feeds import LiveFrame, open_feed
from poise.capture.streams import Stream
from poise.capture.trackers import JOINT, TrackerPerformance, mounts_of
from poise.cli.main import main
from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.splits import Fold
from poise.evaluation.trackers import TRACKED, TrackersOptions, evaluate_trackers
from poise.formats import read
from poise.geometry import rotations
from poise.motion.edit import resample
from poise.motion.motion import Motion
from poise.motion.world import joint_positions, joint_transforms
from poise.priors.motion import following
from poise.skeleton.neutral import neutral_pose
from small_motion import small_weights
from tracker_sender import TrackerSender

Array = np.ndarray
HANDS = ("head", "left_hand", "right_hand")


@pytest.fixture(autouse=True)
def random_weights(monkeypatch) -> None:
    weights = small_weights()
    monkeypatch.setattr(following, "shipped", lambda: weights)


@pytest.fixture(scope="module")
def walk() -> Motion:
    return resample(performer.act("walk", seconds=2.0, seed=3), 30.0)


def worn(motion: Motion, roles: tuple[str, ...]) -> Array:
    """Positions and rotations of joints: (frames, roles, 7)."""
    places, axes = joint_transforms(motion)
    at = [motion.skeleton.index(role) for role in roles]
    return np.concatenate([places[:, at], rotations.quaternion_from_matrix(axes[:, at])], axis=-1)


def joints(roles: tuple[str, ...], motion: Motion, fps: float = 30.0) -> TrackerPerformance:
    """Trackers at the joints themselves."""
    return TrackerPerformance(roles, skeleton=motion.skeleton, fps=fps, mounts=dict.fromkeys(roles, JOINT))


@pytest.mark.parametrize("roles", [*TRACKED.values(), ("left_foot",), ("chest", "right_hand")])
def test_trackers_are_met_by_position_and_rotation(walk: Motion, roles: tuple[str, ...]) -> None:
    performance, asked = joints(roles, walk), worn(walk, roles)
    for number, values in enumerate(asked[:20]):
        frame = performance.step(values)
        found = worn(Motion.of_poses([frame.pose]), roles)[0]
        np.testing.assert_allclose(found[:, :3], values[:, :3], atol=2e-3, err_msg=str(number))
        assert np.degrees(rotations.geodesic_distance(found[:, 3:], values[:, 3:]).max()) < 0.2
        assert frame.reached
        at = [walk.skeleton.index(role) for role in roles]
        assert np.all(np.asarray(frame.deviation)[at] == 0.0)
        assert np.delete(np.asarray(frame.deviation), at).min() > 0.0


def test_a_window_is_the_same_at_any_rate_and_heading() -> None:
    fine = performer.act("walk", seconds=1.5, seed=3, fps=90.0)
    every = resample(fine, 30.0)
    turn, shift = rotations.quaternion_from_expmap(np.array([0.0, 2.0, 0.0])), np.array([3.0, 0.0, -1.0])
    first, second, third = (
        joints(HANDS, one, rate) for one, rate in ((fine, 90.0), (every, 30.0), (every, 30.0))
    )
    for number, values in enumerate(worn(fine, HANDS)[:91]):
        if number % 3:
            first.observe(values)
            continue
        moved = values.copy()
        moved[:, :3] = rotations.rotate(turn, values[:, :3]) + shift
        moved[:, 3:] = rotations.multiply(turn, values[:, 3:])
        found, same, away = first.step(values), second.step(values), third.step(moved)
        np.testing.assert_allclose(found.markers, same.markers, atol=2e-3)
        own, other = (joint_positions(Motion.of_poses([frame.pose])) for frame in (same, away))
        np.testing.assert_allclose(rotations.rotate(turn, own) + shift, other, atol=5e-3)


def test_the_network_is_asked_thirty_times_a_second_and_goes_on_between(monkeypatch) -> None:
    fine, asked = performer.act("walk", seconds=1.0, seed=3, fps=90.0), list[int]()
    ask = following.followed
    monkeypatch.setattr(following, "followed", lambda *given: asked.append(1) or ask(*given))
    performance, met = joints(HANDS, fine, 90.0), []
    for values in worn(fine, HANDS)[:61]:
        frame = performance.step(values)
        met.append(np.linalg.norm(frame.markers - values[:, :3], axis=-1).max())
    assert len(asked) == 21
    assert max(met) < 2e-3


def test_a_lost_tracker_is_expected_and_no_tracker_at_all_holds_the_pose(walk: Motion) -> None:
    performance, asked = joints(HANDS, walk), worn(walk, HANDS)
    asked[20:40, 2] = np.nan
    frames = [performance.step(values) for values in asked]
    hand = walk.skeleton.index("right_hand")
    assert [bool(frame.deviations[hand] > 0.0) for frame in frames] == [
        20 <= k < 40 for k in range(len(frames))
    ]
    nothing = np.full((3, 7), np.nan)
    gone = [performance.step(nothing) for _ in range(60)]
    assert gone[0].notes == ()
    assert gone[-1].notes == ("no tracker was seen in the last seconds",)
    np.testing.assert_array_equal(gone[-1].q, gone[-2].q)
    assert performance.step(asked[0]).reached
    cold = joints(HANDS, walk)
    assert cold.step(nothing).notes == gone[-1].notes


def test_times_that_go_back_or_pause_begin_anew(walk: Motion) -> None:
    performance, asked = joints(HANDS, walk), worn(walk, HANDS)
    first = performance.step(asked[0], at=100.0)
    for number, values in enumerate(asked[1:10], start=1):
        performance.step(values, at=100.0 + number / 30)
    for at in (3.0, 60.0):
        np.testing.assert_allclose(performance.step(asked[0], at=at).q, first.q, atol=1e-6)


def test_mounts_are_found_in_a_t_pose() -> None:
    skeleton, draw = person(), np.random.default_rng(4)
    roles = ("pelvis", *HANDS, "left_foot", "right_foot")
    at, neutral = [skeleton.index(role) for role in roles], neutral_pose(skeleton)
    turns = rotations.quaternion_from_expmap(draw.normal(0.0, 1.0, (6, 3)))
    offsets = draw.normal(0.0, 0.05, (6, 3))
    offsets -= offsets.mean(axis=0)
    place = np.array([1.0, 0.0, 2.0])
    heading = rotations.quaternion_from_expmap(np.array([0.0, 0.9, 0.0]))
    world = rotations.multiply(heading, rotations.quaternion_from_matrix(neutral.world[at]))
    places = rotations.rotate(heading, neutral.positions[at] + offsets) + place
    stood = np.concatenate([places, rotations.multiply(world, turns)], axis=-1)
    performance = TrackerPerformance(
        roles, skeleton=skeleton, mounts=mounts_of(skeleton, {role: role for role in roles}, stood)
    )
    frame = performance.step(stood)
    found = worn(Motion.of_poses([frame.pose]), roles)[0]
    assert np.degrees(rotations.geodesic_distance(found[:, 3:], world)).max() < 8.0
    stands = rotations.rotate(heading, neutral.positions[at]) + place
    gaps = np.linalg.norm(found[:, :3] - stands, axis=-1)
    assert gaps.max() < 0.05


def test_wrong_trackers_are_explained() -> None:
    with pytest.raises(InvalidValueError, match="at least one of pelvis, head"):
        TrackerPerformance(("chest",))
    with pytest.raises(InvalidValueError, match="different roles"):
        TrackerPerformance({"a": "head", "b": "head"})
    with pytest.raises(InvalidValueError, match="'tail' is no role"):
        TrackerPerformance(("head", "tail"))
    with pytest.raises(InvalidValueError, match=r"a frame must be \(1, 7\)"):
        TrackerPerformance(("head",)).observe(np.zeros((1, 3)))


@pytest.mark.parametrize("feed", ["slimevr", "openxr", "vmc"])
def test_a_replayed_take_is_followed_over_the_network(walk: Motion, feed: str) -> None:
    """Every protocol brings the same walk as the trackers themselves; SlimeVR's trackers are no hands."""
    roles = ("pelvis", "head", "left_foot", "right_foot") if feed == "slimevr" else HANDS
    values = worn(walk, roles)[:25]
    neutral = neutral_pose(walk.skeleton).world[[walk.skeleton.index(role) for role in roles]]
    back = rotations.conjugate(rotations.quaternion_from_matrix(neutral))
    values[..., 3:] = rotations.multiply(values[..., 3:], back)  # from the T-pose
    performance, sender = (
        TrackerPerformance(roles, skeleton=walk.skeleton, fps=30.0),
        TrackerSender(feed, roles),
    )
    stream, ports = Stream(performance), list[int]()
    frames = open_feed(f"{feed}:0", ready=lambda where: ports.append(int(where.rpartition(":")[2])))
    answers = []

    def receive() -> None:
        while len(answers) < len(values) - 2:
            answers.append(stream.take(next(frames)))

    receiver = threading.Thread(target=receive)
    receiver.start()
    while not ports:
        time.sleep(0.01)
    for value in values:
        sender.send(value, ports[0])
        time.sleep(0.02)
    receiver.join(60.0)
    frames.close()
    assert len(answers) == len(values) - 2
    assert not stream.skipped
    pelvis = walk.skeleton.index(roles[0])
    for frame in stream.frames[-5:]:
        own = joint_positions(Motion.of_poses([frame.pose]))[0, pelvis]
        assert np.linalg.norm(values[:, 0, :3] - own, axis=-1).min() < 2e-3


def test_lines_and_files_have_seven_numbers_for_a_tracker(tmp_path: Path, walk: Motion) -> None:
    values = worn(walk, HANDS)[:12]
    performance = TrackerPerformance(HANDS, skeleton=walk.skeleton, fps=30.0)
    stream = Stream(performance)
    line = {name: value.tolist() for name, value in zip(HANDS, values[0], strict=True)} | {"right_hand": None}
    (answer,) = stream.answers([json.dumps(line)])
    assert set(json.loads(answer)) == {"root", "joints", "ms"}
    (refusal,) = stream.answers(['{"head": [0, 1, 0]}'])
    assert "x, y, z, qw, qx, qy, qz or null" in json.loads(refusal)["error"]
    names = [f"{name}.{c}" for name in HANDS for c in performance.channels]
    rows = [",".join(["time", *names])]
    rows += [",".join(map(str, (number / 30, *one.ravel()))) for number, one in enumerate(values)]
    (tmp_path / "take.csv").write_text("\n".join(rows))
    out = tmp_path / "out.bvh"
    command = [
        "perform",
        str(tmp_path / "take.csv"),
        "--trackers",
        ",".join(HANDS),
        "-o",
        str(out),
        "--t-pose",
    ]
    assert main([*command, "--height", "1.8", "--calibrate", str(tmp_path / "take.csv")]) == 0
    assert len(read(out)) == len(values)
    assert main(["perform", str(tmp_path / "take.csv"), "--trackers", "tail", "-o", str(out)]) != 0


def test_a_live_performance_is_sent_on(monkeypatch, capsys) -> None:
    head = LiveFrame({"head": np.array([0.0, 1.5, 0.0])}, {"head": np.array([1.0, 0.0, 0.0, 0.0])})
    monkeypatch.setattr("poise.capture.feeds.open_feed", lambda _take, **_: iter([head] * 3))
    with receiving() as receiver:
        assert main(["perform", "slimevr:1", "--to", f"127.0.0.1:{receiver.port}"]) == 0
        deadline = time.monotonic() + 60.0
        while not receiver.bones() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "Head" in {values[0] for values in receiver.bones()}
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_protocol_measures_every_method_and_set_of_trackers() -> None:
    clip = performer.act("walk", seconds=5.2, fps=30.0)
    rows = evaluate_trackers(
        [Fold((), (clip,))], methods=("dls", "motion"), options=TrackersOptions(dropout=0.2)
    )
    assert [(row["method"], row["trackers"]) for row in rows] == [
        (name, trackers) for name in ("dls", "motion") for trackers in TRACKED
    ]
    for row in rows:
        assert float(row["tracker_mm"]) < 2.0
        assert row["frames"] == 102
    assert all("held_95" in row for row in rows[3:])
    with pytest.raises(UnknownNameError):
        evaluate_trackers([Fold((), (clip,))], methods=("telepathy",))
    with pytest.raises(InvalidValueError, match="150 frames"):
        evaluate_trackers([Fold((), (clip[:90],))])
