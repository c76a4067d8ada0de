"""Protocol `video`: one camera's body, and two cameras', beside the body that all cameras of a real recording give.

Errors are distances of joints seen from the pelvis, in the axes of the camera. A camera counts as calibrated, or as
unknown: then its focal length, which way is up and the person's size are found. The same body put on the detector's
own shape, frame by frame, is what a user of that detector has.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float

from poise.apps.video import VideoTake, capture, watch_videos
from poise.capture.people.take import CapturedPerson, capture_person
from poise.capture.people.upright import level_camera
from poise.errors import InvalidValueError
from poise.evaluation.report import ABOUT, Progress, Protocol, ProtocolOptions, Request, Row
from poise.motion.contacts import foot_contacts, foot_positions
from poise.motion.motion import Motion
from poise.vision.rig import load_rig

Array = np.ndarray

LIMBS = tuple(
    (f"{side}_{a}", f"{side}_{b}")
    for side in ("left", "right")
    for a, b in (("thigh", "shin"), ("shin", "foot"), ("upper_arm", "forearm"), ("forearm", "hand"))
)
ROLES = ("head", *dict.fromkeys(role for limb in LIMBS for role in limb))
LONG_ENOUGH = 4  # frames of a contact whose slide counts
HOW = "pip download --no-deps pose2sim, unzip the wheel, --recording Pose2Sim/Demo_SinglePerson"


@dataclass(frozen=True)
class VideoOptions(ProtocolOptions):
    """Options of the protocol."""

    recording: Annotated[str, "folder with videos/ and calibration/ of several cameras"] = ""


def run(request: Request, progress: Progress) -> list[Row]:
    """One row for every camera, calibrated and unknown, and for every pair."""
    videos, cameras = _files(request.options.recording)
    begun = time.perf_counter()
    take = watch_videos([str(video) for video in videos], rig=load_rig(cameras), progress=progress)
    detecting = (time.perf_counter() - begun) / (take.people.frames * len(videos))
    truth = capture(take)
    numbers = range(len(videos))
    sets: list[tuple[tuple[int, ...], bool]] = [((k,), known) for known in (True, False) for k in numbers]
    sets += [(pair, True) for pair in combinations(numbers, 2)]
    rows: list[Row] = []
    for number, (chosen, known) in enumerate(sets):
        progress("comparing cameras", number, len(sets))
        begun = time.perf_counter()
        found = _captured(take, chosen, known)
        seconds = (time.perf_counter() - begun) / take.people.frames
        names = "+".join(videos[k].stem for k in chosen)
        rows.append(
            {"cameras": names, "calibrated": "yes" if known else "no", **_compared(found, truth, chosen)}
        )
        rows[-1] |= {"detecting_ms": 1000.0 * detecting, "solving_ms": 1000.0 * seconds}
    return rows


def _captured(take: VideoTake, chosen: Sequence[int], known: bool) -> CapturedPerson:
    watched = take.people.watched(0, take.cameras).of_cameras(chosen)
    if not known:
        watched = replace(watched, cameras=[level_camera(take.cameras[chosen[0]].size)])
    return capture_person(watched, known=known)


def _compared(found: CapturedPerson, truth: CapturedPerson, chosen: Sequence[int]) -> Row:
    camera = truth.cameras[chosen[0]].rotation
    own, rough = (_joints(one) @ found.cameras[0].rotation.T for one in (found.motion, found.rough))
    true = _joints(truth.motion) @ camera.T
    error, detector = (float(np.linalg.norm(one - true, axis=-1).mean()) for one in (own, rough))
    return {
        "error_cm": 100.0 * error,
        "detector_cm": 100.0 * detector,
        "lower_percent": 100.0 * (1.0 - error / detector),
        "limbs_deg": _degrees(own, true),
        "jitter_ratio": _jitter(found.motion) / _jitter(truth.motion),
        "slide_cm": 100.0 * _slide(found.motion),
        "flipped_frames": float(np.sum(_facing(own) * _facing(true) < 0.0)),
        "height_m": found.motion.skeleton.height,
    }


def _joints(motion: Motion) -> Float[Array, "frames roles 3"]:
    """Joints from between the hips."""
    places = np.asarray(motion.positions)[:, [motion.skeleton.index(role) for role in ROLES]]
    hips = [ROLES.index("left_thigh"), ROLES.index("right_thigh")]
    return np.asarray(places - places[:, hips].mean(axis=1, keepdims=True))


def _degrees(own: Array, true: Array) -> float:
    """How far limbs are turned from the true ones, on average."""
    angles = []
    for first, last in LIMBS:
        a, b = (one[:, ROLES.index(last)] - one[:, ROLES.index(first)] for one in (own, true))
        cosine = np.sum(a * b, axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
        angles.append(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
    return float(np.mean(angles))


def _facing(joints: Float[Array, "frames roles 3"]) -> Float[Array, "frames"]:
    """Which way the body faces, towards the camera or from it: the side of the left shoulder in the picture."""
    left, right = (joints[:, ROLES.index(f"{side}_upper_arm"), 0] for side in ("left", "right"))
    return np.asarray(left - right)


def _jitter(motion: Motion) -> float:
    """Mean jerk of the joints."""
    return float(np.linalg.norm(np.diff(np.asarray(motion.positions), n=3, axis=0), axis=-1).mean())


def _slide(motion: Motion) -> float:
    """How far the worst standing heel or toe goes over the floor during one contact, in metres."""
    stands = foot_contacts(motion).points.reshape(len(motion), 4)
    places, worst = foot_positions(motion).reshape(len(motion), 4, 3), 0.0
    for point in range(4):
        frames = np.flatnonzero(stands[:, point])
        for part in np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1):
            if len(part) >= LONG_ENOUGH:
                worst = max(worst, float(np.linalg.norm(np.ptp(places[part, point][:, [0, 2]], axis=0))))
    return worst


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
