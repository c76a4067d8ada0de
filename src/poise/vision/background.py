"""A camera's empty picture: mean and deviation of every pixel and channel (Chai and Hodgins 2005, 4.1).

A pixel is foreground if one of its channels differs from its mean by more than the threshold. The statistics follow
slow changes of light outside the foreground; a lamp that is switched on is learned in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float, UInt8

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
        """255 where something stands in front of the background, dilated by one pixel."""
        if frame.shape != self._mean.shape:
            raise InvalidValueError(
                f"the camera's picture is {frame.shape[1]}x{frame.shape[0]}; the background is "
                f"{self._mean.shape[1]}x{self._mean.shape[0]}"
            )
        empty = cv2().inRange(frame, self._darkest, self._brightest)
        found = cv2().dilate(cv2().bitwise_not(empty), self._kernel)
        self._follow(frame, found)
        return np.asarray(found)

    def _follow(self, frame: Array, found: Array) -> None:
        """Update one band of rows per frame in turn, so that no frame waits for the whole picture."""
        band = -(-len(frame) // EVERY)
        rows = slice(self._frames % EVERY * band, (self._frames % EVERY + 1) * band)
        self._frames += 1
        cv, part = cv2(), found[rows]
        cv.accumulateWeighted(frame[rows], self._mean[rows], self._rate, mask=cv.bitwise_not(part))
        cv.accumulateWeighted(frame[rows], self._mean[rows], self._rate / STUBBORN, mask=part)
        self._refresh(rows)

    def _refresh(self, rows: slice) -> None:
        mean = self._mean[rows]
        allowed = np.maximum(THRESHOLD * self._deviation[rows], LEAST)
        allowed[mean > GLARING] = DAZZLED
        for limit, light in ((self._darkest, mean - allowed), (self._brightest, mean + allowed)):
            np.clip(np.rint(light), 0, 255, out=limit[rows], casting="unsafe")
