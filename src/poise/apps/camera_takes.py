"""Performances from videos or live cameras: synchronised sources, the empty room, the run, and a report.

A failure of one camera (another size, an early end, a lost connection) is noted, and the others continue.
A simulated take is a motion filmed by simulated cameras: videos, the camera file and the true positions of all markers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from poise.apps.camera_calibration import AGREED, agreement
from poise.capture.cameras import FEWEST, CameraPerformance, WatchedMoment
from poise.capture.performance import Performance, PerformedFrame
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats import write
from poise.formats.files import make_folder
from poise.motion.edit import moved, resample
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.motion.virtual_markers import optical_layout
from poise.motion.world import facing_directions
from poise.types import Array, Progress, silent
from poise.vision.blobs import Background
from poise.vision.colours import Colours
from poise.vision.live import LiveStep
from poise.vision.rig import Rig, save_rig
from poise.vision.simulator import Conditions, Simulator
from poise.vision.sources import InStep, Picture, Source, Step, VideoRecorder, open_source, write_video
from poise.vision.synchronise import FLASH, offsets_by, write_clap
from poise.vision.tracker import WHITE, MarkerFinder

LONG = 2.0  # seconds: shortest absence of a marker or a camera that is reported
_JUDGED_BY = 120  # moments with markers for the check of a calibration


@dataclass(frozen=True, eq=False)
class CameraTake:
    """A performance in front of cameras: its moments, their rate, and notes."""

    watched: Sequence[WatchedMoment]
    fps: float
    notes: Sequence[str]

    @property
    def frames(self) -> list[PerformedFrame]:
        """The poses, from when the performer was first found."""
        return [watched.frame for watched in self.watched if watched.frame is not None]


@dataclass(frozen=True, eq=False)
class Cameras:
    """A rig with a source for each of its cameras, and notes."""

    rig: Rig
    sources: tuple[Source, ...]
    notes: list[str] = field(default_factory=list)


def open_cameras(rig: Rig, videos: Sequence[str | Path]) -> Cameras:
    """Open a source per camera of the rig; other sizes are scaled, other aspect ratios left out."""
    if not videos or len(videos) > len(rig):
        raise InvalidValueError(
            f"give a video for each of the {len(rig)} cameras, in their order; got {len(videos)}"
        )

    def words(size: tuple[int, int]) -> str:
        return f"{size[0]}x{size[1]}"

    notes: list[str] = []
    if len(videos) < len(rig):
        rig = Rig(rig.cameras[: len(videos)])
        notes.append(
            f"only {len(videos)} of the cameras have a video: {', '.join(c.name for c in rig.cameras)}"
        )
    kept = []
    for camera, source in zip(rig.cameras, map(open_source, videos), strict=True):
        if source.size == camera.size:
            kept.append((camera, source))
        elif (fitting := camera.resized(source.size)) is not None:
            notes.append(
                f"{source.name} is {words(source.size)}, not {words(camera.size)}: {camera.name} is scaled"
            )
            kept.append((fitting, source))
        else:
            notes.append(
                f"{source.name} is {words(source.size)}, but {camera.name} was calibrated at {words(camera.size)}, "
                "which has another aspect ratio: it is left out"
            )
            source.close()
    if not kept:
        raise InvalidValueError("; ".join(notes) + "; no usable camera remains")
    return Cameras(Rig(tuple(camera for camera, _ in kept)), tuple(source for _, source in kept), notes)


def perform_take(
    cameras: Cameras,
    performance: Performance,
    *,
    empty: float = 1.0,
    background: Sequence[str | Path] = (),
    sync: str = "time",
    live: bool = False,
    colours: Colours = WHITE,
    record: Path | None = None,
    progress: Progress = silent,
    answer: Callable[[WatchedMoment], None] = silent,
    go_on: Callable[[], bool] = lambda: True,
) -> CameraTake:
    """Run a performance; the room is empty for `empty` seconds at first, or in separate videos.

    `answer` is called with every moment as soon as it is known. A live take ends with Ctrl-C, or when `go_on` returns
    false.
    """
    if live and sync != "time":
        raise InvalidValueError(f"live pictures are aligned as they arrive; {sync!r} is for videos")
    offsets = None if live else offsets_by(sync, cameras.sources)
    for source, offset in zip(cameras.sources, offsets or [], strict=False):
        if offset:
            when = f"{abs(offset):.3f} s {'after' if offset > 0 else 'before'}"
            cameras.notes.append(f"{source.name} begins {when} {cameras.sources[0].name}, by the {sync}")
    with LiveStep(cameras.sources) if live else InStep(cameras.sources, offsets=offsets) as steps:
        moments = _recorded(steps, record, cameras.rig, steps.fps)
        backgrounds, first = _rooms(cameras, moments, empty, background, steps.fps)
        tracker = MarkerFinder(cameras.rig, backgrounds, performance.names, fps=steps.fps, colours=colours)
        performance.fps = steps.fps
        watcher, watched = CameraPerformance(tracker, performance), list[WatchedMoment]()
        total = max(source.frames for source in cameras.sources)
        try:
            for number, step in enumerate(chain(first, moments)):
                if not go_on():
                    break
                seen = watcher.step(step.pictures, step.time)
                if step.arrived is not None:  # live pictures: the time is counted from their arrival
                    seen = replace(seen, seconds=time.monotonic() - step.arrived)
                watched.append(seen)
                answer(seen)
                progress(number + 1, total)
        except KeyboardInterrupt:
            pass
        finally:
            moments.close()
    notes = [*cameras.notes, *steps.notes, *what_went_wrong(cameras.rig, performance.names, watched)]
    return CameraTake(watched, steps.fps, notes)


def what_went_wrong(rig: Rig, labels: Sequence[str], watched: Sequence[WatchedMoment]) -> list[str]:
    """Notes on a run for the user: performer not found, inconsistent cameras, cameras and markers long not seen."""
    found, notes = [entry for entry in watched if entry.frame is not None], list[str]()
    if found:
        counts = np.array([[len(blobs) for blobs in entry.moment.blobs] for entry in found])
        looked = np.array([[mask is not None for mask in entry.moment.foregrounds] for entry in found])
        unseen = np.array([~entry.moment.sighting.is_seen for entry in found])
        others, times = counts.max(axis=1) >= FEWEST, [entry.time for entry in found]
        for camera, empty in zip(rig.cameras, ((counts == 0) & looked).T, strict=True):
            if stretch := _longest(empty & others, times):
                notes.append(f"{camera.name} saw no marker for {stretch}; the others continued")
        stretches = [
            (label, _longest(gone & others, times)) for label, gone in zip(labels, unseen.T, strict=True)
        ]
        if listed := "; ".join(f"{label} for {stretch}" for label, stretch in stretches if stretch):
            notes.append(f"hidden from all cameras, so placed by the library: {listed}")
    else:
        notes.append(
            "the performer was never found: too few markers were seen, or in a pose that the library lacks"
        )
    if len(rig) > 1:
        moments = [entry.moment.blobs for entry in watched if all(map(len, entry.moment.blobs))]
        some = moments[:: max(1, len(moments) // _JUDGED_BY)]
        if some and (share := agreement(rig, some)) < AGREED:
            notes.append(
                f"only {100 * share:.0f} % of the markers are at one position for all cameras: "
                "check that the camera file belongs to these cameras, in this order, and that none has moved"
            )
    return notes


def _longest(missing: Bool[Array, "moments"], times: Sequence[float]) -> str:
    """The longest absence in words; empty if it was short."""
    spans = [(times[run.stop - 1] - times[run.start], times[run.start]) for run in runs(missing)]
    seconds, begun = max(spans, default=(0.0, 0.0))
    return f"{seconds:.1f} s, from {begun:.1f} s on" if seconds >= LONG else ""


def _recorded(steps: Iterable[Step], folder: Path | None, rig: Rig, fps: float) -> Generator[Step]:
    """The same steps; in a folder, they are recorded so that they can be performed again.

    It gets a video per camera, black where there is no picture, and the camera file.
    """
    if folder is None:
        yield from steps
        return
    make_folder(folder)
    save_rig(rig, folder / CAMERAS_FILE)
    videos = [VideoRecorder(folder / f"{own.name}.avi", fps=fps, size=own.size) for own in rig.cameras]
    try:
        for step in steps:
            for video, camera, picture in zip(videos, rig.cameras, step.pictures, strict=True):
                black = np.zeros((*camera.size[::-1], 3), dtype=np.uint8)
                video.add(black if picture is None else picture)
            yield step
    finally:
        for video in videos:
            video.close()


def _rooms(
    cameras: Cameras, moments: Iterator[Step], empty: float, background: Sequence[str | Path], fps: float
) -> tuple[list[Background], list[Step]]:
    """Each camera's empty room, from separate videos or the first seconds; and the step that was read too far."""
    sources = cameras.sources
    if background:
        if len(background) != len(sources):
            raise InvalidValueError(
                f"expected a background for each of the {len(sources)} cameras; got {len(background)}"
            )
        backgrounds = []
        for source in map(open_source, background):
            backgrounds.append(Background.of_frames((entry[1] for entry in iter(source.read, None)), fps=fps))
            source.close()
        return backgrounds, []
    rooms: list[list[Array]] = [[] for _ in sources]
    for step in moments:
        if step.time >= empty - 0.5 / fps:
            return [_room(room, source, fps) for room, source in zip(rooms, sources, strict=True)], [step]
        for room, picture in zip(rooms, step.pictures, strict=True):
            if picture is not None:
                room.append(picture)
    raise InvalidValueError(f"the videos end within the {empty:g} s of the empty room", settings=("empty",))


def _room(frames: Sequence[Array], source: Source, fps: float) -> Background:
    """The typical picture of the room: a flash for synchronisation is ignored."""
    if not frames:
        raise InvalidValueError(
            f"{source.name} shows no empty room: film it before the performance, or separately",
            settings=("empty", "background"),
        )
    lights = np.array([frame.mean() for frame in frames])
    usual = np.flatnonzero(np.abs(lights - np.median(lights)) < FLASH)
    return Background.of_frames((frames[int(k)] for k in usual), fps=fps)


NINE = ("LFHD", "LFIN", "RFIN", "LTOE", "RTOE", "LSHO", "RSHO", "LFWT", "RFWT")
"""The nine of Chai and Hodgins 2005 at visible places on the skin: head, hands, feet, shoulders, waist."""
MORE = (*NINE, "RFHD", "STRN", "LELB", "RELB", "LWRA", "RWRA", "LKNE", "RKNE", "LANK", "RANK")
"""Nineteen, for one camera: it sees no depth, so more markers are needed."""

CAMERAS_FILE = "cams.toml"
TRUTH = ("truth.trc", "truth.c3d", "truth.bvh")
STILL_IN_PLACE = 1.0  # metres from the middle beyond which a performer is kept in place


@dataclass(frozen=True)
class Filmed:
    """The files of one simulated take, and the visibility of each marker."""

    videos: tuple[Path, ...]
    cameras: Path
    truth: tuple[Path, ...]
    seen_by_two: Mapping[str, float]
    seen_by_none: Mapping[str, float]


def before_cameras(clip: Motion, *, fps: float = 60.0, seconds: float | None = None) -> Motion:
    """The clip at the cameras' rate, in the middle of their view and, on average, facing them.

    A performer who walks away does so on the spot: the travel is removed, the sway is kept.
    """
    take = resample(clip, fps) if abs(clip.fps - fps) > 1e-6 else clip
    take = take[: max(2, round(seconds * fps))] if seconds is not None else take
    x, _, z = facing_directions(take).mean(axis=0)
    take = moved(take, turn=-float(np.arctan2(x, z)))
    places, frames = take.root_positions.copy(), np.arange(len(take))
    places[:, (0, 2)] -= take.root_positions[:, (0, 2)].mean(axis=0)
    if np.linalg.norm(places[:, (0, 2)], axis=1).max() > STILL_IN_PLACE:
        for axis in (0, 2):
            places[:, axis] -= np.polyval(np.polyfit(frames, places[:, axis], min(3, len(take) - 1)), frames)
    return take.with_frames(places, take.rotations)


def simulator_of(
    take: Motion,
    rig: Rig,
    *,
    markers: Sequence[str] = (),
    conditions: Conditions | None = None,
    seed: int = 0,
) -> Simulator:
    """Cameras and a performer with markers of the 41-marker set, by default the nine."""
    spots = optical_layout(take.skeleton, samples=take.rotations)
    for name in markers:
        if name not in spots:
            raise UnknownNameError("marker", name, spots)
    layout = {name: spots[name] for name in markers or NINE}
    return Simulator(rig, take, layout, conditions=conditions, seed=seed)


def film(
    simulator: Simulator, folder: Path, *, empty: float = 1.0, late: float = 0.0, progress: Progress = silent
) -> Filmed:
    """Write a video per camera, beginning with `empty` seconds of the empty room, the camera file and the truth.

    Times of the truth start at the first picture with the performer. With `late`, each camera starts that many seconds
    after the previous one, and its sound, with a clap, is written too.
    """
    if empty < 0 or late < 0:
        raise InvalidValueError(f"`empty` and `late` must be 0 seconds or more; got {empty:g} and {late:g}")
    make_folder(folder)
    cameras, fps, frames = simulator.rig.cameras, simulator.motion.fps, len(simulator.motion)
    videos = tuple(folder / f"{camera.name}.avi" for camera in cameras)
    leads = [round((empty + late * waits) * fps) for waits in reversed(range(len(videos)))]
    done, total = 0, sum(leads) + len(videos) * frames

    def counted(pictures: Iterable[Picture]) -> Iterator[Picture]:
        for number, picture in enumerate(pictures, start=done + 1):
            yield picture
            progress(number, total)

    for number, (video, lead) in enumerate(zip(videos, leads, strict=True)):
        taken = (simulator.picture(frame, number) for frame in range(frames))
        pictures = chain(simulator.empty_room(number, lead), taken)
        if late:
            clap = lead / fps - 0.5 * empty
            write_clap(video.with_suffix(".wav"), at=clap, seconds=(lead + frames) / fps, seed=number)
        write_video(video, counted(pictures), fps=fps, size=cameras[number].size)
        done += lead + frames
    save_rig(simulator.rig, folder / CAMERAS_FILE)
    truth = tuple(folder / name for name in TRUTH)
    for path in truth:
        write(simulator.motion if path.suffix == ".bvh" else simulator.truth, path)
    by_two, by_none = seen_shares(simulator)
    return Filmed(videos, folder / CAMERAS_FILE, truth, by_two, by_none)


def seen_shares(simulator: Simulator, *, moments: int = 60) -> tuple[dict[str, float], dict[str, float]]:
    """The share of time in which at least two cameras see each marker, and in which none does."""
    stride = max(1, len(simulator.motion) // moments)
    counts = np.stack([simulator.visible(k).sum(axis=0) for k in range(0, len(simulator.motion), stride)])
    shares = (counts >= 2).mean(axis=0), (counts == 0).mean(axis=0)
    by_two, by_none = (dict(zip(simulator.truth.labels, map(float, share), strict=True)) for share in shares)
    return by_two, by_none
