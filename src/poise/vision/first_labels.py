"""Label the points of a first frame by layouts, from several cameras or from one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from poise.geometry.alignment import rigid_fit
from poise.types import Array
from poise.vision.rig import LensCamera

_FORBIDDEN = 1e6
_HEADINGS = 16  # tried for an unknown heading
_TRIED = 3  # headings examined per layout
_PROMISING = 24  # layouts and headings that are refined
_ROUNDS = 8
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
    angles = np.arange(_HEADINGS) * 2 * np.pi / _HEADINGS
    turns, starts = np.zeros((_HEADINGS, 3, 3)), []
    turns[:, 0, 0] = turns[:, 2, 2] = np.cos(angles)
    turns[:, 0, 2], turns[:, 1, 1] = np.sin(angles), 1.0
    turns[:, 2, 0] = -turns[:, 0, 2]
    for layout in layouts:  # centred on the points, at the best headings
        placed = layout @ turns.transpose(0, 2, 1)
        placed += (points.mean(axis=0) - placed.mean(axis=1, keepdims=True)) * (1.0, 0.0, 1.0)
        gaps = np.linalg.norm(placed[:, :, None] - points[None, None], axis=-1) + unlike
        off = np.minimum(gaps.min(axis=2), STRAY).mean(axis=1)
        starts += [(float(off[k]), layout, placed[k]) for k in np.argsort(off)[:_TRIED]]
    starts.sort(key=lambda start: start[0])
    fits = [_closer(points, layout, placed, unlike) for _, layout, placed in starts[: 3 * _PROMISING]]
    fits = sorted(fits, key=lambda fit: fit.cost)[:_PROMISING]
    for _ in range(_ROUNDS):
        fits = [_closer(points, fit.layout, fit.placed, unlike) for fit in fits]
    return min(fits, key=lambda fit: fit.cost)


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
    seen, pinhole, fits = camera.plane_from_pixels(centres), camera.pinhole, []
    for layout in layouts:
        for heading in np.arange(_HEADINGS) * 2 * np.pi / _HEADINGS:
            c, s = np.cos(heading), np.sin(heading)
            turned = (layout - layout.mean(axis=0)) @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]).T
            flat = turned @ pinhole.rotation[:2].T
            scale = float(np.ptp(seen[:, 1]) / max(np.ptp(flat[:, 1]), 1e-9))
            ends = flat.max(axis=0) + flat.min(axis=0)
            shift = 0.5 * (seen.max(axis=0) + seen.min(axis=0)) - 0.5 * scale * ends
            fits.append(_closer_in_picture(seen, turned, flat, scale, shift))
    fits = sorted(fits, key=lambda fit: fit.distance)[:_PROMISING]
    for _ in range(_ROUNDS):
        fits = [_closer_in_picture(seen, fit.turned, fit.flat, fit.scale, fit.shift) for fit in fits]
    best = min(fits, key=lambda fit: fit.distance)
    numbers = np.full(layouts.shape[1], -1)
    numbers[best.markers] = best.numbers
    depth = 1.0 / best.scale
    place = np.array([best.shift[0] * depth, best.shift[1] * depth, depth])
    in_camera = best.turned @ pinhole.rotation.T + place
    points = np.asarray((in_camera - pinhole.translation) @ pinhole.rotation)
    return InPicture(points, numbers, best.distance)


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
