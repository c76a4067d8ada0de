"""Real cameras: a pinhole with lens distortion (Brown 1971, with OpenCV's coefficients), and rigs of them.

A rig is cameras that look at one place from several sides. Its file is TOML, or that of Qualisys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from poise.skeleton.skeleton import read_only
from poise.types import Array

STRAIGHT = (0.0, 0.0, 0.0, 0.0, 0.0)
UNBENT, CLOSE = 20, 1e-10  # rounds of undistorting, and its error in units of the focal length


@dataclass(frozen=True, eq=False)
class LensCamera:
    """A camera, the size of its pictures and its lens: (k1, k2, p1, p2, k3), of which k are radial and p tangential."""

    name: str
    pinhole: Camera
    size: tuple[int, int]
    distortion: Float[Array, "5"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "distortion", read_only(np.asarray(self.distortion, dtype=np.float64)))
        numbers = [self.pinhole.intrinsics, self.pinhole.rotation, self.pinhole.translation, self.distortion]
        if self.distortion.shape != (5,) or not all(np.all(np.isfinite(part)) for part in numbers):
            raise InvalidValueError(
                f"camera {self.name!r} needs finite numbers and five lens coefficients; got {self.distortion.shape}"
            )

    def project(self, points: Float[Array, "*n 3"]) -> Float[Array, "*n 2"]:
        """Distorted pixels of world points; NaN for points that are not in front of the camera."""
        intrinsics = self.pinhole.intrinsics
        plane = self.plane_from_pixels(self.pinhole.project(points), straight=True)
        return np.asarray(_bend(plane, self.distortion) @ intrinsics[:2, :2].T + intrinsics[:2, 2])

    def straightened(self, pixels: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """Undistorted pixels, which `pinhole` maps to and from the world."""
        plane = self.plane_from_pixels(pixels)
        intrinsics = self.pinhole.intrinsics
        return np.asarray(plane @ intrinsics[:2, :2].T + intrinsics[:2, 2])

    def rays(self, pixels: Float[Array, "*n 2"]) -> Float[Array, "*n 3"]:
        """Unit directions in the world from the camera's centre through pixels."""
        plane = self.plane_from_pixels(pixels)
        directions = np.concatenate([plane, np.ones((*plane.shape[:-1], 1))], axis=-1) @ self.pinhole.rotation
        return np.asarray(directions / np.linalg.norm(directions, axis=-1, keepdims=True))

    def depth(self, points: Float[Array, "*n 3"]) -> Float[Array, "*n"]:
        """Depth of world points in front of the camera."""
        return np.asarray(points @ self.pinhole.rotation[2] + self.pinhole.translation[2])

    def in_picture(self, pixels: Float[Array, "*n 2"]) -> Array:
        """Mask of the pixels inside the picture."""
        width, height = self.size
        x, y = pixels[..., 0], pixels[..., 1]
        return np.asarray((x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1))

    def moved(self, rotation: Float[Array, "3 3"], translation: Float[Array, "3"]) -> LensCamera:
        """The same camera at another position: p_cam = rotation p_world + translation."""
        return replace(self, pinhole=Camera(self.pinhole.intrinsics, rotation, translation))

    def resized(self, size: tuple[int, int]) -> LensCamera | None:
        """The same camera with pictures of another size, if the aspect ratio is the same."""
        factor = size[0] / self.size[0]
        if abs(size[1] / self.size[1] / factor - 1.0) > 0.01:
            return None
        intrinsics = self.pinhole.intrinsics.copy()
        intrinsics[:2] *= factor
        pinhole = Camera(intrinsics, self.pinhole.rotation, self.pinhole.translation)
        return replace(self, pinhole=pinhole, size=size)

    def plane_from_pixels(
        self, pixels: Float[Array, "*n 2"], *, straight: bool = False
    ) -> Float[Array, "*n 2"]:
        """Points on the plane at distance one; `straight` if the pixels are undistorted."""
        intrinsics = self.pinhole.intrinsics
        bent = (np.asarray(pixels) - intrinsics[:2, 2]) @ np.linalg.inv(intrinsics[:2, :2]).T
        if straight or not np.any(self.distortion):
            return np.asarray(bent)
        plane = bent.copy()
        for _ in range(UNBENT):  # a fixed-point iteration
            missing = bent - _bend(plane, self.distortion)
            plane += missing
            if not np.any(np.abs(missing) > CLOSE):
                break
        return plane


def _bend(plane: Array, coefficients: Array) -> Array:
    k1, k2, p1, p2, k3 = coefficients
    x, y = plane[..., 0], plane[..., 1]
    r2 = x * x + y * y
    radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3))
    across = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
    return np.stack([across, y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y], axis=-1)


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
        pinhole = camera.pinhole
        arrays = {"matrix": pinhole.intrinsics, "distortion": camera.distortion, "rotation": pinhole.rotation}
        lines += ["", "[[camera]]", f'name = "{camera.name}"', f"size = {list(camera.size)}"]
        for key, values in {**arrays, "translation": pinhole.translation}.items():
            lines.append(f"{key} = {np.asarray(values, dtype=np.float64).tolist()}")
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
    cameras = []
    for number, table in enumerate(read_declared(_RigFile, Path(path)).camera, start=1):
        width, height = map(int, table.size)
        pinhole = Camera(table.matrix, table.rotation, table.translation)
        cameras.append(
            LensCamera(table.name or f"camera{number}", pinhole, (width, height), table.distortion)
        )
    return Rig(tuple(cameras))


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
    parts = []
    for name in ("transform", "intrinsic", "fov_video"):
        if (part := element.find(name)) is None:
            raise ValueError(f"a camera without {name}")
        parts.append({key: float(value) for key, value in part.attrib.items()})
    place, lens, field = parts
    rotation = np.array([[place[f"r{row}{column}"] for column in "123"] for row in "123"])
    centre = np.array([place[axis] for axis in "xyz"]) / 1000.0
    turned = _TURNED @ rotation @ _Y_UP.T
    fx, fy, cx, cy = (
        lens[f"{key}{axis}"] / _PARTS for key in ("focalLength", "centerPoint") for axis in "UV"
    )
    intrinsics = np.array([[fx, 0.0, cx - field["left"]], [0.0, fy, cy - field["top"]], [0.0, 0.0, 1.0]])
    bends = ("radialDistortion1", "radialDistortion2", "tangentalDistortion1", "tangentalDistortion2")
    distortion = np.array([lens[key] for key in (*bends, "radialDistortion3")])
    size = int(field["right"] - field["left"] + 1), int(field["bottom"] - field["top"] + 1)
    pinhole = Camera(intrinsics, turned, -turned @ _Y_UP @ centre)
    return LensCamera(element.attrib["serial"], pinhole, size, distortion)
