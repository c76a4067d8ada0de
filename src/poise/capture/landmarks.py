"""Motions from landmarks that other programs found in a video: MediaPipe, OpenPose, COCO, SAM 3D Body.

Documented keys of each: MediaPipe Tasks' `PoseLandmarkerResult` (33 landmarks of BlazePose, in the picture and in
metres); OpenPose's `doc/02_output.md` (one file a frame, BODY_25 or COCO's 18 points); COCO's keypoint annotations and
results (17 points); the estimator of SAM 3D Body (70 points of MHR, in the picture and in the camera, with its focal
length). All become the landmarks of BlazePose, from which the body is solved as from a video (`capture.people`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.bounds import checked_rate
from poise.capture.people.take import capture_person
from poise.errors import InvalidValueError, ParseError
from poise.formats.files import existing_file
from poise.motion.motion import Motion, Origin
from poise.priors.universal.prior import UniversalPrior
from poise.solvers.constraints import Projection
from poise.solvers.solve import Follower, Solver
from poise.types import Array
from poise.vision.people.person import INDEX, NAMES, handles_of
from poise.vision.people.unknown_camera import level_camera, with_focal
from poise.vision.people.watched import LEAST_SEEN, WatchedPerson

RATE = 30.0  # frames a second, where a file does not say
SIZE = (1920, 1080)  # pixels, the same
MOST_BYTES = 512 << 20
FEWEST = 8  # points that show a person
AROUND = 1.25  # size of the square around a person, relative to the landmarks
OFF = 4.0  # pixels: tolerance of points without depth
BODY_25 = (
    "nose neck right_shoulder right_elbow right_wrist left_shoulder left_elbow left_wrist pelvis right_hip right_knee "
    "right_ankle left_hip left_knee left_ankle right_eye left_eye right_ear left_ear left_foot_index left_small_toe "
    "left_heel right_foot_index right_small_toe right_heel"
)
COCO_18 = (
    "nose neck right_shoulder right_elbow right_wrist left_shoulder left_elbow left_wrist right_hip right_knee "
    "right_ankle left_hip left_knee left_ankle right_eye left_eye right_ear left_ear"
)
COCO_17 = (
    "nose left_eye right_eye left_ear right_ear left_shoulder right_shoulder left_elbow right_elbow left_wrist "
    "right_wrist left_hip right_hip left_knee right_knee left_ankle right_ankle"
)
MHR_70 = (  # of the 70 points, those that BlazePose has; knuckles are the third joints from the tips
    "nose left_eye right_eye left_ear right_ear left_shoulder right_shoulder left_elbow right_elbow left_hip "
    "right_hip left_knee right_knee left_ankle right_ankle left_foot_index - left_heel right_foot_index - "
    "right_heel - - right_thumb - - - - right_index - - - - - - - - - - - right_pinky right_wrist - - left_thumb - "
    "- - - left_index - - - - - - - - - - - left_pinky left_wrist"
)
ALIKE = {  # landmarks that a source lacks, and those in whose place they are, unseen
    "eye_inner": "eye", "eye_outer": "eye", "mouth": "nose", "pinky": "wrist", "index": "wrist", "thumb": "wrist",
    "heel": "ankle", "foot_index": "ankle", "ear": "nose", "eye": "nose",
}  # fmt: skip
_PICTURE = ("pose_landmarks", "poseLandmarks", "landmarks")
_METRES = ("pose_world_landmarks", "poseWorldLandmarks", "worldLandmarks", "world_landmarks")


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Those of one person in every frame, as seen by one camera; NaN where they were not found."""

    pixels: Float[Array, "frames 33 2"]
    visibility: Float[Array, "frames 33"]
    shapes: Float[Array, "frames 33 3"]  # metres in the camera's axes, about the middle of the hips
    size: tuple[int, int]
    source: str
    focal: float | None = None
    fps: float | None = None


def read(path: str | os.PathLike[str], *, fps: float | None = None, height: float | None = None) -> Motion:
    """Read landmarks of a person as a motion: `fps` where the file does not say it, `height` of the person if known.

    Of OpenPose's files, one for each frame, name any: all that share its name are read.
    """
    file = existing_file(path)
    found = _parsed(file)
    rate = checked_rate(fps or found.fps or RATE)
    said = "given" if fps else "as the file says" if found.fps else "usual; the file does not say it"
    motion = replace(solved(found, fps=rate, height=height), name=file.stem)
    depths = (
        "with depths" if np.isfinite(found.shapes).any() else "without depths, which the pose prior gives"
    )
    notes = (f"landmarks of {found.source}, {depths}", f"{rate:g} frames a second: {said}")
    return replace(motion, origin=Origin(
        path=str(file), format="landmarks", units_reason="solved on a body", frames_in_file=len(motion), notes=notes,
    ))  # fmt: skip


def solved(found: Landmarks, *, fps: float, height: float | None = None) -> Motion:
    """The motion of a body that the landmarks show, standing on the floor."""
    camera, seen = level_camera(found.size, found.focal), np.isfinite(found.pixels).all(axis=-1)
    visibility = np.where(seen, found.visibility, 0.0)
    if not (visibility > LEAST_SEEN).sum(axis=1).max(initial=0) >= FEWEST:
        raise InvalidValueError(f"no frame shows enough of a person: {found.source} saw too few points")
    shapes, deep = found.shapes, bool(np.isfinite(found.shapes).any())
    if not deep:
        shapes = _lifted(replace(found, visibility=visibility))
    spans = np.nanmax(found.pixels, axis=1, initial=0.0) - np.nanmin(found.pixels, axis=1, initial=np.inf)
    sides = np.where(seen.any(axis=1), AROUND * spans.max(axis=1), np.nan)
    person = WatchedPerson(
        [camera], found.pixels[:, None], visibility[:, None], shapes[:, None], sides[:, None], fps
    )
    person = with_focal(person) if found.focal is None and deep else person
    return capture_person(person, known=False, height=height).motion


def _lifted(found: Landmarks) -> Float[Array, "frames 33 3"]:
    """Shapes of a body of the universal prior whose landmarks are at these pixels, frame after frame."""
    prior, camera = UniversalPrior(), level_camera(found.size, found.focal)
    space, (handles, _) = prior.space, handles_of(prior.space.skeleton)
    placed, follower, shapes = space.handles(handles), Follower(partial(Solver, prior)), []
    pelvis = [INDEX["left_hip"], INDEX["right_hip"]]
    for pixels, visibility in zip(found.pixels, found.visibility, strict=True):
        seen = np.flatnonzero(visibility > LEAST_SEEN).tolist()
        rows = [Projection(handles[k], camera, pixels[k], tolerance=OFF) for k in seen]
        q = follower.step(rows).q if len(rows) >= FEWEST else follower.last
        if q is None:
            shapes.append(np.full((len(NAMES), 3), np.nan))
            continue
        places = space.handle_positions(q, placed)[0]
        shapes.append((places - places[pelvis].mean(axis=0)) @ camera.rotation.T)
    first = next((shape for shape in shapes if np.isfinite(shape).all()), np.zeros((len(NAMES), 3)))
    return np.stack([shape if np.isfinite(shape).all() else first for shape in shapes])


# --- what files hold -------------------------------------------------------------------------------------------------


def _parsed(file: Path) -> Landmarks:
    if file.stat().st_size > MOST_BYTES:
        raise ParseError(f"it is larger than {MOST_BYTES >> 20} MB", path=file)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"it is not JSON: {error}", path=file) from error
    about = content if isinstance(content, Mapping) else {}
    frames = about.get("frames", content)
    for holds, reader in _READERS:
        if holds(about, frames):
            try:
                return reader(about, frames, file)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                if isinstance(error, InvalidValueError | ParseError):
                    raise
                raise ParseError(f"its landmarks are not as documented: {error!r:.120}", path=file) from error
    raise ParseError(
        "it has no known landmarks: expected pose_landmarks and pose_world_landmarks (MediaPipe), people with "
        "pose_keypoints_2d (OpenPose), annotations or results with keypoints (COCO), or pred_keypoints_3d (SAM 3D)",
        path=file,
    )


def _first(frames: Any) -> Mapping[str, Any]:
    """The first thing in a frame that has keys."""
    while isinstance(frames, Sequence) and not isinstance(frames, str) and len(frames):
        frames = next((one for one in frames if one), None)
    return frames if isinstance(frames, Mapping) else {}


def _mediapipe(about: Mapping[str, Any], frames: Any, _file: Path) -> Landmarks:
    """Frames with 33 landmarks, normalised by the picture's size, and in metres about the hips."""
    size = (int(about.get("width", SIZE[0])), int(about.get("height", SIZE[1])))
    frames = frames if isinstance(frames, Sequence) else [frames]
    pixels, shapes = np.full((len(frames), 33, 2), np.nan), np.full((len(frames), 33, 3), np.nan)
    visibility = np.zeros((len(frames), 33))
    for number, frame in enumerate(frames):
        for keys, into in ((_PICTURE, pixels), (_METRES, shapes)):
            listed = next((frame[key] for key in keys if frame and frame.get(key)), None)
            if listed is None:
                continue
            points = listed if len(listed) == len(NAMES) else listed[0]  # of several people, the first
            rows = [_point(one) for one in points]
            into[number] = np.array([row[: into.shape[2]] for row in rows])
            if into is pixels:
                visibility[number] = [row[3] for row in rows]
    scale = np.array(size, dtype=np.float64)
    if np.isfinite(pixels).any():
        pixels *= scale
    else:  # shapes alone: as seen from three metres away
        camera = level_camera(size)
        focal, middle = camera.intrinsics[0, 0], camera.intrinsics[:2, 2]
        pixels = middle + focal * shapes[..., :2] / (3.0 + shapes[..., 2:])
        visibility = np.isfinite(shapes).all(axis=-1).astype(float)
    return Landmarks(pixels, visibility, shapes, size, "MediaPipe", fps=about.get("fps"))


def _point(one: Any) -> tuple[float, float, float, float]:
    """A landmark: an object, or a list of x, y, z and perhaps visibility."""
    if isinstance(one, Mapping):
        seen = one.get("visibility")
        return float(one["x"]), float(one["y"]), float(one["z"]), 1.0 if seen is None else float(seen)
    x, y, z, *seen = one
    return float(x), float(y), float(z), float(seen[0]) if seen else 1.0


def _openpose(_about: Mapping[str, Any], _frames: Any, file: Path) -> Landmarks:
    """One file of each frame, with people of 25 or 18 points: x, y and confidence."""
    numbered = re.fullmatch(r"(.*?)(\d+)(\D*)", file.name)
    files = [file]
    if numbered:
        stem, _, rest = numbered.groups()
        alike = re.compile(re.escape(stem) + r"(\d+)" + re.escape(rest))
        found = [(match, one) for one in file.parent.iterdir() if (match := alike.fullmatch(one.name))]
        files = [one for _, one in sorted(found, key=lambda pair: int(pair[0][1]))]
    people = []
    for one in files:
        listed = json.loads(one.read_text(encoding="utf-8"))["people"]
        people.append([np.reshape(each["pose_keypoints_2d"], (-1, 3)) for each in listed])
    count = next((len(points) for frame in people for points in frame), 0)
    names = {25: BODY_25, 18: COCO_18}.get(count)
    if names is None:
        raise ParseError(f"people have 25 (BODY_25) or 18 points; got {count}", path=file)
    return _flat(people, names.split(), SIZE, "OpenPose", lambda score: score)


def _coco(about: Mapping[str, Any], frames: Any, _file: Path) -> Landmarks:
    """Annotations or results: 17 points of people in images, x, y and 0, 1, 2 (or a confidence)."""
    rows = about.get("annotations", frames)
    images = {one["id"]: one for one in about.get("images", ())}
    order = sorted({row["image_id"] for row in rows} | set(images), key=lambda one: (str(type(one)), one))
    people: dict[Any, list[Array]] = {image: [] for image in order}
    for row in rows:
        if row.get("keypoints"):
            people[row["image_id"]].append(np.reshape(row["keypoints"], (-1, 3))[:17])
    sizes = [(one["width"], one["height"]) for one in images.values() if "width" in one and "height" in one]
    size = sizes[0] if sizes else SIZE
    return _flat(
        list(people.values()),
        COCO_17.split(),
        size,
        "COCO",
        lambda score: np.minimum(score, 1.0),
        about.get("fps"),
    )


def _flat(
    people: Sequence[Sequence[Array]], names: Sequence[str], size: tuple[int, int], source: str,
    seen: Callable[[Array], Array], fps: float | None = None,
) -> Landmarks:  # fmt: skip
    """Points without depth; of several people the largest, then the one who is nearest to where they were."""
    pixels, visibility = np.full((len(people), 33, 2), np.nan), np.zeros((len(people), 33))
    chosen = [(number, INDEX[name]) for number, name in enumerate(names) if name in INDEX]
    ours, theirs = np.array([slot for _, slot in chosen]), np.array([number for number, _ in chosen])
    middle: Array | None = None
    for frame, listed in enumerate(people):
        found = [points for points in listed if (points[:, 2] > 0.0).sum() >= 4]
        if not found:
            continue
        centres = [points[points[:, 2] > 0.0, :2].mean(axis=0) for points in found]
        sizes = [float(np.ptp(points[points[:, 2] > 0.0, 1])) for points in found]
        best = int(np.argmax(sizes))
        if middle is not None:
            best = int(np.argmin([np.linalg.norm(centre - middle) for centre in centres]))
        middle = centres[best]
        own = found[best][theirs]
        pixels[frame, ours] = np.where(own[:, 2:] > 0.0, own[:, :2], np.nan)
        visibility[frame, ours] = seen(own[:, 2])
    return Landmarks(pixels, visibility, np.full((*pixels.shape[:2], 3), np.nan), size, source, fps=fps)


def _sam(about: Mapping[str, Any], frames: Any, file: Path) -> Landmarks:
    found = _mhr([dict(_first(frame)) for frame in frames], file)
    return replace(found, fps=about.get("fps"))


def _mhr(frames: Sequence[Mapping[str, Any]], file: Path) -> Landmarks:
    """70 points in pixels and in metres, from the camera's place on; of an archive, all frames in one."""
    parts: dict[str, list[Array]] = {
        "pred_keypoints_3d": [],
        "pred_keypoints_2d": [],
        "pred_cam_t": [],
        "focal_length": [],
    }
    for frame in frames:
        for name, into in parts.items():
            if frame and name not in frame:
                raise ParseError(
                    f"a frame of SAM 3D Body needs {', '.join(parts)}; {name} is missing", path=file
                )
            last = {
                "pred_keypoints_3d": (70, 3),
                "pred_keypoints_2d": (70, 2),
                "pred_cam_t": (3,),
                "focal_length": (),
            }
            value = np.asarray(frame[name], dtype=np.float64) if frame else np.full(last[name], np.nan)
            into.append(value.reshape(-1, *last[name]))
    points, flat, shift, focal = (np.concatenate(one) for one in parts.values())
    if not len(points) == len(flat) == len(shift) == len(focal):
        raise ParseError("its arrays have different numbers of frames", path=file)
    own = [(number, INDEX[name]) for number, name in enumerate(MHR_70.split()) if name != "-"]
    numbers, slots = [number for number, _ in own], [slot for _, slot in own]
    pixels, shapes = np.full((len(points), 33, 2), np.nan), np.full((len(points), 33, 3), np.nan)
    pixels[:, slots], shapes[:, slots] = flat[:, numbers], points[:, numbers]
    visibility = np.isfinite(pixels).all(axis=-1).astype(float)
    for name, slot in INDEX.items():  # a place for each, which counts nothing
        if slot not in slots:
            side = "left_" if "left" in name else "right_"
            like = ALIKE[name.replace("left", "").replace("right", "").strip("_")]
            shapes[:, slot] = shapes[:, INDEX[like if like == "nose" else side + like]]
    shapes -= shapes[:, [INDEX["left_hip"], INDEX["right_hip"]]].mean(axis=1, keepdims=True)
    seen = points[:, numbers] + shift[:, None]
    length = float(np.nanmedian(focal))
    middle = np.nanmedian(flat[:, numbers] - length * seen[..., :2] / seen[..., 2:], axis=(0, 1))
    size = (max(2, round(2 * float(middle[0]))), max(2, round(2 * float(middle[1]))))
    return Landmarks(pixels, visibility, shapes, size, "SAM 3D Body", focal=length)


_Reader = Callable[[Mapping[str, Any], Any, Path], Landmarks]
_READERS: tuple[tuple[Callable[[Mapping[str, Any], Any], bool], _Reader], ...] = (
    (lambda about, _frames: isinstance(about.get("people"), list), _openpose),
    (lambda about, frames: "annotations" in about or "keypoints" in _first(frames), _coco),
    (lambda _about, frames: "pred_keypoints_3d" in _first(frames), _sam),
    (lambda _about, frames: bool({*_PICTURE, *_METRES} & set(_first(frames))), _mediapipe),
)
