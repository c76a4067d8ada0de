"""From markers to a moving body and to a take without gaps, for `poise markers` (Grochow et al. 2004, 7.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from poise.capture.calibration import Calibration, calibrate
from poise.capture.matching import MatchedTake
from poise.capture.tracking import (
    ASIS,
    COMPLETE,
    DRAWS,
    LEARNING_FPS,
    SHARES,
    UNSURE,
    USUAL,
    Confidence,
    MarkerTracker,
    TrackedFrame,
    confidence_from,
)
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats import extensions, write
from poise.formats.c3d import write_filled
from poise.formats.files import make_folder
from poise.motion.gaps import Gap, SplineErrors, gaps_of, runs, spline_errors, spline_filled
from poise.motion.marker_names import sides_swapped
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.performer import Body
from poise.priors.broad import BroadPrior
from poise.priors.prior import Prior
from poise.priors.style.prior import StylePrior
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.solution import MotionSolution
from poise.types import Array, NamedProgress, ShareProgress

if TYPE_CHECKING:
    from PIL import Image

Learner = Callable[[Sequence[Motion]], Prior]

SHORTEST = 0.5  # seconds: shortest run of such frames
LEAST_LEARNED = 1.0  # seconds of them in total, for a style
FITTING = "fitting the body"
NOWHERE_NEAR = 0.3  # metres from the body's marker: the point belongs to something else
WORST_FIT = 0.025  # metres, rms, between body and markers: above this the fit is rejected
LEARNED_PART = 2 / 3  # share of a well-seen part that a prior learns when it is tested on the rest ...
LONGEST_CHECK = 3.0  # ... for at most this many seconds ...
RUN_UP = 10  # ... after this many frames in which all is seen
SHORT = 0.1  # seconds: longest gap for the spline alone; from twice that the model has its full weight
LEAST_LEFT = 0.3  # share of the model's variance that remains even next to a seen point
SETTLING = 5  # steps of the tracker that find the pose of one frame
FADING = 0.4  # seconds: time constant of a marker's offset from the model
STYLE: dict[str, Any] = {"dimensions": 3, "active": 100, "up": False}
"""Settings for the style of a take: markers determine the up direction, so the style need not."""


def template() -> Skeleton:
    """The default body that is fitted to a performer."""
    return Body().skeleton


@dataclass(eq=False, repr=False, kw_only=True)
class Capture(MotionSolution):
    """A solved take: the motion of the performer's own body, with what it was solved from."""

    solutions: Sequence[TrackedFrame]
    take: MatchedTake
    calibration: Calibration
    prior: Prior

    @cached_property
    def motion(self) -> Motion:
        """The body in motion."""
        return replace(super().motion, origin=self.take.markers.origin)

    @cached_property
    def carried(self) -> Float[Array, "frames markers 3"]:
        """Marker positions on the body."""
        return np.stack([frame.markers for frame in self.solutions])

    @cached_property
    def sigmas(self) -> Float[Array, "frames markers"]:
        """Standard deviation per axis of unseen markers."""
        return np.stack([frame.sigmas for frame in self.solutions])

    @cached_property
    def measured(self) -> Float[Array, "frames markers 3"]:
        """The point used for each marker: its own, one with a swapped label, or an unlabelled one.

        A marker's own point that was rejected in a single frame counts again, unless it is far off.
        """
        own = self.take.markers.points
        everyone = np.concatenate([own, self.take.unlabelled], axis=1)
        sources = np.stack([frame.sources for frame in self.solutions])
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
        sources = np.stack([frame.sources for frame in self.solutions])
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
    tracker, notes = tracker_of(take, prior=prior, learner=learner, progress=progress)
    frames = track(tracker, take, progress)
    return Capture(
        solutions=frames, fps=take.markers.fps, name=take.markers.name, notes=notes, take=take,
        deviations=np.stack([frame.joint_sigmas for frame in frames]), calibration=tracker.calibration,
        prior=tracker.prior,
    )  # fmt: skip


def tracker_of(
    take: MatchedTake,
    *,
    prior: Prior | None = None,
    learner: Learner | None = None,
    progress: NamedProgress = lambda _what, _done, _all: None,
) -> tuple[MarkerTracker, tuple[str, ...]]:
    """A tracker of the performer of a take, on their own body, and notes for the user."""
    calibration = fit_body(take, prior, progress=lambda share: progress(FITTING, int(100 * share), 100))
    notes, confidence = tuple[str, ...](), USUAL
    if prior is None:
        prior, notes = learned_prior(take, calibration, learner, progress)
        if prior is not None:
            confidence = confidence_of(take, calibration, learner or learn_style)
    prior = prior or BroadPrior(PoseSpace(calibration.skeleton))
    return MarkerTracker(prior, calibration, fps=take.markers.fps, confidence=confidence), notes


def fit_body(
    take: MatchedTake, prior: Prior | None = None, *, progress: ShareProgress = lambda _: None
) -> Calibration:
    """The performer's body from a full set of markers: the prior's, or the default, at their size."""
    points = take.markers.points
    if not np.isfinite(points).all(axis=2).any():
        raise InvalidValueError(f"{take.markers.name}: no marker is seen in any frame")
    labels = tuple(take.places.get(label, label) for label in take.markers.labels)
    if sides_swapped(replace(take.markers, labels=labels)):
        raise InvalidValueError(
            f"{take.markers.name}: left and right are swapped: labels of the left are on the right of a body that "
            "faces forward by its waist and feet. Swap them in a mapping file, or check which axis is up",
            settings=("map", "up"),
        )
    space, start = (PoseSpace(template()), None) if prior is None else (prior.space, prior.mean)
    return calibrate(space, take.layout, points, start=start, loose=take.loose, progress=progress)


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
    """The calibration of a prior of this take: one from the start of its longest well-seen part, tested on the rest.

    It compares the prediction errors of hidden markers with the deviations that are claimed for them.
    """
    part = max(well_seen(take.markers), key=lambda part: part.stop - part.start)
    longest = replace(take, markers=take.markers[part], unlabelled=take.unlabelled[part])
    (clip,) = complete_clips(longest, calibration)
    points = take.markers.points[part][:: round(take.markers.fps / clip.fps)]
    first = round(LEARNED_PART * len(clip))
    last = min(len(clip), first + round(LONGEST_CHECK * clip.fps))
    if first / clip.fps < LEAST_LEARNED:
        return USUAL
    prior, rng = learner([clip[:first]]), np.random.default_rng(0)
    errors: dict[float, list[Array]] = {share: [] for share in SHARES}
    for share in SHARES:
        for _ in range(DRAWS):
            hidden, found = rng.permutation(points.shape[1])[: round(share * points.shape[1])], []
            tracker = MarkerTracker(prior, calibration, fps=clip.fps, confidence=ASIS)
            for number in range(max(0, first - RUN_UP), last):
                seen = points[number].copy()
                if number >= first:
                    seen[hidden] = np.nan
                frame = tracker.step(seen)
                if number >= first:
                    off = np.linalg.norm(frame.markers - points[number], axis=1)
                    found.append((off / frame.sigmas)[hidden])
            ratios = np.concatenate(found)
            errors[share].append(ratios[np.isfinite(ratios)])
    return confidence_from(errors)


def complete_clips(
    take: MatchedTake, calibration: Calibration, progress: NamedProgress = lambda _what, _done, _all: None
) -> list[Motion]:
    """The well-seen parts of a take as motions, at about the frame rate for styles."""
    stride = max(1, int(take.markers.fps / LEARNING_FPS))
    fps, body, name = take.markers.fps / stride, calibration.skeleton, take.markers.name
    tracker = MarkerTracker(BroadPrior(PoseSpace(body)), calibration, fps=fps)
    clips, parts = [], well_seen(take.markers)
    for number, part in enumerate(parts):
        progress("solving what is well seen", number, len(parts))
        tracker.reset()
        q = np.stack([tracker.step(points).q for points in take.markers.points[part][::stride]])
        clips.append(Motion(body, fps, *tracker.space.frames_from_q(q), name=name))
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
        frames.append(tracker.step(points, take.unlabelled[number]))
    return frames


@dataclass(frozen=True, eq=False)
class Filled:
    """A take without gaps, and the standard deviation per axis of filled points (metres; 0 if measured)."""

    points: Float[Array, "frames markers 3"]
    sigmas: Float[Array, "frames markers"]
    measured: Bool[Array, "frames markers"]


def fill(
    measured: Float[Array, "frames markers 3"],
    carried: Float[Array, "frames markers 3"],
    sigmas: Float[Array, "frames markers"],
    *,
    errors: SplineErrors,
    fps: float,
) -> Filled:
    """Fill the gaps of measured points (NaN), given the model's marker positions and their uncertainty.

    Inside a gap there are two estimates. The model's is where the body carries the marker, shifted by its error at the
    gap's ends, which fades like an Ornstein-Uhlenbeck process between its two known values. The spline's error is
    measured on the take itself (`motion.gaps`). Both have a variance, by which they are combined; only very short gaps
    are filled by the spline alone.
    """
    seen = np.isfinite(measured).all(axis=2)
    points, spread = np.where(seen[..., None], measured, carried), np.where(seen, 0.0, sigmas)
    splines = spline_filled(measured)
    for gap in gaps_of(seen):
        frames, m = slice(gap.start, gap.end), gap.marker
        body = carried[:, m]
        offset, left = _faded_offset(measured[:, m], body, gap, fps)
        guess, variance = body[frames] + offset, np.maximum(left, LEAST_LEFT) * sigmas[frames, m] ** 2
        if np.isfinite(splines[gap.start, m]).all():
            bends = np.diff(body[max(0, gap.start - 2) : gap.end + 2], n=2, axis=0) * fps**2
            rough = float(np.sqrt(np.square(bends).mean())) if len(bends) else 0.0  # acceleration per axis
            own = errors.sigma(gap, fps, acceleration=rough) ** 2
            if not gap.closed:
                # The body has carried the marker from the one end where it was seen; held at its last position, it
                # would be that far off, however still it was before.
                end = body[gap.start - 1 if gap.start > 0 else gap.end]
                own += np.square(body[frames] - end).mean(axis=1)
            share = variance / (variance + own)
            if gap.closed:
                share = np.maximum(share, np.clip(2.0 - len(gap) / (SHORT * fps), 0.0, 1.0))
            guess = (1.0 - share)[:, None] * guess + share[:, None] * splines[frames, m]
            variance = (1.0 - share) ** 2 * variance + share**2 * own
        points[frames, m], spread[frames, m] = guess, np.sqrt(variance)
    return Filled(points, spread, seen)


def _faded_offset(
    track: Float[Array, "frames 3"], carried: Float[Array, "frames 3"], gap: Gap, fps: float
) -> tuple[Float[Array, "gap 3"], Float[Array, "gap"]]:
    """The model's error inside a gap, interpolated from both ends, and the remaining share of its variance."""
    count = len(gap)
    before = np.exp(-np.arange(1, count + 1) / (FADING * fps)) * (gap.start > 0)
    after = np.exp(-np.arange(count, 0, -1) / (FADING * fps)) * (gap.end < len(track))
    whole = np.maximum(1.0 - (before * after) ** 2, 1e-9)
    first, last = before * (1.0 - after**2) / whole, after * (1.0 - before**2) / whole
    offset = np.zeros((count, 3))
    if gap.start > 0:
        offset += first[:, None] * (track[gap.start - 1] - carried[gap.start - 1])
    if gap.end < len(track):  # where the model leads on to, as if the marker were not seen there
        led_on = carried[gap.end - 1]
        led_on = 2.0 * led_on - carried[gap.end - 2] if gap.end >= 2 else led_on
        offset += last[:, None] * (track[gap.end] - led_on)
    left = 1.0 - (before**2 + after**2 - 2.0 * (before * after) ** 2) / whole
    return offset, np.maximum(left, 0.0)


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
    return replace(markers, points=points, residuals=np.where(own | added, residuals, np.nan))


def summary(capture: Capture, filled: Filled | None = None) -> dict[str, Any]:
    """The results in numbers."""
    markers = capture.take.markers
    seen = np.isfinite(markers.points).all(axis=2)
    report: dict[str, Any] = {
        "frames": len(markers),
        "markers": len(markers.labels),
        "matched": list(capture.take.matched),
        "height_m": round(capture.calibration.skeleton.height, 4),
        "rms_mm": round(1000 * capture.rms, 2),
        "missing_percent": round(100 * float(1 - seen.mean()), 2),
        "doubted_points": int(capture.doubted.sum()),
        "notes": list(capture.notes),
    }
    if filled is not None:
        gaps, hidden = list(gaps_of(filled.measured)), ~filled.measured
        flagged = hidden & (filled.sigmas > UNSURE)
        sigma = 1000 * float(np.median(filled.sigmas[hidden])) if hidden.any() else 0.0
        report |= {
            "gaps": len(gaps),
            "longest_gap_s": round(max((len(gap) for gap in gaps), default=0) / markers.fps, 3),
            "filled_points": int((hidden & (filled.sigmas <= UNSURE)).sum()),
            "flagged_points": int(flagged.sum()),
            "flagged_frames": np.flatnonzero(flagged.any(axis=1)).tolist(),
            "median_sigma_mm": round(sigma, 2),
        }
    return report


def write_filled_take(source: Path, markers: Markers, path: Path, **options: Any) -> None:
    """Write a C3D file again with only its gaps changed, if input and output are C3D; else a new file."""
    if path.suffix.lower() not in (takes := extensions(markers=True)):
        raise UnknownNameError("format of a take for the extension", path.suffix, takes)
    make_folder(path.parent)
    if markers.origin.format == "c3d" and path.suffix.lower() == ".c3d":
        write_filled(source, markers, path, **options)
    else:
        write(markers, path)


def match_rows(take: MatchedTake, off: Float[Array, "markers"]) -> list[str]:
    """Per marker its label, its place on the body, why, and its distance from there (metres; NaN if not seen)."""
    return [
        f"{label}: {handle.joint}, {take.reasons.get(label, 'given')}"
        + (f", {1000 * distance:.0f} mm off" if np.isfinite(distance) else ", not seen")
        for (label, handle), distance in zip(take.layout.items(), off, strict=True)
    ]


def draw_match(take: MatchedTake, calibration: Calibration) -> Image.Image:
    """The fitted body with its markers in the frame in which most are seen, and what was assumed of each."""
    from poise.pictures.marker_report import draw_marker_places

    points = take.markers.points
    best = points[np.argmax(np.isfinite(points).all(axis=2).sum(axis=1))]
    tracker = MarkerTracker(BroadPrior(PoseSpace(calibration.skeleton)), calibration, fps=take.markers.fps)
    for _ in range(SETTLING):
        frame = tracker.step(best)
    off = np.linalg.norm(best - frame.markers, axis=1)
    (place,), (turns,) = tracker.space.frames_from_q(frame.q[None])
    title = (
        f"{take.markers.name}: {len(take.layout)} markers on a body of {calibration.skeleton.height:.2f} m"
    )
    rows = match_rows(take, off)
    return draw_marker_places(
        Pose(calibration.skeleton, place, turns), best, frame.markers, rows, title=title
    )


def save_match(take: MatchedTake, path: Path, *, prior: Prior | None = None) -> Calibration:
    """Fit the body to a take, and write the picture of `draw_match`."""
    from poise import pictures

    calibration = fit_body(take, prior)
    make_folder(path.parent)
    pictures.save(draw_match(take, calibration), path)
    return calibration


def save_report(capture: Capture, path: Path) -> Path:
    """The picture of a solved take as a PNG file: where its markers are, and what was seen and filled."""
    from poise import pictures
    from poise.pictures.labels import arranged
    from poise.pictures.marker_report import draw_marker_report

    filled, labels = fill_gaps(capture), capture.take.markers.labels
    image = draw_marker_report(
        capture.motion, labels, filled.points, filled.sigmas, measured=filled.measured, unsure=UNSURE
    )
    make_folder(path.parent)
    return pictures.save(arranged([[draw_match(capture.take, capture.calibration)], [image]]), path)
