"""Label the points of a first frame by layouts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from poise.geometry.alignment import rigid_fit
from poise.types import Array

_FORBIDDEN = 1e6
_HEADINGS = 12  # tried for an unknown heading
_TRIED = 3  # headings examined per layout
_PROMISING = 16  # layouts and headings that are refined
_ROUNDS = 6
_OWN = 0.25  # metres: radius within which a point is a marker's own
STRAY = 0.5  # metres: distance at which a point is not a marker's own, which is then hidden


@dataclass(frozen=True, eq=False)
class LayoutFit:
    """A layout fitted to points: its marker positions, the point of each, and the mean distance."""

    layout: Array
    placed: Array
    met: Array  # the same, at the points themselves if they are close
    markers: Array
    numbers: Array
    cost: float


def fit_layout(
    points: Float[Array, "points 3"],
    layouts: Float[Array, "layouts markers 3"],
    *,
    unlike: Float[Array, "markers points"] | None = None,
) -> LayoutFit:
    """Fit a first frame at any position and heading: return the best of several layouts.

    Every layout is tried at every heading; the most promising are refined in rounds. `unlike` are metres added to
    distances of points with another colour than the marker's.
    """
    unlike = np.zeros((layouts.shape[1], len(points))) if unlike is None else unlike
    starts = [start for layout in layouts for start in _promising_headings(points, layout, unlike)]
    starts.sort(key=lambda start: start[0])
    fits = [_closer(points, layout, placed, unlike) for _, layout, placed in starts[: 3 * _PROMISING]]
    return min((_settled(points, fit, unlike) for fit in sorted(fits, key=_cost)[:_PROMISING]), key=_cost)


def _cost(fit: LayoutFit) -> float:
    return fit.cost


def _promising_headings(points: Array, layout: Array, unlike: Array) -> list[tuple[float, Array, Array]]:
    """The layout centred on the points, at the best headings: its distance, itself, and its position."""
    angles = np.arange(_HEADINGS) * 2 * np.pi / _HEADINGS
    turns = np.zeros((_HEADINGS, 3, 3))
    turns[:, 0, 0] = turns[:, 2, 2] = np.cos(angles)
    turns[:, 0, 2], turns[:, 1, 1] = np.sin(angles), 1.0
    turns[:, 2, 0] = -turns[:, 0, 2]
    placed = layout @ turns.transpose(0, 2, 1)
    placed += (points.mean(axis=0) - placed.mean(axis=1, keepdims=True)) * (1.0, 0.0, 1.0)
    gaps = np.linalg.norm(placed[:, :, None] - points[None, None], axis=-1) + unlike
    off = np.minimum(gaps.min(axis=2), STRAY).mean(axis=1)
    return [(float(off[k]), layout, placed[k]) for k in np.argsort(off)[:_TRIED]]


def _closer(points: Array, layout: Array, placed: Array, unlike: Array) -> LayoutFit:
    """One round: the nearest assignment, and the layout aligned to it."""
    markers, numbers = matched(np.linalg.norm(placed[:, None] - points[None], axis=-1) + unlike, np.inf)
    others = unlike[markers, numbers]
    near = np.linalg.norm(placed[markers] - points[numbers], axis=1) + others < STRAY
    kept = near if np.sum(near) >= 3 else np.ones_like(near)
    turn, shift, _ = rigid_fit(layout[markers[kept]], points[numbers[kept]], upright=True)
    placed = layout @ turn.T + shift
    gaps = np.linalg.norm(placed[markers] - points[numbers], axis=1) + others
    met, near = placed.copy(), gaps < _OWN
    met[markers[near]] = points[numbers[near]]
    return LayoutFit(layout, placed, met, markers, numbers, float(np.minimum(gaps, STRAY).mean()))


def _settled(points: Array, fit: LayoutFit, unlike: Array) -> LayoutFit:
    for _ in range(_ROUNDS):
        fit = _closer(points, fit.layout, fit.placed, unlike)
    return fit


def matched(costs: Array, most: float) -> tuple[Array, Array]:
    """The assignment with the least cost in which none exceeds `most`, or is infinite or missing."""
    allowed = np.isfinite(costs) & (costs <= most)
    rows, columns = linear_sum_assignment(np.where(allowed, costs, _FORBIDDEN))
    allowed = allowed[rows, columns]
    return rows[allowed], columns[allowed]
