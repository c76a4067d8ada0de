"""Estimate the up direction of a camera with a known focal length: people mostly stand, cameras are mostly level.

Two estimates are combined. The body's: from ankles to shoulders over all frames, weighted by how straight legs and
trunk are. The camera's: pitched up or down by some degrees, hardly ever rolled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.capture.people.landmarks import INDEX
from poise.geometry.cameras import Camera
from poise.types import Array

EYE_HEIGHT = 1.5  # metres: assumed height of an unknown camera; the floor is estimated afterwards
USUAL_FIELD = np.radians(60.0)  # field of view along the long side of an unknown camera's picture
LEANING = np.radians(
    10.0
)  # standard deviation of a straight body's tilt, including the detector's depth errors
PITCH, ROLL = np.radians(20.0), np.radians(6.0)  # standard deviations of a camera's tilt
MOST_MOMENTS = 4.0  # largest number of independent moments, a second apart
_STRAIGHT = 6.0


def level_camera(size: tuple[int, int], focal: float | None = None) -> Camera:
    """A level camera at eye height that looks towards -Z: a person facing it faces +Z."""
    focal = 0.5 * max(size) / np.tan(0.5 * USUAL_FIELD) if focal is None else focal
    intrinsics = np.array([[focal, 0.0, size[0] / 2], [0.0, focal, size[1] / 2], [0.0, 0.0, 1.0]])
    rotation = np.diag([1.0, -1.0, -1.0])
    return Camera(intrinsics, rotation, rotation @ (0.0, -EYE_HEIGHT, 0.0))


def upright_camera(camera: Camera, places: Float[Array, "frames 33 3"], fps: float) -> Camera:
    """The camera tilted so that the people it sees stand upright, by combining both estimates."""
    axis, moments = _body_axis(places, fps)
    if moments == 0.0:
        return camera
    body = moments / LEANING**2
    # Small tilts about the camera's own axes: of up along x (roll) and along z (pitch).
    roll = np.arctan2(axis[0], axis[1]) * body / (body + ROLL**-2)
    pitch = np.arctan2(axis[2], axis[1]) * body / (body + PITCH**-2)
    up = np.array([np.tan(roll), 1.0, np.tan(pitch)])
    turn = _turn_between(up / np.linalg.norm(up), np.array([0.0, 1.0, 0.0]))
    rotation = camera.rotation @ turn.T
    return replace(camera, rotation=rotation, translation=-rotation @ camera.centre)


def _body_axis(places: Float[Array, "frames 33 3"], fps: float) -> tuple[Float[Array, "3"], float]:
    """The mean direction from ankles to shoulders, and the number of independent moments."""
    ankles, hips, shoulders = (
        (places[:, INDEX[f"left_{joint}"]] + places[:, INDEX[f"right_{joint}"]]) / 2
        for joint in ("ankle", "hip", "shoulder")
    )
    along = shoulders - ankles
    lengths = np.linalg.norm(along, axis=1)
    parts = np.linalg.norm(shoulders - hips, axis=1) + np.linalg.norm(hips - ankles, axis=1)
    weights = np.nan_to_num((lengths / np.maximum(parts, 1e-6)) ** _STRAIGHT)
    if not weights.any():
        return np.array([0.0, 1.0, 0.0]), 0.0
    axis = np.average(np.nan_to_num(along / np.maximum(lengths, 1e-6)[:, None]), axis=0, weights=weights)
    moments = np.clip(weights.sum() / max(fps, 1.0), weights.max(), MOST_MOMENTS)
    return axis / np.linalg.norm(axis), float(moments)


def _turn_between(first: Float[Array, "3"], second: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """The shortest rotation from one unit vector to another that is not opposite."""
    x, y, z = np.cross(first, second)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + cross + cross @ cross / (1.0 + first @ second))
