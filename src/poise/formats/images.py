"""Limits on the unpacked size of image files: a small file can contain a huge picture."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from poise.errors import ParseError

if TYPE_CHECKING:
    from PIL import Image

MOST_PIXELS = 50_000_000
LONGEST_SIDE = 20_000  # pixels, more than any camera has


def check_size(width: int, height: int, path: str | Path) -> None:
    """Raise if a picture would need more memory than a photo."""
    if max(width, height) > LONGEST_SIDE or width * height > MOST_PIXELS:
        raise ParseError(
            f"the picture has {width} x {height} pixels; at most {MOST_PIXELS / 1e6:.0f} million can be read",
            path=path,
        )


@contextmanager
def quiet_open(source: Path | BytesIO) -> Iterator[Image.Image]:
    """Open an image file without Pillow's warnings about damaged EXIF data."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(source) as image:
            yield image


def check_unpacked_size(path: Path) -> None:
    """Raise if the size in an image file's header is too large, before anything is unpacked."""
    from PIL import Image, UnidentifiedImageError

    try:
        with quiet_open(path) as image:
            check_size(*image.size, path)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        if isinstance(error, ParseError) or getattr(error, "filename", None) is not None:
            raise
        raise ParseError("not an image that can be read", path=path) from error
