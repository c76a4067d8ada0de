"""Which blobs of several pictures are one marker: epipolar distance and colour (Chai and Hodgins 2005, section 4.1).

All pairs that the epipolar lines and the colours allow are kept as candidates: where two are possible, `label` decides
by the body's prediction, and in the first frame the nearer line does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float

from poise.vision.blobs import Blobs
from poise.vision.lens import LensCamera
from poise.vision.rig import Rig, fundamental
from poise.vision.triangulate import Meeting, triangulate

Array = np.ndarray

LINE_DISTANCE = 2.5  # pixels that blobs of one marker may be off each other's epipolar lines
COLOUR_DISTANCE = 0.35  # by which the colours of one marker may differ between cameras, 0 to 1 per channel
NEAREST, FARTHEST = 0.3, 15.0  # metres from a camera in which a marker can be


@dataclass(frozen=True, eq=False)
class Candidate:
    """Blobs that may be one marker: (camera, blob) pairs, and where their rays meet."""

    blobs: tuple[tuple[int, int], ...]
    meeting: Meeting


class Matcher:
    """The epipolar geometry of a rig, worked out once."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._pairs = {
            (a, b): fundamental(rig.cameras[a], rig.cameras[b]) for a, b in combinations(range(len(rig)), 2)
        }

    def candidates(self, seen: Sequence[Blobs]) -> list[Candidate]:
        """All sets of blobs, one per camera, that may be one marker; the surest first."""
        straight = [
            camera.straightened(blobs.centres) for camera, blobs in zip(self.rig.cameras, seen, strict=True)
        ]
        found: dict[tuple[tuple[int, int], ...], Candidate] = {}
        for (a, b), matrix in self._pairs.items():
            if len(seen[a]) and len(seen[b]):
                allowed = epipolar_distances(matrix, straight[a], straight[b]) <= LINE_DISTANCE
                allowed &= _colour_distances(seen[a].colours, seen[b].colours) <= COLOUR_DISTANCE
                for i, j in np.argwhere(allowed):
                    candidate = self._candidate(((a, int(i)), (b, int(j))), seen)
                    if candidate is not None:
                        found.setdefault(candidate.blobs, candidate)
        return sorted(found.values(), key=lambda c: (-len(c.blobs), c.meeting.pixels_off))

    def _candidate(self, pair: tuple[tuple[int, int], ...], seen: Sequence[Blobs]) -> Candidate | None:
        meeting = self._meeting(pair, seen)
        if meeting is None:
            return None
        blobs = list(pair)
        for number, camera in enumerate(self.rig.cameras):
            if number not in (pair[0][0], pair[1][0]) and len(seen[number]):
                gaps = np.linalg.norm(seen[number].centres - camera.project(meeting.point), axis=1)
                if np.nanmin(gaps, initial=np.inf) <= LINE_DISTANCE:
                    blobs.append((number, int(np.nanargmin(gaps))))
        if len(blobs) == 2:
            return Candidate(pair, meeting)
        wider = self._meeting(tuple(sorted(blobs)), seen)
        return None if wider is None else Candidate(tuple(sorted(blobs)), wider)

    def _meeting(self, blobs: tuple[tuple[int, int], ...], seen: Sequence[Blobs]) -> Meeting | None:
        cameras = [self.rig.cameras[camera] for camera, _ in blobs]
        meeting = triangulate(cameras, np.stack([seen[camera].centres[blob] for camera, blob in blobs]))
        within = all(NEAREST <= float(camera.depth(meeting.point)) <= FARTHEST for camera in cameras)
        return meeting if within and meeting.pixels_off <= LINE_DISTANCE else None


def exclusive(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Of candidates that share a blob, the surest."""
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
    """How far straightened pixels of two pictures are off each other's epipolar lines: the larger of both."""
    ones = np.c_[first, np.ones(len(first))], np.c_[second, np.ones(len(second))]
    lines_in_second, lines_in_first = ones[0] @ matrix.T, ones[1] @ matrix
    product = np.abs(ones[0] @ matrix.T @ ones[1].T)
    in_second = product / np.linalg.norm(lines_in_second[:, :2], axis=1)[:, None]
    in_first = product / np.linalg.norm(lines_in_first[:, :2], axis=1)[None, :]
    return np.asarray(np.maximum(in_first, in_second))


def epipolar_line(
    first: LensCamera, second: LensCamera, pixel: Float[Array, "2"]
) -> Float[Array, "points 2"]:
    """What the second camera sees of the ray through a pixel of the first: points along a line its lens bends."""
    distances = np.geomspace(NEAREST, FARTHEST, 60)
    points = first.pinhole.centre + distances[:, None] * first.rays(pixel)
    pixels = second.project(points)
    return np.asarray(pixels[np.all(np.isfinite(pixels), axis=1)])


def _colour_distances(first: Array, second: Array) -> Array:
    return np.asarray(np.abs(first[:, None] - second[None]).max(axis=-1))
