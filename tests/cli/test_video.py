"""`poise video` on a real recording, and its refusals."""

import json

import numpy as np
import pytest

import poise
from poise.cli import main
from poise.vision.people import models
from pose2sim import BOTH, SINGLE, recordings

pytestmark = pytest.mark.skipif(
    not models.available(), reason="the networks that find people: run tools/page.sh, install poise[video]"
)


@pytest.mark.slow
def test_two_real_cameras_give_a_motion_a_picture_and_how_sure_it_is(tmp_path, capsys):
    folder = recordings() / SINGLE
    videos = [str(folder / "videos" / f"{name}.mp4") for name in ("cam01", "cam04")]
    out, picture = tmp_path / "walk.bvh", tmp_path / "walk.png"
    cameras = str(folder / "calibration" / "Calib.qca.txt")
    given = ["--cameras", cameras, "--end", "0.1", "-o", str(out), "--picture", str(picture), "--json"]
    assert main(["video", *videos, *given]) == 0
    facts = json.loads(capsys.readouterr().out)
    motion = poise.read(out)
    assert facts["frames"] == len(motion) == 6
    assert 1.5 < facts["height_m"] < 1.85
    assert 0.0 < facts["uncertainty_cm"]["LeftHand"] < 10.0
    head, foot = (np.asarray(motion.positions)[:, motion.skeleton.index(r), 1] for r in ("head", "left_foot"))
    assert np.all(head - foot > 1.1)
    assert picture.stat().st_size > 10_000


def test_refusals_say_what_to_do(capsys):
    folder = recordings() / BOTH / "videos"
    assert main(["video", str(folder / "cam01.mp4"), "--end", "0.05"]) == 2
    assert "2 people are seen: choose one; 1 is at column" in capsys.readouterr().err
    assert main(["video", str(folder / "cam01.mp4"), str(folder / "cam02.mp4")]) == 2
    assert "need the file of their cameras" in capsys.readouterr().err
    assert main(["video", str(folder / "cam01.mp4"), "--start", "2", "--end", "1"]) == 2
    assert "the end must come after the start" in capsys.readouterr().err
