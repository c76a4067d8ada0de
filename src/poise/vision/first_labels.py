"""Label the points of a first frame by layouts, from several cameras or from one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from poise.geometry.alignment import rigid_fit
from poise.types import Array
from poise.vision.lens import LensCamera

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


# --- from one camera, with the performer's position ------------------------------------------------------------------
#
# One camera sees no depth. A layout is tried at every heading under weak perspective: matched to the blobs, scaled and
# shifted, in rounds. Its scale gives the performer's distance.


_HEADINGS, _ROUNDS, _PROMISING = 16, 8, 24


@dataclass(frozen=True, eq=False)
class InPicture:
    """The marker positions of a layout, the blob of each (-1: none), and their mean error in metres."""

    points: Float[Array, "markers 3"]
    numbers: Int[Array, "markers"]
    distance: float


@dataclass(frozen=True, eq=False)
class _Fit:
    """A flat layout (metres, in the picture's axes) at a scale (inverse depth) and a shift."""

    turned: Array
    flat: Array
    scale: float
    shift: Array
    markers: Array
    numbers: Array
    distance: float


def find_in_picture(
    camera: LensCamera, centres: Float[Array, "blobs 2"], layouts: Float[Array, "layouts markers 3"]
) -> InPicture:
    """The layout and heading that explain the blobs best."""
    seen = camera.plane_from_pixels(centres)
    starts = [
        _closer_in_picture(seen, *_start(seen, camera, layout, heading))
        for layout in layouts
        for heading in np.arange(_HEADINGS) * 2 * np.pi / _HEADINGS
    ]
    fits = sorted(starts, key=lambda fit: fit.distance)[:_PROMISING]
    for _ in range(_ROUNDS):
        fits = [_closer_in_picture(seen, fit.turned, fit.flat, fit.scale, fit.shift) for fit in fits]
    best = min(fits, key=lambda fit: fit.distance)
    numbers = np.full(layouts.shape[1], -1)
    numbers[best.markers] = best.numbers
    return InPicture(_in_world(camera, best), numbers, best.distance)


def _start(
    seen: Array, camera: LensCamera, layout: Array, heading: float
) -> tuple[Array, Array, float, Array]:
    c, s = np.cos(heading), np.sin(heading)
    turned = (layout - layout.mean(axis=0)) @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]).T
    flat = turned @ camera.pinhole.rotation[:2].T
    scale = float(np.ptp(seen[:, 1]) / max(np.ptp(flat[:, 1]), 1e-9))
    shift = 0.5 * (seen.max(axis=0) + seen.min(axis=0)) - 0.5 * scale * (flat.max(axis=0) + flat.min(axis=0))
    return turned, flat, scale, shift


def _closer_in_picture(seen: Array, turned: Array, flat: Array, scale: float, shift: Array) -> _Fit:
    """One round: the nearest assignment, and the scale and shift that fit it best."""
    markers, numbers = matched(np.linalg.norm((scale * flat + shift)[:, None] - seen[None], axis=-1), np.inf)
    own, theirs = flat[markers], seen[numbers]
    middle, their_middle = own.mean(axis=0), theirs.mean(axis=0)
    scale = float(np.sum((own - middle) * (theirs - their_middle)) / max(np.sum((own - middle) ** 2), 1e-9))
    scale = max(scale, 0.05)
    shift = their_middle - scale * middle
    gaps = np.linalg.norm(scale * own + shift - theirs, axis=1)
    return _Fit(turned, flat, scale, shift, markers, numbers, float(gaps.mean()) / scale)


def _in_world(camera: LensCamera, fit: _Fit) -> Array:
    depth = 1.0 / fit.scale
    place = np.array([fit.shift[0] * depth, fit.shift[1] * depth, depth])
    in_camera = fit.turned @ camera.pinhole.rotation.T + place
    return np.asarray((in_camera - camera.pinhole.translation) @ camera.pinhole.rotation)
