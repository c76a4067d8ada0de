"""From markers to a moving body and to a take without gaps, for `poise markers` (Grochow et al. 2004, 7.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from poise.capture.calibration import Calibration, calibrate
from poise.capture.marker_filling import Filled, fill
from poise.capture.marker_takes import MatchedTake
from poise.capture.marker_tracking import (
    ASIS,
    DRAWS,
    SHARES,
    UNSURE,
    USUAL,
    Confidence,
    MarkerTracker,
    TrackedFrame,
    confidence_from,
)
from poise.errors import InvalidValueError
from poise.motion.gaps import gaps_of, runs, spline_errors
from poise.motion.marker_names import sides_swapped
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.performer import Body
from poise.priors.abilities import going_on
from poise.priors.broad import BroadPrior
from poise.priors.prior import Prior
from poise.priors.style.prior import StylePrior
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.types import Array, NamedProgress

Learner = Callable[[Sequence[Motion]], Prior]

COMPLETE = 0.9  # share of markers seen in a training frame
SHORTEST = 0.5  # seconds: shortest run of such frames
LEAST_LEARNED = 1.0  # seconds of them in total, for a style
NOWHERE_NEAR = 0.3  # metres from the body's marker: the point belongs to something else
WORST_FIT = 0.025  # metres, rms, between body and markers: above this the fit is rejected
LEARNED_PART = 2 / 3  # share of a well-seen part that a prior learns when it is tested on the rest ...
LONGEST_CHECK = 3.0  # ... for at most this many seconds ...
RUN_UP = 10  # ... after this many frames in which all is seen
LEARNING_FPS = 30.0  # frame rate at which styles are learned
STYLE: dict[str, Any] = {"dimensions": 3, "active": 100, "up": False}
"""Settings for the style of a take: markers determine the up direction, so the style need not."""


def template() -> Skeleton:
    """The default body that is fitted to a performer."""
    return Body().skeleton


@dataclass(frozen=True, eq=False)
class Capture:
    """A solved take: the performer's body, the prior, and every frame."""

    take: MatchedTake
    calibration: Calibration
    prior: Prior
    space: PoseSpace
    frames: Sequence[TrackedFrame]
    notes: tuple[str, ...] = ()

    @property
    def motion(self) -> Motion:
        """The body in motion."""
        markers = self.take.markers
        roots, rotations = self.space.frames_from_q(np.stack([frame.q for frame in self.frames]))
        return Motion(self.space.skeleton, markers.fps, roots, rotations, markers.name, markers.origin)

    @cached_property
    def carried(self) -> Float[Array, "frames markers 3"]:
        """Marker positions on the body."""
        return np.stack([frame.markers for frame in self.frames])

    @cached_property
    def sigmas(self) -> Float[Array, "frames markers"]:
        """Standard deviation per axis of unseen markers."""
        return np.stack([frame.sigmas for frame in self.frames])

    @cached_property
    def deviation(self) -> Float[Array, "frames joints"]:
        """Standard deviation of each joint's position, in metres per axis: larger where markers are not seen."""
        return np.stack([frame.joint_sigmas for frame in self.frames])

    @cached_property
    def measured(self) -> Float[Array, "frames markers 3"]:
        """The point used for each marker: its own, one with a swapped label, or an unlabelled one.

        A marker's own point that was rejected in a single frame counts again, unless it is far off.
        """
        own = self.take.markers.points
        everyone = np.concatenate([own, self.take.unlabelled], axis=1)
        sources = np.stack([frame.sources for frame in self.frames])
        found = np.take_along_axis(everyone, np.maximum(sources, 0)[..., None], axis=1)
        near = np.linalg.norm(own - self.carried, axis=2) <= NOWHERE_NEAR
        return np.where((sources >= 0)[..., None], found, np.where(near[..., None], own, np.nan))

    @property
    def rms(self) -> float:
        """The residual between body and markers, in metres."""
        squares = np.square(self.measured - self.carried).sum(axis=2)
        return float(np.sqrt(np.nanmean(squares))) if np.isfinite(squares).any() else np.nan

    @property
    def doubted(self) -> Bool[Array, "frames markers"]:
        """Mask of the points with a marker's label that were rejected."""
        own = np.arange(self.calibration.sigmas.size)
        sources = np.stack([frame.sources for frame in self.frames])
        return np.asarray(np.isfinite(self.take.markers.points).all(axis=2) & (sources != own))


def check_fit(rms: float, name: str) -> None:
    """Raise if body and markers are too far apart for a meaningful motion."""
    if not rms <= WORST_FIT:
        raise InvalidValueError(
            f"{name}: the body does not fit its markers (rms {1000 * rms:.0f} mm; expected at most "
            f"{1000 * WORST_FIT:.0f} mm). Check the unit, which axis is up, whether left and right are swapped, "
            "and the labels; a mapping file can assign them",
            settings=("units", "up", "map"),
        )


def solve(
    take: MatchedTake,
    *,
    prior: Prior | None = None,
    learner: Learner | None = None,
    progress: NamedProgress = lambda _what, _done, _all: None,
) -> Capture:
    """Fit the body, learn its movement from well-seen frames (or use a prior), and solve all frames.

    `learner` makes the prior from clips of those frames; by default a style.
    """
    if not np.isfinite(take.markers.points).all(axis=2).any():
        raise InvalidValueError(f"{take.markers.name}: no marker is seen in any frame")
    if sides_swapped(take.markers):
        raise InvalidValueError(
            f"{take.markers.name}: left and right are swapped: labels of the left are on the right of a body that "
            "faces forward by its waist and feet. Swap them in a mapping file, or check which axis is up",
            settings=("map", "up"),
        )
    space = prior.space if prior is not None else PoseSpace(template())
    start = prior.mean if prior is not None else None
    calibration = calibrate(
        space, take.layout, take.markers.points, start=start, loose=take.loose,
        progress=lambda share: progress("fitting the body", int(100 * share), 100),
    )  # fmt: skip
    notes: tuple[str, ...] = ()
    confidence = USUAL
    if prior is None:
        prior, notes = learned_prior(take, calibration, learner, progress)
        if prior is not None:
            confidence = confidence_of(take, calibration, learner or learn_style)
    prior = prior or BroadPrior(PoseSpace(calibration.skeleton))
    tracker = MarkerTracker(prior, calibration, fps=take.markers.fps, confidence=confidence)
    frames = track(tracker, take, progress)
    own = prior.space.on_body(calibration.skeleton)
    return Capture(take, calibration, prior, own, frames, notes)


def learned_prior(
    take: MatchedTake,
    calibration: Calibration,
    learner: Learner | None = None,
    progress: NamedProgress = lambda _what, _done, _all: None,
) -> tuple[Prior | None, tuple[str, ...]]:
    """A prior learned from the well-seen frames of the take, if needed, and notes."""
    clips = complete_clips(take, calibration, progress)
    if sum(clip.seconds for clip in clips) < LEAST_LEARNED:
        note = f"less than {LEAST_LEARNED:g} s in which {COMPLETE:.0%} of the markers are seen: no style is learned"
        return None, (note,)
    if learner is None and np.isfinite(take.markers.points).all():
        return None, ()
    progress("learning the style", 0, 1)
    return (learner or learn_style)(clips), ()


def learn_style(clips: Sequence[Motion]) -> StylePrior:
    """The style of a take."""
    return StylePrior.learn(clips, **STYLE)


def confidence_of(take: MatchedTake, calibration: Calibration, learner: Learner) -> Confidence:
    """The calibration of a prior of this take: one from the start of its longest well-seen part, tested on the rest."""
    part = max(well_seen(take.markers), key=lambda part: part.stop - part.start)
    (clip,) = complete_clips(
        replace(take, markers=take.markers[part], unlabelled=take.unlabelled[part]), calibration
    )
    points = take.markers.points[part][:: round(take.markers.fps / clip.fps)]
    first = round(LEARNED_PART * len(clip))
    last = min(len(clip), first + round(LONGEST_CHECK * clip.fps))
    if first / clip.fps < LEAST_LEARNED:
        return USUAL
    prior, rng = learner([clip[:first]]), np.random.default_rng(0)
    errors: dict[float, list[Array]] = {}
    for share in SHARES:
        for _ in range(DRAWS):
            hidden = rng.permutation(points.shape[1])[: round(share * points.shape[1])]
            tracker = MarkerTracker(prior, calibration, fps=clip.fps, confidence=ASIS)
            errors.setdefault(share, []).append(_errors_over_claims(tracker, points[:last], first, hidden))
    return confidence_from(errors)


def _errors_over_claims(
    tracker: MarkerTracker, points: Float[Array, "frames markers 3"], first: int, hidden: Array
) -> Float[Array, "n"]:
    """For markers hidden from a frame on: the ratio of their prediction error to the claimed deviation."""
    found = []
    for number in range(max(0, first - RUN_UP), len(points)):
        seen = points[number].copy()
        if number >= first:
            seen[hidden] = np.nan
        frame = tracker.push(seen)
        if number >= first:
            off = np.linalg.norm(frame.markers - points[number], axis=1)
            found.append((off / frame.sigmas)[hidden])
    ratios = np.concatenate(found)
    return ratios[np.isfinite(ratios)]


def complete_clips(
    take: MatchedTake, calibration: Calibration, progress: NamedProgress = lambda _what, _done, _all: None
) -> list[Motion]:
    """The well-seen parts of a take as motions, at about the frame rate for styles."""
    stride = max(1, int(take.markers.fps / LEARNING_FPS))
    fps = take.markers.fps / stride
    tracker = MarkerTracker(BroadPrior(PoseSpace(calibration.skeleton)), calibration, fps=fps)
    clips = []
    parts = well_seen(take.markers)
    for number, part in enumerate(parts):
        progress("solving what is well seen", number, len(parts))
        tracker.restart()
        q = np.stack([tracker.push(points).q for points in take.markers.points[part][::stride]])
        clips.append(
            Motion(calibration.skeleton, fps, *tracker.space.frames_from_q(q), name=take.markers.name)
        )
    return clips


def well_seen(markers: Markers) -> list[slice]:
    """The ranges of frames in which most markers are seen."""
    share = np.isfinite(markers.points).all(axis=2).mean(axis=1)
    return [run for run in runs(share >= COMPLETE) if run.stop - run.start >= SHORTEST * markers.fps]


def track(
    tracker: MarkerTracker, take: MatchedTake, progress: NamedProgress = lambda _what, _done, _all: None
) -> list[TrackedFrame]:
    """Every frame of a take."""
    frames = []
    for number, points in enumerate(take.markers.points):
        if number % 50 == 0:
            progress("solving poses", number, len(take))
        frames.append(tracker.push(points, take.unlabelled[number]))
    return frames


def fill_gaps(capture: Capture) -> Filled:
    """The take with its gaps filled; markers that came back without their label are recovered."""
    fps = capture.take.markers.fps
    errors = spline_errors(capture.measured, fps)
    return fill(capture.measured, capture.carried, capture.sigmas, errors=errors, fps=fps)


def filled_markers(capture: Capture, filled: Filled, *, unsure: bool = False) -> Markers:
    """The take for writing: measured points unchanged; filled points marked by their residual.

    A residual of 0 marks a filled point, as in C3D; if measured points have 0 too, its own deviation does. Too
    uncertain points stay gaps unless `unsure`.
    """
    markers = capture.take.markers
    own = np.isfinite(markers.points).all(axis=2)
    added = ~own & (unsure | (filled.sigmas <= UNSURE))
    points = np.where(own[..., None], markers.points, np.where(added[..., None], filled.points, np.nan))
    residuals = np.zeros(own.shape) if markers.residuals is None else np.nan_to_num(markers.residuals)
    if not np.any(residuals > 0):
        residuals = np.where(added, np.maximum(filled.sigmas, 1e-4), residuals)
    return Markers(
        markers.labels,
        points,
        markers.fps,
        np.where(own | added, residuals, np.nan),
        markers.name,
        markers.origin,
    )


def summary(capture: Capture, filled: Filled | None = None) -> dict[str, Any]:
    """The results in numbers."""
    markers = capture.take.markers
    seen = np.isfinite(markers.points).all(axis=2)
    report: dict[str, Any] = {
        "frames": len(markers),
        "markers": len(markers.labels),
        "matched": list(capture.take.matched),
        "height_m": round(capture.space.skeleton.height, 4),
        "rms_mm": round(1000 * capture.rms, 2),
        "missing_percent": round(100 * float(1 - seen.mean()), 2),
        "doubted_points": int(capture.doubted.sum()),
        "notes": list(capture.notes),
    }
    if filled is not None:
        gaps = list(gaps_of(filled.measured))
        hidden = ~filled.measured
        report |= {
            "gaps": len(gaps),
            "longest_gap_s": round(max((len(gap) for gap in gaps), default=0) / markers.fps, 3),
            "filled_points": int((hidden & (filled.sigmas <= UNSURE)).sum()),
            "flagged_points": int((hidden & (filled.sigmas > UNSURE)).sum()),
            "flagged_frames": np.flatnonzero((hidden & (filled.sigmas > UNSURE)).any(axis=1)).tolist(),
            "median_sigma_mm": round(1000 * float(np.median(filled.sigmas[hidden])), 2)
            if hidden.any()
            else 0.0,
        }
    return report


class MarkerStream:
    """Live capture: push a frame, get a pose; the style keeps learning from well-seen frames.

    `push` costs one solve; learning happens only in `learn`.
    """

    def __init__(self, prior: Prior, calibration: Calibration, *, fps: float) -> None:
        self.tracker = MarkerTracker(prior, calibration, fps=fps)
        self._stride = max(1, int(fps / LEARNING_FPS))
        self._count = 0
        self._new: list[Float[Array, "size"]] = []

    def push(
        self, points: Float[Array, "markers 3"], unlabelled: Float[Array, "points 3"] | None = None
    ) -> TrackedFrame:
        """The pose of the next frame; see `MarkerTracker.push`."""
        frame = self.tracker.push(points, unlabelled)
        if frame.used.mean() >= COMPLETE and self._count % self._stride == 0:
            self._new.append(frame.q)
        self._count += 1
        return frame

    def learn(self) -> int:
        """Train the style on the well-seen poses since the last call; return their number. The next push uses it."""
        prior, count = self.tracker.prior, len(self._new)
        learned_more = going_on(prior)
        if learned_more is None:
            raise InvalidValueError(f"only a style can keep learning; this is a {type(prior).__name__}")
        if count < 2:
            return 0
        self.tracker.use(learned_more(np.stack(self._new), fps=self.tracker.fps / self._stride))
        self._new = []
        return count
