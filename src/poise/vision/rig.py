"""A rig: cameras that look at one place from several sides, and the file that keeps them (TOML, readable)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats.files import existing_file, replacing
from poise.geometry.cameras import Camera
from poise.vision.lens import LensCamera

Array = np.ndarray


@dataclass(frozen=True)
class Rig:
    """Calibrated cameras in one world: metres, Y up, the floor at zero."""

    cameras: tuple[LensCamera, ...]

    def __post_init__(self) -> None:
        names = [camera.name for camera in self.cameras]
        if not names or len(set(names)) != len(names):
            raise InvalidValueError(
                f"a rig needs at least one camera, each with a name of its own; got {names}"
            )

    def __len__(self) -> int:
        return len(self.cameras)

    def __getitem__(self, name: str) -> LensCamera:
        for camera in self.cameras:
            if camera.name == name:
                return camera
        raise UnknownNameError("camera", name, [camera.name for camera in self.cameras])

    def baseline(self, first: int = 0, second: int = 1) -> float:
        """How far two cameras are apart, in metres."""
        return float(np.linalg.norm(self.cameras[first].pinhole.centre - self.cameras[second].pinhole.centre))


def fundamental(first: LensCamera, second: LensCamera) -> Float[Array, "3 3"]:
    """F with x2' F x1 = 0 for straightened pixels of one point: the epipolar line of x1 in the second view is F x1."""
    turn = second.pinhole.rotation @ first.pinhole.rotation.T
    x, y, z = second.pinhole.translation - turn @ first.pinhole.translation
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    inverse = np.linalg.inv
    return np.asarray(inverse(second.pinhole.intrinsics).T @ cross @ turn @ inverse(first.pinhole.intrinsics))


def save_rig(rig: Rig, path: Path | str) -> None:
    """Write the rig as TOML."""
    lines = [
        "# Cameras: matrix, lens (k1, k2, p1, p2, k3), and p_camera = rotation p_world + translation, in metres, Y up."
    ]
    for camera in rig.cameras:
        lines += [
            "",
            "[[camera]]",
            f'name = "{camera.name}"',
            f"size = {list(camera.size)}",
            f"matrix = {_numbers(camera.pinhole.intrinsics)}",
            f"distortion = {_numbers(camera.distortion)}",
            f"rotation = {_numbers(camera.pinhole.rotation)}",
            f"translation = {_numbers(camera.pinhole.translation)}",
        ]
    with replacing(path) as file:
        file.write("\n".join(lines) + "\n")


def load_rig(path: Path | str) -> Rig:
    """Read a rig; a missing or malformed entry is named."""
    path = existing_file(path)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("camera", [])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParseError(f"not a camera file: {error}", path=path) from None
    if not isinstance(tables, list) or not tables:
        raise ParseError("no cameras: expected one [[camera]] table each", path=path)
    return Rig(tuple(_camera(table, number, path) for number, table in enumerate(tables)))


def _camera(table: Mapping[str, Any], number: int, path: Path) -> LensCamera:
    where = f"camera {table.get('name', number + 1)!r}"
    arrays = {}
    for key, shape in {
        "matrix": (3, 3),
        "distortion": (5,),
        "rotation": (3, 3),
        "translation": (3,),
        "size": (2,),
    }.items():
        if key not in table:
            raise ParseError(f"{where} has no {key}", path=path)
        try:
            arrays[key] = np.array(table[key], dtype=np.float64)
        except (TypeError, ValueError):
            raise ParseError(f"{where}: {key} must be numbers", path=path) from None
        if arrays[key].shape != shape or not np.all(np.isfinite(arrays[key])):
            raise ParseError(
                f"{where}: {key} must be {shape} finite numbers; got {arrays[key].shape}", path=path
            )
    if not np.allclose(arrays["rotation"] @ arrays["rotation"].T, np.eye(3), atol=1e-4):
        raise ParseError(f"{where}: rotation is no rotation", path=path)
    pinhole = Camera(arrays["matrix"], arrays["rotation"], arrays["translation"])
    size = (int(arrays["size"][0]), int(arrays["size"][1]))
    return LensCamera(str(table.get("name", f"camera{number + 1}")), pinhole, size, arrays["distortion"])


def _numbers(values: Array) -> str:
    if values.ndim == 2:
        return "[" + ", ".join(_numbers(row) for row in values) + "]"
    return "[" + ", ".join(repr(float(value)) for value in values) + "]"
