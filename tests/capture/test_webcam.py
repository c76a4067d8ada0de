"""`poise perform --webcam`: a real video played as if it were a camera, and what is said when there is none."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.capture.performance import PerformedFrame
from poise.capture.webcam import (
    NOBODY,
    TOO_DARK,
    LiveBody,
    WebcamPerformance,
    WebcamTake,
    perform_webcam,
    rehearse,
)
from poise.cli import main
from poise.errors import InvalidValueError
from poise.priors.gaussian import GaussianPrior
from poise.solvers.solution import Status
from poise.vision import sources
from poise.vision.people import models
from pose2sim import SINGLE, recordings, webcam_video
from taking_turns import in_turn

cv2 = pytest.importorskip("cv2")
needs_networks = pytest.mark.skipif(
    not models.available(), reason="the networks that find people: run tools/page.py, install poise[video]"
)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return webcam_video(
        recordings() / SINGLE / "videos" / "cam02.mp4",
        tmp_path_factory.mktemp("webcam") / "cam.avi",
        seconds=3.5,
    )


@pytest.fixture(scope="module")
def bodies(video: Path) -> list[PerformedFrame]:
    """Every third picture of the first three seconds, each awaited, however slow this machine is."""
    performance, source = WebcamPerformance(), sources.open_source(video)
    pictures = [source.read() for _ in range(90)][::3]
    return [body for at, picture in pictures if (body := performance.step(picture, at)) is not None]


@needs_networks
def test_a_real_video_gives_bodies_that_stand_from_the_first(bodies: list[PerformedFrame]) -> None:
    heights = np.array(
        [[body.positions[role][1] for role in ("head", "left_foot", "right_foot")] for body in bodies]
    )
    lowest = heights[:, 1:].min(axis=1)
    assert len(bodies) >= 15
    assert np.all(heights[:, 0] - lowest > 1.0)
    assert lowest[0] < 0.12


@pytest.mark.slow
@needs_networks
@pytest.mark.usefixtures("bodies")  # compiles what the first body would wait for
def test_a_webcam_is_performed_live_and_recorded(video: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    in_turn(monkeypatch, pause=1 / 30)
    out, session = tmp_path / "take.bvh", tmp_path / "session"
    assert main(["perform", "--webcam", str(video), "-o", str(out), "--live", "--record", str(session)]) == 0
    said = capsys.readouterr()
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert len(lines) >= 3
    assert len(poise.read(out)) >= 3
    assert re.search(r"latency: .* ms a frame", said.err)
    assert re.search(r"[\d.]+ a second; work per", said.err)
    assert not list(tmp_path.glob("*.journal"))
    assert cv2.VideoCapture(str(session / "webcam.avi")).get(cv2.CAP_PROP_FRAME_COUNT) > len(lines)


@needs_networks
def test_empty_and_dark_rooms_are_said_apart() -> None:
    performance = WebcamPerformance()
    assert performance.step(np.full((240, 320, 3), 128, np.uint8), 0.0) is None
    assert performance.doing == NOBODY
    assert performance.step(np.full((240, 320, 3), 4, np.uint8), 0.1) is None
    assert performance.doing == TOO_DARK


def test_a_camera_that_cannot_be_used_says_why(monkeypatch, capsys, tmp_path) -> None:
    assert main(["perform", "--webcam", "57"]) == 2
    assert "camera 57 does not answer; is it plugged in" in capsys.readouterr().err
    device = tmp_path / "video57"
    device.touch()
    monkeypatch.setattr(
        sources, "Path", lambda place: device if str(place).startswith("/dev/") else Path(place)
    )
    monkeypatch.setattr(sources.sys, "platform", "linux")
    assert "another program uses it" in sources._why_not(57)
    monkeypatch.setattr(sources.os, "access", lambda *_: False)
    assert "permission for" in sources._why_not(57)


def test_one_webcam_or_a_library_must_be_given(capsys) -> None:
    assert main(["perform"]) == 2
    assert "--webcam alone" in capsys.readouterr().err
    assert main(["perform", "--webcam", "0", "1"]) == 2
    assert "one webcam is followed; got 0, 1" in capsys.readouterr().err


def test_a_take_keeps_its_pace_where_pictures_came_unevenly(walk) -> None:
    space = GaussianPrior.learn([walk]).space
    poses = space.q_from_frames(walk.root_positions, walk.rotations)
    times = [0.0, 0.1, 0.2, 0.7, 0.8]
    bodies = [
        LiveBody(
            PerformedFrame(
                q, space, tuple, Status.REACHED, 1, 0.0, markers=np.empty((0, 3)), seen=np.empty(0, bool)
            ),
            at,
            0.05,
        )
        for q, at in zip(poses, times, strict=False)
    ]
    motion = WebcamTake(bodies, doing="following").motion()
    assert motion.fps == 10.0
    assert len(motion) == 9
    held = [0, 1, 2, 2, 2, 2, 2, 3, 4]
    np.testing.assert_allclose(motion.root_positions, np.asarray(walk.root_positions)[held], atol=1e-9)
    assert (
        WebcamTake(bodies, doing="following").status
        == "following: 5 bodies a second, 50 ms from picture to pose"
    )


@pytest.fixture(scope="module")
def walk() -> poise.Motion:
    return poise.performer.act("walk", seconds=1.0, fps=10, seed=1)


def test_a_rehearsal_measures_and_follows_so_that_nothing_is_left_to_compile() -> None:
    last = rehearse()
    assert last is not None
    assert 1.2 < last.positions["head"][1] - last.positions["left_foot"][1] < 1.9


def test_the_rehearsal_comes_before_the_camera_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Rehearsing(WebcamPerformance):
        def __post_init__(self) -> None:
            """No networks are needed to rehearse."""

        def rehearse(self) -> None:
            done.append("rehearsed")

    def opened(place: str) -> None:
        done.append(f"opened {place}")
        raise InvalidValueError("no camera")

    monkeypatch.setattr("poise.capture.webcam.open_source", opened)
    with pytest.raises(InvalidValueError, match="no camera"):
        perform_webcam("0", Rehearsing(_finder=None), status=done.append)  # type: ignore[arg-type]
    assert [one for one in done if one in ("rehearsed", "opened 0")] == ["rehearsed", "opened 0"]
    assert any("compiles" in one for one in done[: done.index("rehearsed")])
