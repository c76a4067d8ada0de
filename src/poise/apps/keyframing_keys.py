"""Write a keyframe script from a recording: the few keys that describe its handles' paths, for editing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry.splines import curve_through
from poise.motion.motion import Motion
from poise.skeleton.kinematics import world_transforms
from poise.types import Array

CLOSE = 0.02  # metres: largest distance of the keys' curve from the recording
STILL = 0.03  # metres: a handle that moves less counts as pinned ...
STAYS = 0.3  # ... for at least this many seconds
SETTLES = 0.05  # seconds at both ends that are left to the path


def script_text(clip: Motion, handles: Sequence[str], *, close: float = CLOSE, fps: float = 30.0) -> str:
    """A script whose handles follow the recording; handles at rest are pinned."""
    if not handles:
        raise InvalidValueError("name at least one handle for the keys, such as left_foot and right_hand")
    if len(clip) < 2:
        raise InvalidValueError("keys need a clip of two frames or more; got one")
    times = np.arange(len(clip)) / clip.fps
    positions, _ = world_transforms(clip.skeleton, clip.root_positions, clip.rotations)
    parts = [
        f"# Taken from {clip.name or 'a clip'}.\nduration = {times[-1]:.3f}\nfps = {fps:g}\nfloor = true\n"
    ]
    for handle in handles:
        way = positions[:, clip.skeleton.index(handle)]
        stays = resting_spans(way, clip.fps)
        parts.append(_path_text(handle, times, way, stays, close))
        parts += [
            f'[[pins]]\nhandle = "{handle}"\nfrom = {times[first]:.3f}\nto = {times[last]:.3f}\n'
            for first, last in stays
        ]
    return "\n".join(parts)


def fewest_keys(times: Float[Array, "n"], points: Float[Array, "n 3"], close: float) -> list[int]:
    """Indices of keys whose curve stays close to all points: both ends, then where the curve is farthest off."""
    chosen = sorted({0, len(times) - 1})
    while len(chosen) < len(times):
        curve = curve_through(times[chosen], points[chosen], times)
        off = np.linalg.norm(curve - points, axis=1)
        if off.max() <= close:
            break
        chosen = sorted({*chosen, int(off.argmax())})
    return chosen


def resting_spans(way: Float[Array, "n 3"], fps: float) -> list[tuple[int, int]]:
    """Frame ranges in which a point stays within a small ball for a while, without a margin at both ends."""
    spans, first = [], 0
    while first < len(way):
        away = np.linalg.norm(way[first:] - way[first], axis=1) > STILL
        last = first + (int(away.argmax()) if away.any() else len(away)) - 1
        margin = round(SETTLES * fps)
        if (last - first - 2 * margin) / fps >= STAYS:
            spans.append((first + margin, last - margin))
            first = last + 1
        else:
            first += 1
    return spans


def _path_text(handle: str, times: Array, way: Array, stays: list[tuple[int, int]], close: float) -> str:
    inside = np.zeros(len(times), dtype=np.bool_)
    for first, last in stays:
        inside[first + 1 : last + 1] = True
    moving = np.flatnonzero(~inside)
    keys = moving[fewest_keys(times[moving], way[moving], close)]
    rows = "".join(
        f"  {{ time = {times[k]:.3f}, at = [{', '.join(f'{value:.3f}' for value in way[k])}] }},\n"
        for k in keys
    )
    return f"[handles.{handle}]\nkeys = [\n{rows}]\n"
