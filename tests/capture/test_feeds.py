"""Feeds: every protocol spoken by a small replayer over a real socket, and what Poise makes of it."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bodies import person
from poise.apps.streaming import VmcSender
from poise.capture import setup
from poise.capture.feeds import LiveFrame, address, fitted, is_feed, markers_of, natnet, open_feed
from poise.capture.feeds.humanoid import BodyRecording
from poise.capture.performance import OrientationPerformance
from poise.capture.streams import Stream
from poise.cli.main import main
from poise.errors import InvalidValueError, PoiseError
from poise.formats import read
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.performer import act
from poise.priors.local.prior import LocalPrior
from poise.skeleton import Pose, Skeleton
from tracker_sender import TrackerSender

PATIENCE = 120.0  # seconds: machines may be busy
MARKERS = {"head": (0.1, 1.7, 0.2), "left_hand": (0.5, 1.1, -0.3)}


@contextmanager
def beside(run: Callable[[], None]) -> Iterator[None]:
    """A replayer in a thread; it has ended at the end."""
    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join(PATIENCE)
    assert not thread.is_alive()


def heard(take: str, send: Callable[[int], None], count: int = 2) -> list[LiveFrame]:
    """The first frames of a feed that listens on a free port, while something is sent there again and again."""
    ports: list[int] = []
    found: list[LiveFrame] = []

    def sending() -> None:
        end = time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < end:
            if ports:
                send(ports[0])
            time.sleep(0.01)

    with beside(sending):
        feed = open_feed(f"{take}:0", ready=lambda where: ports.append(int(where.rpartition(":")[2])))
        found += [next(feed) for _ in range(count)]
        feed.close()
    return found


def to_port(content: bytes, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(content, ("127.0.0.1", port))


# --- VMC -----------------------------------------------------------------------------------------------------------


def test_what_is_sent_by_vmc_comes_back_as_the_same_motion() -> None:
    skeleton, random = person(), np.random.default_rng(3)
    turns = rotations.quaternion_from_expmap(0.1 * random.standard_normal((30, len(skeleton), 3)))
    turns[:, skeleton.is_end_site] = (1.0, 0.0, 0.0, 0.0)
    motion = Motion(skeleton, 30.0, random.standard_normal((30, 3)), turns)
    senders: dict[int, VmcSender] = {}
    sent = iter(range(10**9))

    def send(port: int) -> None:
        sender = senders[port] = senders.get(port) or VmcSender(skeleton, port=port)
        number = min(next(sent), len(motion) - 1)
        sender.send(motion[number], number / motion.fps)

    recording = BodyRecording()
    for frame in heard("vmc", send, count=20):
        recording.add(frame)
    for sender in senders.values():
        sender.close()
    back = recording.motion(motion.fps)
    assert len(back) >= 15
    for role in ("pelvis", "head", "left_hand", "right_foot"):
        np.testing.assert_allclose(back.positions[role], motion.positions[role][: len(back)], atol=1e-4)


def test_a_vmc_frame_may_come_in_several_datagrams_and_with_trackers() -> None:
    from pythonosc.osc_message_builder import OscMessageBuilder

    def message(address: str, name: str, *values: float) -> bytes:
        builder = OscMessageBuilder(address)
        for value in (name, *(float(v) for v in values)):
            builder.add_arg(value)
        return bytes(builder.build().dgram)

    def send(port: int) -> None:
        to_port(message("/VMC/Ext/Bone/Pos", "Hips", 0, 1, 0, 0, 0, 0, 1), port)
        to_port(message("/VMC/Ext/Bone/Pos", "Spine", 0.1, 0.2, 0, 0, 0, 0, 1), port)
        to_port(message("/VMC/Ext/Tra/Pos", "LHR-1", 0.3, 1, 2, 0, 0, 0, 1), port)
        to_port(b"damaged", port)

    frame = heard("vmc", send, count=3)[-1]
    np.testing.assert_allclose(
        frame.places["spine"], [-0.1, 1.2, 0.0], atol=1e-6
    )  # Unity's world is mirrored
    if "LHR-1" in frame.places:
        np.testing.assert_allclose(frame.places["LHR-1"], [-0.3, 1.0, 2.0], atol=1e-6)


def test_what_cannot_be_is_passed_over_and_ends_nothing() -> None:
    from pythonosc.osc_message_builder import OscMessageBuilder

    def bone(name: str, *values: object) -> bytes:
        builder = OscMessageBuilder("/VMC/Ext/Bone/Pos")
        for value in (name, *values):
            builder.add_arg(value)
        return bytes(builder.build().dgram)

    def send(port: int) -> None:
        to_port(bone("Hips", *"seventy"), port)
        to_port(bone("Hips", 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0), port)
        to_port(bone("Head", 1e30, float("nan"), 0.0, 0.0, 0.0, 0.0, 1.0), port)
        to_port(bone("Spine", 0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0), port)

    frame = heard("vmc", send, count=3)[-1]
    assert np.all(np.isnan(frame.places.get("head", np.full(3, np.nan))))
    assert set(frame.turns) == {"pelvis"}


@pytest.mark.parametrize(
    "damaged", [b"[" * 30_000, b'{"scene": 1e999}', b"\x04\x22\x4d\x18", b'{"scene": [1]}']
)
def test_a_damaged_datagram_does_not_end_a_stream(damaged: bytes) -> None:
    def send(port: int) -> None:
        to_port(_rokoko(), port)
        to_port(damaged, port)

    assert len(heard("rokoko", send, count=3)) == 3


def test_a_take_that_ends_in_an_error_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bones = VmcBody(person())

    def feed(_take: str, **_: object) -> Iterator[LiveFrame]:
        yield from (bones.frame(number) for number in range(3))
        raise PoiseError("the network is gone")

    monkeypatch.setattr("poise.capture.feeds.open_feed", feed)
    assert main(["perform", "vmc:1", "-o", str(tmp_path / "take.bvh")]) != 0
    assert "the network is gone" in capsys.readouterr().err
    assert len(read(tmp_path / "take.bvh")) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["take.bvh"]


def test_times_that_leap_do_not_fill_memory() -> None:
    bones, recording = VmcBody(person()), BodyRecording()
    for number, seconds in enumerate((0.0, 1.0, 1e11)):
        recording.add(replace(bones.frame(number), seconds=seconds))
    assert len(recording.motion(120.0)) == 3


def test_without_a_whole_body_nothing_is_recorded() -> None:
    with pytest.raises(InvalidValueError, match="no frame with a whole body"):
        BodyRecording().motion(60.0)


# --- Rokoko --------------------------------------------------------------------------------------------------------


def _rokoko(compressed: bool = False) -> bytes:
    joints = {"hip": (0.1, 0.9, 0.2), "leftUpLeg": (0.2, 0.85, 0.2), "rightToe": (0.0, 0.02, 0.3)}
    body = {
        name: {
            "position": dict(zip("xyz", at, strict=True)),
            "rotation": dict(zip("xyzw", (0, 0, 0, 1), strict=True)),
        }
        for name, at in joints.items()
    }
    scene = {"timestamp": 1.5, "actors": [{"name": "Anna", "body": body}], "props": []}
    content = json.dumps({"version": "3,0", "fps": 60, "scene": scene}).encode()
    return b"\x04\x22\x4d\x18" + content if compressed else content


def test_rokoko_gives_the_first_actor_by_roles() -> None:
    def send(port: int) -> None:
        to_port(b"{}", port)
        to_port(_rokoko(), port)

    frame = heard("rokoko", send)[0]
    assert set(frame.places) == {"pelvis", "left_thigh", "right_toes"}
    np.testing.assert_allclose(frame.places["left_thigh"], [-0.2, 0.85, 0.2])
    assert frame.seconds == 1.5


def test_a_compressed_rokoko_stream_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidValueError, match="turn LZ4 off"):
        heard("rokoko", lambda port: to_port(_rokoko(compressed=True), port), count=1)


# --- NatNet --------------------------------------------------------------------------------------------------------


def _text(words: str) -> bytes:
    return words.encode() + b"\0"


class Motive:
    """Answers as Motive does: its version, its names, and frames of one set of markers and one rigid body."""

    def __init__(self, version: tuple[int, int]) -> None:
        self.version, self.stopped = version, False
        self.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.server.bind(("127.0.0.1", 0))
        self.server.settimeout(0.05)
        self.port = self.server.getsockname()[1]

    def run(self) -> None:
        """Until it is stopped."""
        while not self.stopped:
            try:
                data, client = self.server.recvfrom(1024)
            except TimeoutError:
                continue
            kind = struct.unpack_from("<H", data)[0]
            if kind == 0:
                own = b"Motive".ljust(256, b"\0") + bytes([3, 1, 0, 0, *self.version, 0, 0])
                self.server.sendto(self._packet(1, own), client)
            elif kind == 4:
                self.server.sendto(self._packet(5, self.names()), client)
            elif kind == 10:
                self.server.sendto(self._packet(7, self.frame()), client)
        self.server.close()

    def names(self) -> bytes:
        """Two sets and a rigid body; Motive's own set of all markers comes first."""
        everything = struct.pack("<i", 0) + self._sized(_text("all") + struct.pack("<i", 0))
        names = b"".join(_text(name) for name in MARKERS)
        own = struct.pack("<i", 0) + self._sized(_text("Anna") + struct.pack("<i", len(MARKERS)) + names)
        body = _text("Racket") + struct.pack("<ii3f", 7, -1, 0, 0, 0)
        body += struct.pack("<4f", 0, 0, 0, 1) if self.version >= (4, 2) else b""
        body += struct.pack("<i3fi", 1, 0, 0, 0, 0) + (_text("R1") if self.version >= (4, 0) else b"")
        return struct.pack("<i", 3) + everything + own + struct.pack("<i", 1) + self._sized(body)

    def frame(self) -> bytes:
        """The markers, one of them not seen, and the rigid body."""
        points = [*MARKERS.values()]
        every = _text("all") + struct.pack("<i", 1) + struct.pack("<3f", *points[0])
        own = _text("Anna") + struct.pack("<i", 2) + struct.pack("<6f", *points[0], 0.0, 0.0, 0.0)
        body = struct.pack("<i8fH", 7, 1.0, 1.1, 1.2, 0.0, 0.0, 0.6, 0.8, 0.001, 1)
        parts = [(2, every + own), (1, struct.pack("<3f", 9, 9, 9)), (1, body)]
        content = struct.pack("<i", 41)
        for count, part in parts:
            content += struct.pack("<i", count) + self._sized(part)
        return content + struct.pack("<i", 0) + self._sized(b"")  # skeletons; more follows from a real Motive

    def _sized(self, part: bytes) -> bytes:
        return (struct.pack("<i", len(part)) if self.version >= (4, 1) else b"") + part

    @staticmethod
    def _packet(kind: int, content: bytes) -> bytes:
        return struct.pack("<HH", kind, len(content)) + content


@pytest.mark.parametrize("version", [(3, 1), (4, 0), (4, 1), (4, 2)])
def test_natnet_gives_markers_and_rigid_bodies_by_name(version: tuple[int, int]) -> None:
    motive = Motive(version)
    with beside(motive.run):
        feed = open_feed(f"natnet:127.0.0.1:{motive.port}")
        frame = next(feed)
        feed.close()
        motive.stopped = True
    assert set(frame.places) == {"head", "left_hand", "Racket"}
    np.testing.assert_allclose(frame.places["head"], MARKERS["head"], atol=1e-6)
    assert np.isnan(frame.places["left_hand"]).all()
    np.testing.assert_allclose(frame.turns["Racket"], [0.8, 0.0, 0.0, 0.6], atol=1e-6)


def test_an_old_natnet_is_refused() -> None:
    with pytest.raises(PoiseError, match=r"NatNet 2\.9"):
        natnet.read_version(natnet.Packet(bytes(260) + bytes([2, 9, 0, 0])))


# --- QTM -----------------------------------------------------------------------------------------------------------


class Qtm:
    """Speaks QTM's protocol to one client: a greeting, a version, settings, then frames."""

    SETTINGS = (
        "<QTM_Parameters_Ver_1.8><The_3D><AxisUpwards>+Z</AxisUpwards>"
        "<Label><Name>head</Name></Label><Label><Name>left_hand</Name></Label></The_3D></QTM_Parameters_Ver_1.8>"
    )

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]

    def run(self) -> None:
        """One conversation."""
        link, _ = self.server.accept()
        with self.server, link:
            self._say(link, 1, b"QTM RT Interface connected\0")
            assert self._hear(link).lower().startswith(b"version")
            self._say(link, *((0, b"No such version\0") if self.refuses else (1, b"Version set to 1.8\0")))
            if self.refuses:
                return
            assert self._hear(link).lower() == b"getparameters 3d"
            self._say(link, 2, self.SETTINGS.encode() + b"\0")
            assert self._hear(link).lower().startswith(b"streamframes allframes")
            points = struct.pack("<6f", 100.0, 200.0, 1700.0, np.nan, np.nan, np.nan)
            part = struct.pack("<IIIhh", 16 + len(points), 1, 2, 0, 0) + points
            other = struct.pack("<II4s", 12, 3, b"skip")
            packet = struct.pack("<qII", 2_500_000, 1, 2) + other + part
            self._say(link, 3, packet)
            self._say(link, 3, packet)

    @staticmethod
    def _say(link: socket.socket, kind: int, content: bytes) -> None:
        link.sendall(struct.pack("<II", 8 + len(content), kind) + content)

    @staticmethod
    def _hear(link: socket.socket) -> bytes:
        size, _ = struct.unpack("<II", link.recv(8, socket.MSG_WAITALL))
        return link.recv(size - 8, socket.MSG_WAITALL).rstrip(b"\0")


def test_qtm_gives_labelled_markers_in_metres_with_y_up() -> None:
    qtm = Qtm()
    with beside(qtm.run):
        frames = list(open_feed(f"qtm:127.0.0.1:{qtm.port}"))
    assert len(frames) == 2
    np.testing.assert_allclose(frames[0].places["head"], [0.2, 1.7, 0.1], atol=1e-6)
    assert np.isnan(frames[0].places["left_hand"]).all()
    assert frames[0].seconds == 2.5


def test_what_qtm_refuses_is_said_and_nobody_there_too() -> None:
    qtm = Qtm(refuses=True)
    with beside(qtm.run), pytest.raises(PoiseError, match="QTM reports an error: No such version"):
        next(open_feed(f"qtm:127.0.0.1:{qtm.port}"))
    with pytest.raises(PoiseError, match="the host of QTM"):
        next(open_feed(f"qtm:127.0.0.1:{qtm.port}"))


# --- LSL -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_label", [True, False])
def test_lsl_gives_the_markers_that_its_description_names(by_label: bool) -> None:
    pylsl = pytest.importorskip("pylsl")
    name = f"poise-test-{by_label}-{time.time_ns()}"
    info = pylsl.StreamInfo(name, "MoCap", 6, 100, "float32", name)
    channels = info.desc().append_child("channels")
    for marker in MARKERS:
        for axis in "xyz":
            channel = channels.append_child("channel")
            channel.append_child_value("label", f"{marker}.{axis}" if by_label else f"c{axis}")
            channel.append_child_value("unit", "millimeters")
            if not by_label:
                channel.append_child_value("marker", marker)
                channel.append_child_value("type", f"Position{axis.upper()}")
    outlet, done = pylsl.StreamOutlet(info), threading.Event()

    def sending() -> None:
        while not done.wait(0.02):
            outlet.push_sample([1000.0 * value for place in MARKERS.values() for value in place])

    with beside(sending):
        feed = open_feed(f"lsl:{name}")
        frame = next(feed)
        feed.close()
        done.set()
    for marker, place in MARKERS.items():
        np.testing.assert_allclose(frame.places[marker], place, atol=1e-5)


# --- where they are followed ---------------------------------------------------------------------------------------


def test_the_command_records_a_body_and_refuses_an_end_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    skeleton = person()
    bones = VmcBody(skeleton)

    def feed(_take: str, **_: object) -> Iterator[LiveFrame]:
        yield from (bones.frame(number) for number in range(3))
        raise KeyboardInterrupt

    monkeypatch.setattr("poise.capture.feeds.open_feed", feed)
    assert main(["perform", "vmc:1", "-o", str(tmp_path / "take.bvh")]) == 0
    assert len(read(tmp_path / "take.bvh")) == 3
    assert main(["perform", "vmc:1"]) != 0
    assert "name the file to write" in capsys.readouterr().err


class VmcBody:
    """A body in its rest pose that goes up 10 cm a frame."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.pose = Pose.rest(skeleton)

    def frame(self, number: int) -> LiveFrame:
        up = np.array([0.0, 0.1 * number, 0.0])
        places = {role: self.pose.positions[role] + up for role in self.pose.skeleton.roles}
        return LiveFrame(places, dict.fromkeys(places, np.array([1.0, 0.0, 0.0, 0.0])))


@pytest.mark.parametrize("take", ["rokoko:1", "natnet:127.0.0.1", "qtm:127.0.0.1", "lsl:walk"])
def test_a_feed_of_places_alone_is_followed_by_what_comes_with_poise(
    take: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only VMC has the rotations of a whole body, which can be recorded as they come."""

    def set_up(prior: object, *_: object, noise: float, **__: object) -> None:
        raise PoiseError(f"{prior} within {noise}")

    monkeypatch.setattr(setup, "open_prior", lambda library: f"opened {library}")
    monkeypatch.setattr(setup, "follower_of", set_up)
    monkeypatch.setattr("poise.priors.abilities.made_for_performing", lambda _prior: True)
    for options, noise in (([], 0.03), (["--noise", "0.01"], 0.01)):  # its body has other proportions
        assert main(["perform", take, *options]) != 0
        assert f"opened None within {noise}" in capsys.readouterr().err


@pytest.mark.parametrize("turned", [False, True])
def test_a_performance_follows_the_places_or_the_turns_of_a_feed(turned: bool) -> None:
    prior = LocalPrior.learn([act("walk", seconds=2.0, fps=30, seed=1)])
    if turned:
        performance = OrientationPerformance(prior, ("pelvis", "head"), fps=30)
    else:
        performance = setup.set_up(prior, None, markers=markers_of("vmc:1"), fps=30)
    stream, body = Stream(performance), VmcBody(prior.space.skeleton)
    answer = json.loads(stream.take(body.frame(1)))
    assert "joints" in answer
    assert stream.labelled == 1
    if not turned:
        place = stream.frames[-1].pose.positions["left_foot"]
        np.testing.assert_allclose(place, body.frame(1).places["left_foot"], atol=0.02)


# --- trackers ------------------------------------------------------------------------------------------------------


def test_trackers_of_slimevr_come_in_our_world() -> None:
    sender = TrackerSender("slimevr", ("pelvis", "left_foot", "head"))
    place, turn = np.array([0.3, 1.1, -0.4]), rotations.quaternion_from_expmap(np.array([0.3, 1.2, -0.5]))
    frame = heard("slimevr", lambda port: sender.send(np.tile(np.r_[place, turn], (3, 1)), port), count=3)[-1]
    assert set(frame.places) == {"pelvis", "left_foot", "head"}
    for role in frame.places:
        np.testing.assert_allclose(frame.places[role], place, atol=1e-6)
        assert rotations.geodesic_distance(frame.turns[role], turn) < 1e-5


def test_poses_of_openxr_come_in_our_world() -> None:
    sender = TrackerSender("openxr", ("head", "left_hand", "pelvis"))
    place, turn = np.array([0.3, 1.1, -0.4]), rotations.quaternion_from_expmap(np.array([0.3, 1.2, -0.5]))

    def send(port: int) -> None:
        to_port(b'{"head": {"position": 1}}', port)
        sender.send(np.tile(np.r_[place, turn], (3, 1)), port)

    frame = heard("openxr", send, count=3)[-1]
    assert set(frame.places) == {"head", "left_hand", "pelvis"}
    for role in frame.places:
        np.testing.assert_allclose(frame.places[role], place, atol=1e-9)
        assert rotations.geodesic_distance(frame.turns[role], turn) < 1e-6
    assert frame.seconds is not None


def test_trackers_of_vmc_need_no_body() -> None:
    sender = TrackerSender("vmc", ("LHR-1", "LHR-2"))
    value = np.array([0.3, 1.1, -0.4, 1.0, 0.0, 0.0, 0.0])
    for frame in heard("vmc", lambda port: sender.send(np.tile(value, (2, 1)), port), count=3):
        np.testing.assert_allclose(frame.places["LHR-2"], value[:3], atol=1e-6)


# --- what they have in common --------------------------------------------------------------------------------------


def test_feeds_are_told_from_files_and_have_their_addresses() -> None:
    assert is_feed("vmc:39539")
    assert not is_feed("walk.c3d")
    assert not is_feed("C:/walk.c3d")
    assert address("", 5) == ("127.0.0.1", 5)
    assert address("10.0.0.7", 5) == ("10.0.0.7", 5)
    assert address("10.0.0.7:99", 5) == ("10.0.0.7", 99)
    with pytest.raises(InvalidValueError, match="up to 65535"):
        address("70000", 5)


def test_a_body_of_another_size_is_scaled_by_its_legs() -> None:
    skeleton = person()
    pose = Pose.rest(skeleton)
    roles = [role for role in skeleton.roles if "foot" in role or "shin" in role or "thigh" in role]
    places = {role: 2.0 * pose.positions[role] for role in roles} | {"stick": np.ones(3)}
    (frame,) = fitted(iter([LiveFrame(places)]), skeleton)
    np.testing.assert_allclose(frame.places["stick"], 0.5)
    np.testing.assert_allclose(frame.places["left_foot"], pose.positions["left_foot"])


def test_whole_bodies_are_followed_by_roles_and_own_labels_by_a_mapping() -> None:
    assert "left_hand" in (markers_of("vmc:1") or ())
    assert markers_of("natnet:host") is None
