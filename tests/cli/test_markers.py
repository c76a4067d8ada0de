"""`poise markers`: a take in, a motion or a take without gaps out."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.cli import main
from poise.formats import read, write
from poise.motion.virtual_markers import virtual_markers


@pytest.fixture(scope="module")
def take(tmp_path_factory: pytest.TempPathFactory) -> Path:
    markers = virtual_markers(performer.act("walk", performer="kofi", seconds=3.0, fps=30, seed=2))
    points = markers.points.copy()
    points[50:80, [4, 15]] = np.nan
    path = tmp_path_factory.mktemp("take") / "take.c3d"
    write(replace(markers, points=points), path)
    return path


@pytest.mark.slow
def test_solve_writes_a_motion(take: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["markers", "solve", str(take), "-o", str(tmp_path / "take.bvh"), "--uncertainty"]) == 0
    out, err = capsys.readouterr()
    assert "41 of 41 markers by name" in err
    assert "rms_mm" in out
    assert len(read(tmp_path / "take.bvh")) == 90
    deviations = json.loads((tmp_path / "take.uncertainty.json").read_text())["deviation_m"]
    assert all(len(by_frame) == 90 and max(by_frame) < 0.1 for by_frame in deviations.values())


@pytest.mark.slow
def test_fill_writes_a_take_and_a_report(
    take: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled, report = tmp_path / "filled.c3d", tmp_path / "report.png"
    assert main(["markers", "fill", str(take), "-o", str(filled), "--report", str(report), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["filled_points"] == 60
    assert facts["flagged_points"] == 0
    assert np.isfinite(read(filled).points).all()  # type: ignore[union-attr]
    assert report.stat().st_size > 10_000


def test_match_draws_where_the_markers_are(
    take: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    assert main(["markers", "match", str(take), "-o", str(tmp_path / "match.png")]) == 0
    out, err = capsys.readouterr()
    assert "41 of 41 markers by name" in err
    assert "match.png: 41 markers on a body of 1." in out
    with Image.open(tmp_path / "match.png") as picture:
        assert len(picture.resize((90, 30)).getcolors(90 * 30) or ()) > 50
    assert main(["markers", "match", str(take), "-o", str(tmp_path / "match.bvh")]) == 2
    assert "no picture format for the extension '.bvh'" in capsys.readouterr().err


def test_a_wrong_unit_is_one_line(take: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["markers", "solve", str(take), "--units", "m", "-o", str(tmp_path / "x.bvh")]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("poise: the markers are those of a person")
    assert "--units" in error
