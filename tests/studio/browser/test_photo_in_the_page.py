"""Points in a photo: the body follows them, and other poses that fit are offered."""

import math
from pathlib import Path

import pytest
from PIL import Image
from studio_page import StudioPage

SIDE = 480  # pixels
POINTS = {"head": (240, 90), "left_hand": (300, 250), "right_hand": (180, 250), "left_foot": (262, 430)}


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    Image.new("RGB", (SIDE, SIDE), "white").save(path)
    return path


def test_the_body_follows_four_points(studio: StudioPage, photo: Path) -> None:
    studio.work_in("Photo")
    studio.page.get_by_label("Open a picture").set_input_files(photo)
    studio.wait("window.poise.state.scene.value.photo")
    for number, (role, pixel) in enumerate(POINTS.items(), start=1):
        studio.page.get_by_role("button", name=role.replace("_", " "), exact=True).click()
        studio.page.mouse.click(*on_photo(studio, pixel))
        studio.wait(f"window.poise.state.scene.value.photo.points.length === {number}")
    studio.wait("window.poise.state.photoPixels.value && window.poise.state.progress.value.size === 0")
    joints = studio.ask("state.body.value.joints")
    pixels = studio.ask("[...state.photoPixels.value]")
    for role, pixel in POINTS.items():
        number = next(place for place, joint in enumerate(joints) if joint["role"] == role)
        assert math.dist(pixels[2 * number : 2 * number + 2], pixel) < 12
    assert studio.ask("state.alternatives.value.length") >= 1


def on_photo(studio: StudioPage, pixel: tuple[float, float]) -> tuple[float, float]:
    """Where a pixel of the photo is on the page: it is shown whole and centred."""
    box = studio.page.get_by_label("Picture: click").bounding_box()
    assert box is not None
    scale = min(box["width"], box["height"]) / SIDE
    left, top = box["x"] + (box["width"] - SIDE * scale) / 2, box["y"] + (box["height"] - SIDE * scale) / 2
    return left + scale * pixel[0], top + scale * pixel[1]
