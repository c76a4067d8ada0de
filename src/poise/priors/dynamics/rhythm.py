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
from poise.motion.edit import resample
from poise.motion.motion import Motion
from poise.motion.phase import phase, phase_through
from poise.priors.dynamics.sequences import RATE, activity_in, contacts_in_clip
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
        if len(self.phase) < 2 or np.any(np.diff(self.phase, axis=0) < (0.5 * LEAST_STEP, 0.0)):
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
    """The rhythm detected in a clip, and the foot contacts it was detected from.

    Its keys are the times of completed half turns, and both ends of the clip.
    """
    standing = contacts_in_clip(motion)
    found = phase(motion, contacts=standing)
    turns = found.radians / (2.0 * np.pi)
    halves = 0.5 * np.arange(np.ceil(2.0 * turns[0] + 1e-9), np.floor(2.0 * turns[-1] - 1e-9) + 1.0)
    between = np.interp(halves, turns, np.arange(len(turns)))
    frames = np.concatenate([[0.0], between, [len(turns) - 1.0]])
    frames = frames[np.concatenate([[True], np.diff(frames) > 1e-6])]
    landings = [] if standing is None else [standing.landings(number) / motion.fps for number in (0, 1)]
    transitions = {
        side: tuple(float(time) for time in own)
        for side, own in zip(SIDES, landings, strict=False)
        if len(own)
    }
    keys = frames / motion.fps, np.interp(frames, np.arange(len(turns)), turns)
    rhythm = Rhythm(name or motion.name, activity_in(standing), *keys, transitions, found.source)
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
    """The rhythms of the named clips as arguments of a motion model, at 30 frames a second.

    Transitions are the frame numbers of every set over all clips.
    """
    chosen, phases, start = [], [], 0
    sets: dict[str, list[int]] = {}
    for name, motion in zip(names, motions, strict=True):
        if name not in rhythms:
            raise UnknownNameError("clip in the rhythm file", name, rhythms)
        rhythm, count = rhythms[name], len(resample(motion, RATE))
        last = max((time for times in rhythm.transitions.values() for time in times), default=0.0)
        if last > motion.seconds:
            raise InvalidValueError(
                f"{rhythm.name}: a transition at {last:g} s is after the clip's end, {motion.seconds:g} s"
            )
        chosen.append(rhythm.activity)
        phases.append(rhythm.radians(np.arange(count) / RATE))
        for side, times in rhythm.transitions.items():
            sets.setdefault(side, []).extend(start + min(round(time * RATE), count - 1) for time in times)
        start += count
    return GivenRhythm(chosen, phases, [np.array(points, dtype=np.int64) for points in sets.values()])
