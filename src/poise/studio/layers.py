"""A motion as layers: a base, and corrections over it that are added to the frames about their own and fade away.

A correction says how one frame differs from the base: the root's shift, and a turn of every joint in its own frame. To
either side it fades over its own number of frames, or up to the next correction if that is nearer, so that every
corrected frame is exactly as it was made. All other frames are those of the base, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from poise.geometry import rotations
from poise.geometry.splines import smoothstep
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Pose, read_only
from poise.types import Array


@dataclass(frozen=True, eq=False)
class Correction:
    """What is added to a frame of the base, and over how many frames to either side it fades."""

    frame: int
    ease: int
    shift: Float[Array, "3"]
    turns: Float[Array, "joints 3"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", read_only(self.shift))
        object.__setattr__(self, "turns", read_only(self.turns))

    @classmethod
    def between(cls, before: Pose, after: Pose, *, frame: int, ease: int) -> Correction:
        """What brings one pose to the other."""
        change = rotations.multiply(rotations.conjugate(before.rotations), after.rotations)
        turns = rotations.expmap_from_quaternion(rotations.canonical(change))
        return cls(frame, ease, after.root_position - before.root_position, turns)


@dataclass(frozen=True, eq=False)
class Layers:
    """A base motion and its corrections, in the order of their frames and at most one for each.

    `unmet` are frames of a solved motion whose hard targets are missed.
    """

    base: Motion
    corrections: tuple[Correction, ...] = ()
    unmet: tuple[int, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return Layers, (self.base, self.corrections, self.unmet)  # the motion is made again

    def __len__(self) -> int:
        return len(self.base)

    @cached_property
    def motion(self) -> Motion:
        """The base with all corrections."""
        if not self.corrections:
            return self.base
        roots, joints = self.base.root_positions.copy(), self.base.rotations.copy()
        touched, shifts, turns = self._added()
        roots[touched] += shifts
        joints[touched] = rotations.multiply(joints[touched], turns)
        return self.base.with_frames(roots, joints)

    def rest(self) -> None:
        """Lets go of what can be made again."""
        self.__dict__.pop("motion", None)

    def with_correction(self, correction: Correction) -> Layers:
        """With a correction in the place of the one of its frame, or added."""
        others = self.without(correction.frame).corrections
        return replace(self, corrections=tuple(sorted((*others, correction), key=lambda each: each.frame)))

    def without(self, frame: int) -> Layers:
        """Without the correction of a frame."""
        return replace(self, corrections=tuple(each for each in self.corrections if each.frame != frame))

    def making(self, motion: Motion, span: tuple[int, int]) -> Layers:
        """Over another base, so that this motion comes of it; corrections within a span of frames go into the base."""
        first, end = span
        kept = Layers(self.base, tuple(each for each in self.corrections if not first <= each.frame < end))
        other = np.zeros(len(self), dtype=np.bool_)
        start, stop = changed_frames(kept.motion, motion)
        other[start:stop] = True
        roots, joints = self.base.root_positions.copy(), self.base.rotations.copy()
        roots[other], joints[other] = motion.root_positions[other], motion.rotations[other]
        touched, shifts, turns = kept._added()
        both, within = touched & other, other[touched]
        roots[both] -= shifts[within]
        joints[both] = rotations.multiply(joints[both], rotations.conjugate(turns[within]))
        return Layers(self.base.with_frames(roots, joints), kept.corrections)

    def resized(self, frames: int, fps: float) -> Layers:
        """Cut to so many frames, or with the last one held; at another rate the same frames play faster or slower."""
        kept = np.minimum(np.arange(frames), len(self.base) - 1)
        base = self.base.with_frames(self.base.root_positions[kept], self.base.rotations[kept], fps=fps)
        return Layers(base, tuple(each for each in self.corrections if each.frame < frames))

    def _added(
        self,
    ) -> tuple[Bool[Array, "frames"], Float[Array, "touched 3"], Float[Array, "touched joints 4"]]:
        """Which frames the corrections change, and by what shifts of the root and turns of the joints."""
        shifts = np.zeros((len(self), 3))
        turns = np.zeros((*self.base.rotations.shape[:2], 3))
        touched = np.zeros(len(self), dtype=np.bool_)
        for correction, first, weights in self._shares():
            frames = slice(first, first + len(weights))
            shifts[frames] += weights[:, None] * correction.shift
            turns[frames] += weights[:, None, None] * correction.turns
            touched[frames] = True
        return touched, shifts[touched], rotations.quaternion_from_expmap(turns[touched])

    def _shares(self) -> Iterator[tuple[Correction, int, Float[Array, "span"]]]:
        """Every correction with the first frame that has some of it, and how much this one and the next have."""
        places = [-np.inf, *(correction.frame for correction in self.corrections), np.inf]
        for correction, before, after in zip(self.corrections, places, places[2:], strict=False):
            at, reach = correction.frame, correction.ease + 1
            frames = np.arange(max(0, at - correction.ease), min(len(self), at + reach))
            fade = np.where(frames < at, min(reach, at - before), min(reach, after - at))
            weights = smoothstep(1.0 - np.abs(frames - at) / fade)
            kept = np.flatnonzero(weights)
            yield correction, int(frames[kept[0]]), weights[kept]


def changed_frames(before: Motion | None, after: Motion) -> tuple[int, int]:
    """The first frame in which a motion differs from another, and the one after the last; (0, 0) for none."""
    if before is after:
        return 0, 0
    if before is None or len(before) != len(after) or before.skeleton is not after.skeleton:
        return 0, len(after)
    moved = (before.root_positions != after.root_positions).any(axis=1)
    turned = (before.rotations != after.rotations).any(axis=(1, 2))
    found = np.flatnonzero(moved | turned)
    return (int(found[0]), int(found[-1]) + 1) if len(found) else (0, 0)


def held(pose: Pose, frames: int, fps: float) -> Motion:
    """A motion that stands still."""
    roots, turns = np.tile(pose.root_position, (frames, 1)), np.tile(pose.rotations, (frames, 1, 1))
    roots.flags.writeable = turns.flags.writeable = (
        False  # a motion copies what could change: long ones take a while
    )
    return Motion(pose.skeleton, fps, roots, turns)


def joined(whole: Motion, parts: Iterable[Motion], first: int) -> Motion:
    """A motion with parts of it, one after the other, put in the place of its frames from `first` on."""
    roots, turns = whole.root_positions.copy(), whole.rotations.copy()
    for part in parts:
        roots[first : first + len(part)] = part.root_positions
        turns[first : first + len(part)] = part.rotations
        first += len(part)
    roots.flags.writeable = turns.flags.writeable = False
    return whole.with_frames(roots, turns)
