"""Simulated detections of recorded clips: a detector's errors, measured on real people, on known motions.

Every landmark has a constant error per take and one that changes within a tenth of a second; shapes exaggerate depth.
Occlusion and exchanged sides are not simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.capture.people.focal import with_focal
from poise.capture.people.landmarks import INDEX, NAMES, handles_of
from poise.capture.people.take import capture_person
from poise.capture.people.upright import level_camera
from poise.capture.people.watched import DEPTH, WatchedPerson
from poise.evaluation.report import Request, Row
from poise.evaluation.video_measures import compared
from poise.geometry.cameras import Camera
from poise.motion.motion import Motion
from poise.motion.world import facing_directions
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array, NamedProgress

STAYS, CHANGES = 0.008, 0.006  # sides of the person's square: constant and changing pixel errors
SHAPE_STAYS, SHAPE_CHANGES = (0.025, 0.03, 0.08), (0.03, 0.03, 0.07)  # metres, along the axes of the camera
MEMORY = 0.13  # seconds: time constant of the changing errors
SECONDS, FPS, AWAY, SQUARE = 3.0, 30.0, 4.0, 1.3  # of a take, metres of the camera, and heights of a square
SIZE, FIELD = (720, 1280), 1.05
VIEWS = ((0.0,), (90.0,), (0.0, 90.0))  # degrees from the front of the first frame


def simulated_rows(request: Request, progress: NamedProgress) -> list[Row]:
    """For every test clip one row for each view: a camera whose lens is not known, two that are calibrated."""
    clips = [clip for fold in request.folds() for clip in fold.test]
    rows: list[Row] = []
    for number, clip in enumerate(clips):
        progress("simulating the detector", number, len(clips))
        motion = _part(clip)
        for view in VIEWS:
            cameras = [_camera(motion, degrees) for degrees in view]
            seen, known = as_detected(motion, cameras, np.random.default_rng(number)), len(view) > 1
            if not known:
                seen = with_focal(replace(seen, cameras=[level_camera(SIZE)]))
            found = capture_person(seen, known=known)
            row = compared(found.motion, found.cameras[0], motion, cameras[0])
            rough = compared(found.rough, found.cameras[0], motion, cameras[0])["error_cm"]
            names = "+".join(f"{degrees:g}" for degrees in view)
            rows.append({"clip": clip.name, "cameras": names, **row, "detector_cm": rough})
    return rows


def as_detected(motion: Motion, cameras: Sequence[Camera], rng: np.random.Generator) -> WatchedPerson:
    """The simulated detections of a motion in front of cameras."""
    space = PoseSpace(motion.skeleton)
    handles = space.handles(handles_of(motion.skeleton)[0])
    places = space.points(space.q_from_frames(motion.root_positions, motion.rotations), handles)
    hips = places[:, [INDEX["left_hip"], INDEX["right_hip"]]].mean(axis=1, keepdims=True)
    counts = (len(motion), len(cameras), len(NAMES))
    pixels = np.stack([camera.project(places) for camera in cameras], axis=1)
    shapes = np.stack([(places - hips) @ camera.rotation.T for camera in cameras], axis=1) * (
        1.0,
        1.0,
        1.0 / DEPTH,
    )
    away = np.stack([np.linalg.norm(hips[:, 0] - camera.centre, axis=1) for camera in cameras], axis=1)
    sides = SQUARE * motion.skeleton.height * np.array([camera.focal_length for camera in cameras]) / away
    pixels += sides[..., None, None] * _errors(
        (*counts, 2), motion.fps, (STAYS, STAYS), (CHANGES, CHANGES), rng
    )
    shapes += _errors((*counts, 3), motion.fps, SHAPE_STAYS, SHAPE_CHANGES, rng)
    return WatchedPerson(cameras, pixels, np.full(counts, 0.9), shapes, sides, motion.fps)


def _errors(
    shape: tuple[int, ...],
    fps: float,
    stays: Sequence[float],
    changes: Sequence[float],
    rng: np.random.Generator,
) -> Float[Array, "..."]:
    """Errors with a constant part and a part that is correlated from frame to frame, with these deviations."""
    kept, found = np.exp(-1.0 / (MEMORY * fps)), rng.normal(size=shape)
    for frame in range(1, len(found)):
        found[frame] = kept * found[frame - 1] + np.sqrt(1.0 - kept**2) * found[frame]
    return np.asarray(stays * rng.normal(size=shape[1:]) + changes * found)


def _camera(motion: Motion, degrees: float) -> Camera:
    """A camera at eye height, at this angle from the person's first heading, aimed at the middle of the path."""
    middle, forward = motion.root_positions.mean(axis=0), facing_directions(motion)[0]
    turn = np.arctan2(forward[0], forward[2]) + np.radians(degrees)
    away = AWAY + float(np.linalg.norm(np.ptp(motion.root_positions, axis=0))) / 2
    x, z = (float(value) for value in middle[[0, 2]] + away * np.array([np.sin(turn), np.cos(turn)]))
    target = (float(middle[0]), float(middle[1]), float(middle[2]))
    return Camera.looking_at(target, eye=(x, 1.5, z), size=SIZE, field_of_view=FIELD)


def _part(clip: Motion) -> Motion:
    """The first seconds of a clip."""
    stride = max(1, round(clip.fps / FPS))
    chosen = np.arange(0, len(clip), stride)[: round(SECONDS * FPS)]
    return Motion(clip.skeleton, clip.fps / stride, clip.root_positions[chosen], clip.rotations[chosen])
