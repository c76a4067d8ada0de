"""The phase of a cyclic motion: an angle that grows by one turn per cycle, continuous over the frames.

For gaits it follows the feet: the left foot lands at whole turns, the right one at half turns. If the feet do not land
in turn, it is the angle of the analytic signal (Gabor 1946) of the body's movement at its dominant frequency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Shaped

from poise.motion.contacts import Contacts, foot_contacts
from poise.motion.edit import root_relative
from poise.motion.motion import Motion
from poise.motion.world import joint_positions
from poise.skeleton.skeleton import read_only
from poise.types import Array

_SHORTEST_STEP = 0.2  # seconds
_LEAST_SHARE = 0.15  # share of a movement's power at its dominant frequency above which it has a rhythm


@dataclass(frozen=True, eq=False)
class Phase:
    """Radians per frame, not decreasing; their source; cycles per second. Motions without rhythm have zeros."""

    radians: Float[Array, "frames"]
    source: Literal["contacts", "frequency", "none"]
    frequency: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radians", read_only(self.radians))


def phase(motion: Motion, *, contacts: Contacts | None = None) -> Phase:
    """The motion's phase, from its steps if the feet land in turn, else from its dominant frequency."""
    if {"left_foot", "right_foot"} <= set(motion.skeleton.roles):
        contacts = foot_contacts(motion) if contacts is None else contacts
        from_steps = phase_from_contacts(contacts, motion.fps)
        if from_steps is not None:
            return from_steps
    return phase_from_frequency(motion)


def phase_from_contacts(contacts: Contacts, fps: float) -> Phase | None:
    """Linear interpolation between landings; None unless at least two landings alternate between left and right."""
    landings = [(frame, side) for side in (0, 1) for frame in contacts.landings(side).tolist()]
    landings.sort()
    frames, sides = np.array([f for f, _ in landings]), np.array([s for _, s in landings])
    if len(frames) < 2 or np.mean(sides[1:] != sides[:-1]) < 0.75:
        return None
    # As in jumps, feet land in pairs if every other interval is far shorter than its neighbours, or than a step.
    intervals = np.diff(frames).astype(np.float64)
    if len(intervals) == 1:
        in_pairs = intervals[0] < _SHORTEST_STEP * fps
    else:
        even, odd = intervals[::2].mean(), intervals[1::2].mean()
        in_pairs = min(even, odd) < 0.2 * max(even, odd)
    if in_pairs:
        return None
    turns = np.where(np.diff(sides) == 0, 1.0, 0.5)
    angles = 2.0 * np.pi * (0.5 * sides[0] + np.concatenate([[0.0], np.cumsum(turns)]))
    radians = phase_through(np.arange(len(contacts.feet)), frames, angles)
    cycles = (angles[-1] - angles[0]) / (2.0 * np.pi)
    return Phase(radians, "contacts", float(cycles * fps / (frames[-1] - frames[0])))


def phase_from_frequency(motion: Motion) -> Phase:
    """The angle of the strongest rhythm of the joints' movement about the root."""
    frames = len(motion)
    # The first principal component of the joint positions about the root, without its slow drift.
    local = joint_positions(root_relative(motion).motion).reshape(frames, -1)
    local = local - local.mean(axis=0)
    time = np.linspace(-1.0, 1.0, frames)
    steady = local - np.outer(time, time @ local / max(float(time @ time), 1e-12))
    signal: Array = steady @ np.linalg.eigh(steady.T @ steady)[1][:, -1]
    signal = signal if np.abs(signal).max() > 1e-6 else np.zeros(frames)
    spectrum = np.fft.rfft(signal * np.hanning(frames))
    power = np.abs(spectrum) ** 2
    power[:1] = 0.0
    peak = int(np.argmax(power)) if len(power) > 1 else 0
    around = power[max(peak - 1, 1) : peak + 2].sum()
    if peak == 0 or power.sum() == 0 or around < _LEAST_SHARE * power.sum():
        return Phase(np.zeros(frames), "none", 0.0)
    # The analytic signal in a band about that frequency, half an octave to either side.
    number = np.arange(frames)
    band = (number >= max(1, peak / np.sqrt(2.0))) & (number <= max(peak * np.sqrt(2.0), peak + 1))
    analytic = np.fft.ifft(np.where(band & (number < frames / 2), 2.0 * np.fft.fft(signal), 0.0))
    angle = np.unwrap(np.angle(analytic))
    rising = np.maximum.accumulate(angle - angle[0])
    start, end = frames // 4, frames - 1 - frames // 4  # the ends of a band-passed signal are less reliable
    turns = (rising[end] - rising[start]) / (2.0 * np.pi)
    return Phase(rising, "frequency", float(turns * motion.fps / max(end - start, 1)))


def phase_through(
    at: Shaped[Array, "frames"], times: Shaped[Array, "keys"], radians: Float[Array, "keys"]
) -> Float[Array, "frames"]:
    """Linear interpolation through the phases at two or more times, extrapolated at both ends."""
    inside = np.interp(at, times, radians)
    first = (radians[1] - radians[0]) / (times[1] - times[0])
    last = (radians[-1] - radians[-2]) / (times[-1] - times[-2])
    before, after = np.minimum(at - times[0], 0), np.maximum(at - times[-1], 0)
    extended: Array = inside + before * first + after * last
    return extended
