"""Few keys per curve: a motion as cubic curves through keys of every joint, within stated distances of all its frames.

A curve has the motion's values at its keys, and slopes there by least squares over all frames: a cubic Hermite spline.
That of a rotation is one of the four components, normalised, as interpolation CUBICSPLINE of glTF 2.0 (appendix C.5)
and as Bezier curves of Blender whose handles reach a third of the way to the next key. Keys are added where a joint is
farthest off, to the joint above it that moves it there most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.savable import Savable
from poise.types import Array, Progress, silent

CLOSE, TURNED = 0.01, np.radians(2.0)  # metres, radians
USUAL = 1e-4  # weight of the usual slopes, where no frame lies beside a key
STILL = 1e-6  # metres, radians: a curve that moves by less has one key


@dataclass(frozen=True, eq=False)
class KeyedCurve:
    """A spline through keys on frames, each with its value and its slope per frame."""

    frames: Int[Array, "keys"]
    values: Float[Array, "keys components"]
    slopes: Float[Array, "keys components"]

    @classmethod
    def along(cls, track: Float[Array, "frames components"], keys: Int[Array, "keys"]) -> KeyedCurve:
        """The curve nearest to a track, through it at keys; the first frame is one, and the last if there are two."""
        if len(keys) == 1:
            return cls(keys, track[keys], np.zeros((1, track.shape[1])))
        from scipy.linalg import solveh_banded

        frames, count = np.arange(len(track)), len(keys)
        before = np.clip(np.searchsorted(keys, frames, side="right") - 1, 0, count - 2)
        begin, end, leaving, arriving = (part[:, None] for part in _basis(frames, keys, before))
        rest = track - begin * track[keys[before]] - end * track[keys[before + 1]]
        bands = np.zeros((2, count))  # of the normal equations: beside the diagonal, and on it
        np.add.at(bands[1], before, leaving[:, 0] ** 2)
        np.add.at(bands[1], before + 1, arriving[:, 0] ** 2)
        np.add.at(bands[0], before + 1, (leaving * arriving)[:, 0])
        right = USUAL * np.gradient(track[keys], keys, axis=0)
        np.add.at(right, before, leaving * rest)
        np.add.at(right, before + 1, arriving * rest)
        bands[1] += USUAL
        return cls(keys, track[keys], solveh_banded(bands, right))

    def at(self, frames: Float[Array, "n"] | Int[Array, "n"]) -> Float[Array, "n components"]:
        """The values at frames from the first key to the last."""
        if len(self.frames) == 1:
            return np.repeat(self.values, len(frames), axis=0)
        before = np.clip(np.searchsorted(self.frames, frames, side="right") - 1, 0, len(self.frames) - 2)
        begin, end, leaving, arriving = (part[:, None] for part in _basis(frames, self.frames, before))
        held = begin * self.values[before] + end * self.values[before + 1]
        return np.asarray(held + leaving * self.slopes[before] + arriving * self.slopes[before + 1])


def _basis(frames: Array, keys: Array, before: Array) -> tuple[Array, Array, Array, Array]:
    """Weights of the value before, the value after, the slope before and the slope after, at every frame."""
    span = keys[before + 1] - keys[before]
    t = (frames - keys[before]) / span
    rise, left = t * t * (3.0 - 2.0 * t), 1.0 - t
    return 1.0 - rise, rise, span * t * left * left, -span * t * t * left


@dataclass(frozen=True, eq=False)
class KeyedMotion(Savable):
    """A motion as curves through few keys: one of the root's position, and one of each joint's rotation (wxyz)."""

    source: Motion
    root: KeyedCurve
    joints: tuple[KeyedCurve, ...]

    @cached_property
    def motion(self) -> Motion:
        """The curves at every frame."""
        frames = np.arange(len(self.source))
        turns = np.stack([rotations.normalize(joint.at(frames)) for joint in self.joints], axis=1)
        return self.source.with_frames(self.root.at(frames), turns)

    @cached_property
    def deviations(self) -> tuple[float, float]:
        """How far joints are from the motion's own frames at most, in metres and radians, in the world."""
        off, turned = _apart(joint_transforms(self.motion), joint_transforms(self.source))
        return float(off.max()), float(turned.max())

    @property
    def keys(self) -> int:
        """The number of keys of all curves."""
        return sum(len(curve.frames) for curve in (self.root, *self.joints))

    @property
    def share(self) -> float:
        """The number of keys, divided by that of all curves with a key at every frame."""
        return self.keys / (len(self.source) * (1 + len(self.joints)))

    @property
    def summary(self) -> str:
        """Keys and curves, and how far they are from the motion."""
        metres, radians = self.deviations
        return (
            f"{self.keys} keys in {1 + len(self.joints)} curves, {100 * self.share:.1f} % of every frame's; "
            f"joints within {100 * metres:.2f} cm and {np.degrees(radians):.2f} degrees"
        )

    def __str__(self) -> str:
        return self.summary


def few_keys(
    motion: Motion, *, close: float = CLOSE, turned: float = TURNED, progress: Progress = silent
) -> KeyedMotion:
    """Keys for a motion, few of them: its curves leave no joint farther off than `close` metres or `turned` radians."""
    if not (close > 0.0 and turned > 0.0):
        raise InvalidValueError(
            f"keys stay within a positive distance and angle; got {close:g} m and {np.degrees(turned):g} degrees"
        )
    turns, wanted = rotations.continuous(motion.rotations), joint_transforms(motion)
    tracks = [motion.root_positions, *np.moveaxis(turns, 1, 0)]
    last = len(motion) - 1
    chosen = [{0} if np.ptp(track, axis=0).max() < STILL else {0, last} for track in tracks]
    curves = [
        KeyedCurve.along(track, np.array(sorted(keys))) for track, keys in zip(tracks, chosen, strict=True)
    ]
    for done in range(len(motion)):
        keyed = KeyedMotion(motion, curves[0], tuple(curves[1:]))
        added = _missing(keyed, wanted, turns, close, turned)
        if not added:
            break
        for number, frames in added.items():
            chosen[number] |= frames
            curves[number] = KeyedCurve.along(tracks[number], np.array(sorted(chosen[number])))
        progress(done, len(motion))
    progress(len(motion), len(motion))
    return keyed


def _apart(
    one: tuple[Array, Array], other: tuple[Array, Array]
) -> tuple[Float[Array, "frames joints"], Float[Array, "frames joints"]]:
    """Distances and angles between the joints of two motions, in the world."""
    places = np.linalg.norm(one[0] - other[0], axis=-1)
    chords = np.linalg.norm(one[1] - other[1], axis=(-2, -1)) / np.sqrt(8.0)  # the sine of half the angle
    return places, 2.0 * np.arcsin(np.minimum(chords, 1.0))


def _missing(
    keyed: KeyedMotion, wanted: tuple[Array, Array], turns: Array, close: float, turned: float
) -> dict[int, set[int]]:
    """Frames to be keyed, by curve: for every stretch in which a joint is too far off, one of what moves it there."""
    found, skeleton, curves = keyed.motion, keyed.source.skeleton, (keyed.root, *keyed.joints)
    off, angles = _apart(joint_transforms(found), wanted)
    worst = np.maximum(off / close, angles / turned)
    own = rotations.geodesic_distance(found.rotations, turns)
    way = np.linalg.norm(found.root_positions - keyed.source.root_positions, axis=-1)
    added: dict[int, set[int]] = {}
    for joint in np.flatnonzero((worst > 1.0).any(axis=0)).tolist():
        above = [joint]
        while skeleton.parents[above[-1]] >= 0:
            above.append(int(skeleton.parents[above[-1]]))
        over = np.flatnonzero(worst[:, joint] > 1.0)
        for stretch in np.split(over, np.flatnonzero(np.diff(over) > 1) + 1):
            frame = int(stretch[worst[stretch, joint].argmax()])
            arms = np.linalg.norm(wanted[0][frame, joint] - wanted[0][frame, above], axis=-1)
            shares = own[frame, above] * np.maximum(arms / close, 1.0 / turned)
            moves = int(shares.argmax())
            at_root = way[frame] / close > shares[moves]
            curve, error = (0, way) if at_root else (1 + above[moves], own[:, above[moves]])
            keys = curves[curve].frames
            after = min(int(np.searchsorted(keys, frame)), len(keys) - 1)
            begin, end = keys[max(after - 1, 0)], keys[after]
            inside = np.arange(begin + 1, end) if after else np.arange(1, len(own))
            if len(inside):
                added.setdefault(curve, set()).add(int(inside[error[inside].argmax()]))
    return added
