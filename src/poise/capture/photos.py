"""Poses a body from points in a photo, or in several (Grochow et al. 2004, section 7.4)."""

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

EYE_HEIGHT = 1.5  # metres; where the floor is, is found afterwards
PITCHES = (-10.0, 0.0, 10.0, 20.0, 30.0)  # degrees downwards that an unknown camera may look
ALTERNATIVES = 3
FEWEST = 3
"""Points below which a photo says too little of a pose."""


def pose_from_shots(
    model: Model,
    shots: Sequence[Shot],
    *,
    fov: float | None = None,
    pitch: float | None = None,
    alternatives: int = ALTERNATIVES,
) -> list[Explanation]:
    """The likeliest poses that explain the points, best first.

    A camera that is not known is taken to stand level but for its pitch, with the field of view given (vertical,
    degrees), that of the photo's EXIF data, or the usual one; the body then stands on the floor around the origin.
    """
    _check(model, shots, alternatives)
    if all(shot.camera is not None for shot in shots):
        views = [View(shot.camera, shot.points) for shot in shots if shot.camera is not None]
        return explain(model, views)[:alternatives]
    if len(shots) > 1:
        raise InvalidValueError("several photos need a camera each: only one photo's camera can be estimated")
    focal = focal_of(shots[0], fov)
    pitches = PITCHES if pitch is None else (pitch,)
    found = [
        _standing(one)
        for degrees in pitches
        for one in explain(model, [View(level_camera(shots[0].photo.size, focal, degrees), shots[0].points)])
    ]
    return told_apart(sorted(found, key=lambda one: -one.posterior))[:alternatives]


def focal_of(shot: Shot, fov: float | None) -> float:
    """The focal length in pixels: from the field of view given, else from EXIF, else the usual one."""
    if fov is None and (known := shot.photo.info.get("exif_focal")) is not None:
        return float(known)
    return focal_from_fov(USUAL_FOV if fov is None else fov, shot.photo.height)


def level_camera(size: tuple[int, int], focal: float, pitch: float) -> Camera:
    """A camera at eye height that looks towards -Z: who faces it faces +Z. The pitch is downwards, in degrees."""
    if not -80.0 <= pitch <= 80.0:
        raise InvalidValueError(f"the camera's pitch is -80 to 80 degrees; got {pitch:g}")
    down = np.radians(pitch)
    target = (0.0, EYE_HEIGHT - float(np.sin(down)), -float(np.cos(down)))
    aimed = Camera.looking_at(target, eye=(0.0, EYE_HEIGHT, 0.0), size=size)
    intrinsics = np.array([[focal, 0.0, size[0] / 2], [0.0, focal, size[1] / 2], [0.0, 0.0, 1.0]])
    return replace(aimed, intrinsics=intrinsics)


def _check(model: Model, shots: Sequence[Shot], alternatives: int) -> None:
    if alternatives < 1:
        raise InvalidValueError(f"ask for one alternative or more; got {alternatives}")
    skeleton, joints = space_of(model).skeleton, set()
    for shot in shots:
        joints |= {skeleton.index(name) for name in shot.points}
        check_points(shot.points, shot.photo.size)
    if len(joints) < FEWEST:
        raise InvalidValueError(f"a pose needs points for {FEWEST} joints or more; got {_count(shots)}")


def _count(shots: Sequence[Shot]) -> int:
    return len({name for shot in shots for name in shot.points})


def _standing(one: Explanation) -> Explanation:
    """The same picture with the body on the floor around the origin: body and camera move together."""
    positions = one.space.forward(one.q)[0]
    shift = -np.array([one.q[0], positions[:, 1].min(), one.q[2]])
    q = one.q.copy()
    q[:3] += shift
    views = [replace(view, camera=_moved(view.camera, shift)) for view in one.views]
    return replace(one, q=q, views=views)


def _moved(camera: Camera, shift: Float[Array, "3"]) -> Camera:
    return replace(camera, translation=camera.translation - camera.rotation @ shift)
