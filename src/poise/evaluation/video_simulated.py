"""Simulated detections of recorded clips: a detector's errors, measured on real people, on known motions.

Every landmark has a constant error per take and one that changes within a tenth of a second; shapes exaggerate depth.
Occlusion and exchanged sides are not simulated. Rendered takes show the mannequin to the detector itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float, UInt8

from poise.capture.people.focal import with_focal
from poise.capture.people.landmarks import INDEX, NAMES, handles_of
from poise.capture.people.take import capture_person
from poise.capture.people.upright import level_camera
from poise.capture.people.watched import DEPTH, WatchedPerson
from poise.evaluation.report import Request, Row
from poise.evaluation.video_measures import beside_detector
from poise.geometry.cameras import Camera
from poise.motion.motion import Motion
from poise.motion.world import facing_directions
from poise.pictures.overlay import render_photo
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose
from poise.types import Array, NamedProgress
from poise.vision.lens import STRAIGHT, LensCamera
from poise.vision.people.watching import SEEN_ENOUGH, people_of, watch_people
from poise.vision.sources import Step

STAYS, CHANGES = 0.008, 0.006  # sides of the person's square: constant and changing pixel errors
SHAPE_STAYS, SHAPE_CHANGES = (0.025, 0.03, 0.08), (0.03, 0.03, 0.07)  # metres, along the axes of the camera
MEMORY = 0.13  # seconds: time constant of the changing errors
SECONDS, FPS, AWAY, SQUARE = 3.0, 30.0, 4.0, 1.3  # of a take, metres of the camera, and heights of a square
SIZE, FIELD = (720, 1280), 1.05
VIEWS = ((0.0,), (90.0,), (0.0, 90.0))  # degrees from the front of the first frame


Watch = Callable[[Motion, Sequence[Camera], np.random.Generator], tuple[WatchedPerson | None, float]]
"""What cameras see of a motion, and the share of pictures in which the person is found."""


def simulated_rows(request: Request, progress: NamedProgress) -> list[Row]:
    """The detector's errors on test clips."""
    return _rows(request, progress, lambda *given: (as_detected(*given), 1.0))


def rendered_rows(request: Request, progress: NamedProgress) -> list[Row]:
    """The detector itself on pictures of the mannequin that moves as test clips do."""
    return _rows(request, progress, as_rendered)


def _rows(request: Request, progress: NamedProgress, watch: Watch) -> list[Row]:
    """For every test clip one row for each view: a camera whose lens is not known, two that are calibrated."""
    clips = [clip for fold in request.folds() for clip in fold.test]
    rows: list[Row] = []
    for number, clip in enumerate(clips):
        motion = _part(clip)
        for view in VIEWS:
            progress("watching clips", len(rows), len(clips) * len(VIEWS))
            cameras = [_camera(motion, degrees) for degrees in view]
            seen, share = watch(motion, cameras, np.random.default_rng(number))
            row: Row = {"clip": clip.name, "cameras": "+".join(f"{degrees:g}" for degrees in view)}
            row["found_percent"] = 100.0 * share
            rows.append(row if seen is None else row | _errors_of(seen, motion, cameras))
    return rows


def _errors_of(seen: WatchedPerson, motion: Motion, cameras: Sequence[Camera]) -> Row:
    known = len(cameras) > 1
    if not known:
        seen = with_focal(replace(seen, cameras=[level_camera(SIZE)]))
    return beside_detector(capture_person(seen, known=known), seen, motion, cameras[0])


def as_rendered(
    motion: Motion, cameras: Sequence[Camera], _rng: np.random.Generator
) -> tuple[WatchedPerson | None, float]:
    """What the detector finds in pictures of the mannequin; nobody where it is seen in too few of them."""
    lenses = [LensCamera(f"camera {k}", one, SIZE, np.array(STRAIGHT)) for k, one in enumerate(cameras)]
    steps = [
        Step(k / motion.fps, tuple(_picture(motion[k], camera) for camera in cameras))
        for k in range(len(motion))
    ]
    views, count = watch_people(steps, [lens.name for lens in lenses])
    longest = [max((len(track) for track in view.tracks.values()), default=0) for view in views]
    share = min(longest) / count
    if share < SEEN_ENOUGH:
        return None, share
    people = people_of(views, count, motion.fps, lenses)
    return people.watched(0, lenses), share


def _picture(pose: Pose, camera: Camera) -> UInt8[Array, "rows columns 3"]:
    return np.ascontiguousarray(np.asarray(render_photo(pose, camera, SIZE).convert("RGB"))[:, :, ::-1])


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
