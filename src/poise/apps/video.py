"""A body from videos of a person without markers, for `poise video`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, dropwhile, islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from poise.capture.people.take import capture_person
from poise.errors import InvalidValueError
from poise.formats.camera_file import focal_from_fov
from poise.formats.files import make_folder
from poise.priors.prior import Prior
from poise.skeleton.roles import SIDES
from poise.solvers.solution import MotionSolution
from poise.types import Array, NamedProgress, silent
from poise.vision.opencv import cv2
from poise.vision.people.unknown_camera import level_camera, with_focal
from poise.vision.people.watching import SeenPeople, chosen, people_of, watch_people
from poise.vision.rig import STRAIGHT, LensCamera, Rig
from poise.vision.sources import InStep, Source, Step, open_source
from poise.vision.synchronise import offsets_by


@dataclass(frozen=True)
class VideoPart:
    """The part of the videos to use, and how they are synchronised."""

    start: float = 0.0
    end: float | None = None
    sync: str = "time"

    def __post_init__(self) -> None:
        if not (self.start >= 0.0 and (self.end is None or self.end > self.start)):
            raise InvalidValueError(
                f"the end must come after the start, both in seconds; got {self.start:g} and {self.end}",
                settings=("start", "end"),
            )


@dataclass(frozen=True, eq=False)
class VideoTake:
    """The people of a take and their cameras: `known` from a file, else optionally with a field of view in degrees."""

    videos: Sequence[str]
    part: VideoPart
    people: SeenPeople
    cameras: Sequence[LensCamera]
    known: bool
    fov: float | None = None


def watch_videos(
    videos: Sequence[str],
    *,
    rig: Rig | None = None,
    fov: float | None = None,
    part: VideoPart | None = None,
    progress: NamedProgress = silent,
) -> VideoTake:
    """Detect everyone in the videos: one from an unknown camera, or several from the cameras of a rig, in its order."""
    if not videos:
        raise InvalidValueError("give one video, or several with their camera file")
    part, cameras = part or VideoPart(), None
    sources = [open_source(video) for video in videos]
    if rig is not None:
        cameras = _cameras_of(rig, sources)
    elif len(videos) > 1:
        raise InvalidValueError(
            f"{len(videos)} videos need a camera file; make one with poise cameras calibrate",
            settings=("cameras",),
        )
    with _steps(sources, part) as steps:
        total = max(source.frames for source in sources)
        views, frames = watch_people(
            _within(steps, part),
            [source.name for source in sources],
            progress=lambda done: progress("finding people", done, max(total, done)),
        )
        if cameras is None:
            size = sources[0].size
            focal = None if fov is None else focal_from_fov(fov, size[1])
            cameras = [LensCamera("camera", level_camera(size, focal), size, np.array(STRAIGHT))]
        people = people_of(views, frames, steps.fps, cameras)
    return VideoTake(tuple(videos), part, people, cameras, rig is not None, fov)


def capture(
    take: VideoTake, *, person: int | None = None, prior: Prior | None = None, height: float | None = None,
    progress: NamedProgress = silent,
) -> MotionSolution:  # fmt: skip
    """The body of one person (number from 1), who must be chosen if there are several."""
    watched = take.people.watched(chosen(take.people, person), take.cameras)
    if not take.known and take.fov is None:
        watched = with_focal(watched)
    return capture_person(
        watched, prior=prior, known=take.known, height=height,
        progress=lambda done, total: progress("solving the body", done, total),
    )  # fmt: skip


def report(found: MotionSolution) -> dict[str, Any]:
    """The results in numbers."""
    names, sigmas = found.motion.skeleton.names, np.median(100.0 * found.deviations, axis=0)
    standing, ends = 100.0 * found.standing.mean(axis=0), found.motion.skeleton.is_end_site
    return {
        "frames": len(found.motion),
        "fps": found.motion.fps,
        "height_m": round(found.motion.skeleton.height, 3),
        "standing_percent": {
            side: round(float(share), 1) for side, share in zip(SIDES, standing, strict=True)
        },
        "uncertainty_cm": {
            name: round(float(sigma), 1)
            for name, sigma, end in zip(names, sigmas, ends, strict=True)
            if not end
        },
    }


def _steps(sources: Sequence[Source], part: VideoPart) -> InStep:
    alone = len(sources) == 1 or part.sync == "time"
    return InStep(sources, offsets=None if alone else offsets_by(part.sync, sources))


def _within(steps: InStep, part: VideoPart) -> Iterator[Step]:
    early = takewhile(lambda step: part.end is None or step.time < part.end, steps)
    return dropwhile(lambda step: step.time < part.start, early)


def pictures_of(take: VideoTake, camera: int = 0) -> Iterator[Array]:
    """Yield the pictures of one camera again, frame by frame."""
    sources = [open_source(video) for video in take.videos]
    with _steps(sources, take.part) as steps:
        for step in islice(_within(steps, take.part), take.people.frames):
            picture = step.pictures[camera]
            if picture is not None:
                yield picture


def draw_film(
    take: VideoTake, found: MotionSolution, path: Path, *,
    progress: NamedProgress = silent,
) -> Path:  # fmt: skip
    """The first camera's pictures with the skeleton over them, beside the body from the side (.mp4)."""
    from poise.pictures.animation import write_mp4

    if path.suffix.lower() != ".mp4":
        raise InvalidValueError(f"a film is written as .mp4; got {path.name}")
    make_folder(path.parent)
    pictures = drawn_frames(take, found, range(len(found.motion)), progress)
    first = next(pictures)
    write_mp4(chain([first], pictures), first.size, path, found.motion.fps)
    return path


def draw_sheet(take: VideoTake, found: MotionSolution, path: Path, *, count: int = 6) -> Path:
    """A few moments of the film, one below the other (.png)."""
    from PIL import Image

    from poise import pictures

    make_folder(path.parent)
    chosen_frames = sorted({round(k) for k in np.linspace(0, len(found.motion) - 1, count)})
    rows = list(drawn_frames(take, found, chosen_frames))
    page = Image.new("RGB", (2 * rows[0].width, rows[0].height * ((len(rows) + 1) // 2)), "white")
    for number, row in enumerate(rows):
        page.paste(row, (rows[0].width * (number % 2), rows[0].height * (number // 2)))
    return pictures.save(page, path)


def drawn_frames(
    take: VideoTake, found: MotionSolution, frames: Sequence[int],
    progress: NamedProgress = silent,
) -> Iterator[Any]:  # fmt: skip
    """Pictures of the first camera with the skeleton over them, each beside the body from the side."""
    from PIL import Image

    from poise.pictures.overlay import draw_overlay

    lens, camera, wanted = take.cameras[0], found.cameras[0], set(frames)
    for number, picture in enumerate(pictures_of(take)):
        if number in wanted:
            if np.any(lens.distortion):
                picture = cv2().undistort(picture, lens.pinhole.intrinsics, np.asarray(lens.distortion))
            page = draw_overlay(
                Image.fromarray(np.asarray(picture)[:, :, ::-1]), camera, {}, [found.motion[number]]
            )
            progress("drawing", number + 1, len(found.motion))
            yield page.crop((0, 0, page.width // 2 * 2, page.height // 2 * 2))


def _cameras_of(rig: Rig, sources: Sequence[Source]) -> list[LensCamera]:
    """The rig's cameras at the sizes of the videos, by name if names match, else in order."""
    by_name = {camera.name: camera for camera in rig.cameras}
    stems = [Path(str(source.place)).stem for source in sources]
    if all(stem in by_name for stem in stems):
        cameras = [by_name[stem] for stem in stems]
    elif len(sources) == len(rig):
        cameras = list(rig.cameras)
    else:
        raise InvalidValueError(
            f"{len(sources)} videos and {len(rig)} cameras: give one per camera, or name them like the cameras "
            f"({', '.join(by_name)})"
        )
    found = []
    for camera, source in zip(cameras, sources, strict=True):
        fitting = camera if camera.size == source.size else camera.resized(source.size)
        if fitting is None:
            raise InvalidValueError(
                f"{source.name} has pictures of {source.size[0]}x{source.size[1]}; "
                f"{camera.name} was calibrated with {camera.size[0]}x{camera.size[1]}"
            )
        found.append(fitting)
    return found
