"""A rig: cameras that look at one place from several sides, and its file: TOML, or that of Qualisys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, parse
from xml.etree.ElementTree import ParseError as XmlError

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats.camera_file import check_rotation
from poise.formats.files import existing_file, replacing
from poise.formats.tables import FieldError, read_declared
from poise.geometry.cameras import Camera
from poise.types import Array
from poise.vision.lens import LensCamera


@dataclass(frozen=True)
class Rig:
    """Calibrated cameras in one world: metres, Y up, the floor at zero."""

    cameras: tuple[LensCamera, ...]

    def __post_init__(self) -> None:
        names = [camera.name for camera in self.cameras]
        if not names or len(set(names)) != len(names):
            raise InvalidValueError(f"a rig needs at least one camera, each with a unique name; got {names}")

    def __len__(self) -> int:
        return len(self.cameras)

    def __getitem__(self, name: str) -> LensCamera:
        for camera in self.cameras:
            if camera.name == name:
                return camera
        raise UnknownNameError("camera", name, [camera.name for camera in self.cameras])

    def baseline(self, first: int = 0, second: int = 1) -> float:
        """The distance of two cameras, in metres."""
        return float(np.linalg.norm(self.cameras[first].pinhole.centre - self.cameras[second].pinhole.centre))


def fundamental(first: LensCamera, second: LensCamera) -> Float[Array, "3 3"]:
    """F with x2' F x1 = 0 for undistorted pixels of one point: the epipolar line of x1 in the second view is F x1."""
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


@dataclass(frozen=True, eq=False)
class _CameraTable:
    matrix: Float[Array, "3 3"]
    distortion: Float[Array, "5"]
    rotation: Float[Array, "3 3"]
    translation: Float[Array, "3"]
    size: Float[Array, "2"]
    name: str = ""

    def __post_init__(self) -> None:
        check_rotation(self.rotation)
        if not (np.all(self.size >= 1) and self.matrix[0, 0] > 0 and self.matrix[1, 1] > 0):
            raise FieldError("size", "a camera's size and focal lengths must be above zero")

    def camera(self, number: int) -> LensCamera:
        width, height = map(int, self.size)
        pinhole = Camera(self.matrix, self.rotation, self.translation)
        return LensCamera(self.name or f"camera{number}", pinhole, (width, height), self.distortion)


@dataclass(frozen=True)
class _RigFile:
    camera: tuple[_CameraTable, ...] = ()

    def __post_init__(self) -> None:
        if not self.camera:
            raise FieldError("camera", "no cameras: expected one [[camera]] table each")


def load_rig(path: Path | str) -> Rig:
    """Read a rig, or the cameras of Qualisys (.qca.txt); errors name the missing or malformed entry."""
    if str(path).endswith(".qca.txt"):
        return Rig(read_qualisys(path))
    tables = read_declared(_RigFile, Path(path)).camera
    return Rig(tuple(table.camera(number) for number, table in enumerate(tables, start=1)))


def _numbers(values: Array) -> str:
    if values.ndim == 2:
        return "[" + ", ".join(_numbers(row) for row in values) + "]"
    return "[" + ", ".join(repr(float(value)) for value in values) + "]"


# --- cameras from a calibration of Qualisys Track Manager (.qca.txt): millimetres, Z up, sensors in 64ths of a pixel


_PARTS = 64.0
_Y_UP = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # x, y, z there are z, x, y here
_TURNED = np.diag([1.0, -1.0, -1.0])  # a Qualisys camera looks along -z with y up


def read_qualisys(path: str | Path) -> tuple[LensCamera, ...]:
    """The cameras of a file."""
    try:
        cameras = parse(existing_file(path)).getroot().find("cameras")
        found = tuple(_camera(one) for one in ([] if cameras is None else cameras))
    except (XmlError, KeyError, ValueError, AttributeError, UnicodeDecodeError) as error:
        raise ParseError(f"not a calibration of Qualisys: {error}", path=path) from error
    if not found:
        raise ParseError("a calibration of Qualisys without cameras", path=path)
    return found


def _camera(element: Element) -> LensCamera:
    place, lens, field = (_attributes(element, name) for name in ("transform", "intrinsic", "fov_video"))
    rotation = np.array([[place[f"r{row}{column}"] for column in "123"] for row in "123"])
    centre = np.array([place[axis] for axis in "xyz"]) / 1000.0
    turned = _TURNED @ rotation @ _Y_UP.T
    fx, fy, cx, cy = (
        lens[key] / _PARTS for key in ("focalLengthU", "focalLengthV", "centerPointU", "centerPointV")
    )
    intrinsics = np.array([[fx, 0.0, cx - field["left"]], [0.0, fy, cy - field["top"]], [0.0, 0.0, 1.0]])
    bends = (
        "radialDistortion1",
        "radialDistortion2",
        "tangentalDistortion1",
        "tangentalDistortion2",
        "radialDistortion3",
    )
    size = int(field["right"] - field["left"] + 1), int(field["bottom"] - field["top"] + 1)
    pinhole = Camera(intrinsics, turned, -turned @ _Y_UP @ centre)
    return LensCamera(element.attrib["serial"], pinhole, size, np.array([lens[key] for key in bends]))


def _attributes(element: Element, name: str) -> dict[str, float]:
    part = element.find(name)
    if part is None:
        raise ValueError(f"a camera without {name}")
    return {key: float(value) for key, value in part.attrib.items()}
