"""Detect people in a picture: boxes by a single-shot network, then 33 landmarks in a rotated square around each.

BlazePose (Bazarevsky et al. 2020): for each person the detector gives the middle of the hips and a point on the circle
around the whole body; the second network reads the square around it. The landmarks give the next square.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Float, UInt8
from scipy.special import expit

from poise.types import Array
from poise.vision.opencv import cv2
from poise.vision.people.models import DETECTOR, LANDMARKS, Network
from poise.vision.people.person import NAMES, Person, Region, overlap

Picture = UInt8[Array, "height width 3"]

SURE = 0.5  # smallest score of a person in a square
MAYBE = 0.4  # smallest score of a detection that is examined
SAME = 0.3  # overlap above which two detections are one person
DISTINCT = 0.15  # heights of a person: smallest distance between the joints of two people
WIDER = 1.25  # factor on the square around the circle, so that hands and feet are inside
_SIDE, _CROP = 224, 256  # input sizes of the networks in pixels
_STRIDES = ((8, 2), (16, 2), (32, 6))  # pixels between anchors, and their number per position
_POINTS = 39  # outputs of the second network: 33 landmarks, the two of the next square, and four unused
_HEATED, _KERNEL = 0.5, 3  # smallest heat of a refined landmark, and cells around it that are used


class PersonFinder:
    """Both networks. `find` detects everyone in a picture; `look` reads one square."""

    def __init__(self, *, threads: int = 1) -> None:
        self._detector = Network(DETECTOR, threads=threads)
        self._landmarks = Network(LANDMARKS, threads=threads)
        anchors = []  # the positions of boxes, as fractions of the picture
        for stride, count in _STRIDES:
            rows, columns = np.mgrid[: _SIDE // stride, : _SIDE // stride].reshape(2, -1)
            places = (np.stack([columns, rows], axis=1) + 0.5) / (_SIDE // stride)
            anchors.append(np.repeat(places, count, axis=0))
        self._anchors = np.concatenate(anchors)

    def find(self, picture: Picture) -> list[Person]:
        """Everyone in the picture, each once (two squares may contain the same one), the clearest first."""
        people = [self.look(picture, region) for region in self.regions(picture)]
        again = [self.look(picture, person.next) for person in people if person.score > SURE]
        kept: list[Person] = []
        for person in sorted(again, key=lambda one: -one.visibility.sum()):
            if person.score > SURE and all(apart(person, other) > DISTINCT for other in kept):
                kept.append(person)
        return kept

    def regions(self, picture: Picture) -> list[Region]:
        """Squares around the people found by the first network in the whole picture and in its square parts."""
        height, width = picture.shape[:2]
        side, found = min(height, width), self._regions(picture)
        for start in sorted({0, (max(height, width) - side) // 2, max(height, width) - side}):
            left, top = (0, start) if height > width else (start, 0)
            part = self._regions(picture[top : top + side, left : left + side]) if height != width else []
            found += [replace(one, centre=np.add(one.centre, (left, top))) for one in part]
        return found

    def _regions(self, picture: Picture) -> list[Region]:
        height, width = picture.shape[:2]
        scale = _SIDE / max(height, width)
        size = round(width * scale), round(height * scale)
        shift = np.array([(_SIDE - size[0]) // 2, (_SIDE - size[1]) // 2])
        boxed = np.zeros((_SIDE, _SIDE, 3), np.float32)
        shrunk = cv2().resize(picture, size, interpolation=cv2().INTER_AREA)
        boxed[shift[1] : shift[1] + size[1], shift[0] : shift[0] + size[0]] = shrunk[..., ::-1]
        found, logits = self._detector(boxed / 127.5 - 1.0)
        scores = expit(logits[:, 0].astype(np.float64))
        sure = np.flatnonzero(scores > MAYBE)
        places = found[sure].reshape(-1, 6, 2).astype(np.float64)
        places[:, [0, 2, 3, 4, 5]] += _SIDE * self._anchors[sure, None]
        return [_square(*((points[2:4] - shift) / scale)) for points in _merged(places, scores[sure])]

    def look(self, picture: Picture, region: Region) -> Person:
        """The person in a square of the picture; a low score means that nobody is there."""
        cv = cv2()
        corners = region.to_picture(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).astype(np.float32)
        into = cv.getAffineTransform(corners, np.array([[0, 0], [_CROP, 0], [0, _CROP]], dtype=np.float32))
        crop = cv.warpAffine(picture, into, (_CROP, _CROP), flags=cv.INTER_LINEAR)
        raw, score, _, heat, shape = self._landmarks(crop[..., ::-1] / np.float32(255.0))
        points = raw.reshape(_POINTS, 5).astype(np.float64)
        points[:, :2] = _refined(points[:, :2] / _CROP, heat)
        pixels = region.to_picture(points[:, :2])
        turned = shape.reshape(_POINTS, 3)[: len(NAMES)].astype(np.float64)
        turned[:, :2] = turned[:, :2] @ region.axes.T
        seen = expit(points[: len(NAMES), 3:].min(axis=1))
        following = _square(*pixels[33:35])
        return Person(pixels[: len(NAMES)], seen, turned, float(score[0]), region, following)


def _merged(places: Float[Array, "n 6 2"], scores: Float[Array, "n"]) -> Iterator[Float[Array, "6 2"]]:
    """The score-weighted mean of the detections of each person; a detection is centre, size and four points."""
    boxes = np.concatenate([places[:, 0] - places[:, 1] / 2, places[:, 0] + places[:, 1] / 2], axis=1)
    left = list(np.argsort(-scores))
    while left:
        same = [k for k in left if overlap(boxes[left[0]], boxes[k]) >= SAME]
        yield np.average(places[same], axis=0, weights=scores[same])
        left = [k for k in left if k not in same]


def _square(hips: Float[Array, "2"], rim: Float[Array, "2"]) -> Region:
    """The square around a circle about the hips, rotated so that its rim point is above them."""
    along = rim - hips
    turn = np.pi / 2 - np.arctan2(-along[1], along[0])
    return Region(hips, 2.0 * WIDER * max(float(np.hypot(*along)), 1.0), float(turn))


def _refined(points: Float[Array, "39 2"], heat: Float[Array, "cells cells 39"]) -> Float[Array, "39 2"]:
    """Landmarks moved to the centroid of the heat around them, if there is enough."""
    cells, found = heat.shape[0], points.copy()
    for number, (x, y) in enumerate(points):
        column, row = int(x * cells), int(y * cells)
        if not (0 <= column < cells and 0 <= row < cells):
            continue
        left, top = max(column - _KERNEL, 0), max(row - _KERNEL, 0)
        part = expit(heat[top : row + _KERNEL + 1, left : column + _KERNEL + 1, number].astype(np.float64))
        if part.max() >= _HEATED:
            rows, columns = np.mgrid[: part.shape[0], : part.shape[1]]
            found[number, 0] = (left + np.average(columns, weights=part)) / cells
            found[number, 1] = (top + np.average(rows, weights=part)) / cells
    return found


def apart(first: Person, second: Person) -> float:
    """The distance between the joints of two people in one picture, in heights of the larger one's box."""
    size = max(float(np.max(one.box[2:] - one.box[:2])) for one in (first, second))
    weights = first.visibility * second.visibility + 1e-6
    gaps = np.linalg.norm(first.pixels - second.pixels, axis=1)
    return float(np.average(gaps, weights=weights)) / max(size, 1.0)
