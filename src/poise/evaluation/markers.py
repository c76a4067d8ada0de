"""Protocol `markers` (Grochow et al. 2004, section 7.3): markers are hidden after a third of a take, and filled.

Two ways of hiding: a share of the markers for the rest of the take, and half of the markers at a time in gaps of one
length. The measured points give the errors of the filled ones. The complete take is solved too, and its joints are
compared with those of its own motion if there is one: a BVH file of the same name beside it, or the motion of virtual
markers. A method learns from the first part of a take and then fills the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from poise import performer
from poise.capture.calibration import Calibration, calibrate
from poise.capture.markers import (
    Capture,
    Learner,
    complete_clips,
    confidence_of,
    fill_gaps,
    learn_style,
    solve,
    template,
)
from poise.capture.matching import MatchedTake, match, read_take
from poise.capture.tracking import UNSURE, MarkerTracker
from poise.errors import InvalidValueError, PoiseError
from poise.evaluation.methods import learner_named
from poise.evaluation.report import ABOUT, EveryFrame, Protocol, Request, Row
from poise.evaluation.splits import load_split, read_motion
from poise.formats import extensions
from poise.geometry.alignment import rigid_fit
from poise.motion.gaps import spline_filled
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.motion.recordings import find_recordings
from poise.motion.virtual_markers import virtual_markers
from poise.motion.world import joint_positions
from poise.priors.gaussian import GaussianPrior
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.roles import MAIN_ROLES
from poise.types import Array, NamedProgress, silent

SHARES = (10, 30, 50, 70, 90)  # percent of the markers
GAPS = (0.08, 0.3, 1.5, 5.0)  # seconds
GAP_SHARE = 0.5  # of the markers in gaps at any time
FIRST_PART = 1 / 3
CLOSED = 0.1  # seconds at the end in which every marker is seen again, so that gaps are closed
NOISE = 0.001  # metres, of virtual markers
OPTICAL = "optical"


@dataclass(frozen=True, eq=False)
class CompleteTake:
    """A complete take, and its own motion if known."""

    take: MatchedTake
    motion: Motion | None = None


def evaluate_markers(
    takes: Sequence[CompleteTake],
    *,
    methods: Sequence[str] = (),
    stride: int = 1,
    progress: NamedProgress = silent,
) -> list[Row]:
    """A row per take for the complete solve, then one per take, way of hiding and method."""
    if stride < 1:
        raise InvalidValueError(f"the stride must be at least 1 frame; got {stride}")
    names = tuple(methods) or tuple(METHODS)
    for name in names:
        method_named(name)
    rows: list[Row] = []
    for number, recorded in enumerate(takes):
        progress(f"{recorded.take.markers.name}, complete", number, len(takes))
        take = _part(recorded.take, slice(None, None, stride))
        capture = solve(take)
        rows.append({"method": "complete", "take": take.markers.name, "rms_mm": round(1000 * capture.rms, 3)})
        if recorded.motion is not None:
            distance = _joint_distance(capture.motion, recorded.motion[::stride])
            rows[-1]["mpjpe_cm"] = round(100 * distance, 3)
        scene = LearnableTake(take, round(FIRST_PART * len(take)))
        for name in names:
            progress(f"{recorded.take.markers.name}, {name}", number, len(takes))
            rows += _rows(scene, name)
    return rows


def takes_of(split: str, test: Sequence[Path]) -> list[CompleteTake]:
    """Takes from files, or of a split: virtual markers of its test clips, or all optical recordings."""
    if test:
        return [_from_file(path) for path in test]
    if split == OPTICAL:
        folder = find_recordings()
        files = sorted((folder / OPTICAL).glob("*.c3d")) if folder is not None else []
        if not files:
            raise PoiseError("this split needs recordings: point POISE_MOCAP at a folder with optical/*.c3d")
        return [_from_file(path) for path in files]
    if split == "performer":  # bodies unlike the template
        return [
            _virtual(performer.act("walk", performer="rosa", seconds=6.0, fps=60, seed=1)),
            _virtual(performer.act("box", performer="otto", seconds=6.0, fps=60, seed=2)),
        ]
    return [_virtual(motion) for fold in load_split(split) for motion in fold.test]


def hidden_to_the_end(
    frames: int, markers: int, *, share: float, first: int, rng: np.random.Generator
) -> Bool[Array, "frames markers"]:
    """Hide some markers from the first part to the end."""
    hidden = np.zeros((frames, markers), dtype=np.bool_)
    hidden[first:, rng.permutation(markers)[: round(share * markers)]] = True
    return hidden


def hidden_in_gaps(
    frames: int, markers: int, *, gap: int, first: int, last: int, rng: np.random.Generator
) -> Bool[Array, "frames markers"]:
    """Hide every marker repeatedly for this many frames, each at its own times; all are seen in the last frames."""
    period = round(gap / GAP_SHARE)
    phases = rng.integers(period, size=markers)
    hidden = (np.arange(frames)[:, None] + phases) % period < gap
    hidden[:first], hidden[frames - last :] = False, False
    return np.asarray(hidden)


# --- rows ----------------------------------------------------------------------------------------------------------


def _part(take: MatchedTake, frames: slice) -> MatchedTake:
    return replace(take, markers=take.markers[frames], unlabelled=take.unlabelled[frames])


def _rows(scene: LearnableTake, name: str) -> list[Row]:
    method, splines = method_named(name)(scene), method_named("spline")(scene)
    true, rows = scene.take.markers.points, []
    for what, hidden in _hidings(scene):
        seen = np.where(hidden[..., None], np.nan, true)
        answer, baseline = method(seen), splines(seen)
        axes, plain = (answer.points - true)[hidden], np.linalg.norm(baseline.points - true, axis=2)[hidden]
        off = np.linalg.norm(axes, axis=1)
        known = np.isfinite(off) & np.isfinite(plain)
        row: Row = {
            "method": name,
            "take": scene.take.markers.name,
            **what,
            "mean_mm": round(1000 * float(off[known].mean()), 3),
            "p95_mm": round(1000 * float(np.quantile(off[known], 0.95)), 3),
            "of_spline": round(float(off[known].mean() / plain[known].mean()), 4),
        }
        if answer.sigmas is not None:
            # Calibration: ratios of errors to deviations (ideally 1), coverage (0.68 and 0.95 if normal), and flags.
            sigmas = answer.sigmas[hidden]
            ratios = np.abs(axes) / np.maximum(sigmas, 1e-6)[:, None]
            flagged = sigmas > UNSURE
            row["over_claimed_rms"] = round(float(np.sqrt(np.mean(ratios**2))), 3)
            row["within_1_sigma"] = round(float(np.mean(ratios <= 1.0)), 3)
            row["within_2_sigma"] = round(float(np.mean(ratios <= 2.0)), 3)
            row["flagged_percent"] = round(100 * float(flagged.mean()), 2)
            if flagged.any() and not flagged.all():
                row["flagged_mm"] = round(1000 * float(off[flagged].mean()), 1)
                row["unflagged_mm"] = round(1000 * float(off[~flagged].mean()), 1)
        row["ms_per_frame"] = round(1000 * float(answer.seconds.mean()), 4)
        row["ms_p95"] = round(1000 * float(np.quantile(answer.seconds, 0.95)), 4)
        rows.append(row | {"failed": int((~np.isfinite(off)).sum())})
    return rows


def _hidings(scene: LearnableTake) -> Iterator[tuple[Row, Array]]:
    """The hidden parts: percent and gap length (0: to the end of the take), with the frames and markers."""
    markers, rng = scene.take.markers, np.random.default_rng(0)
    frames, count = markers.points.shape[:2]
    measured = np.isfinite(markers.points).all(axis=2)
    for share in SHARES:
        hidden = hidden_to_the_end(frames, count, share=share / 100, first=scene.first, rng=rng)
        yield {"hidden_percent": share, "gap_s": 0.0}, hidden & measured
    last = max(2, round(CLOSED * markers.fps))
    for seconds in GAPS:
        gap = round(seconds * markers.fps)
        hidden = hidden_in_gaps(frames, count, gap=max(gap, 1), first=scene.first, last=last, rng=rng)
        if gap >= 1 and 2 * gap <= frames - scene.first:
            yield {"hidden_percent": round(100 * GAP_SHARE), "gap_s": seconds}, hidden & measured


def _joint_distance(solved: Motion, own: Motion) -> float:
    """Mean distance of the joints both skeletons have, after one rigid move of the whole take."""
    roles = [role for role in MAIN_ROLES if role in solved.skeleton.roles and role in own.skeleton.roles]
    frames = min(len(solved), len(own))
    ours, theirs = (
        joint_positions(motion[:frames])[:, [motion.skeleton.index(role) for role in roles]]
        for motion in (solved, own)
    )
    turn, shift, _ = rigid_fit(theirs.reshape(-1, 3), ours.reshape(-1, 3))
    return float(np.linalg.norm(ours - (theirs @ turn.T + shift), axis=2).mean())


# --- takes ---------------------------------------------------------------------------------------------------------


def _from_file(path: Path) -> CompleteTake:
    if path.suffix.lower() not in extensions(markers=True):
        return _virtual(read_motion(path))
    own = path.with_suffix(".bvh")
    return CompleteTake(read_take(path, template()), read_motion(own) if own.exists() else None)


def _virtual(motion: Motion) -> CompleteTake:
    markers = virtual_markers(motion)
    noise = NOISE * np.random.default_rng(0).normal(size=markers.points.shape)
    noisy = type(markers)(markers.labels, markers.points + noise, markers.fps, name=motion.name)
    return CompleteTake(match(noisy, template()), motion)


# --- methods ---------------------------------------------------------------------------------------------------------

RUN_UP = 0.5  # seconds before the first hidden frame from which a body is tracked
COMPONENTS = 0.99  # of the variance kept by principal components
MARKER_NOISE = 0.005  # metres in addition
ROUNDS = 3  # of aligning the seen markers and filling the rest


@dataclass(frozen=True, eq=False)
class Answer:
    """Filled points, claimed deviations (metres per axis; NaN for methods without) and seconds per frame."""

    points: Float[Array, "frames markers 3"]
    sigmas: Float[Array, "frames markers"] | None
    seconds: Float[Array, "frames"]


@dataclass(frozen=True, eq=False)
class LearnableTake:
    """A take whose first frames are complete: the training data of methods."""

    take: MatchedTake
    first: int  # frames of the first part

    @cached_property
    def opening(self) -> MatchedTake:
        """The first part by itself."""
        return _part(self.take, slice(self.first))

    @cached_property
    def calibration(self) -> Calibration:
        """The body, fitted to the first part."""
        opening = self.opening
        return calibrate(PoseSpace(template()), opening.layout, opening.markers.points, loose=opening.loose)

    @cached_property
    def clips(self) -> list[Motion]:
        """The first part as motion of that body."""
        return complete_clips(self.opening, self.calibration)


MarkerFiller = Callable[[Float[Array, "frames markers 3"]], Answer]
"""From the points of a take, NaN where they are hidden, to the points with everything filled."""


def spline(scene: LearnableTake) -> MarkerFiller:
    """A cubic spline through the points around a gap; the last point if there is none after it."""
    del scene

    def filled(points: Float[Array, "frames markers 3"]) -> Answer:
        begun = time.process_time()
        found = spline_filled(points)
        return Answer(found, None, np.full(len(points), (time.process_time() - begun) / len(points)))

    return filled


def principal_components(scene: LearnableTake) -> MarkerFiller:
    """Markers as one shape that varies along principal components of the first part, moved rigidly."""
    points = scene.opening.markers.points
    shapes = points[np.isfinite(points).all(axis=(1, 2))]
    shapes = shapes - shapes.mean(axis=1, keepdims=True)
    for _ in range(ROUNDS):  # each complete frame is aligned rigidly to their mean shape
        mean = shapes.mean(axis=0)
        fits = [rigid_fit(shape, mean) for shape in shapes]
        moved = zip(shapes, fits, strict=True)
        shapes = np.stack([shape @ turn.T + shift for shape, (turn, shift, _) in moved])
    mean, count = shapes.mean(axis=0), shapes.shape[1]
    _, spreads, ways = np.linalg.svd((shapes - mean).reshape(len(shapes), -1), full_matrices=False)
    shares = np.cumsum(spreads**2) / np.sum(spreads**2)
    kept = int(np.searchsorted(shares, COMPONENTS)) + 1
    basis = ways[:kept].T * (spreads[:kept] / np.sqrt(len(shapes)))

    def one(points: Float[Array, "markers 3"]) -> Float[Array, "markers 3"]:
        seen = np.isfinite(points).all(axis=1)
        if seen.all() or seen.sum() < 3:
            return np.where(seen[:, None], points, mean if seen.sum() < 3 else points)
        shape, rows = mean, np.repeat(seen, 3)
        for _ in range(ROUNDS):
            turn, shift, _ = rigid_fit(shape[seen], points[seen])
            own = (points - shift) @ turn
            inner = basis[rows].T @ basis[rows] + MARKER_NOISE**2 * np.eye(kept)
            weights = np.linalg.solve(inner, basis[rows].T @ (own - mean)[seen].ravel())
            shape = mean + (basis @ weights).reshape(count, 3)
        return np.where(seen[:, None], points, shape @ turn.T + shift)

    def filled(points: Float[Array, "frames markers 3"]) -> Answer:
        begun = time.process_time()
        found = np.stack([one(frame) for frame in points])
        return Answer(found, None, np.full(len(points), (time.process_time() - begun) / len(points)))

    return filled


def body(scene: LearnableTake, learner: Learner) -> MarkerFiller:
    """A body with a prior learned from the first part, tracked frame by frame."""
    prior = learner(scene.clips)
    confidence = confidence_of(scene.opening, scene.calibration, learner)

    def filled(points: Float[Array, "frames markers 3"]) -> Answer:
        markers = scene.take.markers
        tracker = MarkerTracker(prior, scene.calibration, fps=markers.fps, confidence=confidence)
        start = max(0, scene.first - round(RUN_UP * markers.fps))
        frames, seconds = [], np.zeros(len(points))
        for number in range(start, len(points)):
            begun = time.process_time()
            frames.append(tracker.step(points[number], scene.take.unlabelled[number]))
            seconds[number] = time.process_time() - begun
        part = Markers(markers.labels, points[start:], markers.fps, name=markers.name)
        take = replace(scene.take, markers=part, unlabelled=scene.take.unlabelled[start:], matched=())
        calibration = scene.calibration
        result = fill_gaps(
            Capture(solutions=frames, fps=markers.fps, take=take, calibration=calibration, prior=prior)
        )
        sigmas = np.zeros(points.shape[:2])
        sigmas[start:] = result.sigmas
        return Answer(np.concatenate([points[:start], result.points]), sigmas, seconds[start:])

    return filled


def learn_gaussian(clips: Sequence[Motion]) -> GaussianPrior:
    """Clusters of a few poses each."""
    poses = sum(len(clip) for clip in clips)
    return GaussianPrior.learn(clips, clusters=min(100, max(2, poses // 4)))


def method_named(name: str) -> Callable[[LearnableTake], MarkerFiller]:
    """The method of this name."""
    if name in METHODS:
        return METHODS[name]
    return partial(body, learner=learner_named(name, others=METHODS))


METHODS: dict[str, Callable[[LearnableTake], MarkerFiller]] = {
    "spline": spline,
    "pca": principal_components,
    "style": partial(body, learner=learn_style),
    "gaussian": partial(body, learner=learn_gaussian),
    "local": partial(body, learner=learner_named("local")),
}


def _check(request: Request) -> None:
    if request.train:
        raise InvalidValueError(
            "markers are learned from the first third of every take: give takes to test on alone",
            settings=("test",),
        )


PROTOCOL = Protocol(
    "markers",
    ABOUT["markers"],
    lambda request, progress: evaluate_markers(
        takes_of(request.split, request.test),
        methods=request.methods,
        stride=request.options.stride,
        progress=progress,
    ),
    figures={"markers": "markers_figure"},
    methods=tuple(METHODS),
    Options=EveryFrame,
    check=_check,
)
