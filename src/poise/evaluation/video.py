"""Protocol `video`: one camera's body, and two cameras', beside the body that all cameras of a real recording give.

Errors are joint distances relative to the pelvis, in the axes of the camera. A camera counts as calibrated, or as
unknown: then its focal length, its up direction and the person's size are estimated. The same body fitted to the
detector's own shape, frame by frame, is the baseline.

With `live`, each camera is used as a webcam: errors, jitter, and the time of every stage. With `simulated`, a
detector's errors as measured on real people are put on known motions: every landmark has a constant error per take and
one that changes within a tenth of a second, and shapes exaggerate depth (occlusion and exchanged sides are not
simulated). With `rendered`, the detector itself looks at the mannequin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float, UInt8

from poise.apps.video import VideoTake, capture, pictures_of, watch_videos
from poise.capture.people.take import capture_person, detected_motion
from poise.capture.performance import PerformedFrame, motion_of
from poise.capture.webcam import WebcamPerformance
from poise.errors import InvalidValueError
from poise.evaluation.report import ABOUT, Protocol, ProtocolOptions, Request, Row
from poise.geometry.cameras import Camera
from poise.motion.contacts import foot_contacts, foot_positions
from poise.motion.motion import Motion
from poise.motion.world import facing_directions
from poise.pictures.overlay import render_photo
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.roles import SIDES
from poise.solvers.solution import MotionSolution
from poise.types import Array, NamedProgress
from poise.vision.opencv import cv2
from poise.vision.people.person import INDEX, NAMES, TORSO, handles_of
from poise.vision.people.unknown_camera import level_camera, with_focal
from poise.vision.people.watched import DEPTH, WatchedPerson, meeting_places
from poise.vision.people.watching import SEEN_ENOUGH, people_of, watch_people
from poise.vision.rig import STRAIGHT, LensCamera, load_rig
from poise.vision.sources import Step

HOW = "pip download --no-deps pose2sim, unzip the wheel, --recording Pose2Sim/Demo_SinglePerson"


@dataclass(frozen=True)
class VideoOptions(ProtocolOptions):
    """Options of the protocol."""

    recording: Annotated[str, "folder with videos/ and calibration/ of several cameras"] = ""
    live: Annotated[bool, "each camera as a webcam instead: errors, shaking, the time of every stage"] = False
    simulated: Annotated[bool, "the detector's errors simulated on clips with known truth instead"] = False
    rendered: Annotated[bool, "pictures of the mannequin moving as clips with known truth instead"] = False


def run(request: Request, progress: NamedProgress) -> list[Row]:
    """For every person one row for every camera, calibrated, with its lens alone and unknown, and for every pair."""
    if request.options.simulated or request.options.rendered:
        return (rendered_rows if request.options.rendered else simulated_rows)(request, progress)
    folder = request.options.recording
    videos = sorted((Path(folder) / "videos").glob("*.mp4")) if folder else []
    files = [
        path for path in sorted(Path(folder, "calibration").glob("*")) if path.suffix in (".toml", ".txt")
    ]
    if len(videos) < 2 or not files:
        raise InvalidValueError(
            f"a recording has videos/*.mp4 of two cameras or more, and calibration/; got {folder!r}; get one: {HOW}"
        )
    begun, rig = time.process_time(), load_rig(files[0])
    take = watch_videos([str(video) for video in videos], rig=rig, progress=progress)
    detecting = (time.process_time() - begun) / (take.people.frames * len(videos))
    truths = [capture(take, person=k + 1) for k in range(len(take.people.people))]
    if request.options.live:
        return live_rows(take, truths[0], progress)
    numbers = range(len(videos))
    alone = [((k,), known) for known in ("yes", "lens", "no") for k in numbers]
    sets = [*alone, *((pair, "yes") for pair in combinations(numbers, 2))]
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
                # Calibrated (`yes`), with the focal length alone (`lens`), or not.
                which = chosen if seen is take else range(len(chosen))
                watched, lens = (
                    seen.people.watched(own, seen.cameras).of_cameras(which),
                    seen.cameras[which[0]],
                )
                if known == "lens":
                    watched = replace(watched, cameras=[level_camera(lens.size, lens.pinhole.focal_length)])
                elif known == "no":
                    watched = with_focal(replace(watched, cameras=[level_camera(lens.size)]))
                found = capture_person(watched, known=known == "yes")
                row["solving_ms"] = 1000.0 * (time.process_time() - begun) / len(found.motion)
                row |= beside_detector(found, watched, truth.motion, truth.cameras[chosen[0]])
                row |= {"height_m": found.motion.skeleton.height, "exchanged_frames": exchanged}
                ratio = found.cameras[0].focal_length / truth.cameras[chosen[0]].focal_length
                row["focal_off_percent"] = 100.0 * (ratio - 1.0)
            rows.append(row | {"detecting_ms": 1000.0 * detecting})
    return rows


def followed(seen: VideoTake, truths: Sequence[MotionSolution]) -> dict[int, tuple[int, int]]:
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


# --- errors of a body seen by cameras --------------------------------------------------------------------------------

LIMBS = tuple(
    (f"{side}_{a}", f"{side}_{b}")
    for side in SIDES
    for a, b in (("thigh", "shin"), ("shin", "foot"), ("upper_arm", "forearm"), ("forearm", "hand"))
)
ROLES = ("head", *dict.fromkeys(role for limb in LIMBS for role in limb))
LONG_ENOUGH = 4  # frames of a contact whose slide counts


def compared(motion: Motion, camera: Camera, truth: Motion, true_camera: Camera) -> Row:
    """One body beside the true one, each in the axes of the camera that sees it."""
    own, true = _joints(motion) @ camera.rotation.T, _joints(truth) @ true_camera.rotation.T
    return {
        "error_cm": 100.0 * float(np.linalg.norm(own - true, axis=-1).mean()),
        "limbs_deg": _degrees(own, true),
        "jitter_ratio": _jitter(motion) / _jitter(truth),
        "slide_cm": 100.0 * _slide(motion),
        "flipped_frames": float(np.sum(_facing(own) * _facing(true) < 0.0)),
    }


def beside_detector(found: MotionSolution, seen: WatchedPerson, truth: Motion, true_camera: Camera) -> Row:
    """Errors of the body and of the detector's own shape, fitted with the same body."""
    own = found.cameras[0]
    row = compared(found.motion, own, truth, true_camera)
    detector = compared(detected_motion(seen, found), own, truth, true_camera)["error_cm"]
    lower = 100.0 * (1.0 - float(row["error_cm"]) / float(detector))
    return row | {"detector_cm": detector, "lower_percent": lower}


def hips_of(motion: Motion) -> Float[Array, "frames 3"]:
    """Between the hips."""
    places = np.asarray(motion.positions)
    return np.asarray(places[:, [motion.skeleton.index(f"{side}_thigh") for side in SIDES]].mean(axis=1))


def _joints(motion: Motion) -> Float[Array, "frames roles 3"]:
    """Joints from between the hips."""
    places = np.asarray(motion.positions)[:, [motion.skeleton.index(role) for role in ROLES]]
    return np.asarray(places - hips_of(motion)[:, None])


def _degrees(own: Array, true: Array) -> float:
    """Mean angle of limbs from the true ones."""
    angles = []
    for first, last in LIMBS:
        a, b = (one[:, ROLES.index(last)] - one[:, ROLES.index(first)] for one in (own, true))
        cosine = np.sum(a * b, axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
        angles.append(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
    return float(np.mean(angles))


def _facing(joints: Float[Array, "frames roles 3"]) -> Float[Array, "frames"]:
    """Whether the body faces the camera or away: the side of the left shoulder in the picture."""
    left, right = (joints[:, ROLES.index(f"{side}_upper_arm"), 0] for side in ("left", "right"))
    return np.asarray(left - right)


def _jitter(motion: Motion) -> float:
    """Mean jerk of the joints."""
    return float(np.linalg.norm(np.diff(np.asarray(motion.positions), n=3, axis=0), axis=-1).mean())


def _slide(motion: Motion) -> float:
    """The largest travel of a standing heel or toe over the floor during one contact, in metres."""
    stands = foot_contacts(motion).points.reshape(len(motion), 4)
    places, worst = foot_positions(motion).reshape(len(motion), 4, 3), 0.0
    for point in range(4):
        frames = np.flatnonzero(stands[:, point])
        for part in np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1):
            if len(part) >= LONG_ENOUGH:
                worst = max(worst, float(np.linalg.norm(np.ptp(places[part, point][:, [0, 2]], axis=0))))
    return worst


Pictures = Sequence[UInt8[Array, "height width 3"]]

# --- cameras as webcams ----------------------------------------------------------------------------------------------

FPS, SIDE = 30.0, 640  # of a webcam: frame rate, and pixels along the long side
STILL, NOISE = 3.0, 3.0  # seconds of a still picture, and grey levels of its noise


def live_rows(take: VideoTake, truth: MotionSolution, progress: NamedProgress) -> list[Row]:
    """One row for every camera: its pictures there and back, 30 a second, and one of them standing still."""
    rows: list[Row] = []
    stride = max(1, round(take.people.fps / FPS))
    there = list(range(0, take.people.frames, stride))
    numbers = [*there, *there[-2:0:-1]]
    for camera, video in enumerate(take.videos):
        progress("as a webcam", camera, len(take.videos))
        small = []
        for picture in pictures_of(take, camera):
            scale = SIDE / max(picture.shape[:2])
            resized = cv2().resize(picture, None, fx=scale, fy=scale, interpolation=cv2().INTER_AREA)
            small.append(np.asarray(resized))
        live = WebcamPerformance()
        frames, spent, waited = _performed(live, [small[k] for k in numbers])
        assert live.measured is not None
        own, measured = motion_of(frames, FPS), live.measured.cameras[0]
        chosen, whole = numbers[-len(frames) :], truth.motion
        true = Motion(whole.skeleton, FPS, whole.root_positions[chosen], whole.rotations[chosen])
        row = {"cameras": Path(video).stem, **compared(own, measured, true, truth.cameras[camera])}
        rng = np.random.default_rng(0)
        noisy = [small[0] + rng.normal(0.0, NOISE, small[0].shape) for _ in range(round(STILL * FPS))]
        still = [np.clip(picture, 0, 255).astype(np.uint8) for picture in noisy]
        row["shaking_live_mm"] = _shaking(motion_of(_performed(WebcamPerformance(), still)[0], FPS))
        views, count = watch_people([Step(k / FPS, (one,)) for k, one in enumerate(still)], ["still"])
        size = (small[0].shape[1], small[0].shape[0])
        lens = LensCamera("camera", level_camera(size), size, np.array(STRAIGHT))
        watched = people_of(views, count, FPS).watched(0, [lens])
        row["shaking_file_mm"] = _shaking(capture_person(watched, known=False).motion)  # all solved together
        finding, solving = (1000.0 * float(part) for part in np.median(spent, axis=0))
        row |= {"finding_ms": finding, "solving_ms": solving, "bodies_a_second": 1000.0 / (finding + solving)}
        rows.append(row | {"picture_to_pose_ms": 1000.0 * waited})
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


def _shaking(motion: Motion) -> float:
    """Jitter of a still person's joints around their mean, rms in millimetres, over the second half."""
    places = np.asarray(motion.positions)[len(motion) // 2 :]
    return 1000.0 * float(np.sqrt(np.square(places - places.mean(axis=0)).sum(axis=-1).mean()))


# --- simulated and rendered takes ------------------------------------------------------------------------------------

STAYS, CHANGES = 0.008, 0.006  # sides of the person's square: constant and changing pixel errors
SHAPE_STAYS, SHAPE_CHANGES = (0.025, 0.03, 0.08), (0.03, 0.03, 0.07)  # metres, along the axes of the camera
MEMORY = 0.13  # seconds: time constant of the changing errors
SECONDS, AWAY, SQUARE = 3.0, 4.0, 1.3  # of a take, metres of the camera, and heights of a square
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
        stride = max(1, round(clip.fps / FPS))
        first = np.arange(0, len(clip), stride)[: round(SECONDS * FPS)]
        motion = Motion(clip.skeleton, clip.fps / stride, clip.root_positions[first], clip.rotations[first])
        for view in VIEWS:
            progress("watching clips", len(rows), len(clips) * len(VIEWS))
            cameras = [_camera(motion, degrees) for degrees in view]
            seen, share = watch(motion, cameras, np.random.default_rng(number))
            row: Row = {"clip": clip.name, "cameras": "+".join(f"{degrees:g}" for degrees in view)}
            row["found_percent"] = 100.0 * share
            if seen is not None:
                known = len(cameras) > 1
                if not known:
                    seen = with_focal(replace(seen, cameras=[level_camera(SIZE)]))
                row |= beside_detector(capture_person(seen, known=known), seen, motion, cameras[0])
            rows.append(row)
    return rows


def as_rendered(
    motion: Motion, cameras: Sequence[Camera], _rng: np.random.Generator
) -> tuple[WatchedPerson | None, float]:
    """What the detector finds in pictures of the mannequin; nobody where it is seen in too few of them."""
    lenses = [LensCamera(f"camera {k}", one, SIZE, np.array(STRAIGHT)) for k, one in enumerate(cameras)]
    steps = []
    for k in range(len(motion)):
        photos = [render_photo(motion[k], camera, SIZE).convert("RGB") for camera in cameras]
        pictures = (np.ascontiguousarray(np.asarray(photo)[:, :, ::-1]) for photo in photos)
        steps.append(Step(k / motion.fps, tuple(pictures)))
    views, count = watch_people(steps, [lens.name for lens in lenses])
    longest = [max((len(track) for track in view.tracks.values()), default=0) for view in views]
    share = min(longest) / count
    if share < SEEN_ENOUGH:
        return None, share
    people = people_of(views, count, motion.fps, lenses)
    return people.watched(0, lenses), share


def as_detected(motion: Motion, cameras: Sequence[Camera], rng: np.random.Generator) -> WatchedPerson:
    """The simulated detections of a motion in front of cameras."""
    space = PoseSpace(motion.skeleton)
    handles = space.handles(handles_of(motion.skeleton)[0])
    places = space.points(space.q_from_frames(motion.root_positions, motion.rotations), handles)
    hips = places[:, [INDEX["left_hip"], INDEX["right_hip"]]].mean(axis=1, keepdims=True)
    counts = (len(motion), len(cameras), len(NAMES))
    pixels = np.stack([camera.project(places) for camera in cameras], axis=1)
    shapes = np.stack([(places - hips) @ camera.rotation.T for camera in cameras], axis=1)
    shapes = shapes * (1.0, 1.0, 1.0 / DEPTH)
    away = np.stack([np.linalg.norm(hips[:, 0] - camera.centre, axis=1) for camera in cameras], axis=1)
    sides = SQUARE * motion.skeleton.height * np.array([camera.focal_length for camera in cameras]) / away

    def errors(axes: int, stays: Sequence[float], changes: Sequence[float]) -> Float[Array, "..."]:
        """Errors with a constant part and a part that is correlated from frame to frame, with these deviations."""
        kept, found = np.exp(-1.0 / (MEMORY * motion.fps)), rng.normal(size=(*counts, axes))
        for frame in range(1, len(found)):
            found[frame] = kept * found[frame - 1] + np.sqrt(1.0 - kept**2) * found[frame]
        return np.asarray(stays * rng.normal(size=found.shape[1:]) + changes * found)

    pixels += sides[..., None, None] * errors(2, (STAYS, STAYS), (CHANGES, CHANGES))
    shapes += errors(3, SHAPE_STAYS, SHAPE_CHANGES)
    return WatchedPerson(cameras, pixels, np.full(counts, 0.9), shapes, sides, motion.fps)


def _camera(motion: Motion, degrees: float) -> Camera:
    """A camera at eye height, at this angle from the person's first heading, aimed at the middle of the path."""
    middle, forward = motion.root_positions.mean(axis=0), facing_directions(motion)[0]
    turn = np.arctan2(forward[0], forward[2]) + np.radians(degrees)
    away = AWAY + float(np.linalg.norm(np.ptp(motion.root_positions, axis=0))) / 2
    x, z = (float(value) for value in middle[[0, 2]] + away * np.array([np.sin(turn), np.cos(turn)]))
    target = (float(middle[0]), float(middle[1]), float(middle[2]))
    return Camera.looking_at(target, eye=(x, 1.5, z), size=SIZE, field_of_view=FIELD)


PROTOCOL = Protocol("video", ABOUT["video"], run, Options=VideoOptions)
