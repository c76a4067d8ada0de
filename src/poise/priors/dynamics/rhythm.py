"""The rhythm of clips, for inspection and correction: activity, phase and transition points.

A rhythm file is TOML, written by `poise phase` and read by `poise learn --rhythm`; times are in seconds.

[clips.walk_1]
activity = "walk"
phase = [[0.12, 0.0], [0.63, 0.5], [1.15, 1.0]]     # [seconds, turns]; linear in between
transitions = { left = [0.12, 1.15], right = [0.63] }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError, UnknownNameError
from poise.formats.tables import FieldError, Range, read_declared
from poise.motion.contacts import Contacts
from poise.motion.motion import Motion
from poise.motion.phase import phase, phase_through
from poise.priors.dynamics.sequences import RATE, activity_in, contacts_in_clip, frames_at_rate
from poise.skeleton.roles import SIDES
from poise.types import Array

LEAST_STEP = 1e-4  # seconds: smallest interval between two phase keys, the last digit written


@dataclass(frozen=True, eq=False)
class Rhythm:
    """A clip's activity, its phase in turns over time, and its transition times by set."""

    name: str
    activity: str
    times: Float[Array, "keys"]
    turns: Float[Array, "keys"]
    transitions: Mapping[str, tuple[float, ...]]
    source: str = "given"

    def radians(self, at: Float[Array, "frames"]) -> Float[Array, "frames"]:
        """The phase at these times."""
        return phase_through(at, self.times, 2.0 * np.pi * self.turns)


@dataclass(frozen=True, eq=False)
class GivenRhythm:
    """The arguments of a motion model that rhythms determine."""

    activities: list[str]
    phases: list[Float[Array, "_frames"]]
    transitions: list[Int[Array, "_points"]]


@dataclass(frozen=True, eq=False)
class _Clip:
    """One clip's table."""

    activity: str
    phase: Float[Array, "keys 2"]
    transitions: dict[str, tuple[Annotated[float, Range(least=0.0)], ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (
            len(self.phase) < 2
            or np.any(np.diff(self.phase[:, 0]) < 0.5 * LEAST_STEP)
            or np.any(np.diff(self.phase[:, 1]) < 0)
        ):
            raise FieldError(
                "phase",
                f"expected two keys [seconds, turns] or more, times rising by {LEAST_STEP:g} s, turns not decreasing",
            )


@dataclass(frozen=True, eq=False)
class _RhythmFile:
    """A whole file."""

    clips: dict[str, _Clip] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.clips:
            raise FieldError(
                "clips", 'there are no clips: write [clips."walk_1"] with activity, phase, transitions'
            )


def rhythm_of(motion: Motion, *, name: str = "") -> tuple[Rhythm, Contacts | None]:
    """The rhythm detected in a clip, and the foot contacts it was detected from."""
    standing = contacts_in_clip(motion)
    found = phase(motion, contacts=standing)
    times, turns = _keys(found.radians, motion.fps)
    landings = [] if standing is None else [standing.landings(number) / motion.fps for number in (0, 1)]
    sides = zip(SIDES, landings, strict=False)
    transitions = {side: tuple(float(time) for time in own) for side, own in sides if len(own)}
    rhythm = Rhythm(name or motion.name, activity_in(standing), times, turns, transitions, found.source)
    return rhythm, standing


def rhythm_text(rhythms: Sequence[Rhythm]) -> str:
    """The text of a rhythm file, to be edited by hand."""
    lines = []
    for rhythm in rhythms:
        keys = ", ".join(f"[{t:.4f}, {n:.4f}]" for t, n in zip(rhythm.times, rhythm.turns, strict=True))
        sets = ", ".join(
            f"{name} = [{', '.join(f'{time:.4f}' for time in times)}]"
            for name, times in rhythm.transitions.items()
        )
        lines += [
            f'[clips."{rhythm.name}"]  # phase from {rhythm.source}',
            f'activity = "{rhythm.activity}"',
            f"phase = [{keys}]",
            f"transitions = {{ {sets} }}",
            "",
        ]
    return "\n".join(lines)


def read_rhythms(path: Path) -> dict[str, Rhythm]:
    """The rhythms in a file, by clip name."""
    clips = read_declared(_RhythmFile, path).clips
    return {
        name: Rhythm(name, own.activity, own.phase[:, 0], own.phase[:, 1], own.transitions)
        for name, own in clips.items()
    }


def given_rhythm(
    rhythms: Mapping[str, Rhythm], names: Sequence[str], motions: Sequence[Motion]
) -> GivenRhythm:
    """The rhythms of the named clips as arguments of a motion model, at 30 frames a second."""
    for name in names:
        if name not in rhythms:
            raise UnknownNameError("clip in the rhythm file", name, rhythms)
    chosen = [rhythms[name] for name in names]
    counts = [frames_at_rate(motion) for motion in motions]
    for rhythm, motion in zip(chosen, motions, strict=True):
        last = max((time for times in rhythm.transitions.values() for time in times), default=0.0)
        if last > motion.seconds:
            raise InvalidValueError(
                f"{rhythm.name}: a transition at {last:g} s is after the clip's end, {motion.seconds:g} s"
            )
    return GivenRhythm(
        [rhythm.activity for rhythm in chosen],
        [rhythm.radians(np.arange(count) / RATE) for rhythm, count in zip(chosen, counts, strict=True)],
        _frames_of(chosen, counts),
    )


def _frames_of(rhythms: Sequence[Rhythm], counts: Sequence[int]) -> list[Int[Array, "_points"]]:
    """The frame numbers of every set over all clips."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    names = dict.fromkeys(name for rhythm in rhythms for name in rhythm.transitions)
    return [
        np.array(
            [
                start + min(round(time * RATE), count - 1)
                for rhythm, start, count in zip(rhythms, starts, counts, strict=True)
                for time in rhythm.transitions.get(name, ())
            ],
            dtype=np.int64,
        )
        for name in names
    ]


def _keys(radians: Float[Array, "frames"], fps: float) -> tuple[Float[Array, "keys"], Float[Array, "keys"]]:
    """The times of completed half turns, and both ends of the clip."""
    turns = radians / (2.0 * np.pi)
    halves = 0.5 * np.arange(np.ceil(2.0 * turns[0] + 1e-9), np.floor(2.0 * turns[-1] - 1e-9) + 1.0)
    frames = np.interp(halves, turns, np.arange(len(turns)))
    frames = np.concatenate([[0.0], frames, [len(turns) - 1.0]])
    frames = frames[np.concatenate([[True], np.diff(frames) > 1e-6])]
    return frames / fps, np.interp(frames, np.arange(len(turns)), turns)
