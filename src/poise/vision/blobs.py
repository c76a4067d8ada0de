"""Markers as blobs in one picture: bright ones (reflective) or of a worn colour, with subpixel centres."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.types import Array
from poise.vision.opencv import cv2

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
    longest: float = (
        3.5  # largest ratio of length to width: allows streaks of fast markers, but no reflecting edges
    )

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

    @classmethod
    def together(cls, parts: Sequence[Blobs]) -> Blobs:
        """Blobs of several looks in one picture."""
        return cls(
            np.concatenate([part.centres for part in parts]),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate([part.colours for part in parts]),
        )


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
    parts, colourful = list[Blobs](), None
    for look in looks:
        if look.hue is None:
            least_light = (round(255 * look.brightness),) * 3
            mask = cv2().inRange(frame, least_light, (255, 255, 255))
            parts.append(_blobs_in(frame, cv2().bitwise_and(mask, foreground), look))
            continue
        if colourful is None:
            colourful = cv2().cvtColor(frame, cv2().COLOR_BGR2HSV)
        mask = cv2().bitwise_and(_of_hue(colourful, look), foreground)
        if room is not None:
            _take_out_room(frame, room, mask)
        parts.append(_blobs_in(frame, mask, look))
    return parts[0] if len(parts) == 1 else Blobs.together(parts)


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


def _take_out_room(frame: Array, room: Array, mask: Array) -> None:
    """Unmark pixels with the room's own tint: things in a shadow, or beside the performer."""
    pixels = cv2().findNonZero(mask)
    if pixels is not None:
        columns, rows = pixels.reshape(-1, 2).T
        off = _tints(frame[rows, columns].astype(np.float64)) - _tints(room[rows, columns])
        of_room = np.abs(off).max(axis=1) < SAME_TINT
        mask[rows[of_room], columns[of_room]] = 0


def _tints(colours: Array) -> Array:
    return np.asarray(colours / np.maximum(colours.max(axis=1, keepdims=True), 1e-9))


def _of_hue(colourful: Array, look: Look) -> Array:
    """Mark pixels (hue, saturation, value) of a colour; hues are cyclic."""
    assert look.hue is not None
    cv = cv2()
    low, high = 180 * (look.hue - look.hue_range), 180 * (look.hue + look.hue_range)
    least = (round(255 * look.saturation), round(255 * look.brightness))
    mask = cv.inRange(colourful, (max(low, 0), *least), (min(high, 180), 255, 255))
    if low < 0 or high > 180:
        mask |= cv.inRange(
            colourful,
            ((low + 180) % 180, *least) if low < 0 else (0, *least),
            (180 if low < 0 else high - 180, 255, 255),
        )
    return np.asarray(mask)


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
