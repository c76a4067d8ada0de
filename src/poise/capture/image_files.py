"""Input of posing from photos: the photo, its focal length, a camera file, and a file of several views.

A views file lists photos of one moment:

    [[views]]
    photo = "front.jpg"
    camera = "front.toml"
    points = { left_hand = [412, 233], right_foot = [380, 610] }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError
from poise.formats.camera_file import read_camera
from poise.formats.files import existing_file
from poise.formats.images import check_size, quiet_open
from poise.formats.tables import FieldError, read_declared
from poise.geometry.cameras import Camera
from poise.types import Array

if TYPE_CHECKING:
    from PIL import Image

Points = Mapping[str, Float[Array, "2"]]

USUAL_FOV = 50.0  # degrees, vertical, of a photo without EXIF data: a phone's main camera held level
FILM_WIDTH = 36.0  # millimetres: long side of the film that equivalent focal lengths refer to


@dataclass(frozen=True, eq=False)
class Shot:
    """A photo with its points, and its camera if known."""

    photo: Image.Image
    points: Points
    camera: Camera | None = None


def read_photo(path: Path) -> Image.Image:
    """Read a photo, rotated by its EXIF orientation."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with quiet_open(existing_file(path)) as image:
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
        raise ParseError(f"the photo is damaged or truncated: {error}", path=path) from error


def focal_from_exif(image: Image.Image) -> float | None:
    """The focal length in pixels from a photo's EXIF data; None if they do not contain it."""
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
            f"write a point as NAME=column,row in pixels, such as LeftHand=412,233; got {text!r}"
        )
    return name.strip(), pixel


def check_points(points: Points, size: tuple[int, int]) -> None:
    """Raise if a pixel is not finite or outside the photo."""
    for name, pixel in points.items():
        if not np.all(np.isfinite(pixel)):
            raise InvalidValueError(f"the point of {name} must be two finite numbers; got {_written(pixel)}")
        if np.any(pixel < 0) or np.any(pixel > np.array(size)):
            raise InvalidValueError(
                f"the point of {name} lies outside the photo of {size[0]} x {size[1]} pixels; got {_written(pixel)}"
            )


@dataclass(frozen=True, eq=False)
class _View:
    photo: Path
    camera: Path
    points: dict[str, Float[Array, "2"]] = field(default_factory=dict)

    def shot(self) -> Shot:
        photo, camera = read_photo(self.photo), read_camera(self.camera)
        check_points(self.points, photo.size)
        return Shot(photo, self.points, camera)


@dataclass(frozen=True)
class _Views:
    views: tuple[_View, ...] = ()

    def __post_init__(self) -> None:
        if not self.views:
            raise FieldError("views", "no photo is listed; expected [[views]] with photo, camera and points")


def read_views(path: Path) -> list[Shot]:
    """The photos of a views file, each with its camera."""
    return [view.shot() for view in read_declared(_Views, path).views]


def _written(pixel: Float[Array, "2"]) -> str:
    return ",".join(f"{number:g}" for number in pixel)
