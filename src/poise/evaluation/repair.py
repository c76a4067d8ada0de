"""Protocol `repair`: recordings damaged in six ways in, mended motions out, at 30 frames a second.

Every damage is one that tools leave behind: `noise` of a detector, a path that slides over the floor, a body that sinks
into it, `penetration` for moments, `dropped` frames in which the last pose stands, and poses at 12 Hz in a clip of 30.
Errors are distances of all joints from the recording, in the world. The slide is the speed of feet in the recording's
contacts. A contact is lost if no frame of it is one in the mended motion. `damaged` does nothing, `smoothed` is a mean
over a few frames. Settings of `repair` are chosen on the split `choice` alone; `strangers` is for reporting.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.ndimage import gaussian_filter1d

from poise.apps.repairing import repair
from poise.errors import UnknownNameError
from poise.evaluation.report import ABOUT, Protocol, ProtocolOptions, Request, Row
from poise.formats.tables import Range
from poise.geometry import rotations
from poise.motion.contacts import foot_contacts, foot_slide
from poise.motion.edit import resample
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.motion.world import joint_positions
from poise.types import Array, NamedProgress

FPS = 30.0
SHORTEST, LONGEST = 60, 300  # frames of a clip
NOISE_TURN, NOISE_WAY = np.radians(2.0), 0.005  # of every joint; metres, of the root
SLIDE, SLIDE_OVER = 0.2, 0.5  # metres a second, in a direction that changes within these seconds
SINK = 0.1  # metres at the end of a clip
PUSH, PUSH_OVER, PUSHES_EVERY = 0.06, 0.6, 2.0  # metres, seconds
DROP, DROPS_EVERY = 0.3, 1.5  # seconds
SLOW = 12.0  # Hz
SMOOTH = 1.5  # frames

Damage = Callable[[Motion, np.random.Generator], Motion]


def noise(clip: Motion, draw: np.random.Generator) -> Motion:
    """White noise on every joint, and on the root."""
    turns = rotations.quaternion_from_expmap(draw.normal(0.0, NOISE_TURN, (*clip.rotations.shape[:2], 3)))
    ways = draw.normal(0.0, NOISE_WAY, clip.root_positions.shape)
    return clip.with_frames(clip.root_positions + ways, rotations.multiply(clip.rotations, turns))


def slide(clip: Motion, draw: np.random.Generator) -> Motion:
    """A path that drifts over the floor."""
    speed = gaussian_filter1d(draw.normal(size=(len(clip), 2)), SLIDE_OVER * clip.fps, axis=0)
    speed *= SLIDE / np.sqrt(np.mean(np.sum(speed**2, axis=1)))
    roots = clip.root_positions.copy()
    roots[:, [0, 2]] += np.cumsum(speed, axis=0) / clip.fps
    return clip.with_frames(roots, clip.rotations)


def sinking(clip: Motion, _draw: np.random.Generator) -> Motion:
    """A body that sinks through the floor."""
    roots = clip.root_positions.copy()
    roots[:, 1] -= np.linspace(0.0, SINK, len(clip))
    return clip.with_frames(roots, clip.rotations)


def penetration(clip: Motion, draw: np.random.Generator) -> Motion:
    """Moments in which the body is pushed into the floor."""
    roots, at = clip.root_positions.copy(), np.arange(len(clip)) / clip.fps
    for middle in np.arange(draw.uniform(0.3, 1.0), at[-1], PUSHES_EVERY):
        roots[:, 1] -= PUSH * np.exp(-0.5 * ((at - middle) / (0.3 * PUSH_OVER)) ** 2)
    return clip.with_frames(roots, clip.rotations)


def dropped(clip: Motion, draw: np.random.Generator) -> Motion:
    """Moments in which the last pose stands."""
    at = np.arange(len(clip))
    for begin in np.arange(draw.uniform(0.2, 1.0), len(clip) / clip.fps - DROP - 0.1, DROPS_EVERY):
        first = round(begin * clip.fps)
        at[first : first + round(DROP * clip.fps)] = first
    return clip.with_frames(clip.root_positions[at], clip.rotations[at])


def slow(clip: Motion, _draw: np.random.Generator) -> Motion:
    """Poses at 12 Hz, each of which stands until the next."""
    at = np.floor(np.floor(np.arange(len(clip)) * SLOW / clip.fps) * clip.fps / SLOW).astype(int)
    return clip.with_frames(clip.root_positions[at], clip.rotations[at])


DAMAGES: dict[str, Damage] = {
    "noise": noise, "slide": slide, "sinking": sinking, "penetration": penetration, "dropped": dropped, "12 Hz": slow,
}  # fmt: skip


def smoothed(clip: Motion) -> Motion:
    """The mean over a few frames, which anyone can have."""
    turns = rotations.normalize(gaussian_filter1d(rotations.continuous(clip.rotations), SMOOTH, axis=0))
    return clip.with_frames(gaussian_filter1d(clip.root_positions, SMOOTH, axis=0), turns)


METHODS: dict[str, Callable[[Motion], Motion]] = {
    "damaged": lambda clip: clip,
    "smoothed": smoothed,
    "repair": lambda clip: repair(clip).motion,
}


@dataclass(frozen=True)
class RepairOptions(ProtocolOptions):
    """Which clips are damaged."""

    stride: Annotated[int, Range(least=1), "test on every Nth clip"] = 1


def run(request: Request, progress: NamedProgress) -> list[Row]:
    """Damage every test clip, mend it by every method, and compare."""
    chosen = list(request.methods) or ["damaged", "repair"]
    for name in chosen:
        if name not in METHODS:
            raise UnknownNameError("method", name, METHODS)
    clips = [part for fold in request.folds() for clip in fold.test for part in _tested(clip)]
    clips = clips[:: request.options.stride]
    rows, total = list[Row](), len(clips) * len(DAMAGES)
    for number, (name, damage) in enumerate(DAMAGES.items()):
        sums = {method: list[Array]() for method in chosen}
        for index, clip in enumerate(clips):
            progress(name, number * len(clips) + index, total)
            broken = damage(clip, np.random.default_rng(zlib.crc32(f"{name} {clip.name} {index}".encode())))
            for method in chosen:
                start = time.perf_counter()
                found = METHODS[method](broken)
                spent = (time.perf_counter() - start) / len(clip)
                sums[method].append(np.array([*measured(found, broken, clip), spent]))
        for method in chosen:
            error, before, slid, usual, lost, contacts, jitter, spent = np.mean(sums[method], axis=0).tolist()
            rows.append({
                "method": method, "damage": name, "mpjpe_cm": 100 * error, "of_damaged": error / before,
                "slide_cm_s": 100 * slid, "of_recording": slid / usual, "lost": lost / max(contacts, 1e-9),
                "jitter": jitter, "ms_per_frame": 1e3 * spent,
            })  # fmt: skip
    progress("done", total, total)
    return rows


def measured(found: Motion, broken: Motion, clip: Motion) -> tuple[float, ...]:
    """Errors in metres, now and before; slides in metres a second, now and recorded; contacts lost and all; jitter."""
    true, contacts = joint_positions(clip), foot_contacts(clip)
    error, before = (
        float(np.linalg.norm(joint_positions(one) - true, axis=-1).mean()) for one in (found, broken)
    )
    slid, usual = (float(foot_slide(one, contacts)[contacts.feet].mean()) for one in (found, clip))
    now = foot_contacts(found).feet
    stances = [(side, stance) for side in range(2) for stance in runs(contacts.feet[:, side])]
    lost = sum(not now[stance, side].any() for side, stance in stances)
    jolts = [
        float(np.linalg.norm(np.diff(joint_positions(one), n=2, axis=0), axis=-1).mean())
        for one in (found, clip)
    ]
    return error, before, slid, usual, lost, len(stances), jolts[0] / jolts[1]


def _tested(clip: Motion) -> list[Motion]:
    """The clip at 30 Hz, cut to a length, if its feet stand in it."""
    clip = clip if abs(clip.fps - FPS) < 1e-6 else resample(clip, FPS)
    clip = clip[:LONGEST]
    stands = len(clip) >= SHORTEST and foot_contacts(clip).feet.any()
    return [clip] if stands else []


PROTOCOL = Protocol(
    name="repair", about=ABOUT["repair"], run=run, methods=tuple(METHODS), Options=RepairOptions,
    untrained=tuple(METHODS),
)  # fmt: skip
