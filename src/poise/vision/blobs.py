"""Markers as blobs in front of a camera's empty picture, with subpixel centres (Chai and Hodgins 2005, 4.1).

A pixel is foreground if one of its channels differs from its mean in the empty picture by more than the threshold. The
statistics follow slow changes of light outside the foreground; a lamp that is switched on is learned in seconds. In the
foreground, markers are bright (reflective) or of a worn colour.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.types import Array
from poise.vision.opencv import cv2

THRESHOLD = 6.0  # standard deviations from the mean
LEAST = 14.0  # grey levels: smallest difference of a foreground pixel, however still it was
GLARING = 215.0  # grey level from which the sensor clips noise, so that the deviation is too small
DAZZLED = 80.0  # grey levels: smallest difference of such a pixel
SECONDS = 2.0  # time constant of the statistics
STUBBORN = 10.0  # times slower in the foreground: a person standing still is not background
EVERY = 8  # frames between two updates of a pixel's statistics: light changes slowly
SAME_TINT = 0.25  # variation of one object's tint between pictures, 0 to 1 per channel
COLOURFUL = 0.9  # assumed saturation of a coloured marker
HUE_RANGE = 0.06  # variation of the hue of one worn colour


@dataclass(frozen=True)
class Look:
    """The appearance of a marker: minimum brightness and saturation; a hue (0 to 1) for one worn colour."""

    brightness: float = 0.78  # of the brightest channel
    hue: float | None = None
    hue_range: float = HUE_RANGE
    saturation: float = 0.45  # smallest saturation of a coloured marker
    fewest: int = 3  # pixels
    most: int = 900
    longest: float = 3.5  # ratio of length to width: allows streaks of fast markers, but no reflecting edges

    def __post_init__(self) -> None:
        if not 0 < self.brightness <= 1 or (self.hue is not None and not 0 <= self.hue <= 1):
            raise InvalidValueError(
                f"brightness and hue are between 0 and 1; got {self.brightness}, {self.hue}"
            )


@dataclass(frozen=True, eq=False)
class Blobs:
    """The blobs of one picture: centres (x, y), pixel counts, and mean colours (red, green, blue)."""

    centres: Float[Array, "blobs 2"]
    sizes: Int[Array, "blobs"]
    colours: Float[Array, "blobs 3"]

    def __len__(self) -> int:
        return len(self.centres)

    @property
    def tints(self) -> Float[Array, "blobs 3"]:
        """Colours without their brightness: the strongest channel is 1."""
        return _tints(self.colours)

    @classmethod
    def none(cls) -> Blobs:
        """A picture in which no marker is seen."""
        return cls(np.empty((0, 2)), np.empty(0, dtype=np.int64), np.empty((0, 3)))


def find_blobs(
    frame: UInt8[Array, "height width 3"],
    foreground: UInt8[Array, "height width"],
    looks: Sequence[Look],
    *,
    room: Float[Array, "height width 3"] | None = None,
) -> Blobs:
    """The markers in the foreground of a picture (blue, green, red, as in OpenCV), with any of these looks.

    A coloured marker differs in tint from the empty `room` in any light.
    """
    cv, parts, colourful = cv2(), list[Blobs](), None
    for look in looks:
        least, full = round(255 * look.brightness), 255
        if look.hue is None:
            mask = cv.bitwise_and(cv.inRange(frame, (least,) * 3, (full,) * 3), foreground)
            parts.append(_blobs_in(frame, mask, look))
            continue
        if colourful is None:
            colourful = cv.cvtColor(frame, cv.COLOR_BGR2HSV)
        low, high = 180 * (look.hue - look.hue_range), 180 * (look.hue + look.hue_range)
        rest = round(255 * look.saturation), least
        mask = cv.inRange(colourful, (max(low, 0), *rest), (min(high, 180), full, full))
        if low < 0:  # hues are cyclic
            mask |= cv.inRange(colourful, ((low + 180) % 180, *rest), (180, full, full))
        elif high > 180:
            mask |= cv.inRange(colourful, (0, *rest), (high - 180, full, full))
        mask = cv.bitwise_and(mask, foreground)
        pixels = None if room is None else cv.findNonZero(mask)
        if room is not None and pixels is not None:
            # Unmark pixels with the room's own tint: things in a shadow, or beside the performer.
            columns, rows = pixels.reshape(-1, 2).T
            off = _tints(frame[rows, columns].astype(np.float64)) - _tints(room[rows, columns])
            of_room = np.abs(off).max(axis=1) < SAME_TINT
            mask[rows[of_room], columns[of_room]] = 0
        parts.append(_blobs_in(frame, mask, look))
    columns = zip(*((part.centres, part.sizes, part.colours) for part in parts), strict=True)
    return parts[0] if len(parts) == 1 else Blobs(*map(np.concatenate, columns))


def _blobs_in(frame: Array, candidates: Array, look: Look) -> Blobs:
    pixels = cv2().findNonZero(candidates)
    if pixels is None:
        return Blobs.none()
    labels = np.zeros(candidates.shape, dtype=np.int32)
    boxes = _components(candidates, pixels.reshape(-1, 2), labels)
    kept = np.flatnonzero((boxes[:, 4] >= look.fewest) & (boxes[:, 4] <= look.most))
    measured = np.empty((len(kept), 7))
    for row, number in zip(measured, kept, strict=True):
        left, top, right, bottom = boxes[number, :4]
        box = left, top, right - left + 1, bottom - top + 1
        _measure(frame, labels, int(number) + 1, *box, look.hue is not None, row)
    kept_ones = measured[measured[:, 6] <= look.longest]
    colours = kept_ones[:, 3:6]
    if look.hue is not None:  # pale or not, it has this colour
        colours = colours.max(axis=1, keepdims=True) * tint_of(look.hue)
    return Blobs(kept_ones[:, :2], kept_ones[:, 2].astype(np.int64), colours)


def tint_of(hue: float) -> Float[Array, "3"]:
    """Red, green and blue of a marker of this hue, the strongest being 1."""
    return np.array(colorsys.hsv_to_rgb(hue, COLOURFUL, 1.0))


def _tints(colours: Array) -> Array:
    return np.asarray(colours / np.maximum(colours.max(axis=1, keepdims=True), 1e-9))


class Background:
    """Statistics of one camera's empty picture; follows slow changes of light."""

    def __init__(
        self,
        mean: Float[Array, "height width 3"],
        deviation: Float[Array, "height width 3"],
        *,
        fps: float = 60.0,
    ) -> None:
        self._mean = np.ascontiguousarray(mean, dtype=np.float32)
        self._deviation = np.ascontiguousarray(deviation, dtype=np.float32)
        self._rate, self._frames = EVERY / (SECONDS * fps), 0
        self._kernel = np.ones((3, 3), np.uint8)
        self._darkest, self._brightest = np.empty(mean.shape, np.uint8), np.empty(mean.shape, np.uint8)
        self._refresh(slice(None))

    @classmethod
    def of_frames(cls, frames: Iterable[UInt8[Array, "height width 3"]], *, fps: float = 60.0) -> Background:
        """Learn from frames without a person, by running sums, with little memory."""
        count, total, squares = 0, None, None
        for frame in frames:
            light = frame.astype(np.float32)
            if total is None or squares is None:
                total, squares = np.zeros_like(light), np.zeros_like(light)
            elif light.shape != total.shape:
                raise InvalidValueError(
                    f"frames of one camera differ in size: {light.shape} and {total.shape}"
                )
            count, total, squares = count + 1, total + light, squares + light * light
        if total is None or squares is None:
            raise InvalidValueError("a background needs at least one frame without anybody in it")
        mean = total / count
        return cls(mean, np.sqrt(np.maximum(squares / count - mean * mean, 0.0)), fps=fps)

    @property
    def mean(self) -> UInt8[Array, "height width 3"]:
        """The empty picture."""
        return np.clip(np.rint(self._mean), 0, 255).astype(np.uint8)

    @property
    def room(self) -> Float[Array, "height width 3"]:
        """The same, as floats."""
        return self._mean

    def foreground(self, frame: UInt8[Array, "height width 3"]) -> UInt8[Array, "height width"]:
        """255 where something stands in front of the background, dilated by one pixel.

        The statistics of one band of rows per frame follow in turn, so that no frame waits for the whole picture.
        """
        if frame.shape != self._mean.shape:
            raise InvalidValueError(
                f"the camera's picture is {frame.shape[1]}x{frame.shape[0]}; the background is "
                f"{self._mean.shape[1]}x{self._mean.shape[0]}"
            )
        cv, band = cv2(), -(-len(frame) // EVERY)
        empty = cv.inRange(frame, self._darkest, self._brightest)
        found = np.asarray(cv.dilate(cv.bitwise_not(empty), self._kernel))
        rows = slice(self._frames % EVERY * band, (self._frames % EVERY + 1) * band)
        self._frames += 1
        cv.accumulateWeighted(frame[rows], self._mean[rows], self._rate, mask=cv.bitwise_not(found[rows]))
        cv.accumulateWeighted(frame[rows], self._mean[rows], self._rate / STUBBORN, mask=found[rows])
        self._refresh(rows)
        return found

    def _refresh(self, rows: slice) -> None:
        mean = self._mean[rows]
        allowed = np.maximum(THRESHOLD * self._deviation[rows], LEAST)
        allowed[mean > GLARING] = DAZZLED
        for limit, light in ((self._darkest, mean - allowed), (self._brightest, mean + allowed)):
            np.clip(np.rint(light), 0, 255, out=limit[rows], casting="unsafe")


@compiled
def _components(mask: Array, pixels: Array, labels: Array) -> Array:
    """Label connected pixels from 1; return left, top, right, bottom and the pixel count of each.

    Only marked pixels are visited: markers cover a thousandth of a picture.
    """
    boxes = np.empty((len(pixels), 5), dtype=np.int64)
    waiting = np.empty((len(pixels), 2), dtype=np.int64)
    count = 0
    for seed in range(len(pixels)):
        x, y = pixels[seed, 0], pixels[seed, 1]
        if labels[y, x]:
            continue
        count += 1
        box = boxes[count - 1]
        box[0], box[1], box[2], box[3], box[4] = x, y, x, y, 0
        waiting[0, 0], waiting[0, 1], left = x, y, 1
        labels[y, x] = count
        while left:
            left -= 1
            x, y = waiting[left, 0], waiting[left, 1]
            box[0], box[1], box[2], box[3] = min(box[0], x), min(box[1], y), max(box[2], x), max(box[3], y)
            box[4] += 1
            for v in range(max(y - 1, 0), min(y + 2, mask.shape[0])):
                for u in range(max(x - 1, 0), min(x + 2, mask.shape[1])):
                    if mask[v, u] and not labels[v, u]:
                        labels[v, u] = count
                        waiting[left, 0], waiting[left, 1] = u, v
                        left += 1
    return boxes[:count]


@compiled
def _measure(
    frame: Array, labels: Array, number: int, left: int, top: int, width: int, height: int, is_coloured: bool,
    out: Array,
) -> None:  # fmt: skip
    """Centre (weighted by light or colour, including the rim), pixels, mean colour and elongation of one blob."""
    rows, columns = labels.shape
    total, x, y, xx, yy, xy, pixels = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0
    floor = _light_of_rim(frame, left, top, width, height, is_coloured)
    for i in range(3):
        out[3 + i] = 0.0
    for row in range(max(top - 1, 0), min(top + height + 1, rows)):
        for column in range(max(left - 1, 0), min(left + width + 1, columns)):
            own = labels[row, column]
            if own != number and own != 0:
                continue
            weight = max(_light(frame[row, column], is_coloured) - floor, 0.0)
            total += weight
            x += weight * column
            y += weight * row
            xx += weight * column * column
            yy += weight * row * row
            xy += weight * column * row
            if own == number:
                pixels += 1
                for i in range(3):
                    out[3 + i] += frame[row, column, 2 - i]
    total = max(total, 1e-9)
    x, y = x / total, y / total
    a, b, c = xx / total - x * x + 1.0 / 12, yy / total - y * y + 1.0 / 12, xy / total - x * y
    middle, spread = 0.5 * (a + b), np.sqrt(0.25 * (a - b) ** 2 + c * c)
    out[0], out[1], out[2] = x, y, pixels
    for i in range(3):
        out[3 + i] /= 255.0 * max(pixels, 1)
    out[6] = np.sqrt((middle + spread) / max(middle - spread, 1e-9))


@compiled
def _light(pixel: Array, is_coloured: bool) -> float:
    """A pixel's weight in a marker: its brightness, or its saturation, because colours may be dark."""
    blue, green, red = float(pixel[0]), float(pixel[1]), float(pixel[2])
    return max(blue, green, red) - min(blue, green, red) if is_coloured else (blue + green + red) / 3.0


@compiled
def _light_of_rim(frame: Array, left: int, top: int, width: int, height: int, is_coloured: bool) -> float:
    """The light around a blob: the median of its rim."""
    rows, columns = frame.shape[0], frame.shape[1]
    rim = np.empty(2 * (width + height) + 8)
    count = 0
    for row in range(max(top - 1, 0), min(top + height + 1, rows)):
        for column in range(max(left - 1, 0), min(left + width + 1, columns)):
            if row in (top - 1, top + height) or column in (left - 1, left + width):
                rim[count] = _light(frame[row, column], is_coloured)
                count += 1
    return float(np.median(rim[:count])) if count else 0.0
