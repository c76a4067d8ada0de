"""A body that follows a performer live: from markers over UDP and from videos, with latency and honest words."""

import gc
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest

from poise.apps.camera_takes import NINE, before_cameras, film, simulator_of
from poise.apps.streaming import VmcSender
from poise.capture import setup
from poise.capture.matching import WITH_HEAD, marker_layout
from poise.capture.performance import Performance
from poise.errors import PoiseError
from poise.formats import write
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.motion.virtual_markers import virtual_markers
from poise.performer import act
from poise.priors.local.prior import LocalPrior
from poise.skeleton.pose_space import Handle
from poise.studio import messages as said
from poise.studio.autosave import Autosave
from poise.studio.models import ModelStore
from poise.studio.session import Session
from poise.studio.solving import points_of
from poise.studio.uploads import Uploads
from poise.vision.people import models as networks
from poise.vision.sources import VideoSource
from pose2sim import SINGLE, recordings, webcam_video
from running_studio import PATIENCE, Heard, kept, wait_until


@pytest.fixture(scope="module")
def walk() -> Motion:
    return act("walk", seconds=2.0, fps=30)


@pytest.fixture(scope="module")
def prior(walk: Motion) -> LocalPrior:
    return LocalPrior.learn([walk])


@pytest.fixture
def stage(prior: LocalPrior, priors: dict[str, object]) -> Iterator[Session]:
    models = ModelStore()
    models.add(priors["reach"], "reach")
    models.add(prior, "steps")
    uploads, autosave = Uploads(), Autosave()
    session = Session(models, uploads, autosave)
    yield session
    session.close()
    autosave.close()
    uploads.close()


class Tracker:
    """A performer's markers on their way to a port of this machine."""

    def __init__(self, walk: Motion) -> None:
        layout = marker_layout(walk.skeleton, WITH_HEAD, samples=walk.rotations)
        self.markers: Markers = virtual_markers(walk, layout)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def send(self, frame: int, **others: object) -> None:
        places = dict(zip(self.markers.labels, self.markers.points[frame].tolist(), strict=True))
        self.send_text(json.dumps(places | {"time": frame / self.markers.fps} | others))

    def send_text(self, text: str) -> None:
        self._socket.sendto(text.encode(), ("127.0.0.1", self.port))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def tracker(walk: Motion) -> Iterator[Tracker]:
    tracker = Tracker(walk)
    yield tracker
    tracker.close()


def following(frames: int) -> Callable[[said.Performing], bool]:
    return lambda shown: shown.step == "following" and shown.frames >= frames


def test_the_body_follows_markers_over_udp(stage: Session, tracker: Tracker, walk: Motion) -> None:
    heard, start = Heard(stage), time.perf_counter()
    begun = stage.answer(said.Perform(model="steps", stream=str(tracker.port)))
    assert begun[-1].step == "preparing"
    assert stage.state.model == "steps"
    heard.wait_for(said.Performing, lambda shown: shown.step == "waiting")
    for frame in range(10):
        tracker.send(frame)
        shown = heard.wait_for(said.Performing, following(frame + 1))
    assert shown.markers == list(WITH_HEAD)
    places = np.frombuffer(shown.places, "<f4").reshape(-1, 3)
    np.testing.assert_allclose(places, tracker.markers.points[9], atol=0.01)
    assert 0.0 < shown.latency <= shown.slowest < 1000.0 * (time.perf_counter() - start)  # milliseconds
    np.testing.assert_allclose(stage.state.pose.root_position, walk[9].root_position, atol=0.05)
    with pytest.raises(PoiseError, match="is running"):
        stage.answer(said.Perform(model="steps", stream="0"))
    stage.answer(said.StopPerforming())
    heard.wait_for(said.Performing, lambda shown: shown.step == "over")
    assert stage.motion is not None
    assert len(stage.motion) == 10
    assert stage.state.timeline.clip == "performance"
    stage.answer(said.Undo())
    assert stage.state.timeline.clip is None


def test_nothing_of_a_performance_stays_in_memory_after_its_end(
    stage: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, set_up = list[ref[Performance]](), setup.set_up

    def seen(*given: Any, **options: Any) -> Performance:
        performance = set_up(*given, **options)
        made.append(ref(performance))
        return performance

    monkeypatch.setattr(setup, "set_up", seen)
    heard = Heard(stage)
    stage.answer(said.Perform(model="steps", stream="0"))
    heard.wait_for(said.Performing, lambda shown: shown.step == "waiting")
    stage.answer(said.StopPerforming())
    heard.wait_for(said.Performing, lambda shown: shown.step == "over")
    with pytest.raises(PoiseError, match="no performance to stop"):
        stage.answer(said.StopPerforming())
    wait_until(lambda: gc.collect() >= 0 and made[0]() is None)


def test_the_body_follows_a_body_that_comes_by_vmc(stage: Session, tracker: Tracker, walk: Motion) -> None:
    heard, sender = Heard(stage), VmcSender(walk.skeleton, port=tracker.port, samples=walk.rotations)
    stage.answer(said.Perform(model="steps", stream=f"vmc:{tracker.port}"))
    heard.wait_for(said.Performing, lambda shown: shown.step == "waiting")
    for frame in range(6):
        sender.send(walk[frame], frame / walk.fps)
    heard.wait_for(said.Performing, following(5))
    sender.close()
    np.testing.assert_allclose(stage.state.pose.root_position, walk[5].root_position, atol=0.05)
    stage.answer(said.StopPerforming())
    heard.wait_for(said.Performing, lambda shown: shown.step == "over")


def test_a_performance_that_was_killed_is_brought_back(stage: Session, tracker: Tracker) -> None:
    heard = Heard(stage)
    stage.answer(said.SetLookAt(target=(0.0, 1.5, 2.0)))
    stage.answer(said.Perform(model="steps", stream=str(tracker.port)))
    heard.wait_for(said.Performing, lambda shown: shown.step == "waiting")
    for frame in range(10):
        tracker.send(frame)
        heard.wait_for(said.Performing, following(frame + 1))
    stage.autosave.flush()
    stage.close()  # without a word to the timeline, as kill -9 would
    for thread in threading.enumerate():
        if thread.name == "poise-performance":
            thread.join(PATIENCE)
    again = Session(stage.models, stage.uploads, Autosave(), token=stage.token)
    assert again.restore()
    answer = again.greet(resumed=True)
    assert again.state.timeline.clip == "performance that was cut off"
    assert [message.frames for message in answer if isinstance(message, said.MotionRange)] == [10]
    assert again.motion is not None
    assert len(again.motion) == 10
    third = Session(stage.models, stage.uploads, Autosave(), token=stage.token)
    assert third.restore()
    third.greet(resumed=True)
    assert third.history.undos == 0  # it is part of the scene now


def test_what_cannot_be_read_is_said_and_the_performance_goes_on(stage: Session, tracker: Tracker) -> None:
    heard = Heard(stage)
    stage.answer(said.Perform(model="steps", stream=str(tracker.port)))
    heard.wait_for(said.Performing, lambda shown: shown.step == "waiting")
    tracker.send_text("{nonsense")
    heard.wait_for(said.Performing, lambda shown: any("could not be read" in note for note in shown.notes))
    for number in range(3):
        tracker.send_text(json.dumps({"LWRIST": [0.0, 1.0, float(number)]}))
        heard.wait_for(said.Performing, following(number + 1))
    tracker.send_text(json.dumps({"LWRIST": [0.0, 1.0, 0.0]}))
    heard.wait_for(said.Performing, lambda shown: any("none of these labels" in note for note in shown.notes))
    tracker.send(0, forehead=None)
    shown = heard.wait_for(said.Performing, following(5))
    assert np.isnan(np.frombuffer(shown.places, "<f4").reshape(-1, 3)).any(axis=1).sum() == 1


def test_a_port_that_is_taken_is_said(stage: Session) -> None:
    heard = Heard(stage)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        stage.answer(said.Perform(model="steps", stream=str(other.getsockname()[1])))
        assert "cannot listen on 127.0.0.1" in heard.refusal().words
    assert stage.motion is None


@pytest.mark.slow
def test_the_body_follows_videos(stage: Session, walk: Motion, tmp_path: Path) -> None:
    """Of somebody with coloured hands, by cameras that were started one after the other."""
    pytest.importorskip("cv2")
    from poise.vision.colours import Colours
    from poise.vision.simulator import Conditions, front_rig

    take = before_cameras(walk, fps=30.0, seconds=0.7)
    hue = "LFIN=red,RFIN=green"
    conditions = Conditions(marker_radius=0.022, marker_colours=Colours.from_text(hue).lights(NINE))
    simulator = simulator_of(take, front_rig(size=(320, 240)), conditions=conditions)
    filmed = film(simulator, tmp_path / "filmed", late=0.2)
    videos = [kept(stage, video) for video in filmed.videos]
    heard = Heard(stage)
    rig = kept(stage, filmed.cameras)
    stage.answer(said.Perform(model="steps", videos=videos, rig=rig, sync="motion", hue=hue))
    over = heard.wait_for(said.Performing, lambda shown: shown.step == "over")
    assert over.frames >= 15
    assert any("begins 0.20" in note for note in over.notes)
    assert over.latency is not None
    assert stage.motion is not None
    hand = [points_of(motion[-1], [Handle("left_hand")])[0] for motion in (stage.motion, take)]
    assert np.linalg.norm(hand[0] - hand[1]) < 0.1


def test_a_camera_that_is_not_there_is_said(stage: Session, tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    from poise.vision.rig import save_rig
    from poise.vision.simulator import front_rig

    save_rig(front_rig(size=(320, 240)), tmp_path / "cams.toml")
    heard = Heard(stage)
    stage.answer(said.Perform(model="steps", cameras=[60, 61], rig=kept(stage, tmp_path / "cams.toml")))
    assert "camera 60 does not answer" in heard.refusal().words


def test_a_local_model_is_learned_in_the_page_and_followed_with(
    stage: Session, walk: Motion, tmp_path: Path
) -> None:
    heard = Heard(stage)
    write(walk, tmp_path / "mine.bvh")
    stage.answer(said.Learn(name="mine", kind="local", uploads=[kept(stage, tmp_path / "mine.bvh")]))
    models = heard.wait_for(said.Models)
    assert [model.kind for model in models.models if model.name == "mine"] == ["local"]
    stage.answer(said.Perform(model="mine", stream="0"))
    shown = heard.wait_for(said.Performing, lambda shown: shown.step == "waiting")
    assert shown.markers == list(WITH_HEAD)
    stage.answer(said.StopPerforming())
    heard.wait_for(said.Performing, lambda shown: shown.step == "over")
    assert stage.motion is None


def test_any_model_follows_and_says_what_it_cannot_meet(stage: Session, tracker: Tracker) -> None:
    heard = Heard(stage)
    stage.answer(said.Perform(model="reach", stream=str(tracker.port)))
    shown = heard.wait_for(said.Performing, lambda shown: shown.step == "waiting")
    assert "kind local follows better" in shown.notes[0]
    tracker.send(0)
    tracker.send(1, left_hand=[0.0, 9.0, 0.0])
    shown = heard.wait_for(said.Performing, lambda shown: "the worst is left_hand" in shown.notes[-1])
    assert len(shown.notes) == 2
    stage.answer(said.StopPerforming())
    heard.wait_for(said.Performing, lambda shown: shown.step == "over")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (said.Perform(model="steps"), "one of them"),
        (said.Perform(model="steps", stream="9000", cameras=[0]), "one of them"),
        (said.Perform(model="steps", stream="here"), "a port must be a number"),
        (said.Perform(model="steps", cameras=[0]), "need the file of their cameras"),
        (said.Perform(model="steps", videos=["nothing"], rig="nothing"), "uploaded file"),
        (said.StopPerforming(), "no performance to stop"),
    ],
)
def test_mistakes_are_explained(stage: Session, message: said.ClientMessage, why: str) -> None:
    with pytest.raises(PoiseError, match=why):
        stage.answer(message)


@pytest.mark.slow
@pytest.mark.skipif(not networks.available(), reason="the networks that find people: run tools/page.py")
def test_pictures_of_the_page_drive_the_body(stage: Session, tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    clip = webcam_video(recordings() / SINGLE / "videos" / "cam02.mp4", tmp_path / "cam.avi", seconds=4.0)
    source, heard = VideoSource(clip), Heard(stage)
    stage.answer(said.WebcamPicture(jpeg=b"", taken=0.0))  # nobody wants it
    stage.answer(said.Perform(model="reach", webcam=True))
    webcam = stage._handlers[said.WebcamPicture].__self__._webcam
    heard.wait_for(said.Performing, lambda shown: shown.step == "waiting")

    def performed() -> list[said.Performing]:
        return [one for one in heard.messages if isinstance(one, said.Performing) and one.step == "following"]

    while len(performed()) < 4 and (read := source.read()) is not None:
        jpeg = cv2.imencode(".jpg", read[1])[1].tobytes()
        stage.answer(said.WebcamPicture(jpeg=jpeg, taken=1000.0 * read[0]))
        while webcam._newest is not None:  # as slow as this machine is
            time.sleep(0.005)
    shown = performed()[-1]
    assert 1000.0 <= (shown.taken or 0.0) <= 4000.0
    assert shown.notes == []
    stage.answer(said.StopPerforming())
    over = heard.wait_for(said.Performing, lambda shown: shown.step == "over")
    assert stage.motion is not None
    assert len(stage.motion) == over.frames >= 4
    assert stage.motion.skeleton.same_topology(stage.models["reach"].prior.space.skeleton)


def test_what_is_not_a_picture_is_refused(stage: Session) -> None:
    if not networks.available():
        pytest.skip("the networks that find people: run tools/page.py")
    heard = Heard(stage)
    stage.answer(said.Perform(model="reach", webcam=True))
    heard.wait_for(said.Performing, lambda shown: shown.step == "waiting")
    stage.answer(said.WebcamPicture(jpeg=b"not a picture", taken=0.0))
    assert "expected JPEG" in heard.refusal().words
