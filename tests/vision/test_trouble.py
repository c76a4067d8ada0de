"""What goes wrong before cameras: each is told, and the run goes on where it can."""

import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.apps.camera_takes import (
    MORE,
    NINE,
    CameraTake,
    before_cameras,
    film,
    open_cameras,
    perform_take,
    simulator_of,
    what_went_wrong,
)
from poise.capture.cameras import NOISE, CameraPerformance
from poise.capture.performance import Performance
from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.priors.local.prior import LocalPrior
from poise.vision import sources
from poise.vision.blobs import Background
from poise.vision.rig import Rig, load_rig
from poise.vision.simulator import Conditions, Simulator, front_rig
from poise.vision.sources import InStep, Step, open_source, write_video
from poise.vision.tracker import MarkerFinder

cv2 = pytest.importorskip("cv2")
FPS, SIZE = 30.0, (320, 240)
LARGE = 0.022  # metres of a marker's radius: to be seen in small pictures


@pytest.fixture(scope="module")
def sim() -> Simulator:
    """Half a second of boxing, filmed by two small cameras."""
    take = before_cameras(performer.act("box", fps=60, seed=5), fps=FPS, seconds=0.8)
    return simulator_of(take, front_rig(size=SIZE), conditions=Conditions(marker_radius=LARGE))


@pytest.fixture(scope="module")
def performance(sim: Simulator) -> Performance:
    prior = LocalPrior.learn([performer.act("box", seconds=2.0, fps=60, seed=1)])
    return Performance(prior, sim.layout, skeleton=sim.motion.skeleton, fps=FPS, noise=NOISE)


@pytest.fixture(scope="module")
def folder(sim: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filmed")
    film(sim, path, empty=0.3)
    return path


def watcher(sim: Simulator, performance: Performance) -> CameraPerformance:
    rooms = [Background.of_frames(sim.empty_room(camera, 10), fps=FPS) for camera in range(len(sim.rig))]
    performance.reset()
    return CameraPerformance(MarkerFinder(sim.rig, rooms, performance.names, fps=FPS), performance)


def run(
    folder: Path, performance: Performance, *videos: Path, rig: Rig | None = None, **options
) -> CameraTake:
    performance.reset()
    chosen = videos or (folder / "camera1.avi", folder / "camera2.avi")
    return perform_take(
        open_cameras(rig or load_rig(folder / "cams.toml"), chosen), performance, empty=0.3, **options
    )


def moments(seconds: float, start: float) -> list[float]:
    """Times of the pictures of so long."""
    return [start + number / FPS for number in range(round(seconds * FPS))]


@pytest.mark.slow
def test_a_camera_lost_for_five_seconds(sim, performance):
    watching = watcher(sim, performance)
    for number in range(8):
        watching.step([sim.picture(number, camera) for camera in range(2)], number / FPS)
    one = sim.picture(8, 0)
    for at in moments(5.0, 8 / FPS):
        alone = watching.step([one, None], at)
        assert alone.frame is not None
    assert np.nanmedian(np.linalg.norm(alone.frame.markers - sim.truth.points[8], axis=1)) < 0.15
    for number in range(4):
        back = watching.step([sim.picture(9 + number, camera) for camera in range(2)], 5.3 + number / FPS)
    errors = np.linalg.norm(back.moment.sighting.points - sim.truth.points[12], axis=1)
    assert np.sum(np.isfinite(errors)) >= 6
    assert np.nanmax(errors) < 0.03


def test_a_camera_that_sees_nothing_for_seconds_is_told(sim, performance):
    """Its pictures are black, as when somebody stands before it."""
    watching, black = watcher(sim, performance), np.zeros((SIZE[1], SIZE[0], 3), dtype=np.uint8)
    for number in range(4):
        watching.step([sim.picture(number, camera) for camera in range(2)], number / FPS)
    pictures = [sim.picture(4, 0), black]
    watched = [watching.step(pictures, at) for at in moments(2.4, 4 / FPS)]
    assert all(entry.frame is not None for entry in watched)
    notes = what_went_wrong(sim.rig, sim.truth.labels, watched)
    assert "camera2 saw no marker for 2.4 s, from 0.1 s on; the others continued" in notes


def test_a_covered_marker_comes_back_with_its_own_label(sim, performance):
    watching, hand = watcher(sim, performance), sim.truth.labels.index("RFIN")
    for number in range(4):
        seen = watching.step([sim.picture(number, camera) for camera in range(2)], number / FPS)
    assert seen.moment.sighting.is_placed[hand]
    pictures = [sim.picture(4, camera) for camera in range(2)]
    covered = [_covered(sim, picture, camera, hand) for camera, picture in enumerate(pictures)]
    hidden = [watching.step(covered, at) for at in moments(3.0, 4 / FPS)]
    assert not hidden[-1].moment.sighting.is_placed[hand]
    assert all(watched.frame is not None for watched in hidden)
    notes = what_went_wrong(sim.rig, sim.truth.labels, hidden)
    assert any(
        "hidden from all cameras" in note and "RFIN for 3.0 s, from 0.1 s on" in note for note in notes
    )
    back = watching.step(pictures, 4 / FPS + 3.0)
    gap = np.linalg.norm(back.moment.sighting.points[hand] - sim.truth.points[4, hand])
    assert gap < 0.02


def _covered(sim: Simulator, picture: np.ndarray, camera: int, marker: int) -> np.ndarray:
    x, y = np.rint(sim.rig.cameras[camera].project(sim.truth.points[4, marker])).astype(int)
    dark = picture.copy()
    dark[y - 6 : y + 7, x - 6 : x + 7] = (80, 60, 55)
    return dark


def test_a_lamp_in_view_is_no_marker(sim, performance):
    conditions = replace(sim.conditions, lamp=True)
    lit = Simulator(sim.rig, sim.motion, sim.layout, conditions=conditions)
    watching = watcher(lit, performance)
    for number in range(4):
        seen = watching.step([lit.picture(number, camera) for camera in range(2)], number / FPS)
    errors = np.linalg.norm(seen.moment.sighting.points - lit.truth.points[3], axis=1)
    assert np.sum(np.isfinite(errors)) >= 6
    assert np.nanmax(errors) < 0.03
    lamp = np.array([0.85 * SIZE[0], 0.15 * SIZE[1]])
    for blobs in seen.moment.blobs:
        assert np.linalg.norm(blobs.centres - lamp, axis=1).min() > 12


class _Unplugged:
    """A camera whose cable is pulled after some pictures."""

    def __init__(self, source, after: int) -> None:
        self._source, self._left = source, after
        self.name, self.fps, self.size, self.frames = "camera 1", source.fps, source.size, source.frames
        self.place = source.place

    def read(self):
        self._left -= 1
        if self._left < 0:
            raise PoiseError("the camera is gone")
        return self._source.read()

    def reopened(self):
        return self

    def close(self) -> None:
        self._source.close()


def test_an_unplugged_camera_leaves_the_others(folder):
    two = [open_source(folder / "camera1.avi"), _Unplugged(open_source(folder / "camera2.avi"), 12)]
    with InStep(two) as both:
        found: list[Step] = list(both)
    assert len(found) == two[0].frames
    assert found[5].pictures[1] is not None
    assert found[-1].pictures[0] is not None
    assert found[-1].pictures[1] is None
    assert any("camera 1 broke off (the camera is gone)" in note for note in both.notes)


def test_a_take_is_performed_and_recorded_to_be_performed_again(folder, performance, sim, tmp_path):
    take = run(folder, performance, record=tmp_path / "session")
    assert not take.notes
    assert len(take.frames) >= len(sim.motion) - 2  # found within two frames
    again = run(tmp_path / "session", performance)
    assert len(again.frames) == len(take.frames)
    apart = np.linalg.norm(again.frames[-1].markers - take.frames[-1].markers, axis=1)
    assert np.median(apart) < 0.01


@pytest.mark.slow
def test_videos_of_other_lengths_and_rates_are_told_and_performed(folder, performance, tmp_path):
    pictures = [step.pictures[0] for step in InStep([open_source(folder / "camera2.avi")])]
    write_video(tmp_path / "short.avi", pictures[:20], fps=FPS, size=SIZE)
    take = run(folder, performance, folder / "camera1.avi", tmp_path / "short.avi")
    assert any("short.avi ends at" in note for note in take.notes)
    assert take.watched[-1].frame is not None
    write_video(tmp_path / "slow.avi", pictures[::2], fps=FPS / 2, size=SIZE)
    take = run(folder, performance, folder / "camera1.avi", tmp_path / "slow.avi")
    assert any("different rates (camera1.avi 30, slow.avi 15 Hz)" in note for note in take.notes)
    assert len(take.watched) == pytest.approx(0.8 * FPS / 2, abs=1)
    assert take.watched[-1].frame is not None


@pytest.mark.slow
def test_a_video_that_is_cut_off_and_a_broken_image_leave_the_others(folder, performance, tmp_path):
    whole = (folder / "camera2.avi").read_bytes()
    (tmp_path / "cut.avi").write_bytes(whole[: len(whole) * 6 // 10])
    take = run(folder, performance, folder / "camera1.avi", tmp_path / "cut.avi")
    assert any("cut.avi ends at" in note for note in take.notes)
    assert take.watched[-1].frame is not None
    images = tmp_path / "images"
    images.mkdir()
    for number, step in enumerate(InStep([open_source(folder / "camera2.avi")])):
        cv2.imwrite(str(images / f"{number:03}.png"), step.pictures[0])
    (images / "020.png").write_bytes(b"no image")
    take = run(folder, performance, folder / "camera1.avi", images)
    assert any("images broke off" in note and "020.png" in note for note in take.notes)
    assert take.watched[-1].frame is not None
    (images / "000.png").write_bytes(b"no image")
    with pytest.raises(ParseError, match=r"000\.png: not an image"):
        run(folder, performance, folder / "camera1.avi", images)


@pytest.mark.slow
def test_fewer_videos_than_cameras_are_told_and_performed(performance, tmp_path):
    motion = before_cameras(performer.act("box", fps=60, seed=5), fps=FPS, seconds=0.4)
    three = simulator_of(motion, front_rig(size=SIZE, count=3), conditions=Conditions(marker_radius=LARGE))
    film(three, tmp_path, empty=0.3)
    videos = tmp_path / "camera1.avi", tmp_path / "camera2.avi"
    take = run(tmp_path, performance, *videos)
    assert "only 2 of the cameras have a video: camera1, camera2" in take.notes
    assert len(take.frames) >= 10


def test_cameras_that_do_not_answer_are_not_waited_for_long(monkeypatch):
    monkeypatch.setattr(sources, "ANSWERS_WITHIN", 0.5)
    patience, capture = [], cv2.VideoCapture

    def noted(*options):
        patience.append(options[2])
        return capture(*options)

    with socket.create_server(("127.0.0.1", 0)) as silent, monkeypatch.context() as patched:
        patched.setattr(cv2, "VideoCapture", noted)  # OpenCV's own patience is half a minute
        with pytest.raises(
            PoiseError, match=r"video\.mjpg does not answer"
        ):  # it takes the call, and says nothing
            open_source(f"http://127.0.0.1:{silent.getsockname()[1]}/video.mjpg")
    assert patience == [[cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, 500, cv2.CAP_PROP_READ_TIMEOUT_MSEC, 500]]
    with pytest.raises(PoiseError, match="camera 99 does not answer; is it plugged in"):
        open_source("99")


@pytest.mark.slow
def test_pictures_of_another_size_are_scaled_or_left_out(folder, performance):
    twice = load_rig(folder / "cams.toml")
    larger = Rig(tuple(camera.resized((640, 480)) for camera in twice.cameras))
    videos = folder / "camera1.avi", folder / "camera2.avi"
    opened = open_cameras(larger, videos)
    assert any("is scaled" in note for note in opened.notes)
    assert opened.rig.cameras[0].pinhole.focal_length == pytest.approx(twice.cameras[0].pinhole.focal_length)
    take = run(folder, performance, *videos, rig=larger)
    assert any("is scaled" in note for note in take.notes)
    assert take.watched[-1].frame is not None
    wide = Rig((replace(twice.cameras[0], size=(640, 360)), twice.cameras[1]))
    opened = open_cameras(wide, videos)
    assert [camera.name for camera in opened.rig.cameras] == ["camera2"]
    assert any("another aspect ratio" in note for note in opened.notes)
    with pytest.raises(InvalidValueError, match="no usable camera remains"):
        open_cameras(Rig((wide.cameras[0],)), videos[:1])


@pytest.mark.slow
def test_a_calibration_of_other_cameras_is_told(folder, performance):
    swapped = folder / "camera2.avi", folder / "camera1.avi"
    take = run(folder, performance, *swapped)
    assert any("camera file belongs to these cameras" in note for note in take.notes)
    assert len(take.watched) == round(0.8 * FPS)


@pytest.mark.slow
def test_a_flash_puts_videos_in_step(folder, performance, tmp_path):
    for name, late in (("camera1", 0), ("camera2", 4)):
        pictures = [step.pictures[0] for step in InStep([open_source(folder / f"{name}.avi")])]
        lit = [np.clip(pictures[0].astype(int) + 90, 0, 255).astype(np.uint8)]
        frames = [pictures[0]] * (2 + late) + lit + pictures
        write_video(tmp_path / f"{name}.avi", frames, fps=FPS, size=SIZE)
    videos = tmp_path / "camera1.avi", tmp_path / "camera2.avi"
    late = run(folder, performance, *videos)
    told = run(folder, performance, *videos, sync="flash")
    assert any("at one position for all cameras" in note for note in late.notes)
    assert told.notes == ["camera2.avi begins 0.133 s before camera1.avi, by the flash"]
    apart = np.linalg.norm(told.frames[-1].markers - run(folder, performance).frames[-1].markers, axis=1)
    assert np.median(apart) < 0.01
    with pytest.raises(InvalidValueError, match="shows no flash"):
        run(folder, performance, sync="flash")


def test_mistakes_in_a_take_are_told(folder, performance):
    with pytest.raises(InvalidValueError, match="a video for each of the 2 cameras"):
        open_cameras(load_rig(folder / "cams.toml"), [folder / "camera1.avi"] * 3)
    with pytest.raises(InvalidValueError, match="synchronise videos by time, flash, clap, motion"):
        run(folder, performance, sync="whistle")
    with pytest.raises(InvalidValueError, match="live pictures are aligned as they arrive"):
        run(folder, performance, sync="clap", live=True)
    videos = folder / "camera1.avi", folder / "camera2.avi"
    cameras = open_cameras(load_rig(folder / "cams.toml"), videos)
    with pytest.raises(InvalidValueError, match="the videos end within"):
        perform_take(cameras, performance, empty=30.0)


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_other_numbers_of_cameras_follow_a_performer(sim, count):
    names = MORE if count == 1 else NINE
    rig = front_rig(size=(480, 360), count=count)
    other = simulator_of(sim.motion, rig, markers=names, conditions=Conditions(marker_radius=0.016))
    prior = LocalPrior.learn([performer.act("box", seconds=2.0, fps=60, seed=1)])
    performance = Performance(prior, other.layout, skeleton=sim.motion.skeleton, fps=FPS, noise=NOISE)
    watching = watcher(other, performance)
    for number in range(16):
        seen = watching.step([other.picture(number, camera) for camera in range(count)], number / FPS)
    assert seen.frame is not None
    apart = np.linalg.norm(seen.frame.markers - other.truth.points[15], axis=1)
    assert np.median(apart) < (0.04 if count == 1 else 0.02)
    assert np.sum(seen.moment.sighting.is_seen) >= 0.7 * len(names)
