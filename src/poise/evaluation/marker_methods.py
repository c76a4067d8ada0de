"""Methods that fill hidden markers: each learns from the first part of a take and then fills the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from poise.capture.calibration import Calibration, calibrate
from poise.capture.marker_takes import MatchedTake
from poise.capture.marker_tracking import MarkerTracker
from poise.capture.markers import (
    Capture,
    Learner,
    complete_clips,
    confidence_of,
    fill_gaps,
    learn_style,
    template,
)
from poise.evaluation.methods import learner_named
from poise.geometry.alignment import rigid_fit
from poise.motion.gaps import spline_filled
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.priors.gaussian import GaussianPrior
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array

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
        take = self.take
        return MatchedTake(
            take.markers[: self.first], take.layout, take.loose, take.unlabelled[: self.first], take.matched
        )

    @cached_property
    def calibration(self) -> Calibration:
        """The body, fitted to the first part."""
        opening = self.opening
        return calibrate(PoseSpace(template()), opening.layout, opening.markers.points, loose=opening.loose)

    @cached_property
    def clips(self) -> list[Motion]:
        """The first part as motion of that body."""
        return complete_clips(self.opening, self.calibration)


@runtime_checkable
class MarkerFiller(Protocol):
    """Fills the missing points of a take."""

    def __call__(self, points: Float[Array, "frames markers 3"]) -> Answer:
        """The points (NaN where hidden) with everything filled."""
        ...


def spline(scene: LearnableTake) -> MarkerFiller:
    """A cubic spline through the points around a gap; the last point if there is none after it."""
    del scene

    def filled(points: Float[Array, "frames markers 3"]) -> Answer:
        begun = time.process_time()
        found = spline_filled(points)
        each = (time.process_time() - begun) / len(points)
        return Answer(found, None, np.full(len(points), each))

    return filled


def principal_components(scene: LearnableTake) -> MarkerFiller:
    """Markers as one shape that varies along principal components of the first part, moved rigidly."""
    shapes = _aligned(scene.opening.markers.points)
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
            shape = mean + (
                basis @ np.linalg.solve(inner, basis[rows].T @ (own - mean)[seen].ravel())
            ).reshape(count, 3)
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
            frames.append(tracker.push(points[number], scene.take.unlabelled[number]))
            seconds[number] = time.process_time() - begun
        part = Markers(markers.labels, points[start:], markers.fps, name=markers.name)
        take = MatchedTake(part, scene.take.layout, scene.take.loose, scene.take.unlabelled[start:], ())
        result = fill_gaps(Capture(take, scene.calibration, prior, tracker.space, frames))
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


def _aligned(points: Float[Array, "frames markers 3"]) -> Float[Array, "frames markers 3"]:
    """Complete frames, each aligned rigidly to their mean shape."""
    complete: Bool[Array, "frames"] = np.isfinite(points).all(axis=(1, 2))
    shapes = points[complete]
    shapes = shapes - shapes.mean(axis=1, keepdims=True)
    for _ in range(ROUNDS):
        mean = shapes.mean(axis=0)
        fits = [rigid_fit(shape, mean) for shape in shapes]
        shapes = np.stack(
            [shape @ turn.T + shift for shape, (turn, shift, _) in zip(shapes, fits, strict=True)]
        )
    return shapes
