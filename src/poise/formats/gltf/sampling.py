"""Animations of glTF files: their frame times, and every node's transform at each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from poise.formats.gltf.container import Container, Json
from poise.formats.gltf.nodes import Local, NodeTree
from poise.geometry import rotations as turning
from poise.types import Array

_PATHS = {"translation": "VEC3", "rotation": "VEC4", "scale": "VEC3"}
_USUAL_RATES = (24.0, 25.0, 30.0, 50.0, 60.0, 90.0, 100.0, 120.0, 240.0)
_DEFAULT_RATE = 30.0
_MOST_VALUES = 4_000_000  # frames times nodes: limit for a small file


@dataclass(frozen=True, eq=False)
class Track:
    """One channel: keys in time and the values of one property of one node."""

    node: int
    path: str
    times: Float[Array, "keys"]
    values: Float[Array, "rows width"]
    interpolation: str


@dataclass(frozen=True, eq=False)
class SampleTimes:
    """The frame times of an animation."""

    start: float
    fps: float
    frames: int

    @property
    def seconds(self) -> Float[Array, "frames"]:
        """The time of each frame."""
        return self.start + np.arange(self.frames) / self.fps


def animations_of(file: Container, nodes: set[int]) -> dict[str, Json]:
    """The animations that move any of these nodes, by name, or by number if unnamed."""
    found: dict[str, Json] = {}
    for number, animation in enumerate(file.objects("animations")):
        name = animation.get("name")
        name = name if isinstance(name, str) and name and name not in found else f"animation {number + 1}"
        if _channels(file, animation, nodes):
            found[name] = animation
    return found


def tracks_of(file: Container, animation: Json, nodes: set[int]) -> list[Track]:
    """The channels of an animation that move these nodes; one per node and property."""
    wanted = _channels(file, animation, nodes)
    return [_track(file, node, path, sampler) for (node, path), sampler in wanted.items()]


def _channels(file: Container, animation: Json, nodes: set[int]) -> dict[tuple[int, str], Json]:
    samplers = file.objects("samplers", animation)
    count = len(file.objects("nodes"))
    wanted: dict[tuple[int, str], Json] = {}
    for channel in file.objects("channels", animation):
        target = file.record("target", channel)
        path = target.get("path")
        if "node" not in target or not isinstance(path, str) or path not in _PATHS:
            continue
        node = file.integer("node", target, below=count)
        if node in nodes:
            wanted[node, path] = samplers[file.integer("sampler", channel, below=len(samplers))]
    return wanted


def timeline(file: Container, tracks: list[Track], *, fps: float | None, nodes: int) -> SampleTimes:
    """Frames from the first key to the last, at the given rate or that of the densest keys."""
    if not tracks:
        return SampleTimes(0.0, fps or _DEFAULT_RATE, 1)
    start, end = min(t.times[0] for t in tracks), max(t.times[-1] for t in tracks)
    rate = fps or _rate(max(tracks, key=lambda t: len(t.times)).times)
    count = (end - start) * rate
    if not count * nodes <= max(_MOST_VALUES, 2 * file.bytes):
        file.fail(
            f"an animation of {end - start:g} s at {rate:g} Hz for {nodes} nodes is more than the file can hold"
        )
    return SampleTimes(float(start), rate, round(count) + 1)


def animated(tree: NodeTree, tracks: list[Track], when: SampleTimes) -> list[Local]:
    """Every node's local transform; those with tracks at each frame."""
    found = list(tree.locals)
    for track in tracks:
        found[track.node] = replace(found[track.node], **{track.path: _sampled(track, when)})
    return found


def _track(file: Container, node: int, path: str, sampler: Json) -> Track:
    accessors = len(file.objects("accessors"))
    times = file.array(file.integer("input", sampler, below=accessors), kind="SCALAR")[:, 0]
    values = file.array(file.integer("output", sampler, below=accessors), kind=_PATHS[path])
    interpolation = sampler.get("interpolation", "LINEAR")
    if interpolation not in ("LINEAR", "STEP", "CUBICSPLINE"):
        file.fail(f"unknown interpolation {interpolation!r:.20}")
    if len(values) != len(times) * (3 if interpolation == "CUBICSPLINE" else 1):
        file.fail(f"an animation has {len(times)} times and {len(values)} values for them")
    if np.any(np.diff(times) <= 0) or times[0] < 0:
        file.fail("the times of an animation must start at 0 or later and increase")
    if path == "rotation":
        keys = values[1::3] if interpolation == "CUBICSPLINE" else values
        if not np.all(np.linalg.norm(keys, axis=-1) > 1e-6):
            file.fail("a rotation in the animation has no length")
        values = np.roll(values, 1, axis=-1)
    return Track(node, path, times, values, interpolation)


def _rate(times: Float[Array, "keys"]) -> float:
    """Frames per second from the spacing of keys, snapped to a usual rate within one percent."""
    if len(times) < 2:
        return _DEFAULT_RATE
    rate = float(1.0 / np.median(np.diff(times)))
    if rate < 10.0:  # sparse keys, set by hand
        return _DEFAULT_RATE
    near = min(_USUAL_RATES, key=lambda usual: abs(usual - rate))
    return near if abs(near - rate) < 0.01 * near else min(rate, 1000.0)


def _sampled(track: Track, when: SampleTimes) -> Array:
    seconds = when.seconds
    step = 3 if track.interpolation == "CUBICSPLINE" else 1
    keys = track.values[1::3] if step == 3 else track.values
    on_keys = len(seconds) == len(track.times) and np.abs(seconds - track.times).max() < 1e-3 / when.fps
    found = keys if on_keys or len(keys) == 1 else _interpolated(track, keys, seconds)
    return turning.normalize(found) if track.path == "rotation" else found


def _interpolated(track: Track, keys: Array, seconds: Float[Array, "frames"]) -> Array:
    at = np.clip(np.searchsorted(track.times, seconds, side="right") - 1, 0, len(track.times) - 2)
    span = track.times[at + 1] - track.times[at]
    t = np.clip((seconds - track.times[at]) / span, 0.0, 1.0)
    if track.interpolation == "STEP":
        return keys[np.where(t >= 1.0, at + 1, at)]
    if track.interpolation == "LINEAR":
        if track.path == "rotation":
            return turning.slerp(turning.normalize(keys[at]), turning.normalize(keys[at + 1]), t)
        return keys[at] + t[:, None] * (keys[at + 1] - keys[at])
    t, span = t[:, None], span[:, None]
    leaving, arriving = track.values[2::3][at] * span, track.values[0::3][at + 1] * span
    rise = t * t * (3.0 - 2.0 * t)
    bend = t * (1.0 - t) ** 2 * leaving - t * t * (1.0 - t) * arriving
    return np.asarray(keys[at] + rise * (keys[at + 1] - keys[at]) + bend)
