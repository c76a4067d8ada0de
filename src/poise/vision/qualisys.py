"""Cameras from a calibration of Qualisys Track Manager (.qca.txt): millimetres, Z up, sensors in 64ths of a pixel."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, parse
from xml.etree.ElementTree import ParseError as XmlError

import numpy as np

from poise.errors import ParseError
from poise.formats.files import existing_file
from poise.geometry.cameras import Camera
from poise.vision.lens import LensCamera

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
    place, lens, field = (_numbers(element, name) for name in ("transform", "intrinsic", "fov_video"))
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


def _numbers(element: Element, name: str) -> dict[str, float]:
    part = element.find(name)
    if part is None:
        raise ValueError(f"a camera without {name}")
    return {key: float(value) for key, value in part.attrib.items()}
