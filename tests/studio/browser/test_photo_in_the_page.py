"""Points in a photo: the body follows them, and poses that fit are offered."""

import math
from pathlib import Path

import pytest
from PIL import Image

from poise.vision.people import models
from poise.vision.sources import VideoSource
from pose2sim import SINGLE, recordings
from studio_page import Point, StudioPage

SIDE = 480  # pixels
ROLES = ("head", "left_hand", "right_hand", "left_foot")


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    Image.new("RGB", (SIDE, SIDE), "white").save(path)
    return path


def test_the_body_follows_four_points(studio: StudioPage, photo: Path) -> None:
    points = as_photographed(studio)
    studio.work_in("Photo")
    studio.page.get_by_label("Open a picture").set_input_files(photo)
    studio.wait("window.poise.state.scene.value.photo")
    for number, (role, pixel) in enumerate(points.items(), start=1):
        studio.page.get_by_role("button", name=role.replace("_", " "), exact=True).click()
        studio.page.mouse.click(*studio.on_photo(pixel, side=SIDE))
        studio.wait(f"window.poise.state.scene.value.photo.points.length === {number}")
    studio.wait("window.poise.state.photoPixels.value")
    roles = [joint["role"] for joint in studio.ask("state.body.value.joints")]

    def farthest() -> float:
        pixels = studio.ask("[...state.photoPixels.value]")
        places = {role: 2 * roles.index(role) for role in points}
        return max(math.dist(pixels[at : at + 2], points[role]) for role, at in places.items())

    studio.until(lambda: farthest() < 10, "the body to be at all four points")
    studio.wait("window.poise.state.alternatives.value.length >= 1")  # looked for in the background


@pytest.mark.skipif(not models.available(), reason="the networks that find people: run tools/page.py")
def test_the_person_in_a_picture_is_found_without_a_click(studio: StudioPage, tmp_path: Path) -> None:
    source = VideoSource(recordings() / SINGLE / "videos" / "cam02.mp4")
    Image.fromarray(source.read()[1][::2, ::2, ::-1]).save(tmp_path / "man.png")
    studio.work_in("Photo")
    studio.page.get_by_label("Open a picture").set_input_files(tmp_path / "man.png")
    studio.wait("window.poise.state.scene.value.photo?.points.length >= 10")
    studio.wait("window.poise.state.alternatives.value.length >= 1")
    points = studio.ask("state.scene.value.photo.points")
    head = next(point["pixel"] for point in points if point["joint"] == "Head")
    assert math.dist(head, (270, 245)) < 40  # where his head is


def as_photographed(studio: StudioPage) -> dict[str, Point]:
    """Where the stage shows a pose that the model knows well: the middle of its style's space."""
    studio.wait("window.poise.state.latentMap.value")
    studio.page.get_by_role("switch", name="Keep handles where they are").uncheck(force=True)
    box = studio.page.get_by_label("Style space: drag").bounding_box()
    assert box is not None
    studio.drag((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2), (5, 5))
    studio.settled()
    seen = {role: studio.ask(f"stage.project({list(studio.joint(role))})") for role in ROLES}
    width, height = studio.ask("[stage.canvas.clientWidth, stage.canvas.clientHeight]")
    return {
        role: (SIDE / 2 + (x - width / 2) * SIDE / height, y * SIDE / height) for role, (x, y) in seen.items()
    }
