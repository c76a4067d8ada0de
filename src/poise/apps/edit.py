"""Cuts, resamples and mirrors a recording: what `poise convert` does on the way from file to file."""

from __future__ import annotations

from poise.errors import InvalidValueError
from poise.motion.edit import resample, trim
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
    if start is None and end is None and fps is None and not mirrored:
        return value
    if isinstance(value, Markers):
        raise InvalidValueError(
            "only the motion of a skeleton can be trimmed, resampled or mirrored; these are markers"
        )
    motion = value if start is None and end is None else trim(value, start or 0.0, end)
    motion = motion if fps is None else resample(motion, fps)
    return mirror(motion) if mirrored else motion
