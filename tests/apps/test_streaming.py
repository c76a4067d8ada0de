"""VMC over OSC, received by a real OSC server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from osc_receiver import Receiver, receiving
from poise.apps.streaming import Humanoid, VmcSender, address_from_text, stream
from poise.capture.feeds.humanoid import BONES, mirrored_turn
from poise.cli import main
from poise.errors import InvalidValueError
from poise.formats import write
from poise.geometry import rotations
from poise.performer import act
from poise.skeleton import Pose, Skeleton
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.neutral import neutral_pose

WALK = act("walk", seconds=0.5, fps=30)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def wait_for(receiver: Receiver, frames: int) -> None:
    done = threading.Event()
    for _ in range(300):
        if len(receiver.bones(10**6)) >= frames * len(BONES):
            return
        done.wait(0.01)
    raise AssertionError(f"{len(receiver.heard)} messages came")


def test_a_motion_arrives_frame_by_frame(receiver: Receiver) -> None:
    sender = VmcSender(WALK.skeleton, port=receiver.port)
    stream(WALK, sender.send, sleep=lambda _: None)
    sender.close()
    wait_for(receiver, 1)
    assert receiver.heard[0] == ("/VMC/Ext/OK", (1,))
    assert {values[0] for values in receiver.bones()} == set(BONES.values())
    for values in receiver.bones():
        assert len(values) == 8
        assert np.isclose(np.linalg.norm(values[4:]), 1.0, atol=1e-5)


def test_the_t_pose_is_turned_nowhere() -> None:
    neutral = neutral_pose(WALK.skeleton)
    pose = Pose(WALK.skeleton, np.array([0.3, 1.0, 0.2]), neutral.rotations)
    bones = Humanoid(WALK.skeleton).bones(pose)
    for place, turn in bones.values():
        np.testing.assert_allclose(rotations.canonical(turn), rotations.IDENTITY, atol=1e-9)
        assert np.all(np.isfinite(place))
    np.testing.assert_allclose(bones["Hips"][0], [-0.3, 1.0, 0.2])
    assert bones["LeftUpperArm"][0][0] < 0  # Unity's left


def test_a_receiver_that_follows_the_protocol_stands_as_we_do() -> None:
    humanoid, pose = Humanoid(WALK.skeleton), WALK[7]
    bones = humanoid.bones(pose)
    positions, _ = world_transforms(pose.skeleton, pose.root_position, pose.rotations)
    neutral = neutral_pose(WALK.skeleton)
    turns: dict[str, np.ndarray] = {}
    for bone, parent in humanoid.parents.items():
        own = bones[bone][1]
        turns[bone] = own if parent is None else rotations.multiply(turns[parent], own)
    for bone, parent in humanoid.parents.items():
        if parent is None or bone not in ("LeftLowerArm", "LeftHand", "RightFoot", "RightLowerLeg"):
            continue
        ours = positions[humanoid.joints[bone]] - positions[humanoid.joints[parent]]
        along = neutral.positions[humanoid.joints[bone]] - neutral.positions[humanoid.joints[parent]]
        theirs = rotations.rotate(mirrored_turn(turns[parent]), along)
        np.testing.assert_allclose(theirs, ours, atol=1e-9)


def test_the_command_streams_a_file(
    receiver: Receiver, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    clip = write(act("walk", seconds=0.2, fps=30), tmp_path / "walk.bvh")
    assert main(["stream", str(clip), "--to", f"127.0.0.1:{receiver.port}", "--times", "2"]) == 0
    wait_for(receiver, 1)
    assert f"to 127.0.0.1:{receiver.port}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.2:99", ("10.0.0.2", 99)),
        ("host", ("host", 39539)),
        (":5000", ("127.0.0.1", 5000)),
        ("[::1]:7", ("::1", 7)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_from_text(text) == address


@pytest.mark.parametrize("text", ["host:", "host:no", "host:0", "host:70000"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(InvalidValueError, match="HOST:PORT"):
        address_from_text(text)


def test_what_cannot_be_sent_is_explained() -> None:
    stick = Skeleton(("a", "b"), np.array([-1, 0]), np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    with pytest.raises(InvalidValueError, match="needs a humanoid"):
        Humanoid(stick)
    with pytest.raises(InvalidValueError, match="cannot reach"):
        VmcSender(WALK.skeleton, host="no.such.host.invalid")
    assert main(["stream", "nothing.bvh", "--times", "0"]) == 2


def test_late_frames_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[float] = []
    clock = iter(np.arange(0.0, 1000.0, 0.5))
    monkeypatch.setattr("poise.apps.streaming.time.perf_counter", lambda: float(next(clock)))

    def slow(pose: Pose, seconds: float) -> None:
        del pose
        sent.append(seconds)

    stream(act("walk", seconds=3.0, fps=10), slow, sleep=lambda _: None)
    assert len(sent) < 10
    assert sent == sorted(sent)
