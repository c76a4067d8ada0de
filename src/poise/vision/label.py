"""Which marker is which: candidates and single blobs assigned to the markers of the predicted body, within gates.

The body of the frame before, carried on, holds all markers, those that were hidden too; so a marker that comes back
gets its own label, and two that were swapped are told apart as soon as the body cannot be where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from poise.geometry.alignment import rigid_fit
from poise.vision.blobs import Blobs
from poise.vision.correspond import Candidate
from poise.vision.lens import LensCamera
from poise.vision.rig import Rig
from poise.vision.triangulate import Meeting

Array = np.ndarray

GATE = 0.10  # metres from its prediction in which a marker that was just seen is looked for
EAGER = (
    0.7  # of the way that a marker is predicted to go by which its gate is wider: fast ones are least sure
)
SPEED = 2.5  # metres per second by which the gate of a hidden marker grows
WIDEST = 0.80  # metres that a gate grows to
OFF_LINE = 0.1  # of its gate that a pixel off the epipolar line counts as much as
PIXEL_GATE = 4.0  # pixels on top of a gate's own size in the picture
_FORBIDDEN = 1e6
_HEADINGS = 12  # tried for a performer who may face anywhere
_PROMISING = 16  # layouts and headings that are looked into further
_ROUNDS = 6


@dataclass(frozen=True, eq=False)
class Sighting:
    """One moment: places of markers (NaN: not seen by two cameras), covariances, pixels per camera (NaN: hidden)."""

    points: Float[Array, "markers 3"]
    covariances: Float[Array, "markers 3 3"]
    pixels: Float[Array, "cameras markers 2"]

    @classmethod
    def nothing(cls, cameras: int, markers: int) -> Sighting:
        """Nothing was seen."""
        return cls(
            np.full((markers, 3), np.nan),
            np.full((markers, 3, 3), np.nan),
            np.full((cameras, markers, 2), np.nan),
        )

    def note(
        self, marker: int, meeting: Meeting, blobs: Sequence[tuple[int, int]], seen: Sequence[Blobs]
    ) -> None:
        """Put a marker where the rays through these blobs meet."""
        self.points[marker], self.covariances[marker] = meeting.point, meeting.covariance
        for camera, blob in blobs:
            self.pixels[camera, marker] = seen[camera].centres[blob]

    @property
    def is_placed(self) -> Array:
        """Which markers have a place."""
        return np.asarray(np.isfinite(self.points[:, 0]))

    @property
    def is_seen(self) -> Array:
        """Which markers at least one camera sees."""
        return np.asarray(np.isfinite(self.pixels[..., 0]).any(axis=0))


def gates(
    unseen_seconds: Float[Array, "markers"], way: Float[Array, "markers"] | float = 0.0
) -> Float[Array, "markers"]:
    """How far from its prediction each marker is looked for, by how long it was not seen and how far it has to go."""
    return np.minimum(GATE + SPEED * unseen_seconds + EAGER * way, WIDEST)


def label(
    rig: Rig,
    seen: Sequence[Blobs],
    candidates: Sequence[Candidate],
    *,
    predicted: Float[Array, "markers 3"],
    gate: Float[Array, "markers"],
) -> Sighting:
    """The sighting that explains the blobs best by the predicted markers, none further off than its gate."""
    sighting = Sighting.nothing(len(rig), len(predicted))
    taken = _assign_candidates(candidates, sighting, seen, predicted, gate)
    for number, camera in enumerate(rig.cameras):
        free = [blob for blob in range(len(seen[number])) if (number, blob) not in taken]
        _assign_blobs(camera, number, free, seen[number], sighting, predicted, gate)
    return sighting


def label_layout(points: Float[Array, "points 3"], layout: Float[Array, "markers 3"]) -> tuple[Array, float]:
    """For a first frame: which point is which marker of a layout, wherever the performer stands and faces.

    Returns the number of the point of each marker (-1: none) and the mean distance that is left.
    """
    return label_any_layout(points, layout[None])


def label_any_layout(
    points: Float[Array, "points 3"], layouts: Float[Array, "layouts markers 3"]
) -> tuple[Array, float]:
    """Of several layouts, the one that fits best: the point of each of its markers, and the mean distance left.

    Every layout is tried from every heading; the most promising of all are brought nearer, round by round.
    """
    starts = [
        _closer(points, layout, _facing(points, layout, heading))
        for layout in layouts
        for heading in np.arange(_HEADINGS) * 2 * np.pi / _HEADINGS
    ]
    best = min((_settled(points, fit) for fit in sorted(starts, key=_cost)[:_PROMISING]), key=_cost)
    numbers = np.full(layouts.shape[1], -1)
    numbers[best.markers] = best.numbers
    return numbers, best.cost


@dataclass(frozen=True, eq=False)
class _Fit:
    """A layout brought to points: which marker is which point, where its markers are then, and how far off (mean)."""

    layout: Array
    placed: Array
    markers: Array
    numbers: Array
    cost: float


def _cost(fit: _Fit) -> float:
    return fit.cost


def _facing(points: Array, layout: Array, heading: float) -> Array:
    """The layout over the middle of the points, turned by a heading."""
    c, s = np.cos(heading), np.sin(heading)
    turned = layout @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]).T
    return np.asarray(turned + _on_floor(points.mean(axis=0) - turned.mean(axis=0)))


def _closer(points: Array, layout: Array, placed: Array) -> _Fit:
    """One round: the nearest assignment, and the layout moved to it."""
    markers, numbers = matched(np.linalg.norm(placed[:, None] - points[None], axis=-1), np.inf)
    turn, shift, _ = rigid_fit(layout[markers], points[numbers], upright=True)
    placed = layout @ turn.T + shift
    cost = float(np.linalg.norm(placed[markers] - points[numbers], axis=1).mean())
    return _Fit(layout, placed, markers, numbers, cost)


def _settled(points: Array, fit: _Fit) -> _Fit:
    for _ in range(_ROUNDS):
        fit = _closer(points, fit.layout, fit.placed)
    return fit


def _assign_candidates(
    candidates: Sequence[Candidate], sighting: Sighting, seen: Sequence[Blobs], predicted: Array, gate: Array
) -> set[tuple[int, int]]:
    """Candidates by the nearest prediction, each blob once: rounds of assignment until none is claimed twice."""
    left, taken = list(candidates), set[tuple[int, int]]()
    open_markers = np.ones(len(predicted), dtype=np.bool_)
    while left and np.any(open_markers):
        markers = np.flatnonzero(open_markers)
        places = np.stack([candidate.meeting.point for candidate in left])
        apart = np.linalg.norm(predicted[markers, None] - places[None], axis=-1)
        apart = np.where(apart <= gate[markers, None], apart / gate[markers, None], np.inf)
        off = OFF_LINE * np.array([candidate.meeting.pixels_off for candidate in left])
        rows, columns = matched(apart**2 + off**2, np.inf)
        order = np.argsort(apart[rows, columns])
        used = False
        for row, column in zip(rows[order], columns[order], strict=True):
            candidate = left[column]
            if not taken.intersection(candidate.blobs):
                sighting.note(int(markers[row]), candidate.meeting, candidate.blobs, seen)
                taken.update(candidate.blobs)
                open_markers[markers[row]] = False
                used = True
        left = [candidate for candidate in left if not taken.intersection(candidate.blobs)]
        if not used:
            break
    return taken


def _assign_blobs(
    camera: LensCamera,
    number: int,
    free: list[int],
    blobs: Blobs,
    sighting: Sighting,
    predicted: Array,
    gate: Array,
) -> None:
    """What one camera alone sees: blobs by the nearest picture of a marker that has no place yet."""
    markers = np.flatnonzero(~sighting.is_placed)
    if not free or not len(markers):
        return
    pictures, depth = camera.project(predicted[markers]), camera.depth(predicted[markers])
    allowed = PIXEL_GATE + 0.5 * gate[markers] * camera.pinhole.focal_length / np.maximum(depth, 0.1)
    apart = np.linalg.norm(pictures[:, None] - blobs.centres[free][None], axis=-1) / allowed[:, None]
    for row, column in zip(*matched(apart, 1.0), strict=True):
        sighting.pixels[number, markers[row]] = blobs.centres[free[column]]


def matched(costs: Array, most: float) -> tuple[Array, Array]:
    """The assignment with the least cost in which none costs more than `most`, nor is infinite or missing."""
    allowed = np.isfinite(costs) & (costs <= most)
    rows, columns = linear_sum_assignment(np.where(allowed, costs, _FORBIDDEN))
    allowed = allowed[rows, columns]
    return rows[allowed], columns[allowed]


def _on_floor(shift: Array) -> Array:
    return np.asarray(shift * (1.0, 0.0, 1.0))
