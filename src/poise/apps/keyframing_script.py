"""Keyframe scripts: a short TOML file with the paths of a few handles, pins, a floor and styles over time.

duration = 3.0                      # seconds
fps = 30
floor = true                        # or its height in metres

[handles.right_hand]
keys = [
  { time = 0.0, at = [-0.2, 0.9, 0.2] },
  { time = 1.0, at = [-0.6, 1.4, 0.1], tangent = [0.0, 0.0, 2.0] },
]

[[pins]]
handle = "left_foot"
from = 0.0
to = 3.0
at = [0.1, 0.07, 0.0]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.apps.toml_tables import Table, read_toml
from poise.geometry.splines import EASES, KINDS, curve_through, smoothstep
from poise.skeleton.pose_space import Handle

Array = np.ndarray

MODEL = "model"
"""The name by which a script calls the model that it is solved with."""
LONGEST = 600.0  # seconds
MOST_FPS = 240.0
_SLACK = 1e-9  # seconds by which a time may miss another by rounding


@dataclass(frozen=True, eq=False)
class HandlePath:
    """Where a handle goes: keys in time and how the curve between them runs; a tolerance makes it soft."""

    handle: Handle
    times: Float[Array, "keys"]
    points: Float[Array, "keys 3"]
    tangents: Float[Array, "keys 3"]
    eases: tuple[str, ...]
    kind: str = "hermite"
    even_pace: bool = False
    tolerance: float | None = None

    def at(self, times: Float[Array, "samples"]) -> Float[Array, "samples 3"]:
        """Where the handle is at these times; NaN before its first key and after its last."""
        points = curve_through(
            self.times,
            self.points,
            times,
            tangents=self.tangents,
            kind=self.kind,
            even_pace=self.even_pace,
            ease=self.eases[:-1] if len(self.times) > 1 else "none",
        )
        outside = (times < self.times[0] - _SLACK) | (times > self.times[-1] + _SLACK)
        points[outside] = np.nan
        return points


@dataclass(frozen=True, eq=False)
class Pin:
    """A handle that stays put from one time to another: at a point, or where it is when the pin begins."""

    handle: Handle
    start: float
    end: float
    at: Float[Array, "3"] | None = None


@dataclass(frozen=True)
class StyleChange:
    """From a time on another style, coming in over so many seconds."""

    time: float
    name: str
    over: float = 0.0


@dataclass(frozen=True, eq=False)
class Script:
    """A whole keyframe script."""

    name: str
    duration: float
    fps: float
    paths: Sequence[HandlePath]
    pins: Sequence[Pin]
    changes: Sequence[StyleChange]
    models: Mapping[str, Path]
    floor: float | None = None
    smoothness: float = 1.0

    @property
    def times(self) -> Float[Array, "frames"]:
        """The time of every frame, from 0 to the duration."""
        return np.arange(int(np.floor(self.duration * self.fps + 1e-6)) + 1) / self.fps

    def weights(self) -> tuple[list[str], Float[Array, "frames styles"]]:
        """The styles by name, and how much of each every frame has."""
        names = list(dict.fromkeys(change.name for change in self.changes))
        weights = np.zeros((len(self.times), len(names)))
        weights[:, names.index(self.changes[0].name)] = 1.0
        for change in self.changes[1:]:
            late = self.times >= change.time + change.over - _SLACK
            share = smoothstep((self.times - change.time) / max(change.over, _SLACK))
            share[late] = 1.0
            weights *= (1.0 - share)[:, None]
            weights[:, names.index(change.name)] += share
        return names, weights


def read_script(path: Path) -> Script:
    """A script from its file."""
    table = read_toml(path)
    duration = table.number("duration", positive=True, most=LONGEST)
    fps = table.number("fps", 30.0, least=1.0, most=MOST_FPS)
    models = _models(table.table("styles"), path.parent)
    paths = [handle_path(table.table("handles"), name, duration) for name in table.table("handles").names()]
    pins = [pin_of(entry, duration) for entry in table.tables("pins")]
    changes = _changes(table, duration, models)
    floor = _floor(table)
    smoothness = table.number("smoothness", 1.0, least=0.0, most=100.0)
    table.done()
    if not paths and not pins:
        raise table.error("handles", "no handle has a key and none is pinned; there is nothing to follow")
    script = Script(path.stem, duration, fps, paths, pins, changes, models, floor, smoothness)
    _check_pins(table, script)
    return script


def _models(table: Table, folder: Path) -> dict[str, Path]:
    if table.has(MODEL):
        raise table.error(MODEL, f"{MODEL!r} is the model that the script is solved with; use another name")
    return {name: folder / table.word(name) for name in table.names()}


def _floor(table: Table) -> float | None:
    """Its height; true is 0, false (or nothing) is no floor."""
    if not table.has("floor"):
        return None
    if table.is_flag("floor"):
        return 0.0 if table.flag("floor") else None
    return table.number("floor")


def handle_path(handles: Table, name: str, duration: float) -> HandlePath:
    """The path of one handle from its table."""
    table = handles.table(name)
    entries = table.tables("keys")
    if not entries:
        raise table.error("keys", "a handle needs one key or more: keys = [{ time = 0.0, at = [x, y, z] }]")
    times = np.array([_time(entry, "time", duration) for entry in entries])
    if np.any(np.diff(times) <= 0):
        late = int(np.flatnonzero(np.diff(times) <= 0)[0]) + 1
        raise entries[late].error("time", f"keys must come one after the other; got {times[late]:g} s")
    points = np.stack([entry.vector("at") for entry in entries])
    tangents = np.stack(
        [entry.vector("tangent") if entry.has("tangent") else np.full(3, np.nan) for entry in entries]
    )
    usual = table.word("ease", "none", among=EASES)
    eases = tuple(entry.word("ease", usual, among=EASES) for entry in entries)
    path = HandlePath(
        Handle(name, _offset(table)),
        times,
        points,
        tangents,
        eases,
        kind=table.word("curve", "hermite", among=KINDS),
        even_pace=table.flag("even_pace"),
        tolerance=table.number("tolerance", positive=True) if table.has("tolerance") else None,
    )
    for entry in (*entries, table):
        entry.done()
    return path


def pin_of(table: Table, duration: float) -> Pin:
    """A pin from its table."""
    start = _time(table, "from", duration) if table.has("from") else 0.0
    end = _time(table, "to", duration) if table.has("to") else duration
    if end <= start:
        raise table.error("to", f"a pin ends after it begins; got {start:g} to {end:g} s")
    at = table.vector("at") if table.has("at") else None
    pin = Pin(Handle(table.word("handle"), _offset(table)), start, end, at)
    table.done()
    return pin


def _offset(table: Table) -> tuple[float, float, float]:
    if not table.has("offset"):
        return (0.0, 0.0, 0.0)
    x, y, z = table.vector("offset")
    return float(x), float(y), float(z)


def _changes(table: Table, duration: float, models: Mapping[str, Path]) -> list[StyleChange]:
    changes: list[StyleChange] = []
    for entry in table.tables("style"):
        time = _time(entry, "time", duration) if entry.has("time") else 0.0
        name, over = entry.word("name", among=(MODEL, *models)), entry.number("over", 0.0, least=0.0)
        if changes and time < changes[-1].time + changes[-1].over - _SLACK:
            busy = changes[-1].time + changes[-1].over
            raise entry.error("time", f"the change before ends only at {busy:g} s; got {time:g} s")
        if not changes and time + over > 0:
            changes.append(StyleChange(0.0, MODEL))
        entry.done()
        changes.append(StyleChange(time, name, over))
    return changes or [StyleChange(0.0, MODEL)]


def _time(table: Table, key: str, duration: float) -> float:
    time = table.number(key)
    if not -_SLACK <= time <= duration + _SLACK:
        raise table.error(key, f"is outside the duration, 0 to {duration:g} s; got {time:g} s")
    return time


def _check_pins(table: Table, script: Script) -> None:
    """No key inside a pin of the same handle, and no two pins of it at once."""
    for number, pin in enumerate(script.pins, start=1):
        place = f"pins[{number}]"
        for other in script.pins[: number - 1]:
            if other.handle == pin.handle and pin.start < other.end and other.start < pin.end:
                raise table.error(place, f"{pin.handle.joint} is already pinned until {other.end:g} s")
        for path in script.paths:
            inside = (path.times > pin.start + _SLACK) & (path.times < pin.end - _SLACK)
            if path.handle == pin.handle and np.any(inside):
                time = path.times[inside][0]
                raise table.error(
                    place,
                    f"{pin.handle.joint} has a key at {time:g} s, within {pin.start:g} to {pin.end:g} s",
                )
