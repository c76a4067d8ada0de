"""`poise image`: from a photo and points to a pose and a picture, and mistakes in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from poise.formats import read
from poise.motion.motion import Motion
from poise.priors import model_file
from poise.priors.gaussian import GaussianPrior
from poise.vision.people import models
from poise.vision.sources import VideoSource
from pose2sim import BOTH, SINGLE, recordings

Program = Callable[..., Any]
POINTS = (
    "--point", "head=200,60", "--point", "left_hand=230,150", "--point", "right_hand=170,150",
    "--point", "left_foot=215,260", "--point", "right_foot=185,262",
)  # fmt: skip


@pytest.fixture(scope="module")
def model(walk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    clip = read(walk)
    assert isinstance(clip, Motion)
    path = tmp_path_factory.mktemp("models") / "walk.poise"
    model_file.save(GaussianPrior.learn([clip], clusters=8), path)
    return path


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    Image.new("RGB", (400, 300), (200, 205, 210)).save(tmp_path / "photo.jpg")
    return tmp_path / "photo.jpg"


def test_a_photo_gives_poses_and_a_picture(poise: Program, model: Path, photo: Path, tmp_path: Path) -> None:
    run = poise(
        "image", model, photo, *POINTS, "-o", tmp_path / "pose.glb", "--overlay", tmp_path / "check.png"
    )
    assert run.code == 0, run.err
    assert run.out.startswith("1: points within")
    assert (tmp_path / "pose.glb").exists()
    with Image.open(tmp_path / "check.png") as picture:
        assert picture.height == 640
    told = poise("image", model, photo, *POINTS, "--fov", 45, "--pitch", 5, "--json")
    assert '"alternatives"' in told.out


def test_mistakes_are_told_in_one_line(poise: Program, model: Path, photo: Path, tmp_path: Path) -> None:
    (tmp_path / "cam.toml").write_text(
        "size = [400, 300]\nfov = 40\nposition = [0, 1, 4]\ntarget = [0, 1, 0]\n"
    )
    (tmp_path / "text.jpg").write_text("not a photo")
    for arguments, message in (
        ((photo, "--point", "LeftHnd=1,2"), "did you mean LeftHand"),
        ((photo, "--point", "head=nan,2"), "finite"),
        ((photo, "--point", "head=500,2"), "outside the photo"),
        ((photo, "--point", "head=2,2"), "at least 3 joints"),
        ((tmp_path / "text.jpg", *POINTS), "not a photo"),
        ((photo, *POINTS, "--camera", tmp_path / "cam.toml", "--fov", 40), "leave --fov out"),
        ((tmp_path / "cam.toml", *POINTS), "leave --point and --camera out"),
    ):
        run = poise("image", model, *arguments)
        assert run.code == 2
        assert message in run.err
        assert run.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(not models.available(), reason="the networks that find people: run tools/page.py")
def test_a_real_photo_needs_neither_points_nor_a_model(poise: Program, tmp_path: Path) -> None:
    source = VideoSource(recordings() / SINGLE / "videos" / "cam02.mp4")
    photo, check = tmp_path / "man.png", tmp_path / "check.png"
    Image.fromarray(source.read()[1][::2, ::2, ::-1]).save(photo)
    run = poise("image", photo, "-o", tmp_path / "pose.bvh", "--overlay", check, "--height", 1.7)
    assert run.code == 0, run.err
    assert "a person 1.70 m tall" in run.out
    assert "--point left_hand=" in run.out
    assert read(tmp_path / "pose.bvh").skeleton.height == pytest.approx(1.7, abs=0.02)
    assert check.exists()


@pytest.mark.slow
@pytest.mark.skipif(not models.available(), reason="the networks that find people: run tools/page.py")
def test_photos_that_cannot_be_used_are_refused_with_the_reason(
    poise: Program, photo: Path, tmp_path: Path
) -> None:
    source = VideoSource(recordings() / BOTH / "videos" / "cam01.mp4")
    both = source.read()[1][::3, ::3, ::-1]
    Image.fromarray(both).save(tmp_path / "both.png")
    Image.fromarray(both // 20).save(tmp_path / "dark.png")
    for arguments, words in (
        ((photo,), "no person is found in the photo: show the whole body"),
        ((tmp_path / "dark.png",), "no person is found in the photo: it is too dark (mean brightness "),
        ((tmp_path / "both.png",), "2 people are in the photo: choose one; 1 is at column"),
        ((tmp_path / "both.png", "--person", 3), "there is no person 3 in the photo; 1 is at column"),
    ):
        run = poise("image", *arguments)
        assert run.code == 2
        assert words in run.err


def test_points_without_a_model_are_explained_by_the_universal_prior(
    poise: Program, photo: Path, tmp_path: Path
) -> None:
    run = poise("image", photo, *POINTS, "-o", tmp_path / "pose.bvh")
    assert run.code == 0, run.err
    assert read(tmp_path / "pose.bvh").skeleton.height > 1.0
