"""`poise render`: pictures of motions and of markers, with the options of each kind."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import poise as library
from poise.motion.markers import Markers


def test_a_contact_sheet_has_the_asked_width(poise, walk: Path, tmp_path: Path) -> None:
    path = tmp_path / "new" / "walk.png"
    done = poise("render", walk, "-o", path, "--width", 600, "--poses", 4, "--title", "a walk")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{path}: ")
    with Image.open(path) as image:
        assert image.width == 600


def test_an_animation_lasts_as_long_as_what_was_asked_of_the_motion(
    poise, walk: Path, tmp_path: Path
) -> None:
    path = tmp_path / "walk.gif"
    done = poise("render", walk, "-o", path, "--size", 96, 128, "--fps", 10, "--start", 0.2, "--end", 0.8)
    assert done.code == 0
    with Image.open(path) as image:
        assert image.size == (96, 128)
        assert image.n_frames == 6


def test_what_the_reader_warns_of_is_not_kept_back(poise, walk: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.bvh"
    wrong.write_text(walk.read_text().replace("Frames: 60", "Frames: 61"))
    done = poise("render", wrong, "-o", tmp_path / "wrong.png", "--width", 300, "--poses", 2)
    assert done.code == 0
    assert done.err.startswith("warning: the file declares 61 frames and holds 60")


def test_markers_are_drawn_too(poise, tmp_path: Path) -> None:
    points = np.random.default_rng(0).uniform(0, 1, size=(10, 5, 3))
    take = library.write(Markers(tuple("ABCDE"), points, fps=50.0), tmp_path / "take.trc")
    assert poise("render", take, "-o", tmp_path / "take.png", "--width", 400).code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "walk.jpg"], "no picture format for the extension '.jpg'"),
        (["-o", "walk.png", "--fps", "10"], "no option of contact_sheet, 'fps'"),
        (["-o", "walk.png", "--layout", "spiral"], "no layout 'spiral'"),
        (["-o", "walk.gif", "--poses", "3"], "no option of animate, 'poses'"),
        ([], "requires an argument"),
    ],
)
def test_mistakes_are_one_line(
    poise, walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = poise("render", walk, *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert words in done.err
    assert list(tmp_path.iterdir()) == []
