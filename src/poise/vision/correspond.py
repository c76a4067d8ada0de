"""Match blobs of several pictures to markers: by epipolar distance and colour (Chai and Hodgins 2005, section 4.1).

All pairs that epipolar lines and colours allow are kept as candidates; ambiguities are resolved by the labels from the
body's prediction, and in the first frame by the nearer line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

from poise.types import Array
from poise.vision.blobs import Blobs
from poise.vision.lens import LensCamera
from poise.vision.rig import Rig, fundamental
from poise.vision.triangulate import Meeting, projections, triangulate_all

LINE_DISTANCE = 2.5  # pixels: largest distance of one marker's blobs from each other's epipolar lines
COLOUR_DISTANCE = 0.35  # largest colour difference of one marker between cameras, 0 to 1 per channel
NEAREST, FARTHEST = 0.3, 15.0  # metres: range of a marker from a camera


@dataclass(frozen=True, eq=False)
class Candidate:
    """Blobs that may be one marker: (camera, blob) pairs, and where their rays meet."""

    blobs: tuple[tuple[int, int], ...]
    meeting: Meeting


class Matcher:
    """The epipolar geometry of a rig, computed once."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._matrices = projections(rig.cameras)
        self._pairs = {
            (a, b): fundamental(rig.cameras[a], rig.cameras[b]) for a, b in combinations(range(len(rig)), 2)
        }

    def candidates(self, seen: Sequence[Blobs]) -> list[Candidate]:
        """All sets of blobs, one per camera, that may be one marker; the most certain first."""
        straight = [
            camera.straightened(blobs.centres) for camera, blobs in zip(self.rig.cameras, seen, strict=True)
        ]
        chosen = self._pairs_on_lines(seen, straight)
        meetings = self._meetings(chosen, straight)
        if len(self.rig) > 2 and len(chosen):
            chosen = np.unique(self._widened(chosen, meetings, straight), axis=0)
            meetings = self._meetings(chosen, straight)
        found = [
            Candidate(_blobs_of(row), meeting)
            for row, meeting in zip(chosen, meetings, strict=True)
            if meeting.pixels_off <= LINE_DISTANCE and self._within(row, meeting.point)
        ]
        return sorted(found, key=lambda c: (-len(c.blobs), c.meeting.pixels_off))

    def _pairs_on_lines(
        self, seen: Sequence[Blobs], straight: Sequence[Array]
    ) -> Int[Array, "pairs cameras"]:
        """Pairs of blobs on each other's epipolar lines: per camera the blob's index, -1 for none."""
        rows = [np.empty((0, len(self.rig)), dtype=np.int64)]
        for (a, b), matrix in self._pairs.items():
            if len(seen[a]) and len(seen[b]):
                allowed = epipolar_distances(matrix, straight[a], straight[b]) <= LINE_DISTANCE
                allowed &= _colour_distances(seen[a].colours, seen[b].colours) <= COLOUR_DISTANCE
                pairs = np.full((int(allowed.sum()), len(self.rig)), -1)
                pairs[:, a], pairs[:, b] = np.nonzero(allowed)
                rows.append(pairs)
        return np.concatenate(rows)

    def _widened(self, chosen: Array, meetings: Sequence[Meeting], straight: Sequence[Array]) -> Array:
        """The same sets with matching blobs of further cameras added."""
        points, wider = np.stack([meeting.point for meeting in meetings]), chosen.copy()
        for number, camera in enumerate(self.rig.cameras):
            if len(straight[number]):
                pictures = camera.pinhole.project(points)
                gaps = np.linalg.norm(straight[number][None] - pictures[:, None], axis=-1)
                nearest = np.where(np.isfinite(gaps), gaps, np.inf).argmin(axis=1)
                added = (chosen[:, number] < 0) & (gaps[np.arange(len(gaps)), nearest] <= LINE_DISTANCE)
                wider[added, number] = nearest[added]
        return wider

    def _meetings(self, chosen: Array, straight: Sequence[Array]) -> list[Meeting]:
        pixels = np.full((*chosen.shape, 2), np.nan)
        for number, own in enumerate(straight):
            has = chosen[:, number] >= 0
            pixels[has, number] = own[chosen[has, number]]
        return triangulate_all(self._matrices, pixels)

    def _within(self, row: Array, point: Array) -> bool:
        cameras = (self.rig.cameras[number] for number in np.flatnonzero(row >= 0))
        return all(NEAREST <= float(camera.depth(point)) <= FARTHEST for camera in cameras)


def exclusive(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Of candidates that share a blob, the most certain."""
    taken: set[tuple[int, int]] = set()
    kept = []
    for candidate in candidates:
        if not taken.intersection(candidate.blobs):
            taken.update(candidate.blobs)
            kept.append(candidate)
    return kept


def epipolar_distances(
    matrix: Float[Array, "3 3"], first: Float[Array, "a 2"], second: Float[Array, "b 2"]
) -> Float[Array, "a b"]:
    """The distance of undistorted pixels from each other's epipolar lines: the larger of both."""
    ones = np.c_[first, np.ones(len(first))], np.c_[second, np.ones(len(second))]
    lines_in_second, lines_in_first = ones[0] @ matrix.T, ones[1] @ matrix
    product = np.abs(ones[0] @ matrix.T @ ones[1].T)
    in_second = product / np.linalg.norm(lines_in_second[:, :2], axis=1)[:, None]
    in_first = product / np.linalg.norm(lines_in_first[:, :2], axis=1)[None, :]
    return np.asarray(np.maximum(in_first, in_second))


def epipolar_line(
    first: LensCamera, second: LensCamera, pixel: Float[Array, "2"]
) -> Float[Array, "points 2"]:
    """The ray through a pixel of the first camera in the second's picture: points along a distorted line."""
    distances = np.geomspace(NEAREST, FARTHEST, 60)
    points = first.pinhole.centre + distances[:, None] * first.rays(pixel)
    pixels = second.project(points)
    return np.asarray(pixels[np.all(np.isfinite(pixels), axis=1)])


def _colour_distances(first: Array, second: Array) -> Array:
    return np.asarray(np.abs(first[:, None] - second[None]).max(axis=-1))


def _blobs_of(row: Array) -> tuple[tuple[int, int], ...]:
    return tuple((int(camera), int(row[camera])) for camera in np.flatnonzero(row >= 0))
