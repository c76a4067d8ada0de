"""Keyframe scripts: a short TOML file with the paths of a few handles, pins, a floor and styles over time.

duration = 3.0                      # seconds
fps = 30
floor = true                        # or its height in metres

[handles.right_hand]
keys = [
  { time = 0.0, at = [-0.2, 0.9, 0.2] },
  { time = 1.0, at = [-0.6, 1.4, 0.1], tangent = [0.0, 0.0, 2.0], rotation = [0, 90, 0] },
]

[[pins]]
handle = "left_foot"
from = 0.0
to = 3.0
at = [0.1, 0.07, 0.0]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.apps.constraint_tables import handle_of, offset_of, rotation_of
from poise.formats.toml_tables import Table, read_toml
from poise.geometry.splines import EASES, KINDS, curve_through, smoothstep, turns_through
from poise.skeleton.pose_space import Handle
from poise.solvers.constraints import Constraint, Orientation, Position

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
        return _between_keys(points, self.times, times)


@dataclass(frozen=True, eq=False)
class TurnPath:
    """How a handle's joint is turned in the world: keys in time as unit quaternions (wxyz), and what is between."""

    handle: Handle
    times: Float[Array, "keys"]
    turns: Float[Array, "keys 4"]
    eases: tuple[str, ...]
    kind: str = "hermite"
    tolerance: float | None = None

    def at(self, times: Float[Array, "samples"]) -> Float[Array, "samples 4"]:
        """How the joint is turned at these times; NaN before its first key and after its last."""
        ease = self.eases[:-1] if len(self.times) > 1 else "none"
        turns = turns_through(self.times, self.turns, times, kind=self.kind, ease=ease)
        return _between_keys(turns, self.times, times)


@dataclass(frozen=True, eq=False)
class HeldHandle:
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
    pins: Sequence[HeldHandle]
    changes: Sequence[StyleChange]
    models: Mapping[str, Path]
    floor: float | None = None
    smoothness: float = 1.0
    turns: Sequence[TurnPath] = ()

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


def follow(
    paths: Sequence[HandlePath], turns: Sequence[TurnPath], times: Float[Array, "frames"]
) -> list[list[Constraint]]:
    """What paths and turns ask of every frame."""
    found: list[list[Constraint]] = [[] for _ in times]
    for path in paths:
        for frame, target in _targets(path.at(times)):
            found[frame].append(Position(path.handle, target, tolerance=path.tolerance))
    for turn in turns:
        for frame, target in _targets(turn.at(times)):
            name = f"turn of {turn.handle.joint}"
            found[frame].append(Orientation(turn.handle, target, tolerance=turn.tolerance, name=name))
    return found


def read_script(path: Path) -> Script:
    """A script from its file."""
    table = read_toml(path)
    duration = table.number("duration", positive=True, most=LONGEST)
    fps = table.number("fps", 30.0, least=1.0, most=MOST_FPS)
    models = _models(table.table("styles"), path.parent)
    paths, turns = handle_paths(table.table("handles"), duration)
    pins = [pin_of(entry, duration) for entry in table.tables("pins")]
    changes = _changes(table, duration, models)
    floor = floor_of(table)
    smoothness = table.number("smoothness", 1.0, least=0.0, most=100.0)
    table.done()
    if not paths and not turns and not pins:
        raise table.error("handles", "no handle has a key and none is pinned; there is nothing to follow")
    script = Script(path.stem, duration, fps, paths, pins, changes, models, floor, smoothness, turns)
    _check_pins(table, script)
    return script


def _models(table: Table, folder: Path) -> dict[str, Path]:
    if table.has(MODEL):
        raise table.error(MODEL, f"{MODEL!r} is the model that the script is solved with; use another name")
    return {name: folder / table.word(name) for name in table.names()}


def floor_of(table: Table) -> float | None:
    """Its height; true is 0, false (or nothing) is no floor."""
    if not table.has("floor"):
        return None
    if table.is_flag("floor"):
        return 0.0 if table.flag("floor") else None
    return table.number("floor")


def handle_paths(handles: Table, duration: float) -> tuple[list[HandlePath], list[TurnPath]]:
    """Where the handles of a table go and how they turn; a handle may be keyed in either or both."""
    paths: list[HandlePath] = []
    turns: list[TurnPath] = []
    for name in handles.names():
        keys = _Keys(handles.table(name), name, duration)
        paths += keys.path()
        turns += keys.turns()
        keys.done()
    return paths, turns


class _Keys:
    """One handle's table of keys being read; each key has a place, a rotation or both."""

    def __init__(self, table: Table, name: str, duration: float) -> None:
        self.table, self.handle, self.entries = table, Handle(name, offset_of(table)), table.tables("keys")
        self.times = _key_times(table, self.entries, duration)
        usual = table.word("ease", "none", among=EASES)
        self.eases = [entry.word("ease", usual, among=EASES) for entry in self.entries]
        self.kind = table.word("curve", "hermite", among=KINDS)

    def path(self) -> list[HandlePath]:
        """The path through the keys with places, if any."""
        rows, tolerance, even = self._with("at"), _tolerance(self.table), self.table.flag("even_pace")
        if not rows:
            return []
        points = np.stack([self.entries[row].vector("at") for row in rows])
        tangents = np.stack([_tangent(self.entries[row]) for row in rows])
        eases = tuple(self.eases[row] for row in rows)
        return [
            HandlePath(self.handle, self.times[rows], points, tangents, eases, self.kind, even, tolerance)
        ]

    def turns(self) -> list[TurnPath]:
        """The turning through the keys with rotations, if any."""
        rows, tolerance = self._with("rotation"), _turn_tolerance(self.table)
        if not rows:
            return []
        turns = np.stack([rotation_of(self.entries[row]) for row in rows])
        eases = tuple(self.eases[row] for row in rows)
        return [TurnPath(self.handle, self.times[rows], turns, eases, self.kind, tolerance)]

    def done(self) -> None:
        """Refuse what has not been asked for."""
        for entry in (*self.entries, self.table):
            entry.done()

    def _with(self, key: str) -> list[int]:
        return [row for row, entry in enumerate(self.entries) if entry.has(key)]


def _key_times(table: Table, entries: Sequence[Table], duration: float) -> Float[Array, "keys"]:
    """The times of a handle's keys, each of which has a place or a rotation."""
    if not entries:
        raise table.error("keys", "a handle needs one key or more: keys = [{ time = 0.0, at = [x, y, z] }]")
    times = np.array([_time(entry, "time", duration) for entry in entries])
    if np.any(np.diff(times) <= 0):
        late = int(np.flatnonzero(np.diff(times) <= 0)[0]) + 1
        raise entries[late].error("time", f"keys must come one after the other; got {times[late]:g} s")
    for entry in entries:
        if not entry.has("at") and not entry.has("rotation"):
            raise entry.error("at", "is missing; a key has a place (at), a rotation or both")
    return times


def _tangent(entry: Table) -> Float[Array, "3"]:
    return entry.vector("tangent") if entry.has("tangent") else np.full(3, np.nan)


def _tolerance(table: Table) -> float | None:
    return table.number("tolerance", positive=True) if table.has("tolerance") else None


def _turn_tolerance(table: Table) -> float | None:
    """In radians, from degrees."""
    if not table.has("turn_tolerance"):
        return None
    return float(np.radians(table.number("turn_tolerance", positive=True)))


def _targets(samples: Float[Array, "frames size"]) -> Iterator[tuple[int, Array]]:
    """The frames that have a target, and the targets."""
    return ((frame, target) for frame, target in enumerate(samples) if np.all(np.isfinite(target)))


def _between_keys(
    values: Float[Array, "samples size"], keys: Float[Array, "keys"], times: Float[Array, "samples"]
) -> Float[Array, "samples size"]:
    """Values with NaN before the first key and after the last."""
    outside = (times < keys[0] - _SLACK) | (times > keys[-1] + _SLACK)
    return np.where(outside[:, None], np.nan, values)


def pin_of(table: Table, duration: float) -> HeldHandle:
    """A pin from its table."""
    start = _time(table, "from", duration) if table.has("from") else 0.0
    end = _time(table, "to", duration) if table.has("to") else duration
    if end <= start:
        raise table.error("to", f"a pin ends after it begins; got {start:g} to {end:g} s")
    at = table.vector("at") if table.has("at") else None
    pin = HeldHandle(handle_of(table), start, end, at)
    table.done()
    return pin


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
