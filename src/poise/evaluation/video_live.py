"""The cameras of a real recording, each used as a webcam: errors, jitter, and the time of every stage."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from poise.apps.video import VideoTake, pictures_of
from poise.capture.people.take import CapturedPerson, capture_person
from poise.capture.people.upright import level_camera
from poise.evaluation.report import Row
from poise.evaluation.video_measures import compared
from poise.motion.motion import Motion
from poise.performance.perform import PerformedFrame, motion_of
from poise.performance.webcam import WebcamPerformance
from poise.types import Array, NamedProgress
from poise.vision.lens import STRAIGHT, LensCamera
from poise.vision.opencv import cv2
from poise.vision.people.watching import people_of, watch_people
from poise.vision.sources import Step

Pictures = Sequence[UInt8[Array, "height width 3"]]

FPS, SIDE = 30.0, 640  # of a webcam: frame rate, and pixels along the long side
STILL, NOISE = 3.0, 3.0  # seconds of a still picture, and grey levels of its noise


def live_rows(take: VideoTake, truth: CapturedPerson, progress: NamedProgress) -> list[Row]:
    """One row for every camera: its pictures there and back, 30 a second, and one of them standing still."""
    rows: list[Row] = []
    stride = max(1, round(take.people.fps / FPS))
    there = list(range(0, take.people.frames, stride))
    numbers = [*there, *there[-2:0:-1]]
    for camera, video in enumerate(take.videos):
        progress("as a webcam", camera, len(take.videos))
        small = [_small(picture) for picture in pictures_of(take, camera)]
        live = WebcamPerformance()
        frames, spent, waited = _performed(live, [small[k] for k in numbers])
        assert live.measured is not None
        own, measured = motion_of(frames, FPS), live.measured.cameras[0]
        true = _chosen(truth.motion, numbers[-len(frames) :])
        row = compared(own, measured, true, truth.cameras[camera])
        shaking = {"shaking_live_mm": _shaking_live(small[0]), "shaking_file_mm": _shaking_in_file(small[0])}
        finding, solving = (1000.0 * float(part) for part in np.median(spent, axis=0))
        rows.append(
            {"cameras": Path(video).stem, **row, **shaking, "finding_ms": finding, "solving_ms": solving}
        )
        rows[-1] |= {"bodies_a_second": 1000.0 / (finding + solving), "picture_to_pose_ms": 1000.0 * waited}
    return rows


def _performed(live: WebcamPerformance, pictures: Pictures) -> tuple[list[PerformedFrame], Array, float]:
    """Poses, processor seconds of both stages for each, and the median waiting time."""
    frames, spent, waited = [], [], []
    for number, picture in enumerate(pictures):
        begun = time.perf_counter()
        frame = live.step(picture, number / FPS)
        if frame is not None:
            frames.append(frame)
            spent.append(live.spent)
            waited.append(time.perf_counter() - begun)
    return frames, np.array(spent), float(np.median(waited))


def _shaking_live(picture: UInt8[Array, "height width 3"]) -> float:
    frames, _, _ = _performed(WebcamPerformance(), _still(picture))
    return _shaking(motion_of(frames, FPS))


def _shaking_in_file(picture: UInt8[Array, "height width 3"]) -> float:
    """The same pictures, all solved together."""
    pictures, size = _still(picture), (picture.shape[1], picture.shape[0])
    views, count = watch_people([Step(k / FPS, (one,)) for k, one in enumerate(pictures)], ["still"])
    people = people_of(views, count, FPS)
    lens = LensCamera("camera", level_camera(size), size, np.array(STRAIGHT))
    return _shaking(capture_person(people.watched(0, [lens]), known=False).motion)


def _still(picture: UInt8[Array, "height width 3"]) -> Pictures:
    rng = np.random.default_rng(0)
    return [
        np.clip(picture + rng.normal(0.0, NOISE, picture.shape), 0, 255).astype(np.uint8)
        for _ in range(round(STILL * FPS))
    ]


def _shaking(motion: Motion) -> float:
    """Jitter of a still person's joints around their mean, rms in millimetres, over the second half."""
    places = np.asarray(motion.positions)[len(motion) // 2 :]
    return 1000.0 * float(np.sqrt(np.square(places - places.mean(axis=0)).sum(axis=-1).mean()))


def _small(picture: UInt8[Array, "height width 3"]) -> UInt8[Array, "rows columns 3"]:
    scale = SIDE / max(picture.shape[:2])
    return np.asarray(cv2().resize(picture, None, fx=scale, fy=scale, interpolation=cv2().INTER_AREA))


def _chosen(motion: Motion, frames: Sequence[int]) -> Motion:
    chosen = list(frames)
    return Motion(motion.skeleton, FPS, motion.root_positions[chosen], motion.rotations[chosen])
