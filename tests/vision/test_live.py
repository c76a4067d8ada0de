"""Live cameras: pictures over the network as they come, late ones dropped, one unplugged in the middle."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.apps.camera_takes import before_cameras, film, open_cameras, perform_take, simulator_of
from poise.apps.warm_up import KERNELS, load
from poise.capture.cameras import NOISE
from poise.capture.performance import Performance
from poise.errors import PoiseError
from poise.formats import write
from poise.priors.local.prior import LocalPrior
from poise.vision import live
from poise.vision.live import LiveStep
from poise.vision.rig import load_rig
from poise.vision.simulator import Conditions, front_rig
from poise.vision.sources import open_source
from taking_turns import PATIENCE, in_turn

cv2 = pytest.importorskip("cv2")
FPS, SIZE = 10.0, (320, 240)
SECONDS = 2.4


@dataclass
class Camera:
    """A webcam with a web address: serves a video as Motion JPEG."""

    pictures: list[bytes]
    stops_after: int | None = None
    _server: ThreadingHTTPServer = field(init=False)

    def __enter__(self) -> str:
        camera = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=picture")
                self.end_headers()
                for picture in camera.pictures[: camera.stops_after]:
                    head = f"--picture\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n\r\n"
                    self.wfile.write(head.encode() + picture + b"\r\n")

            def log_message(self, *_words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}/video.mjpg"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("live")
    take = before_cameras(performer.act("box", fps=60, seed=5), fps=FPS, seconds=SECONDS)
    sim = simulator_of(take, front_rig(size=SIZE), conditions=Conditions(marker_radius=0.022))
    film(sim, path, empty=0.6)
    return path


@pytest.fixture(scope="module")
def performance() -> Performance:
    take = before_cameras(performer.act("box", fps=60, seed=5), fps=FPS, seconds=SECONDS)
    layout = simulator_of(take, front_rig(size=SIZE)).layout
    prior = LocalPrior.learn([performer.act("box", seconds=2.0, fps=60, seed=1)])
    return Performance(prior, layout, skeleton=take.skeleton, fps=FPS, noise=NOISE)


def jpegs(path: Path) -> list[bytes]:
    source, found = open_source(path), []
    while (entry := source.read()) is not None:
        found.append(cv2.imencode(".jpg", entry[1], [cv2.IMWRITE_JPEG_QUALITY, 97])[1].tobytes())
    return found


@pytest.fixture
def cameras(folder: Path) -> Iterator[list[str]]:
    """Two, the second of which is unplugged after two thirds of the take."""
    first, second = (jpegs(folder / f"camera{number}.avi") for number in (1, 2))
    with Camera(first) as left, Camera(second, stops_after=20) as right:
        yield [left, right]


@pytest.fixture(scope="module")
def compiled() -> None:
    """Cameras do not wait for a compiler."""
    for task in ("cameras", "performances"):
        load(KERNELS[task])()


@pytest.mark.usefixtures("compiled")
def test_cameras_on_the_network_drive_a_body_and_one_may_be_unplugged(
    folder, performance, cameras, monkeypatch
):
    answered = []
    in_turn(monkeypatch, pause=1 / FPS)
    performance.reset()
    opened = open_cameras(load_rig(folder / "cams.toml"), cameras)
    take = perform_take(opened, performance, empty=0.4, live=True, answer=answered.append)
    assert len(take.frames) >= 5
    assert [one.time for one in answered] == [one.time for one in take.watched]
    assert any("gives no more pictures" in note for note in take.notes)
    both = [one for one in answered if all(len(blobs) for blobs in one.moment.blobs)]
    alone = [one for one in answered if len(one.moment.blobs[0]) and not len(one.moment.blobs[1])]
    assert len(both) >= 4
    assert alone
    assert all(one.frame is not None for one in alone)
    assert all(0 < one.vision_seconds <= one.seconds for one in answered)


class _Fast:
    """A camera of pictures that are numbered by their light."""

    name, place, fps, size, frames = "fast", 0, 100.0, (8, 6), 0

    def __init__(self, count: int) -> None:
        self._next, self._count = 0, count

    def read(self):
        self._next += 1
        if self._next > self._count:
            raise PoiseError("the camera is gone")
        return self._next / 100, np.full((6, 8, 3), self._next, dtype=np.uint8)

    def reopened(self):
        return self

    def close(self) -> None:
        pass


class _Bursts(_Fast):
    """Gives its first picture at once, and more when it is let."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self._asked, self._let = threading.Semaphore(0), threading.Semaphore(1)

    def read(self):
        self._asked.release(1 if self._next < self._count else 100)  # the last time it is asked
        self._let.acquire()
        return super().read()

    def give(self, count: int) -> None:
        """So many pictures; returns when the last of them has arrived."""
        for _ in range(count):
            self._asked.acquire()
            self._let.release()
        self._asked.acquire()
        self._asked.release()


def test_late_pictures_are_dropped_and_counted():
    camera = _Bursts(60)
    with LiveStep([camera]) as steps:
        lights = []
        for step in steps:
            lights.append(int(step.pictures[0][0, 0, 0]))
            camera.give(6)
    assert lights == [*range(1, 60, 6), 60]  # always the newest
    assert steps.dropped + len(lights) == 60
    assert any("came faster than poses" in note for note in steps.notes)
    assert any("fast broke off (the camera is gone)" in note for note in steps.notes)


class _Silent(_Fast):
    """Gives one picture and then nothing until the other has given a hundred, as a camera that hangs."""

    name = "silent"

    def __init__(self, count: int, other: _Fast) -> None:
        super().__init__(count)
        self._other = other

    def read(self):
        while self._next == 1 and self._other._next < 100:
            time.sleep(0.001)
        return super().read()


class _Hanging(_Fast):
    """Hangs after a few pictures; given back while it is read, it would take the process along."""

    name = "hanging"

    def __init__(self) -> None:
        super().__init__(100)
        self.hangs, self.go_on, self.closed = threading.Event(), threading.Event(), threading.Event()
        self.is_read, self.closed_by = False, ""

    def read(self):
        self.is_read = True
        if self._next >= 3:
            self.hangs.set()
            self.go_on.wait(PATIENCE)
        found = super().read()
        self.is_read = False
        return found

    def close(self) -> None:
        assert not self.is_read
        self.closed_by = threading.current_thread().name
        self.closed.set()


def test_a_camera_that_hangs_is_not_given_back_while_it_is_read(monkeypatch: pytest.MonkeyPatch):
    in_turn(monkeypatch, silent=0.1)
    monkeypatch.setattr(live, "HANGS", 0.1)
    camera = _Hanging()
    with LiveStep([_Fast(10**9), camera]) as steps:
        for step in steps:
            if step.pictures[1] is None and camera.hangs.is_set():
                break
    assert camera.closed_by == ""
    assert any("hanging does not respond" in note for note in steps.notes)
    camera.go_on.set()
    assert camera.closed.wait(PATIENCE)
    assert camera.closed_by == "hanging"


def test_the_others_do_not_wait_for_a_camera_that_is_silent(monkeypatch: pytest.MonkeyPatch):
    in_turn(monkeypatch, silent=0.1)
    fast = _Fast(120)
    with LiveStep([fast, _Silent(2, fast)]) as steps:
        found = list(steps)
    assert sum(step.pictures[1] is None and step.pictures[0] is not None for step in found) >= 20
    assert any("silent is silent; the others continue" in note for note in steps.notes)


@pytest.mark.slow
def test_the_command_prints_a_line_per_pose_and_sends_it(folder, tmp_path, capsys, monkeypatch):
    import socket

    from poise.cli import main

    write(performer.act("box", seconds=2.0, fps=60, seed=1), tmp_path / "box.bvh")
    model = str(tmp_path / "box.poise")
    assert main(["learn", model, "--kind", "local", str(tmp_path / "box.bvh")]) == 0
    capsys.readouterr()
    in_turn(monkeypatch, pause=1 / FPS)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(PATIENCE)
        videos = [word for number in (1, 2) for word in ("--video", str(folder / f"camera{number}.avi"))]
        options = ["--cameras", str(folder / "cams.toml"), "--live", "--empty", "0.4"]
        address = f"127.0.0.1:{receiver.getsockname()[1]}"
        assert main(["perform", model, *videos, *options, "--to", address]) == 0
        assert b"/VMC/Ext/Bone/Pos" in receiver.recv(65536)
    said = capsys.readouterr()
    poses = [json.loads(line) for line in said.out.splitlines()]
    assert len(poses) >= 4
    assert len(poses[0]["root"]) == 7
    assert all(pose["ms"] > 0 for pose in poses)
    assert [pose["time"] for pose in poses] == sorted(pose["time"] for pose in poses)
    assert "latency:" in said.err
