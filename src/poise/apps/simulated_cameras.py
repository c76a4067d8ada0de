"""Film a motion with simulated cameras: videos, the camera file and the true marker positions, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from poise.errors import InvalidValueError, UnknownNameError
from poise.formats import write
from poise.formats.files import make_folder
from poise.motion.edit import moved, resample
from poise.motion.motion import Motion
from poise.motion.virtual_markers import optical_layout
from poise.motion.world import facing_directions
from poise.types import Array
from poise.vision.rig import Rig, save_rig
from poise.vision.simulator import Conditions, Simulator
from poise.vision.sound import write_clap
from poise.vision.sources import Picture, write_video

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
    return take.with_frames(_in_the_middle(take.root_positions), take.rotations)


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
    simulator: Simulator,
    folder: Path,
    *,
    empty: float = 1.0,
    late: float = 0.0,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
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
    for number, (video, lead) in enumerate(zip(videos, leads, strict=True)):
        taken = (simulator.picture(frame, number) for frame in range(frames))
        pictures = chain(simulator.empty_room(number, lead), taken)
        if late:
            clap = lead / fps - 0.5 * empty
            write_clap(video.with_suffix(".wav"), at=clap, seconds=(lead + frames) / fps, seed=number)
        write_video(video, _counted(pictures, done, total, progress), fps=fps, size=cameras[number].size)
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


def _counted(
    pictures: Iterable[Picture], done: int, total: int, progress: Callable[[int, int], None]
) -> Iterator[Picture]:
    for number, picture in enumerate(pictures, start=1):
        yield picture
        progress(done + number, total)


def _in_the_middle(places: Array) -> Array:
    """Roots about the middle, without travel if it leads away."""
    flat = places.copy()
    flat[:, (0, 2)] -= places[:, (0, 2)].mean(axis=0)
    if np.linalg.norm(flat[:, (0, 2)], axis=1).max() <= STILL_IN_PLACE:
        return flat
    frames = np.arange(len(places))
    for axis in (0, 2):
        flat[:, axis] -= np.polyval(np.polyfit(frames, flat[:, axis], min(3, len(places) - 1)), frames)
    return flat
