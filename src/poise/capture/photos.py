"""Pose a body from points in one photo or several (Grochow et al. 2004, section 7.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.capture.image_files import USUAL_FOV, Shot, check_points
from poise.capture.image_placing import View
from poise.capture.image_poses import Explanation, explain, told_apart
from poise.errors import InvalidValueError
from poise.formats.camera_file import focal_from_fov
from poise.geometry.cameras import Camera
from poise.solvers.solve import Model, space_of
from poise.types import Array

EYE_HEIGHT = 1.5  # metres; the floor is estimated afterwards
PITCHES = (-10.0, 0.0, 10.0, 20.0, 30.0)  # degrees downwards: candidate pitches of an unknown camera
ALTERNATIVES = 3
FEWEST = 3
"""Smallest number of points for a pose from a photo."""


def pose_from_shots(
    model: Model,
    shots: Sequence[Shot],
    *,
    fov: float | None = None,
    pitch: float | None = None,
    alternatives: int = ALTERNATIVES,
) -> list[Explanation]:
    """The most likely poses that explain the points, best first.

    An unknown camera is assumed to be level except for its pitch, with the given field of view (vertical, degrees),
    that of the photo's EXIF data, or the usual one; the body then stands on the floor at the origin.
    """
    _check(model, shots, alternatives)
    if all(shot.camera is not None for shot in shots):
        views = [View(shot.camera, shot.points) for shot in shots if shot.camera is not None]
        return explain(model, views)[:alternatives]
    if len(shots) > 1:
        raise InvalidValueError(
            "several photos need a camera file each; only a single photo's camera can be estimated"
        )
    focal = focal_of(shots[0], fov)
    pitches = PITCHES if pitch is None else (pitch,)
    found = [
        _standing(one)
        for degrees in pitches
        for one in explain(model, [View(level_camera(shots[0].photo.size, focal, degrees), shots[0].points)])
    ]
    return told_apart(sorted(found, key=lambda one: -one.posterior))[:alternatives]


def focal_of(shot: Shot, fov: float | None) -> float:
    """The focal length in pixels: from the given field of view, else from EXIF, else the usual one."""
    if fov is None and (known := shot.photo.info.get("exif_focal")) is not None:
        return float(known)
    return focal_from_fov(USUAL_FOV if fov is None else fov, shot.photo.height)


def level_camera(size: tuple[int, int], focal: float, pitch: float) -> Camera:
    """A camera at eye height that looks towards -Z: a person facing it faces +Z. The pitch is downwards, in degrees."""
    if not -80.0 <= pitch <= 80.0:
        raise InvalidValueError(f"the camera's pitch must be -80 to 80 degrees; got {pitch:g}")
    down = np.radians(pitch)
    target = (0.0, EYE_HEIGHT - float(np.sin(down)), -float(np.cos(down)))
    aimed = Camera.looking_at(target, eye=(0.0, EYE_HEIGHT, 0.0), size=size)
    intrinsics = np.array([[focal, 0.0, size[0] / 2], [0.0, focal, size[1] / 2], [0.0, 0.0, 1.0]])
    return replace(aimed, intrinsics=intrinsics)


def _check(model: Model, shots: Sequence[Shot], alternatives: int) -> None:
    if alternatives < 1:
        raise InvalidValueError(f"`alternatives` must be at least 1; got {alternatives}")
    skeleton, joints = space_of(model).skeleton, set()
    for shot in shots:
        joints |= {skeleton.index(name) for name in shot.points}
        check_points(shot.points, shot.photo.size)
    if len(joints) < FEWEST:
        raise InvalidValueError(f"a pose needs points for at least {FEWEST} joints; got {_count(shots)}")


def _count(shots: Sequence[Shot]) -> int:
    return len({name for shot in shots for name in shot.points})


def _standing(one: Explanation) -> Explanation:
    """The same picture with the body on the floor at the origin: body and camera move together."""
    positions = one.space.forward(one.q)[0]
    shift = -np.array([one.q[0], positions[:, 1].min(), one.q[2]])
    q = one.q.copy()
    q[:3] += shift
    views = [replace(view, camera=_moved(view.camera, shift)) for view in one.views]
    return replace(one, q=q, views=views)


def _moved(camera: Camera, shift: Float[Array, "3"]) -> Camera:
    return replace(camera, translation=camera.translation - camera.rotation @ shift)
