"""A motion as layers: a base, and corrections that are added around their frames and fade out.

A correction is the difference of one frame from the base: the root's shift, and a rotation of every joint in its own
frame. To either side it fades over its own number of frames, or up to the next correction if that is nearer, so that
every corrected frame is exact. All other frames are bit-identical to the base.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """The change of a frame of the base, and the number of frames over which it fades to either side."""

    frame: int
    ease: int
    shift: Float[Array, "3"]
    turns: Float[Array, "joints 3"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", read_only(self.shift))
        object.__setattr__(self, "turns", read_only(self.turns))

    @classmethod
    def between(cls, before: Pose, after: Pose, *, frame: int, ease: int) -> Correction:
        """The correction from one pose to the other."""
        change = rotations.multiply(rotations.conjugate(before.rotations), after.rotations)
        turns = rotations.expmap_from_quaternion(rotations.canonical(change))
        return cls(frame, ease, after.root_position - before.root_position, turns)


@dataclass(frozen=True, eq=False)
class Layers:
    """A base motion and its corrections, ordered by frame, at most one for each.

    `unmet` are frames of a solved motion whose hard targets are missed.
    """

    base: Motion
    corrections: tuple[Correction, ...] = ()
    unmet: tuple[int, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return Layers, (self.base, self.corrections, self.unmet)  # the motion is recomputed

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
        """Drop what can be recomputed."""
        self.__dict__.pop("motion", None)

    def with_correction(self, correction: Correction) -> Layers:
        """With a correction that replaces the one of its frame, or is added."""
        others = self.without(correction.frame).corrections
        return replace(self, corrections=tuple(sorted((*others, correction), key=lambda each: each.frame)))

    def without(self, frame: int) -> Layers:
        """Without the correction of a frame."""
        return replace(self, corrections=tuple(each for each in self.corrections if each.frame != frame))

    def making(self, motion: Motion, span: tuple[int, int]) -> Layers:
        """With another base and the same resulting motion; corrections within a span of frames go into the base."""
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
        """Cut to this many frames, or with the last one held; at another rate the same frames play faster or slower."""
        kept = np.minimum(np.arange(frames), len(self.base) - 1)
        base = self.base.with_frames(self.base.root_positions[kept], self.base.rotations[kept], fps=fps)
        return Layers(base, tuple(each for each in self.corrections if each.frame < frames))

    def _added(
        self,
    ) -> tuple[Bool[Array, "frames"], Float[Array, "touched 3"], Float[Array, "touched joints 4"]]:
        """The frames that the corrections change, with their shifts of the root and rotations of the joints."""
        shifts = np.zeros((len(self), 3))
        turns = np.zeros((*self.base.rotations.shape[:2], 3))
        touched = np.zeros(len(self), dtype=np.bool_)
        places = [-np.inf, *(correction.frame for correction in self.corrections), np.inf]
        for correction, before, after in zip(self.corrections, places, places[2:], strict=False):
            at, reach = correction.frame, correction.ease + 1
            frames = np.arange(max(0, at - correction.ease), min(len(self), at + reach))
            fade = np.where(frames < at, min(reach, at - before), min(reach, after - at))
            weights = smoothstep(1.0 - np.abs(frames - at) / fade)
            frames, weights = frames[weights > 0.0], weights[weights > 0.0]
            shifts[frames] += weights[:, None] * correction.shift
            turns[frames] += weights[:, None, None] * correction.turns
            touched[frames] = True
        return touched, shifts[touched], rotations.quaternion_from_expmap(turns[touched])


def changed_frames(before: Motion | None, after: Motion) -> tuple[int, int]:
    """The first frame in which two motions differ, and the one after the last; (0, 0) if none."""
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
    # A motion copies mutable arrays, which is slow for long ones.
    roots.flags.writeable = turns.flags.writeable = False
    return Motion(pose.skeleton, fps, roots, turns)


def joined(whole: Motion, parts: Iterable[Motion], first: int) -> Motion:
    """A motion with consecutive parts replacing its frames from `first` on."""
    roots, turns = whole.root_positions.copy(), whole.rotations.copy()
    for part in parts:
        roots[first : first + len(part)] = part.root_positions
        turns[first : first + len(part)] = part.rotations
        first += len(part)
    roots.flags.writeable = turns.flags.writeable = False
    return whole.with_frames(roots, turns)
