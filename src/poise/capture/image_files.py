"""What posing from photos reads: the photo, its focal length, a camera file, and a file of several views.

A camera file is TOML (or JSON with the same keys), in metres and pixels, camera axes as in docs/conventions.md:

    size = [1280, 720]
    fov = 40.0                  # vertical, in degrees; or: focal = 989.0, in pixels
    position = [2.0, 1.4, 3.5]
    target = [0.0, 0.95, 0.0]   # looked at; or: rotation (3 x 3) and translation, from world to camera

A views file lists photos of one moment:

    [[views]]
    photo = "front.jpg"
    camera = "front.toml"
    points = { left_hand = [412, 233], right_foot = [380, 610] }
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError
from poise.formats.files import existing_file
from poise.formats.images import LONGEST_SIDE, check_size
from poise.formats.toml_tables import Table, read_toml
from poise.geometry.cameras import Camera

if TYPE_CHECKING:
    from PIL import Image

Array = np.ndarray
Points = Mapping[str, Float[Array, "2"]]

USUAL_FOV = 50.0  # degrees, vertical, of a photo that says nothing: a telephone's main camera held level
FILM_WIDTH = 36.0  # millimetres of the long side of the film that equivalent focal lengths refer to


@dataclass(frozen=True, eq=False)
class Shot:
    """A photo with its points, and its camera where that is known."""

    photo: Image.Image
    points: Points
    camera: Camera | None = None


def read_photo(path: Path) -> Image.Image:
    """A photo, upright as its EXIF orientation says; anything else is an error."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(existing_file(path)) as image:
            check_size(*image.size, path)
            image.load()
            upright = ImageOps.exif_transpose(image)
            upright.info["exif_focal"] = focal_from_exif(image)
            return upright
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise ParseError("not a photo that can be read (JPEG, PNG, WebP, ...)", path=path) from error
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, ParseError) or getattr(error, "filename", None) is not None:
            raise
        raise ParseError(f"a photo that is damaged or cut short: {error}", path=path) from error


def focal_from_exif(image: Image.Image) -> float | None:
    """The focal length in pixels that a photo's EXIF data tell; None where they do not."""
    from PIL.ExifTags import IFD, Base

    tags = image.getexif().get_ifd(IFD.Exif)
    equivalent = tags.get(Base.FocalLengthIn35mmFilm)
    if equivalent and float(equivalent) > 0:
        return float(equivalent) / FILM_WIDTH * max(image.size)
    length, density = tags.get(Base.FocalLength), tags.get(Base.FocalPlaneXResolution)
    unit = {2: 25.4, 3: 10.0, 4: 1.0}.get(tags.get(Base.FocalPlaneResolutionUnit, 2))
    if length and density and unit and float(length) > 0 and float(density) > 0:
        return float(length) * float(density) / unit
    return None


def point_from_text(text: str) -> tuple[str, Float[Array, "2"]]:
    """A joint and its pixel from `LeftHand=412,233`."""
    name, equals, numbers = text.partition("=")
    try:
        pixel = np.array([float(number) for number in numbers.split(",")])
    except ValueError:
        pixel = np.empty(0)
    if not equals or not name.strip() or pixel.shape != (2,):
        raise InvalidValueError(
            f"a point is written NAME=column,row in pixels, such as LeftHand=412,233; got {text!r}"
        )
    return name.strip(), pixel


def check_points(points: Points, size: tuple[int, int]) -> None:
    """Refuse pixels that are not finite or not in the photo."""
    for name, pixel in points.items():
        if not np.all(np.isfinite(pixel)):
            raise InvalidValueError(f"the point of {name} must be two finite numbers; got {_written(pixel)}")
        if np.any(pixel < 0) or np.any(pixel > np.array(size)):
            raise InvalidValueError(
                f"the point of {name} lies outside the photo of {size[0]} x {size[1]} pixels; got {_written(pixel)}"
            )


def read_camera(path: Path) -> Camera:
    """A camera from its file."""
    table = _table(path)
    width, height = table.vector("size", 2)
    if not (1 <= width <= LONGEST_SIDE and 1 <= height <= LONGEST_SIDE):
        raise table.error("size", f"expected 1 to {LONGEST_SIDE} pixels each way; got {width:g} x {height:g}")
    focal = _focal(table, height)
    centre = table.vector("centre", 2) if table.has("centre") else np.array([width, height]) / 2
    intrinsics = np.array([[focal, 0.0, centre[0]], [0.0, focal, centre[1]], [0.0, 0.0, 1.0]])
    if table.has("rotation"):
        rotation, translation = table.matrix("rotation", 3, 3), table.vector("translation")
        if not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-4) or np.linalg.det(rotation) < 0:
            raise table.error(
                "rotation", "is no rotation: its rows must be at right angles, right-handed, of length 1"
            )
    else:
        aimed = Camera.looking_at(_triple(table, "target"), eye=_triple(table, "position"))
        rotation, translation = aimed.rotation, aimed.translation
    table.done()
    return Camera(intrinsics, rotation, translation)


def read_views(path: Path) -> list[Shot]:
    """The photos of a views file, each with its camera."""
    table = read_toml(path)
    entries = table.tables("views")
    if not entries:
        raise table.error("views", "no photo is listed; expected [[views]] with photo, camera and points")
    shots = []
    for entry in entries:
        photo = read_photo(path.parent / entry.word("photo"))
        points = entry.table("points")
        pixels = {name: points.vector(name, 2) for name in points.names()}
        camera = read_camera(path.parent / entry.word("camera"))
        entry.done()
        check_points(pixels, photo.size)
        shots.append(Shot(photo, pixels, camera))
    table.done()
    return shots


def _table(path: Path) -> Table:
    if path.suffix.lower() != ".json":
        return read_toml(path)
    try:
        values = json.loads(existing_file(path).read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ParseError(f"not JSON: {error}", path=path) from error
    if not isinstance(values, dict):
        raise ParseError(f"expected an object with the camera's keys; got {type(values).__name__}", path=path)
    return Table(values, path)


def _focal(table: Table, height: float) -> float:
    if table.has("focal"):
        return table.number("focal", positive=True)
    return focal_from_fov(table.number("fov", least=1.0, most=170.0), height)


def focal_from_fov(degrees: float, height: float) -> float:
    """The focal length in pixels of a vertical field of view."""
    if not 1.0 <= degrees <= 170.0:
        raise InvalidValueError(f"a field of view is 1 to 170 degrees; got {degrees:g}")
    return float(height / 2 / np.tan(np.radians(degrees) / 2))


def _triple(table: Table, key: str) -> tuple[float, float, float]:
    x, y, z = table.vector(key)
    return float(x), float(y), float(z)


def _written(pixel: Float[Array, "2"]) -> str:
    return ",".join(f"{number:g}" for number in pixel)
