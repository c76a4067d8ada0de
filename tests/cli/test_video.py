"""`poise video` on a real recording, and its refusals."""

import json

import numpy as np
import pytest

import poise
from poise.cli import main
from poise.vision.people import models
from poise.vision.sources import VideoSource, write_video
from pose2sim import BOTH, SINGLE, recordings

pytestmark = pytest.mark.skipif(
    not models.available(), reason="the networks that find people: run tools/page.py, install poise[video]"
)


@pytest.mark.slow
def test_two_real_cameras_give_a_motion_a_picture_and_how_sure_it_is(tmp_path, capsys):
    folder = recordings() / SINGLE
    videos = [str(folder / "videos" / f"{name}.mp4") for name in ("cam01", "cam04")]
    out, picture = tmp_path / "walk.bvh", tmp_path / "walk.png"
    cameras = str(folder / "calibration" / "Calib.qca.txt")
    given = ["--cameras", cameras, "--end", "0.1", "-o", str(out), "--picture", str(picture), "--json"]
    given.append("--uncertainty")
    assert main(["video", *videos, *given]) == 0
    facts = json.loads(capsys.readouterr().out)
    motion = poise.read(out)
    assert facts["frames"] == len(motion) == 6
    assert 1.5 < facts["height_m"] < 1.85
    assert 0.0 < facts["uncertainty_cm"]["LeftHand"] < 10.0
    deviations = json.loads(out.with_suffix(".uncertainty.json").read_text())["deviation_m"]
    assert {len(by_frame) for by_frame in deviations.values()} == {6}
    head, foot = (np.asarray(motion.positions)[:, motion.skeleton.index(r), 1] for r in ("head", "left_foot"))
    assert np.all(head - foot > 1.1)
    assert picture.stat().st_size > 10_000


def test_refusals_say_what_to_do(capsys):
    folder = recordings() / BOTH / "videos"
    assert main(["video", str(folder / "cam01.mp4"), "--end", "0.05"]) == 2
    assert "2 people are seen: choose one; 1 is at column" in capsys.readouterr().err
    assert main(["video", str(folder / "cam01.mp4"), str(folder / "cam02.mp4")]) == 2
    assert "need a camera file" in capsys.readouterr().err
    assert main(["video", str(folder / "cam01.mp4"), "--start", "2", "--end", "1"]) == 2
    assert "the end must come after the start" in capsys.readouterr().err


def first_picture(camera: str, size: tuple[int, int]) -> np.ndarray:
    """The two people of the real take, small."""
    source = VideoSource(recordings() / BOTH / "videos" / f"{camera}.mp4")
    picture = source.read()[1]
    source.close()
    return pytest.importorskip("cv2").resize(picture, size, interpolation=3)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("empty", "no person is found for long enough in 4 pictures: show the whole body"),
        ("dark", "too dark to find a person (mean brightness 3%): more light"),
        ("cut", "the whole picture changes at 0.07 s, as at a cut; use a part with one scene"),
        ("panned", "2 people are seen: choose one"),
    ],
)
def test_films_that_cannot_be_used_are_refused_with_the_reason(what, words, tmp_path, capsys):
    people, other = (first_picture(name, (360, 640)) for name in ("cam01", "cam02"))
    beside = np.ascontiguousarray(np.roll(people, people.shape[1] // 10, axis=1))
    films = {
        "empty": [np.full_like(people, 120)] * 4,
        "dark": [people // 16] * 4,
        "cut": [people, people, other, other],
        "panned": [people, beside, people, beside],
    }
    film = tmp_path / f"{what}.avi"
    write_video(film, films[what], fps=30.0, size=(people.shape[1], people.shape[0]))
    assert main(["video", str(film)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
