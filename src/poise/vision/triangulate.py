"""Match blobs of several pictures to markers (Chai and Hodgins 2005, section 4.1), and triangulate them.

All pairs that epipolar lines and colours allow are kept as candidates; ambiguities are resolved by the labels from the
body's prediction, and in the first frame by the nearer line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.types import Array
from poise.vision.blobs import Blobs
from poise.vision.rig import LensCamera, Rig, fundamental

PIXEL_NOISE = 0.3  # pixels: standard deviation of a blob's centre
_STEPS = 3  # of Gauss-Newton on the pixels, after the linear meeting point


@dataclass(frozen=True, eq=False)
class Meeting:
    """A point seen by at least two cameras: its position and covariance in metres, and its pixel error (rms)."""

    point: Float[Array, "3"]
    covariance: Float[Array, "3 3"]
    pixels_off: float


def triangulate(
    cameras: Sequence[LensCamera], pixels: Float[Array, "cameras 2"], *, noise: float = PIXEL_NOISE
) -> Meeting:
    """The point with the least reprojection error."""
    if len(cameras) < 2 or len(cameras) != len(pixels):
        raise InvalidValueError(f"a point needs a pixel from each of at least two cameras; got {len(pixels)}")
    straight = np.stack([camera.straightened(pixel) for camera, pixel in zip(cameras, pixels, strict=True)])
    return triangulate_all(projections(cameras), straight[None], noise=noise)[0]


def projections(cameras: Sequence[LensCamera]) -> Float[Array, "cameras 3 4"]:
    """The matrices from world points to undistorted pixels."""
    return np.stack([camera.pinhole.matrix for camera in cameras])


def triangulate_all(
    matrices: Float[Array, "cameras 3 4"],
    straight: Float[Array, "points cameras 2"],
    *,
    noise: float = PIXEL_NOISE,
) -> list[Meeting]:
    """Many points at once, from undistorted pixels (NaN if unseen)."""
    points, covariances = np.empty((len(straight), 3)), np.empty((len(straight), 3, 3))
    off = np.empty(len(straight))
    _meet(matrices, np.ascontiguousarray(straight), points, covariances, off)
    return [
        Meeting(point, noise**2 * covariance, float(rms))
        for point, covariance, rms in zip(points, covariances, off, strict=True)
    ]


@compiled
def _meet(matrices: Array, straight: Array, points: Array, covariances: Array, off: Array) -> None:
    """Linear least squares on the rays first, then Gauss-Newton on the pixels themselves."""
    normal, right = np.empty((3, 3)), np.empty(3)
    for k in range(len(straight)):
        point = points[k]
        _gather(matrices, straight[k], point, True, normal, right)
        point[:] = np.linalg.pinv(normal) @ right
        for _ in range(_STEPS):
            _gather(matrices, straight[k], point, False, normal, right)
            point += np.linalg.pinv(normal) @ right
        off[k] = np.sqrt(_gather(matrices, straight[k], point, False, normal, right))
        covariances[k] = np.linalg.pinv(normal)


@compiled
def _gather(
    matrices: Array, straight: Array, point: Array, linear: bool, normal: Array, right: Array
) -> float:
    """Normal equations of one point over the cameras that see it; return the mean squared pixel error."""
    normal[:], right[:], squares, count, row = 0.0, 0.0, 0.0, 0, np.empty(3)
    for camera in range(len(matrices)):
        for axis in range(2):
            pixel = straight[camera, axis]
            if not np.isnan(pixel):
                gap = _row(matrices[camera, axis], matrices[camera, 2], pixel, point, linear, row)
                for i in range(3):
                    right[i] += row[i] * gap
                    for j in range(3):
                        normal[i, j] += row[i] * row[j]
                squares += gap * gap
                count += 1
    return squares / max(count, 1)


@compiled
def _row(along: Array, depth: Array, pixel: float, point: Array, linear: bool, row: Array) -> float:
    """The residual of one coordinate of a point's pixel, and its Jacobian.

    Linear: pixel (depth . p) = along . p, which needs no initial point. Otherwise the pixel itself.
    """
    if linear:
        row[:] = along[:3] - pixel * depth[:3]
        return float(pixel * depth[3] - along[3])
    far = max(depth[3] + depth[0] * point[0] + depth[1] * point[1] + depth[2] * point[2], 1e-6)
    seen = (along[3] + along[0] * point[0] + along[1] * point[1] + along[2] * point[2]) / far
    row[:] = (along[:3] - seen * depth[:3]) / far
    return float(pixel - seen)


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
        cameras, found = self.rig.cameras, []
        straight = [camera.straightened(blobs.centres) for camera, blobs in zip(cameras, seen, strict=True)]
        chosen = self._pairs_on_lines(seen, straight)
        meetings = self._meetings(chosen, straight)
        if len(self.rig) > 2 and len(chosen):  # add matching blobs of further cameras
            points, wider = np.stack([meeting.point for meeting in meetings]), chosen.copy()
            for number, camera in enumerate(cameras):
                if len(straight[number]):
                    pictures = camera.pinhole.project(points)
                    gaps = np.linalg.norm(straight[number][None] - pictures[:, None], axis=-1)
                    nearest = np.where(np.isfinite(gaps), gaps, np.inf).argmin(axis=1)
                    added = (chosen[:, number] < 0) & (gaps[np.arange(len(gaps)), nearest] <= LINE_DISTANCE)
                    wider[added, number] = nearest[added]
            chosen = np.unique(wider, axis=0)
            meetings = self._meetings(chosen, straight)
        for row, meeting in zip(chosen, meetings, strict=True):
            seeing = np.flatnonzero(row >= 0).tolist()
            near = all(NEAREST <= float(cameras[k].depth(meeting.point)) <= FARTHEST for k in seeing)
            if meeting.pixels_off <= LINE_DISTANCE and near:
                found.append(Candidate(tuple((k, int(row[k])) for k in seeing), meeting))
        return sorted(found, key=lambda c: (-len(c.blobs), c.meeting.pixels_off))

    def _pairs_on_lines(
        self, seen: Sequence[Blobs], straight: Sequence[Array]
    ) -> Int[Array, "pairs cameras"]:
        """Pairs of blobs on each other's epipolar lines: per camera the blob's index, -1 for none."""
        rows = [np.empty((0, len(self.rig)), dtype=np.int64)]
        for (a, b), matrix in self._pairs.items():
            if len(seen[a]) and len(seen[b]):
                allowed = epipolar_distances(matrix, straight[a], straight[b]) <= LINE_DISTANCE
                unlike = np.abs(seen[a].colours[:, None] - seen[b].colours[None]).max(axis=-1)
                allowed &= unlike <= COLOUR_DISTANCE
                pairs = np.full((int(allowed.sum()), len(self.rig)), -1)
                pairs[:, a], pairs[:, b] = np.nonzero(allowed)
                rows.append(pairs)
        return np.concatenate(rows)

    def _meetings(self, chosen: Array, straight: Sequence[Array]) -> list[Meeting]:
        pixels = np.full((*chosen.shape, 2), np.nan)
        for number, own in enumerate(straight):
            has = chosen[:, number] >= 0
            pixels[has, number] = own[chosen[has, number]]
        return triangulate_all(self._matrices, pixels)


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
