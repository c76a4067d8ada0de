"""Gaps in marker recordings: detection, spline interpolation, and the expected error of such splines in a take."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from poise.types import Array

KNOTS = 12  # samples on each side of a gap for its spline
_TRIED = (0.05, 0.1, 0.2, 0.4, 0.8)  # seconds: lengths of the test gaps
_EACH = 12  # test gaps per marker
TAILS = 2.0  # times the typical spline error, for its heavy tails
_LEAST_ERROR = 1e-4  # metres


@dataclass(frozen=True)
class Gap:
    """Frames `start` to `end` (exclusive) in which one marker was not seen."""

    marker: int
    start: int
    end: int
    closed: bool  # whether the marker was seen both before and after

    def __len__(self) -> int:
        return self.end - self.start


def runs(flags: Bool[Array, "frames"]) -> list[slice]:
    """The stretches of frames in which a flag is set."""
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False]))
    return [slice(first, end) for first, end in edges.reshape(-1, 2).tolist()]


def gaps_of(seen: Bool[Array, "frames markers"]) -> Iterator[Gap]:
    """All gaps, marker by marker."""
    for marker in range(seen.shape[1]):
        for run in runs(~seen[:, marker]):
            yield Gap(marker, run.start, run.stop, closed=run.start > 0 and run.stop < len(seen))


def spline_filled(points: Float[Array, "frames markers 3"]) -> Float[Array, "frames markers 3"]:
    """Fill every gap with a cubic spline through the samples around it; constant before the first and after the last.

    A marker that is never seen stays missing.
    """
    seen = np.isfinite(points).all(axis=2)
    filled = points.copy()
    for gap in gaps_of(seen):
        known = np.flatnonzero(seen[:, gap.marker])
        if len(known):
            filled[gap.start : gap.end, gap.marker] = _bridged(points[:, gap.marker], known, gap)
    return filled


@dataclass(frozen=True, eq=False)
class SplineErrors:
    """Spline error per axis: scale times a power of the harmonic distance to both ends of the gap."""

    scales: Float[Array, "markers"]  # metres at a distance of one second
    power: float
    speeds: Float[Array, "markers"]  # metres per second by which a marker drifts in a gap without an end
    accelerations: Float[Array, "markers"]  # metres per second squared at which the scales were measured

    def sigma(self, gap: Gap, fps: float, *, acceleration: float = 0.0) -> Float[Array, "gap"]:
        """The expected error of every frame of a gap, larger at a higher `acceleration` (RMS per axis)."""
        before = np.arange(1, len(gap) + 1) / fps
        if not gap.closed:
            away = before if gap.start > 0 else before[::-1]
            return np.asarray(self.speeds[gap.marker] * away + _LEAST_ERROR)
        after = before[::-1]
        livelier = max(1.0, acceleration / max(float(self.accelerations[gap.marker]), 1e-9))
        distances = before * after / (before + after)
        return np.asarray(TAILS * livelier * self.scales[gap.marker] * distances**self.power + _LEAST_ERROR)


def spline_errors(points: Float[Array, "frames markers 3"], fps: float) -> SplineErrors:
    """Measure the errors on the take itself: cut test gaps where markers were seen, fill them, and compare."""
    seen = np.isfinite(points).all(axis=2)
    rng = np.random.default_rng(0)
    lengths = [max(2, round(fps * seconds)) for seconds in _TRIED]
    # Per length and marker, the root-mean-square error per axis at the middle of such gaps; NaN if none can be cut.
    errors = np.full((len(lengths), seen.shape[1]), np.nan)
    for (row, length), marker in itertools.product(enumerate(lengths), range(seen.shape[1])):
        around = np.convolve(seen[:, marker], np.ones(length + 2 * KNOTS), mode="valid")
        starts = np.flatnonzero(around >= length + 2 * KNOTS) + KNOTS
        squares = []
        for start in (
            rng.choice(starts, size=min(_EACH, len(starts)), replace=False).tolist() if len(starts) else ()
        ):
            gap, track = Gap(0, start, start + length, closed=True), points[:, marker]
            samples = np.r_[start - KNOTS : start, start + length : start + length + KNOTS]
            off = _bridged(track, samples, gap) - track[start : start + length]
            squares.append(float(np.square(off[length // 2]).mean()))
        if squares:
            errors[row, marker] = max(float(np.sqrt(np.mean(squares))), _LEAST_ERROR)
    distances = np.array([(length + 1) / (4.0 * fps) for length in lengths])
    typical = np.array([np.nanmedian(row) if np.isfinite(row).any() else np.nan for row in errors])
    known, power = np.isfinite(typical), 2.0
    if known.sum() > 1:
        slope = np.polyfit(np.log(distances[known]), np.log(typical[known]), 1)[0]
        power = float(np.clip(slope, 1.0, 3.0))
    scaled = np.square(errors / distances[:, None] ** power)
    known, scales = np.isfinite(scaled), _root_mean(scaled)
    scales[~known.any(axis=0)] = np.median(scales[known.any(axis=0)]) if known.any() else 1.0
    # Root mean square speed and acceleration of every marker, per axis.
    moves = (np.diff(points, n=order, axis=0) * fps**order for order in (1, 2))
    return SplineErrors(scales, power, *(_root_mean(np.square(one).mean(axis=2)) for one in moves))


def _bridged(track: Float[Array, "frames 3"], known: Array, gap: Gap) -> Float[Array, "gap 3"]:
    from scipy.interpolate import CubicSpline

    before, after = known[known < gap.start][-KNOTS:], known[known >= gap.end][:KNOTS]
    inside, knots = np.arange(gap.start, gap.end), np.r_[before, after]
    if not gap.closed or len(knots) < 4:
        return np.stack([np.interp(inside, knots, track[knots, axis]) for axis in range(3)], axis=1)
    return np.asarray(CubicSpline(knots, track[knots])(inside))


def _root_mean(squares: Float[Array, "rows markers"]) -> Float[Array, "markers"]:
    """The root of the mean over the finite numbers."""
    known = np.isfinite(squares)
    return np.asarray(np.sqrt(np.where(known, squares, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)))
