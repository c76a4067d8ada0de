"""Cuts, resamples and mirrors a recording: what `poise convert` does on the way from file to file."""

from __future__ import annotations

from poise.errors import InvalidValueError
from poise.motion.edit import frames_between, resample
from poise.motion.markers import Markers
from poise.motion.mirror import mirror
from poise.motion.motion import Motion


def edited(
    value: Motion | Markers,
    *,
    start: float | None = None,
    end: float | None = None,
    fps: float | None = None,
    mirrored: bool = False,
) -> Motion | Markers:
    """The recording from `start` to `end` (seconds), at that frame rate, mirrored or not; what is not given stays."""
    trimmed = value if start is None and end is None else value[frames_between(value, start or 0.0, end)]
    if fps is None and not mirrored:
        return trimmed
    if isinstance(trimmed, Markers):
        raise InvalidValueError(
            "only the motion of a skeleton can be resampled or mirrored; these are markers"
        )
    resampled = trimmed if fps is None else resample(trimmed, fps)
    return mirror(resampled) if mirrored else resampled
