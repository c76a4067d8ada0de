"""Keyframe scripts: a short TOML file with whole poses, the paths of a few handles, pins, a floor and styles over time.

duration = 3.0                      # seconds
fps = 30
floor = true                        # or its height in metres

[handles.right_hand]
keys = [
  { time = 0.0, at = [-0.2, 0.9, 0.2] },
  { time = 1.0, at = [-0.6, 1.4, 0.1], tangent = [0.0, 0.0, 2.0], rotation = [0, 90, 0], spin = [0, 0, 0] },
]

[[pins]]
handle = "left_foot"
from = 0.0
to = 3.0
at = [0.1, 0.07, 0.0]

[[constraints]]                     # of every kind in solvers.constraints.CONSTRAINTS
kind = "look-at"
handle = "head"
target = [0.0, 1.6, 5.0]
from = 0.5                          # or time = 0.5 for a single frame; all frames by default
to = 1.5
tolerance = 0.1                     # soft; exact without it

[[keys]]                            # poses: the motion prior makes the motion between them
time = 0.0
pose = "crouch.bvh:12"              # a file beside the script, and a frame; or: handles = { head = [0, 1.7, 0] }
hold = 0.2
walk = [[0, 0], [0.6, 1.5]]         # then the body walks through points (x, z) on the floor; steps are found
speed = 1.3                         # metres a second
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Bool, Float

from poise.apps.inbetweening import TEMPI, PoseKey, Stance, Walk
from poise.bounds import CLOSEST
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats import read
from poise.formats.named_files import RefusedNameError, named_file
from poise.formats.tables import Among, FieldError, Named, Range, Read, Table, read_declared
from poise.geometry.splines import EASES, KINDS, curve_through, smoothstep, turns_through
from poise.motion.motion import Motion
from poise.skeleton.pose_space import Handle
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose
from poise.solvers.constraints import (
    Constraint,
    Orientation,
    Position,
    constraint_from,
    handle_from,
    turn_from,
)
from poise.types import Array

MODEL = "model"
"""The name of the model that solves a script, within the script."""
LONGEST = 600.0  # seconds
SLACK = 1e-9  # seconds: rounding tolerance of times
MOST_FPS = 240.0


@dataclass(frozen=True, eq=False)
class HandlePath:
    """The path of a handle: keys in time and the interpolation between them; a tolerance makes it soft."""

    handle: Handle
    times: Float[Array, "keys"]
    points: Float[Array, "keys 3"]
    tangents: Float[Array, "keys 3"]
    eases: tuple[str, ...]
    kind: str = "hermite"
    even_pace: bool = False
    tolerance: float | None = None

    def at(self, times: Float[Array, "samples"]) -> Float[Array, "samples 3"]:
        """Positions of the handle at these times; NaN before its first key and after its last."""
        ease = self.eases[:-1] if len(self.times) > 1 else "none"
        points = curve_through(
            self.times, self.points, times, tangents=self.tangents, kind=self.kind, even_pace=self.even_pace, ease=ease
        )  # fmt: skip
        return _between_keys(points, self.times, times)


@dataclass(frozen=True, eq=False)
class TurnPath:
    """The world rotations of a handle's joint: keys in time as unit quaternions (wxyz), and interpolation.

    `spins` are angular velocities at the keys in radians a second, NaN where the curve chooses them.
    """

    handle: Handle
    times: Float[Array, "keys"]
    turns: Float[Array, "keys 4"]
    spins: Float[Array, "keys 3"]
    eases: tuple[str, ...]
    kind: str = "hermite"
    tolerance: float | None = None

    def at(self, times: Float[Array, "samples"]) -> Float[Array, "samples 4"]:
        """Rotations of the joint at these times; NaN before its first key and after its last."""
        ease = self.eases[:-1] if len(self.times) > 1 else "none"
        turns = turns_through(self.times, self.turns, times, spins=self.spins, kind=self.kind, ease=ease)
        return _between_keys(turns, self.times, times)


@dataclass(frozen=True, eq=False)
class HeldHandle:
    """A handle that stays in place from one time to another: at a point, or where it is when the pin begins."""

    handle: Annotated[Handle, Read(handle_from)]
    start: Annotated[float, Named("from")] = 0.0
    end: Annotated[float, Named("to")] = np.inf
    at: Float[Array, "3"] | None = None

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise FieldError("to", f"a pin must end after it begins; got {self.start:g} to {self.end:g} s")


@dataclass(frozen=True, kw_only=True)
class StyleChange:
    """A change to another style at a time, blended over some seconds."""

    name: str
    time: float = 0.0
    over: Annotated[float, Range(least=0.0)] = 0.0


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
    constraints: Sequence[Timed] = ()
    heading: tuple[float, float, float] | None = None
    """The hips' soft heading; by default that of the feet, if `keeps_heading`."""
    keeps_heading: bool = True
    keeps_balance: bool = True
    keys: Sequence[PoseKey] = ()
    contacts: bool | Sequence[Stance] = True
    """With poses: whether feet that stand stay in place, or which do when."""
    loop: bool = False

    @property
    def times(self) -> Float[Array, "frames"]:
        """The time of every frame, from 0 to the duration."""
        return np.arange(int(np.floor(self.duration * self.fps + 1e-6)) + 1) / self.fps

    def weights(self) -> tuple[list[str], Float[Array, "frames styles"]]:
        """The styles by name, and each frame's weights over them."""
        names = list(dict.fromkeys(change.name for change in self.changes))
        weights = np.zeros((len(self.times), len(names)))
        weights[:, names.index(self.changes[0].name)] = 1.0
        for change in self.changes[1:]:
            late = self.times >= change.time + change.over - SLACK
            share = smoothstep((self.times - change.time) / max(change.over, SLACK))
            share[late] = 1.0
            weights *= (1.0 - share)[:, None]
            weights[:, names.index(change.name)] += share
        return names, weights


def follow(
    paths: Sequence[HandlePath], turns: Sequence[TurnPath], times: Float[Array, "frames"]
) -> list[list[Constraint]]:
    """The constraints of paths and rotations for every frame."""
    found: list[list[Constraint]] = [[] for _ in times]
    for path in paths:
        for own, target in zip(found, path.at(times), strict=True):
            if np.all(np.isfinite(target)):
                own.append(Position(path.handle, target, tolerance=path.tolerance))
    for turn in turns:
        name = f"turn of {turn.handle.joint}"
        for own, target in zip(found, turn.at(times), strict=True):
            if np.all(np.isfinite(target)):
                own.append(Orientation(turn.handle, target, tolerance=turn.tolerance, name=name))
    return found


@dataclass(frozen=True, eq=False)
class Timed:
    """A constraint from one time to another, inclusive; None is the start or the end of the script."""

    constraint: Constraint
    start: float | None = None
    end: float | None = None

    def holds(self, times: Float[Array, "frames"]) -> Bool[Array, "frames"]:
        """Mask of the times at which it holds; a single moment selects the nearest."""
        start = times[0] if self.start is None else self.start
        end = times[-1] if self.end is None else self.end
        if start == end:
            return np.asarray(np.arange(len(times)) == np.argmin(np.abs(times - start)))
        return np.asarray((times >= start - SLACK) & (times <= end + SLACK))


def timed_constraints(table: Table, key: str) -> tuple[Timed, ...]:
    """All constraints of a list of tables: each of any kind, `from` one time `to` another, or at a `time`."""
    found = []
    for entry in table.tables(key):
        at = entry.get("time", float, None)
        span = (
            (at, at) if entry.has("time") else (entry.get("from", float, None), entry.get("to", float, None))
        )
        found.append(Timed(constraint_from(entry), *span))
    return tuple(found)


def check_within(duration: float, times: Mapping[str, float | None]) -> None:
    """Raise if a time is outside the script, with its position in the file."""
    for place, time in times.items():
        if time is not None and not -SLACK <= time <= duration + SLACK:
            raise FieldError(place, f"is outside the duration, 0 to {duration:g} s; got {time:g} s")


def check_constraints(duration: float, constraints: tuple[Timed, ...]) -> None:
    """Raise if constraints are at times outside the script, or end before they begin."""
    for number, timed in enumerate(constraints, start=1):
        place = f"constraints[{number}]"
        if timed.start is not None and timed.start == timed.end:
            check_within(duration, {f"{place}.time": timed.start})
        check_within(duration, {f"{place}.from": timed.start, f"{place}.to": timed.end})
        if timed.end is not None and timed.end < (timed.start or 0.0):
            message = f"a constraint must end after it begins; got {timed.start:g} to {timed.end:g} s"
            raise FieldError(f"{place}.to", message)


Vector = Float[Array, "3"]
Soft = Annotated[float | None, Range(above=0.0)]
Ease = Annotated[str, Among(EASES)]
Duration = Annotated[float, Range(above=0.0, most=LONGEST)]
Rate = Annotated[float, Range(1.0, MOST_FPS)]


def _floor_from(table: Table, key: str) -> float | None:
    """A floor's height; true is 0, false (or nothing) is no floor."""
    floor: float | bool = table.get(key, float | bool)
    return (0.0 if floor else None) if isinstance(floor, bool) else floor


Floor = Annotated[float | None, Read(_floor_from)]


@dataclass(frozen=True, eq=False)
class _Key:
    """One key of a handle: a position, a rotation or both."""

    time: float
    at: Vector | None = None
    tangent: Vector | None = None
    rotation: Annotated[Float[Array, "4"] | None, Read(turn_from)] = None
    spin: Vector | None = None  # degrees a second
    ease: Ease | None = None

    def __post_init__(self) -> None:
        if self.at is None and self.rotation is None:
            raise FieldError("at", "is missing; a key needs a position (at), a rotation or both")


@dataclass(frozen=True, eq=False)
class HandleKeys:
    """The keys of one handle and the interpolation between them."""

    keys: tuple[_Key, ...]
    offset: Vector | None = None
    ease: Ease = "none"
    curve: Annotated[str, Among(KINDS)] = "hermite"
    even_pace: bool = False
    tolerance: Soft = None
    turn_tolerance: Soft = None  # degrees

    def __post_init__(self) -> None:
        if not self.keys:
            raise FieldError(
                "keys", "a handle needs at least one key: keys = [{ time = 0.0, at = [x, y, z] }]"
            )
        for number, (before, key) in enumerate(pairwise(self.keys), start=2):
            if key.time < before.time + CLOSEST:
                raise FieldError(f"keys[{number}].time", f"key times must increase; got {key.time:g} s")

    def paths(self, name: str) -> tuple[list[HandlePath], list[TurnPath]]:
        """The path through the keys with positions, and the rotations through those that have them, if any."""
        handle = Handle(name, (0.0, 0.0, 0.0) if self.offset is None else tuple(self.offset.tolist()))
        placed = [key for key in self.keys if key.at is not None]
        turned = [key for key in self.keys if key.rotation is not None]

        def timing(keys: Sequence[_Key]) -> tuple[Float[Array, "keys"], tuple[str, ...]]:
            return np.array([key.time for key in keys]), tuple(key.ease or self.ease for key in keys)

        (times, eases), (turn_times, turn_eases) = timing(placed), timing(turned)
        path = HandlePath(
            handle, times, np.array([key.at for key in placed]), or_unknown([key.tangent for key in placed]), eases,
            self.curve, self.even_pace, self.tolerance,
        )  # fmt: skip
        turns, spins = np.array([key.rotation for key in turned]), or_unknown([key.spin for key in turned])
        soft = None if self.turn_tolerance is None else float(np.radians(self.turn_tolerance))
        turn = TurnPath(handle, turn_times, turns, np.radians(spins), turn_eases, self.curve, soft)
        return [path] if placed else [], [turn] if turned else []


def or_unknown(velocities: Sequence[Vector | tuple[float, float, float] | None]) -> Float[Array, "keys 3"]:
    """The velocities of keys, NaN where a key has none."""
    return np.array([np.full(3, np.nan) if each is None else each for each in velocities]).reshape(-1, 3)


def paths_of(handles: Mapping[str, HandleKeys]) -> tuple[list[HandlePath], list[TurnPath]]:
    """The paths and rotations of handles."""
    found = [keys.paths(name) for name, keys in handles.items()]
    return [path for paths, _ in found for path in paths], [turn for _, turns in found for turn in turns]


def check_keys(duration: float, handles: Mapping[str, HandleKeys]) -> None:
    """Raise if a key's time is outside the script."""
    for name, handle in handles.items():
        for number, key in enumerate(handle.keys, start=1):
            check_within(duration, {f"handles.{name}.keys[{number}].time": key.time})


def pins_within(duration: float, pins: Sequence[HeldHandle], place: str) -> list[HeldHandle]:
    """Pins with the script's end as default end; raise if a time is outside the script."""
    for number, pin in enumerate(pins, start=1):
        end = None if pin.end == np.inf else pin.end
        check_within(duration, {f"{place}[{number}].from": pin.start, f"{place}[{number}].to": end})
    return [replace(pin, end=min(pin.end, duration)) for pin in pins]


@dataclass(frozen=True, eq=False)
class _PoseTable:
    """A pose at a time: a frame of a file, or places of handles."""

    time: Annotated[float, Range(0.0, LONGEST)]
    pose: str = ""
    handles: dict[str, Vector] | None = None
    hold: Annotated[float, Range(0.0, LONGEST)] = 0.0
    ease: Ease = "none"
    tempo: Annotated[float, Range(*TEMPI)] = 1.0
    walk: tuple[tuple[float, float], ...] = ()
    speed: float = Walk.speed

    def __post_init__(self) -> None:
        if bool(self.pose) == bool(self.handles):
            raise FieldError("pose", 'a key needs a pose, such as "crouch.bvh:12", or the places of handles')

    @property
    def end(self) -> float:
        """The time when the hold and the walk are over."""
        return self.time + self.hold + (Walk(self.walk, self.speed).seconds if self.walk else 0.0)

    def key(self, folder: Path) -> PoseKey:
        """The key, with its pose read."""
        going = (self.hold, self.ease, self.tempo, Walk(self.walk, self.speed) if self.walk else None)
        if self.handles:
            return PoseKey(self.time, self.handles, *going)  # type: ignore[arg-type]
        file, _, number = self.pose.rpartition(":")
        file, frame = (file, int(number)) if number.isdigit() else (self.pose, 0)
        try:
            path = named_file(folder, file)
        except RefusedNameError as error:
            raise InvalidValueError(str(error)) from error
        pose = frame_of(path, frame, "a key needs the pose of a skeleton")
        return PoseKey(self.time, pose, *going)


@dataclass(frozen=True)
class _StanceTable:
    foot: Annotated[str, Among(SIDES)]
    start: Annotated[float, Named("from")]
    end: Annotated[float, Named("to")]


@dataclass(frozen=True, eq=False)
class _ScriptFile:
    duration: Duration | None = None
    fps: Rate = 30.0
    floor: Floor = None
    smoothness: Annotated[float, Range(0.0, 100.0)] = 1.0
    styles: dict[str, Path] = field(default_factory=dict)
    handles: dict[str, HandleKeys] = field(default_factory=dict)
    pins: tuple[HeldHandle, ...] = ()
    style: tuple[StyleChange, ...] = ()
    constraints: Annotated[tuple[Timed, ...], Read(timed_constraints)] = ()
    keys: tuple[_PoseTable, ...] = ()
    plant: bool = True  # feet that stand between poses stay in place
    contacts: tuple[_StanceTable, ...] = ()
    loop: bool = False

    def __post_init__(self) -> None:
        if self.keys and min(key.time for key in self.keys) > 0.0:
            raise FieldError("keys[1].time", "the first pose must be at time 0")
        if not self.keys and self.duration is None:
            raise FieldError("duration", "is missing; give the script's length in seconds")
        if MODEL in self.styles:
            message = f"{MODEL!r} is the name of the model that solves the script; use another name"
            raise FieldError(f"styles.{MODEL}", message)
        check_keys(self.seconds, self.handles)
        check_constraints(self.seconds, self.constraints)
        pins_within(self.seconds, self.pins, "pins")
        busy, names = 0.0, (MODEL, *self.styles)
        for number, change in enumerate(self.style, start=1):
            check_within(self.seconds, {f"style[{number}].time": change.time})
            if change.name not in names:
                raise FieldError(f"style[{number}].name", str(UnknownNameError("choice", change.name, names)))
            if change.time < busy - SLACK:
                message = f"the previous change ends at {busy:g} s; got {change.time:g} s"
                raise FieldError(f"style[{number}].time", message)
            busy = change.time + change.over
        if not (self.handles or self.pins or self.constraints or self.keys):
            raise FieldError("handles", "no handle has a key or a pin; give at least one")
        self._check_pins()

    def _check_pins(self) -> None:
        """Raise if a key is inside a pin of the same handle, or if two pins of it overlap."""
        script = self.script("", [])
        for number, pin in enumerate(script.pins, start=1):
            place = f"pins[{number}]"
            for other in script.pins[: number - 1]:
                if other.handle == pin.handle and pin.start < other.end and other.start < pin.end:
                    raise FieldError(place, f"{pin.handle.joint} is already pinned until {other.end:g} s")
            for path in script.paths:
                inside = (path.times > pin.start + SLACK) & (path.times < pin.end - SLACK)
                if path.handle == pin.handle and np.any(inside):
                    at, span = path.times[inside][0], f"{pin.start:g} to {pin.end:g} s"
                    raise FieldError(place, f"{pin.handle.joint} has a key at {at:g} s, within {span}")

    @property
    def seconds(self) -> float:
        """The duration; with poses, until the last of them."""
        return max((key.end for key in self.keys), default=self.duration or 0.0)

    def script(self, name: str, keys: Sequence[PoseKey]) -> Script:
        paths, turns = paths_of(self.handles)
        pins, changes = pins_within(self.seconds, self.pins, "pins"), list(self.style)
        if not changes or changes[0].time + changes[0].over > 0:
            changes.insert(0, StyleChange(name=MODEL))
        return Script(
            name, self.seconds, self.fps, paths, pins, changes, self.styles, self.floor, self.smoothness, turns,
            self.constraints, keys=keys, loop=self.loop,
            contacts=[Stance(one.foot, one.start, one.end) for one in self.contacts] or self.plant,
        )  # fmt: skip


def read_script(path: Path) -> Script:
    """A script from its file, with the poses that it names."""
    found = read_declared(_ScriptFile, path)
    return found.script(path.stem, [key.key(path.parent) for key in found.keys])


def frame_of(file: Path, number: int, need: str) -> Pose:
    """A frame of a motion file; `need` says what it is for, in a message on markers."""
    clip = read(file)
    if not isinstance(clip, Motion):
        raise InvalidValueError(f"{file.name} holds markers; {need}")
    if number >= len(clip):
        raise InvalidValueError(f"{file.name} has frames 0 to {len(clip) - 1}; got frame {number}")
    return clip[number]


def _between_keys(
    values: Float[Array, "samples size"], keys: Float[Array, "keys"], times: Float[Array, "samples"]
) -> Float[Array, "samples size"]:
    """Values with NaN before the first key and after the last."""
    outside = (times < keys[0] - SLACK) | (times > keys[-1] + SLACK)
    return np.where(outside[:, None], np.nan, values)
