"""The steps of `poise perform`: open a library, match a take, calibrate, follow it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.capture.calibration import (
    markers_from_t_pose,
    skeleton_from_motion,
    skeleton_from_t_pose,
    skeleton_of_sides,
    t_pose_markers,
)
from poise.capture.markers import fit_body, tracker_of
from poise.capture.matching import WITH_HEAD, MatchedTake, marker_layout, match, read_layout, read_mapping
from poise.capture.performance import OrientationPerformance, Performance, t_pose
from poise.capture.sources import is_live, of_subject, read_markers, read_orientations
from poise.capture.trackers import TrackerPerformance, mounts_of
from poise.capture.tracking import MarkerTracker
from poise.errors import InvalidValueError
from poise.formats.files import make_folder
from poise.library.store import Library
from poise.motion.markers import Markers
from poise.performer.bodies import Body
from poise.priors.abilities import examples_of
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import load
from poise.priors.prior import Prior
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.solution import MotionSolution
from poise.types import Array

LONGEST_T_POSE = 2.0  # seconds: a longer calibration take is a motion, not a T-pose


def perform(
    model: Prior | str | os.PathLike[str] | None,
    take: Markers | str | os.PathLike[str],
    *,
    mapping: Path | None = None,
    calibration: Sequence[Path] = (),
    noise: float | None = None,
    fps: float = 60.0,
    subject: str | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> MotionSolution:
    """Return a whole body from the markers of a take, by a model, a model file or a library's folder.

    Without a model, fewer markers than a full set are followed by the universal prior. Labels are names of places
    (`left_hand`, `forehead`, a role, a joint, a marker of the 41-marker set), or a mapping file assigns them. For live
    frames, use a `Performance`.
    """
    skeletons: list[Skeleton] = []
    if isinstance(model, str | os.PathLike):
        skeletons, model = library_skeletons(Path(model)), open_prior(Path(model))
    if not isinstance(take, Markers):
        if is_live(os.fspath(take)):
            raise InvalidValueError(f"{take} is live; create a Performance and call step() for every frame")
        take = read_markers(Path(take), fps=fps)
    take = of_subject(take, subject)
    follower = follower_of(
        model, take, mapping=mapping, calibration=calibration, skeletons=skeletons, noise=noise
    )
    return MotionSolution(follower.run(take, progress=progress), take.fps, take.name)


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


def follower_of(
    prior: Prior | None,
    take: Markers | None,
    *,
    mapping: Path | None = None,
    calibration: Sequence[Path] = (),
    skeletons: Sequence[Skeleton] = (),
    noise: float | None = None,
    fps: float = 60.0,
    markers: Sequence[str] | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Performance | MarkerTracker:
    """What follows a take, or a live source: a body fitted to a full set of markers, else a performance by a few.

    The set is full if the calibration, or else the take, has enough markers to fit a body to them. Without a prior, a
    full take is its own model (see `markers`); all else is followed by the universal prior.
    """
    known = prior or load(None)
    table = {} if mapping is None else read_mapping(mapping)

    def matched(recording: Markers) -> MatchedTake:
        named = {label: place for label, place in table.items() if label in recording.labels}
        return match(recording, known.space.skeleton, named, samples=_samples(known), fewest=1)

    stood = [of_subject(read_markers(path, fps=fps), None) for path in calibration]
    worn = next((one for one in map(matched, stood) if one.is_full), None)
    if noise is None and worn is not None:
        rate = fps if take is None else take.fps
        return MarkerTracker(known, fit_body(worn, known, progress=progress), fps=rate)
    if noise is None and not stood and take is not None and (full := matched(take)).is_full:
        return tracker_of(full, prior=prior, progress=lambda _, done, total: progress(done / total))[0]
    return set_up(
        known, take, mapping=mapping, calibration=calibration, skeletons=skeletons, noise=noise, fps=fps,
        markers=markers, progress=progress,
    )  # fmt: skip


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
    """A performance for the few markers of a take, or of a live source, by the calibrated performer.

    A live source has no labels in advance: without a mapping, these markers, or `WITH_HEAD`, are used. The performer's
    skeleton is interpolated from `skeletons`; of two T-poses, the first gives the left side and the second the right.
    """
    body, samples = prior.space.skeleton, _samples(prior)
    if take is not None:
        table = {} if mapping is None else read_mapping(mapping)
        places = match(take, body, table, samples=samples, fewest=1).layout
    elif mapping is not None:
        places = read_layout(mapping, body, samples=samples)
    else:
        places = marker_layout(body, markers or WITH_HEAD, samples=samples)
    skeleton: Skeleton | None = None
    if calibration:
        stood = [of_subject(read_markers(path, fps=fps), None) for path in calibration]
        skeleton, places = _calibrated(prior, places, stood, skeletons or [body])
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


def set_up_trackers(
    trackers: str, *, height: float | None = None, calibration: Sequence[Path] = (), t_pose: bool = False,
    fps: float = 60.0,
) -> TrackerPerformance:  # fmt: skip
    """A performance by oriented trackers, named as in `head,left_hand,LHR-1=pelvis`, on a body of this height.

    A calibration's first frame is a T-pose; with `t_pose`, the first frame of the performance is.
    """
    parts = [part.strip().rpartition("=") for part in trackers.split(",") if part.strip()]
    named = {label or role: role for label, _, role in parts}
    skeleton = Body(height=height or Body.height).skeleton
    mounts = None
    if calibration:
        stood, _ = read_orientations(
            calibration[0], list(named), fps=fps, channels=TrackerPerformance.channels
        )
        mounts = mounts_of(skeleton, named, stood[0])
    return TrackerPerformance(named, skeleton=skeleton, fps=fps, mounts=mounts, t_pose=t_pose)


def draw_places(prior: Prior, names: Sequence[str], path: Path) -> None:
    """Draw a body with its arms out and the marker places on it."""
    from poise import pictures

    skeleton, samples = prior.space.skeleton, _samples(prior)
    layout = marker_layout(skeleton, names, samples=samples)
    points = t_pose_markers(skeleton, layout, samples=samples)
    standing = Pose(skeleton, np.zeros(3), neutral_pose(skeleton, samples).rotations)
    make_folder(path.parent)
    pictures.save(pictures.draw_pose(standing, handles=list(points)), path)


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
    samples, points = _samples(prior), [np.full((len(places), 3), np.nan) for _ in stood]
    for take, seen in zip(stood, points, strict=True):  # the markers of the first frame
        for number, name in enumerate(places):
            if name in take.labels:
                seen[number] = take.points[0, take.index(name)]
    found = [skeleton_from_t_pose(skeletons, places, seen, samples=samples) for seen in points]
    skeleton = found[0] if len(found) == 1 else skeleton_of_sides(*found)
    for seen in points:
        places = markers_from_t_pose(skeleton, places, seen, samples=samples)
    return skeleton, places


def _samples(prior: Prior) -> Float[Array, "frames joints 4"]:
    examples = examples_of(prior)
    return prior.space.frames_from_q(examples.every(max(1, len(examples) // 50)).q)[1]
