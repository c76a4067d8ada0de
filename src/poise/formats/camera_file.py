"""Camera files: position and intrinsics of one camera, as TOML (or JSON with the same keys).

Units are metres and pixels, camera axes as in docs/conventions.md:

    size = [1280, 720]
    fov = 40.0                  # vertical, in degrees; or: focal = 989.0, in pixels
    position = [2.0, 1.4, 3.5]
    target = [0.0, 0.95, 0.0]   # looked at; or: rotation (3 x 3) and translation, from world to camera
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.formats.images import LONGEST_SIDE
from poise.formats.tables import FieldError, Range, read_declared
from poise.geometry.cameras import Camera
from poise.types import Array

Vector = Float[Array, "3"]


@dataclass(frozen=True, eq=False)
class _CameraFile:
    size: Float[Array, "2"]
    fov: Annotated[float | None, Range(1.0, 170.0)] = None
    focal: Annotated[float | None, Range(above=0.0)] = None
    centre: Float[Array, "2"] | None = None
    position: Vector | None = None
    target: Vector | None = None
    rotation: Float[Array, "3 3"] | None = None
    translation: Vector | None = None

    def __post_init__(self) -> None:
        if not np.all((self.size >= 1) & (self.size <= LONGEST_SIDE)):
            width, height = self.size
            raise FieldError(
                "size", f"expected 1 to {LONGEST_SIDE} pixels each way; got {width:g} x {height:g}"
            )
        placed = ("rotation", "translation") if self.rotation is not None else ("target", "position")
        for name in ("fov" if self.focal is None else "focal", *placed):
            if getattr(self, name) is None:
                raise FieldError(name, "is missing")
        if self.rotation is not None:
            check_rotation(self.rotation)

    @property
    def camera(self) -> Camera:
        (width, height), focal = self.size, self.focal or focal_from_fov(self.fov or 0.0, self.size[1])
        x, y = self.centre if self.centre is not None else (width / 2, height / 2)
        intrinsics = np.array([[focal, 0.0, x], [0.0, focal, y], [0.0, 0.0, 1.0]])
        if self.rotation is not None and self.translation is not None:
            return Camera(intrinsics, self.rotation, self.translation)
        assert self.target is not None  # checked when the file was read
        assert self.position is not None
        aimed = Camera.looking_at(tuple(self.target.tolist()), eye=tuple(self.position.tolist()))
        return Camera(intrinsics, aimed.rotation, aimed.translation)


def read_camera(path: Path) -> Camera:
    """Read a camera from its file."""
    return read_declared(_CameraFile, path).camera


def check_rotation(rotation: Float[Array, "3 3"]) -> None:
    """Raise if a matrix is not a rotation."""
    if not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-4) or np.linalg.det(rotation) < 0:
        raise FieldError("rotation", "not a rotation: its rows must be orthonormal and right-handed")


def focal_from_fov(degrees: float, height: float) -> float:
    """The focal length in pixels of a vertical field of view."""
    if not 1.0 <= degrees <= 170.0:
        raise InvalidValueError(f"a field of view must be 1 to 170 degrees; got {degrees:g}")
    return float(height / 2 / np.tan(np.radians(degrees) / 2))
