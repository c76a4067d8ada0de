"""Estimate an unknown camera from the people it sees: which way is up, and the focal length.

Up: people mostly stand, cameras are mostly level. Two estimates are combined. The body's: from ankles to shoulders over
all frames, weighted by how straight legs and trunk are. The camera's: pitched up or down by some degrees, hardly ever
rolled.

Focal length: perspective exaggerates near things more for a shorter lens at the same picture size. The detector's
shapes show what is near. The focal length is the one under which they fit their pixels best, with a prior over typical
lenses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.types import Array
from poise.vision.people.person import INDEX
from poise.vision.people.watched import WatchedPerson, placed_shapes

EYE_HEIGHT = 1.5  # metres: assumed height of an unknown camera; the floor is estimated afterwards
USUAL_FIELD = np.radians(60.0)  # field of view along the long side of an unknown camera's picture
LEANING = np.radians(10.0)  # standard deviation of a straight body's tilt, with the detector's depth errors
PITCH, ROLL = np.radians(20.0), np.radians(6.0)  # standard deviations of a camera's tilt
MOST_MOMENTS = 4.0  # largest number of independent moments, a second apart
_STRAIGHT = 6.0
USUAL = 0.25  # relative standard deviation of lenses from the usual one
EXACT = 0.15  # relative standard deviation of the estimate from typical shapes ...
CURVED = 1.7  # ... whose misfit grows by this factor of its minimum, times the squared relative error
LONGER = 1.2  # systematic factor by which the shapes overestimate the focal length
WITHIN = 2.5  # largest factor from the usual focal length
MOST = 40  # frames used
_WEIGHT = 1.0 / (2.0 * CURVED * EXACT**2)


def level_camera(size: tuple[int, int], focal: float | None = None, pitch: float = 0.0) -> Camera:
    """A camera at eye height that looks towards -Z: a person facing it faces +Z. The pitch is downwards, in degrees."""
    if not -80.0 <= pitch <= 80.0:
        raise InvalidValueError(f"the camera's pitch must be -80 to 80 degrees; got {pitch:g}")
    focal = 0.5 * max(size) / np.tan(0.5 * USUAL_FIELD) if focal is None else focal
    intrinsics = np.array([[focal, 0.0, size[0] / 2], [0.0, focal, size[1] / 2], [0.0, 0.0, 1.0]])
    down, across = np.sin(np.radians(pitch)), np.cos(np.radians(pitch))
    rotation = np.array([[1.0, 0.0, 0.0], [0.0, -across, down], [0.0, -down, -across]])
    return Camera(intrinsics, rotation, rotation @ (0.0, -EYE_HEIGHT, 0.0))


def upright_camera(camera: Camera, places: Float[Array, "frames 33 3"], fps: float) -> Camera:
    """The camera tilted so that the people it sees stand upright, by combining both estimates."""
    ankles, hips, shoulders = (
        (places[:, INDEX[f"left_{joint}"]] + places[:, INDEX[f"right_{joint}"]]) / 2
        for joint in ("ankle", "hip", "shoulder")
    )
    along = shoulders - ankles
    lengths = np.linalg.norm(along, axis=1)
    parts = np.linalg.norm(shoulders - hips, axis=1) + np.linalg.norm(hips - ankles, axis=1)
    weights = np.nan_to_num((lengths / np.maximum(parts, 1e-6)) ** _STRAIGHT)
    if not weights.any():
        return camera
    axis = np.average(np.nan_to_num(along / np.maximum(lengths, 1e-6)[:, None]), axis=0, weights=weights)
    axis = axis / np.linalg.norm(axis)
    moments = float(np.clip(weights.sum() / max(fps, 1.0), weights.max(), MOST_MOMENTS))  # independent ones
    body = moments / LEANING**2
    # Small tilts about the camera's own axes: of up along x (roll) and along z (pitch).
    roll = np.arctan2(axis[0], axis[1]) * body / (body + ROLL**-2)
    pitch = np.arctan2(axis[2], axis[1]) * body / (body + PITCH**-2)
    up = np.array([np.tan(roll), 1.0, np.tan(pitch)])
    turn = rotations.matrix_from_quaternion(rotations.quaternion_between(up, np.array([0.0, 1.0, 0.0])))
    rotation = camera.rotation @ turn.T
    return replace(camera, rotation=rotation, translation=-rotation @ camera.centre)


def with_focal(person: WatchedPerson) -> WatchedPerson:
    """The person with the camera's most likely focal length; its own is the usual one."""
    from scipy.optimize import minimize_scalar

    chosen = person.frames(slice(None, None, max(1, len(person) // MOST)))
    tried = np.linspace(-np.log(WITHIN), np.log(WITHIN), 9)
    least = min(misfit(chosen, by) for by in tried)

    def cost(by: float) -> float:
        off = misfit(chosen, by + np.log(LONGER))
        return float(_WEIGHT * off / max(least, 1e-12) + 0.5 * (by / USUAL) ** 2)

    found = minimize_scalar(cost, bounds=(tried[0], tried[-1]), method="bounded", options={"xatol": 0.01})
    return replace(person, cameras=[_lengthened(person.cameras[0], float(found.x))])


def misfit(person: WatchedPerson, by: float) -> float:
    """Mean squared distance of shapes from pixels at exp(by) times the focal length, in sides of the square."""
    camera, pixels, weights = _lengthened(person.cameras[0], by), person.pixels[:, 0], person.weights[:, 0]
    off = camera.project(placed_shapes(camera, pixels, weights, person.shapes[:, 0])) - pixels
    squares = np.sum((off / person.sides[:, 0, None, None]) ** 2, axis=-1)
    seen = np.isfinite(squares)
    return float(np.average(squares[seen], weights=weights[seen])) if weights[seen].any() else 0.0


def _lengthened(camera: Camera, by: float) -> Camera:
    scale = np.diag([np.exp(by), np.exp(by), 1.0])
    intrinsics = scale @ camera.intrinsics
    intrinsics[:, 2] = camera.intrinsics[:, 2]
    return replace(camera, intrinsics=intrinsics)
