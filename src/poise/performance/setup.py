"""The steps of `poise perform`: open a library, read a take, calibrate, set up the performance, save it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError
from poise.formats import read, write
from poise.formats.files import existing_file, make_folder
from poise.library.store import Library
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.performance.calibrate import (
    markers_from_t_pose,
    skeleton_from_motion,
    skeleton_from_t_pose,
    skeleton_of_sides,
    t_pose_markers,
)
from poise.performance.feeds import is_feed
from poise.performance.marker_sets import WITH_HEAD, guessed_mapping, marker_layout, read_layout
from poise.performance.perform import Performance, PerformedFrame, Shortfall, motion_of, shortfall_of
from poise.performance.sensors import OrientationPerformance, t_pose
from poise.priors.abilities import examples_of
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import load
from poise.priors.prior import Prior
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Pose, Skeleton
from poise.types import Array

UDP = "udp:"
TAKES = (".c3d", ".trc", ".csv")
LONGEST_T_POSE = 2.0  # seconds: a longer calibration take is a motion, not a T-pose


@dataclass(frozen=True, eq=False)
class Performed:
    """A take as a motion, with the solution of every frame."""

    motion: Motion
    frames: Sequence[PerformedFrame]

    @property
    def shortfall(self) -> Shortfall:
        """Unmet observations; in words, `str(shortfall)`."""
        return shortfall_of(self.frames)


def perform(
    model: Prior | str | os.PathLike[str] | None,
    take: Markers | str | os.PathLike[str],
    *,
    mapping: Path | None = None,
    calibration: Sequence[Path] = (),
    noise: float | None = None,
    fps: float = 60.0,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Performed:
    """Return a whole body from the few markers of a take, by a model, a model file or a library's folder.

    Without a model, the universal prior is used. Labels are names of places (`left_hand`, `forehead`, any role or
    joint), or a mapping file assigns them. For live frames, use a `Performance`.
    """
    skeletons: list[Skeleton] = []
    if model is None or isinstance(model, str | os.PathLike):
        folder = None if model is None else Path(model)
        skeletons, model = library_skeletons(folder), open_prior(folder)
    source = take if isinstance(take, Markers) else read_take(os.fspath(take), fps=fps)
    if source is None:
        raise InvalidValueError(f"{take} is live; create a Performance and call step() for every frame")
    performance = set_up(
        model, source, mapping=mapping, calibration=calibration, skeletons=skeletons, noise=noise
    )
    frames = performance.run(source, progress=progress)
    return Performed(motion_of(frames, source.fps, name=source.name), frames)


def open_prior(path: Path | None) -> Prior:
    """The local prior of a library's folder, the prior of a model file, or by default the universal one."""
    if path is None or not path.is_dir():
        return load(path)
    library = Library.open(path)
    poses = library.poses  # detects damaged clips
    performers = [library.catalogue.skeleton(clip.skeleton) for clip in library.sound]
    known = all(skeleton.same_topology(library.skeleton) for skeleton in performers)
    return LocalPrior.of_poses(poses, performers if known else ())


def library_skeletons(path: Path | None) -> list[Skeleton]:
    """The distinct skeletons of a library's clips with the joints of its searches; else none."""
    if path is None or not path.is_dir():
        return []
    library = Library.open(path)
    own = [library.catalogue.skeleton(number) for number in {clip.skeleton for clip in library.clips}]
    return [skeleton for skeleton in own if skeleton.same_topology(library.skeleton)]


def is_take(source: str) -> bool:
    """Whether a source is a take, and not a library or a model."""
    return is_live(source) or Path(source).suffix.lower() in TAKES


def is_live(source: str) -> bool:
    """Whether a take is live: from standard input, over UDP, or from a feed."""
    return source == "-" or source.startswith(UDP) or is_feed(source)


def read_take(source: str, *, fps: float) -> Markers | None:
    """The markers of a take; None if it is live."""
    if is_live(source):
        return None
    path = Path(source)
    if path.suffix.lower() == ".csv":
        labels, points, rate = read_columns(path, fps, Performance.channels)
        return Markers(tuple(labels), points, rate, name=path.stem)
    found = read(path)
    if not isinstance(found, Markers):
        raise InvalidValueError(f"{path.name} is a motion; a performance needs markers (.c3d, .trc or .csv)")
    return found


def set_up(
    prior: Prior,
    take: Markers | None,
    *,
    mapping: Path | None = None,
    calibration: Sequence[Path] = (),
    skeletons: Sequence[Skeleton] = (),
    noise: float | None = None,
    fps: float = 60.0,
    markers: Sequence[str] | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Performance:
    """A performance for a take, or a live source, by the calibrated performer.

    A live source has no labels in advance: without a mapping, these markers, or `WITH_HEAD`, are used. The performer's
    skeleton is interpolated from `skeletons`; of two T-poses, the first gives the left side and the second the right.
    """
    places = _layout(prior, take, mapping, markers)
    skeleton: Skeleton | None = None
    if calibration:
        stood = [_stood(path, fps) for path in calibration]
        skeleton, places = _calibrated(prior, places, stood, skeletons or [prior.space.skeleton])
    rate = fps if take is None else take.fps
    return Performance(prior, places, skeleton=skeleton, noise=noise, fps=rate, progress=progress)


def set_up_sensors(
    prior: Prior,
    names: Sequence[str],
    *,
    calibration: Sequence[Path] = (),
    noise: float = 0.0,
    fps: float = 60.0,
    progress: Callable[[float], None] = lambda _: None,
) -> OrientationPerformance:
    """A performance by sensors on these segments; a calibration's first frame is a T-pose that faces +Z."""
    worn = None
    if calibration:
        stood = read_orientations(calibration[0], names, fps=fps)[0][0]
        worn = t_pose(prior.space.skeleton, names, stood, samples=_samples(prior))
    return OrientationPerformance(prior, names, fps=fps, noise=noise, worn=worn, progress=progress)


def read_orientations(
    path: Path, names: Sequence[str], *, fps: float
) -> tuple[Float[Array, "frames sensors 4"], float]:
    """Quaternions from columns pelvis.w, pelvis.x, pelvis.y, pelvis.z, ..., and the frame rate."""
    labels, values, rate = read_columns(path, fps, OrientationPerformance.channels)
    if missing := [name for name in names if name not in labels]:
        raise ParseError(
            f"no columns for the sensor {missing[0]!r}; there are {', '.join(labels)}", path=path
        )
    return values[:, [labels.index(name) for name in names]], rate


def save(frames: Sequence[PerformedFrame], fps: float, path: Path) -> None:
    """A performance as a motion file."""
    make_folder(path.parent)
    write(motion_of(frames, fps, name=path.stem), path)


def draw_places(prior: Prior, names: Sequence[str], path: Path) -> None:
    """Draw a body with its arms out and the marker places on it."""
    from poise import pictures

    skeleton, samples = prior.space.skeleton, _samples(prior)
    layout = marker_layout(skeleton, names, samples=samples)
    points = t_pose_markers(skeleton, layout, samples=samples)
    standing = Pose(skeleton, np.zeros(3), neutral_pose(skeleton, samples).rotations)
    make_folder(path.parent)
    pictures.save(pictures.draw_pose(standing, handles=list(points)), path)


def seconds_of(frames: Sequence[PerformedFrame]) -> Float[Array, "frames"]:
    """The duration of each frame."""
    return np.array([frame.seconds for frame in frames])


def udp_address(text: str) -> tuple[str, int]:
    """Host and port from udp:PORT or udp:HOST:PORT; by default only this machine."""
    host, _, port = text.removeprefix(UDP).rpartition(":")
    if not port.isdigit() or not 0 <= int(port) < 65536:
        raise InvalidValueError(f"a port must be a number up to 65535, as in udp:9000; got {text!r}")
    return host or "127.0.0.1", int(port)


def _layout(
    prior: Prior, take: Markers | None, mapping: Path | None, markers: Sequence[str] | None
) -> Mapping[str, Handle]:
    samples = _samples(prior)
    if mapping is not None:
        return read_layout(mapping, prior.space.skeleton, samples=samples)
    if take is None:
        return marker_layout(prior.space.skeleton, markers or WITH_HEAD, samples=samples)
    return guessed_mapping(take.labels, prior.space.skeleton, samples=samples)


def _stood(path: Path, fps: float) -> Markers:
    take = read_take(str(path), fps=fps)
    if take is None:
        raise InvalidValueError("a calibration is read from a file, not live")
    return take


def _calibrated(
    prior: Prior, places: Mapping[str, Handle], stood: Sequence[Markers], skeletons: Sequence[Skeleton]
) -> tuple[Skeleton, Mapping[str, Handle]]:
    if len(stood) > 2 or (len(stood) == 2 and max(take.seconds for take in stood) > LONGEST_T_POSE):
        raise InvalidValueError(
            "calibrate with one T-pose, two (left side, then right side), or one short motion; "
            f"got {len(stood)} takes"
        )
    if stood[0].seconds > LONGEST_T_POSE:
        return skeleton_from_motion(examples_of(prior), places, stood[0], skeletons=skeletons), places
    samples = _samples(prior)
    points = [_first_frame(take, places) for take in stood]
    found = [skeleton_from_t_pose(skeletons, places, seen, samples=samples) for seen in points]
    skeleton = found[0] if len(found) == 1 else skeleton_of_sides(*found)
    for seen in points:
        places = markers_from_t_pose(skeleton, places, seen, samples=samples)
    return skeleton, places


def _first_frame(take: Markers, places: Mapping[str, Handle]) -> Float[Array, "markers 3"]:
    """The markers of a take's first frame, NaN for missing ones."""
    missing = np.full(3, np.nan)
    return np.stack([take.points[0, take.index(name)] if name in take.labels else missing for name in places])


def _samples(prior: Prior) -> Float[Array, "frames joints 4"]:
    examples = examples_of(prior)
    return prior.space.frames_from_q(examples.every(max(1, len(examples) // 50)).q)[1]


def read_columns(
    path: Path, fps: float, channels: str
) -> tuple[list[str], Float[Array, "frames labels channels"], float]:
    """Columns label.x, label.y, label.z (or other channels) with an optional time; and the frame rate."""
    lines = existing_file(path).read_text(encoding="utf-8-sig").splitlines()
    header = [name.strip() for name in lines[0].split(",")] if lines else []
    last = f".{channels[0]}"
    labels = [name.removesuffix(last) for name in header if name.endswith(last)]
    columns = [f"{label}.{channel}" for label in labels for channel in channels]
    if not labels or not set(columns) <= set(header):
        named = ",".join(f"left_hand.{channel}" for channel in channels)
        raise ParseError(f"expected a header such as time,{named}", path=path, line=1)
    rows = np.empty((len(lines) - 1, len(header)))
    for number, line in enumerate(lines[1:]):
        cells = line.split(",")
        try:
            rows[number] = [float(cell) if cell.strip() else np.nan for cell in cells]
        except ValueError:
            raise ParseError(
                f"expected {len(header)} numbers; got {line[:60]!r}", path=path, line=number + 2
            ) from None
    values = rows[:, [header.index(name) for name in columns]].reshape(len(rows), len(labels), len(channels))
    times = rows[:, header.index("time")] if "time" in header and len(rows) > 1 else None
    return labels, values, fps if times is None else 1.0 / float(np.median(np.diff(times)))
