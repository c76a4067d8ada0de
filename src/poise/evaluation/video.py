"""Protocol `video`: one camera's body, and two cameras', beside the body that all cameras of a real recording give.

Errors are joint distances relative to the pelvis, in the axes of the camera. A camera counts as calibrated, or as
unknown: then its focal length, its up direction and the person's size are estimated. The same body fitted to the
detector's own shape, frame by frame, is the baseline.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np

from poise.apps.video import VideoTake, capture, watch_videos
from poise.capture.people.focal import with_focal
from poise.capture.people.landmarks import TORSO
from poise.capture.people.take import CapturedPerson, capture_person
from poise.capture.people.upright import level_camera
from poise.capture.people.watched import WatchedPerson, meeting_places
from poise.errors import InvalidValueError
from poise.evaluation.report import ABOUT, Protocol, ProtocolOptions, Request, Row
from poise.evaluation.video_live import live_rows
from poise.evaluation.video_measures import beside_detector, hips_of
from poise.evaluation.video_simulated import rendered_rows, simulated_rows
from poise.types import NamedProgress
from poise.vision.rig import load_rig

HOW = "pip download --no-deps pose2sim, unzip the wheel, --recording Pose2Sim/Demo_SinglePerson"


@dataclass(frozen=True)
class VideoOptions(ProtocolOptions):
    """Options of the protocol."""

    recording: Annotated[str, "folder with videos/ and calibration/ of several cameras"] = ""
    live: Annotated[bool, "each camera as a webcam instead: errors, shaking, and the time of every stage"] = (
        False
    )
    simulated: Annotated[bool, "the detector's errors simulated on clips whose truth is known instead"] = (
        False
    )
    rendered: Annotated[bool, "pictures of the mannequin moving as clips with known truth instead"] = False


def run(request: Request, progress: NamedProgress) -> list[Row]:
    """For every person one row for every camera, calibrated, with its lens alone and unknown, and for every pair."""
    if request.options.simulated or request.options.rendered:
        return (rendered_rows if request.options.rendered else simulated_rows)(request, progress)
    videos, file = _files(request.options.recording)
    begun, rig = time.process_time(), load_rig(file)
    take = watch_videos([str(video) for video in videos], rig=rig, progress=progress)
    detecting = (time.process_time() - begun) / (take.people.frames * len(videos))
    truths = [capture(take, person=k + 1) for k in range(len(take.people.people))]
    if request.options.live:
        return live_rows(take, truths[0], progress)
    numbers = range(len(videos))
    sets: list[tuple[tuple[int, ...], str]] = [
        ((k,), known) for known in ("yes", "lens", "no") for k in numbers
    ]
    sets += [(pair, "yes") for pair in combinations(numbers, 2)]
    rows: list[Row] = []
    for number, (chosen, known) in enumerate(sets):
        progress("comparing cameras", number, len(sets))
        seen, who = take, {k: (k, 0) for k in range(len(truths))}
        if len(chosen) > 1:
            seen = watch_videos([str(videos[k]) for k in chosen], rig=rig)
            who = followed(seen, truths)
        for person, truth in enumerate(truths):
            row: Row = {
                "cameras": "+".join(videos[k].stem for k in chosen), "calibrated": known, "person": person + 1,
            }  # fmt: skip
            if person in who:
                begun, (own, exchanged) = time.process_time(), who[person]
                found, watched = _captured(seen, own, chosen if seen is take else range(len(chosen)), known)
                row["solving_ms"] = 1000.0 * (time.process_time() - begun) / len(found.motion)
                row |= beside_detector(found, watched, truth.motion, truth.cameras[chosen[0]])
                row |= {"height_m": found.motion.skeleton.height, "exchanged_frames": exchanged}
                row["focal_off_percent"] = _focal_off(found, truth, chosen)
            rows.append(row | {"detecting_ms": 1000.0 * detecting})
    return rows


def followed(seen: VideoTake, truths: Sequence[CapturedPerson]) -> dict[int, tuple[int, int]]:
    """For each true person the one tracked by two cameras, and the number of frames with somebody else."""
    hips = np.stack([hips_of(truth.motion) for truth in truths], axis=1)
    found = {}
    for number in range(len(seen.people.people)):
        trunk = meeting_places(seen.people.watched(number, seen.cameras))[:, list(TORSO)].mean(axis=1)
        gaps = np.linalg.norm(trunk[:, None] - hips[: len(trunk)], axis=-1)
        nearest = gaps[np.isfinite(gaps).all(axis=1)].argmin(axis=1)
        if len(nearest):
            own = int(np.bincount(nearest).argmax())
            found[own] = number, int((nearest != own).sum())
    return found


def _captured(
    take: VideoTake, person: int, chosen: Sequence[int], known: str
) -> tuple[CapturedPerson, WatchedPerson]:
    """The person as seen by some cameras, calibrated (`yes`), with the focal length alone (`lens`), or not."""
    watched = take.people.watched(person, take.cameras).of_cameras(chosen)
    lens = take.cameras[chosen[0]]
    if known == "lens":
        watched = replace(watched, cameras=[level_camera(lens.size, lens.pinhole.focal_length)])
    elif known == "no":
        watched = with_focal(replace(watched, cameras=[level_camera(lens.size)]))
    return capture_person(watched, known=known == "yes"), watched


def _focal_off(found: CapturedPerson, truth: CapturedPerson, chosen: Sequence[int]) -> float:
    return 100.0 * (found.cameras[0].focal_length / truth.cameras[chosen[0]].focal_length - 1.0)


def _files(folder: str) -> tuple[list[Path], Path]:
    videos = sorted((Path(folder) / "videos").glob("*.mp4")) if folder else []
    cameras = [
        path for path in sorted((Path(folder) / "calibration").glob("*")) if path.suffix in (".toml", ".txt")
    ]
    if len(videos) < 2 or not cameras:
        raise InvalidValueError(
            f"a recording has videos/*.mp4 of two cameras or more, and calibration/; got {folder!r}; get one: {HOW}"
        )
    return videos, cameras[0]


PROTOCOL = Protocol("video", ABOUT["video"], run, Options=VideoOptions)
