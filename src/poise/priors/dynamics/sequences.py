"""Training data of a motion model: features per frame, the root's among them, phases, activities, transitions.

The root's features are its height and its steps over the floor, relative to the body. Its rotation is split into a yaw
about the vertical and the smallest tilt from upright (swing and twist), so that the world's up in the root's frame and
the yaw determine the rotation. From frame to frame the root steps left and forward and turns. Steps are per 1/30 s, so
that recordings of any frame rate agree.

The rhythm of clips (activity, phase and transition points) can be inspected and corrected. A rhythm file is TOML,
written by `poise phase` and read by `poise learn --rhythm`; times are in seconds.

[clips.walk_1]
activity = "walk"
phase = [[0.12, 0.0], [0.63, 0.5], [1.15, 1.0]]     # [seconds, turns]; linear in between
transitions = { left = [0.12, 1.15], right = [0.63] }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError, UnknownNameError
from poise.formats.tables import FieldError, Range, read_declared
from poise.geometry import rotations
from poise.motion.contacts import Contacts, foot_contacts
from poise.motion.edit import resample, retarget
from poise.motion.motion import Motion
from poise.motion.phase import phase, phase_from_frequency, phase_through
from poise.priors.latent.model import REFERENCE_SECONDS, Features, TrainingFeatures
from poise.priors.poses import pose_space_of
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.measure import leg_length
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton, read_only
from poise.types import Array

ROOT_FEATURES = 4  # height, step to the left, step forward, turn
RATE = 30.0  # frames per second of the training data
FLIGHT = 0.15  # share of a clip's frames with both feet off the floor above which it is a run
FEWEST_FRAMES = 4  # shortest sequence for second-order dynamics
TOGETHER = 0.5  # correlation of the feet's contacts above which they leave and land together
WALK, RUN, JUMP, OTHER = "walk", "run", "jump", "other"
LEAST_STEP = 1e-4  # seconds: smallest interval between two phase keys, the last digit written
_UP = np.array([0.0, 1.0, 0.0])

# --- the root ---------------------------------------------------------------------------------------------------------


def yaws(quaternions: Float[Array, "*frames 4"]) -> Float[Array, "*frames"]:
    """The yaw about the vertical of each rotation, in radians from -pi to pi."""
    angle = 2.0 * np.arctan2(quaternions[..., 2], quaternions[..., 0])
    return np.asarray(np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi)


def yaw_slope(quaternion: Float[Array, "4"]) -> Float[Array, "3"]:
    """d yaw / d w, where w rotates the root in its own frame."""
    w, x, y, z = quaternion
    in_w, in_y = -0.5 * np.array([x, y, z]), 0.5 * np.array([z, w, -x])
    return np.asarray(2.0 * (w * in_y - y * in_w) / max(w * w + y * y, 1e-12))


def rotation_from(up: Float[Array, "*frames 3"], yaw: Float[Array, "*frames"]) -> Float[Array, "*frames 4"]:
    """The root rotation with this world up direction in its frame and this yaw."""
    tilt = rotations.quaternion_between(up, np.broadcast_to(_UP, up.shape))
    turn = rotations.quaternion_from_expmap(np.multiply.outer(yaw, _UP))
    return rotations.multiply(turn, tilt)


def root_features(q: Float[Array, "frames size"], fps: float) -> Float[Array, "frames 4"]:
    """Height and step of every frame; the last frame repeats the previous step."""
    yaw = yaws(q[:, 3:7])
    steps = np.zeros((len(q), 3))
    if len(q) > 1:
        sine, cosine = np.sin(yaw[:-1]), np.cos(yaw[:-1])
        x, z = np.diff(q[:, [0, 2]], axis=0).T
        steps[:-1, :2] = np.stack([cosine * x - sine * z, sine * x + cosine * z], axis=-1)
        steps[:-1, 2] = np.remainder(np.diff(yaw) + np.pi, 2.0 * np.pi) - np.pi
        steps[-1] = steps[-2]
    return np.column_stack([q[:, 1], steps * (fps * REFERENCE_SECONDS)])


def root_path(
    features: Float[Array, "frames 4"], fps: float, *, at: tuple[float, float] = (0.0, 0.0), yaw: float = 0.0
) -> tuple[Float[Array, "frames 3"], Float[Array, "frames"]]:
    """Root positions and yaws from the steps, starting at a position and a yaw."""
    steps = features[:-1, 1:] / (fps * REFERENCE_SECONDS)
    turned = yaw + np.concatenate([[0.0], np.cumsum(steps[:, 2])])
    sine, cosine = np.sin(turned[:-1]), np.cos(turned[:-1])
    left, forward = steps[:, :2].T
    moves = np.stack([cosine * left + sine * forward, cosine * forward - sine * left], axis=-1)
    gone = np.cumsum(moves, axis=0)
    ground = np.asarray(at) + np.concatenate([np.zeros((1, 2)), gone])
    return np.column_stack([ground[:, 0], features[:, 0], ground[:, 1]]), turned


def poses_from_features(
    space: PoseSpace,
    features: Float[Array, "frames features"],
    fps: float,
    *,
    at: tuple[float, float] = (0.0, 0.0),
    yaw: float = 0.0,
) -> Float[Array, "frames size"]:
    """Pose vectors from exponential maps, the world's up and root features, starting at a position and a yaw."""
    maps = space.size - ROOT_SIZE
    q = np.empty((len(features), space.size))
    q[:, ROOT_SIZE:] = features[:, :maps]
    q[:, :3], turned = root_path(features[:, -ROOT_FEATURES:], fps, at=at, yaw=yaw)
    up = features[:, maps : maps + 3]
    q[:, 3:ROOT_SIZE] = rotation_from(up / np.linalg.norm(up, axis=1, keepdims=True), turned)
    return q


def root_jacobians(
    first: Float[Array, "size"], second: Float[Array, "size"], fps: float
) -> tuple[Float[Array, "4 6"], Float[Array, "4 6"]]:
    """Jacobians of a frame's root features by the root's degrees of freedom at that frame and at the next."""
    rate = fps * REFERENCE_SECONDS
    own, after = np.zeros((ROOT_FEATURES, ROOT_FREEDOMS)), np.zeros((ROOT_FEATURES, ROOT_FREEDOMS))
    yaw = float(yaws(first[3:7]))
    sine, cosine = np.sin(yaw), np.cos(yaw)
    gone = second[[0, 2]] - first[[0, 2]]
    turn = np.array([[cosine, -sine], [sine, cosine]])
    own[0, 1] = 1.0
    own[1:3, [0, 2]], after[1:3, [0, 2]] = -rate * turn, rate * turn
    in_yaw = rate * (np.array([[-sine, -cosine], [cosine, -sine]]) @ gone)
    slope = yaw_slope(first[3:7])
    own[1:3, 3:] = np.outer(in_yaw, slope)
    own[3, 3:], after[3, 3:] = -rate * slope, rate * yaw_slope(second[3:7])
    return own, after


# --- clips ------------------------------------------------------------------------------------------------------------


class Clips:
    """Consecutive sequences of frames, each with one activity."""

    lengths: tuple[int, ...]
    activities: tuple[str, ...]

    @cached_property
    def sequence_of(self) -> Int[Array, "frames"]:
        """The number of the sequence that each frame belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def activity_of(self) -> Int[Array, "frames"]:
        """The index in `activity_names` of each frame's activity."""
        numbers = np.array([self.activity_names.index(name) for name in self.activities])
        return np.asarray(numbers[self.sequence_of])

    @cached_property
    def activity_names(self) -> tuple[str, ...]:
        """The distinct activities, in order of first appearance."""
        return tuple(dict.fromkeys(self.activities))

    def bounds(self) -> list[tuple[int, int]]:
        """First frame and end of every sequence."""
        ends = np.cumsum(self.lengths)
        return [(int(end - length), int(end)) for end, length in zip(ends, self.lengths, strict=True)]


@dataclass(frozen=True, eq=False)
class LearnedFrames(Clips):
    """The description of its training frames that a model keeps."""

    lengths: tuple[int, ...]
    activities: tuple[str, ...]
    phases: Mapping[str, Float[Array, "frames"]]
    transitions: tuple[Int[Array, "_points"], ...]


@dataclass(frozen=True, eq=False)
class Sequences(Clips, TrainingFeatures):
    """Frames of several clips, one after the other, with phases, activities and transitions.

    Features are the exponential maps, the world's up in the root's frame, and the root's height and steps.
    """

    space: PoseSpace
    y: Float[Array, "frames features"]
    lengths: tuple[int, ...]
    activities: tuple[str, ...]
    phases: Mapping[str, Float[Array, "frames"]] = field(default_factory=dict)
    transitions: tuple[Int[Array, "_points"], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", read_only(self.y))
        if sum(self.lengths) != len(self.y) or len(self.activities) != len(self.lengths):
            raise InvalidValueError(
                f"{len(self.y)} frames cannot be sequences of {self.lengths} frames with activities {self.activities}"
            )
        if min(self.lengths) < FEWEST_FRAMES:
            raise InvalidValueError(
                f"a motion model needs clips of at least {FEWEST_FRAMES / RATE:.2f} s; the shortest has "
                f"{min(self.lengths)} frames at {RATE:g} Hz"
            )
        for name, radians in self.phases.items():
            if radians.shape != (len(self.y),) or not np.all(np.isfinite(radians)):
                raise InvalidValueError(
                    f"the phase {name!r} needs {len(self.y)} finite angles, one per frame"
                )

    @cached_property
    def features(self) -> Features:  # type: ignore[override]
        """The features that depend on a single pose."""
        return Features(self.space, up=True, velocity=False)

    @cached_property
    def scaled(self) -> Float[Array, "frames varying"]:
        """The features scaled to unit variance, for distances between poses."""
        return np.asarray(self.centred / self.centred.std(axis=0))

    @cached_property
    def times(self) -> Float[Array, "frames"]:
        """Frame numbers with wide gaps between sequences, so that their times do not overlap."""
        return np.arange(len(self.y)) + 1000.0 * self.sequence_of


def sequences_of(
    motions: Sequence[Motion],
    *,
    activities: Sequence[str] | None = None,
    phases: Sequence[Float[Array, "_frames"]] | None = None,
    transitions: Sequence[Int[Array, "_points"]] | None = None,
) -> Sequences:
    """Clips of one topology at 30 frames a second, with phases, activities and transitions detected or given.

    Phases are given per clip and frame, transitions as sets of frame numbers over all clips, both at 30 Hz.
    """
    space = pose_space_of(motions)
    body, bodies = space.skeleton, list(motions)
    if leg_length(body) > 0.0:  # on one body, with root travel scaled to its legs
        bodies = [retarget(motion, body, keep_floor=_has_feet(body)) for motion in motions]
    standing = [contacts_in_clip(motion) for motion in bodies]
    clips = [resample(motion, RATE) for motion in bodies]
    q = [space.q_from_frames(clip.root_positions, clip.rotations) for clip in clips]
    features = Features(space, up=True, velocity=False)
    y = np.concatenate([np.hstack([features.of_frames(one, RATE), root_features(one, RATE)]) for one in q])
    found = []
    for motion, own, clip in zip(bodies, standing, clips, strict=True):
        radians = phase(motion, contacts=own).radians
        seconds = np.arange(len(radians)) / motion.fps
        found.append(np.interp(np.arange(len(clip)) / RATE, seconds, radians))
    rhythm = [phase_from_frequency(clip).radians for clip in clips]
    named = activities or [activity_in(contacts) for contacts in standing]
    if len(named) != len(clips):
        raise InvalidValueError(f"{len(clips)} clips need as many activities; got {len(named)}")
    lengths = tuple(len(clip) for clip in clips)
    known = {
        "phase": np.concatenate(found if phases is None else phases), "frequency": np.concatenate(rhythm)
    }  # fmt: skip
    if transitions is None:
        transitions = landings(standing, [motion.fps for motion in bodies], lengths)
    return Sequences(space, y, lengths, tuple(named), known, tuple(transitions))


def count_bodies(motions: Sequence[Motion]) -> int:
    """The number of bodies with different limb lengths in the clips."""
    return len({motion.skeleton.offsets.tobytes() for motion in motions})


def contacts_in_clip(motion: Motion) -> Contacts | None:
    """The foot contacts; None for a body without feet."""
    return foot_contacts(motion, brief=True) if _has_feet(motion.skeleton) else None


def activity_in(contacts: Contacts | None) -> str:
    """Walk or run if the feet stand in turn (run with flight); jump if they land together.

    Other if there are no feet, or if neither is the case.
    """
    if contacts is None or np.any(contacts.feet.std(axis=0) == 0.0):
        return OTHER
    together = float(np.corrcoef(contacts.feet.T)[0, 1])
    if together > 0.0:
        return JUMP if together > TOGETHER else OTHER
    return RUN if np.mean(~contacts.feet.any(axis=1)) > FLIGHT else WALK


def landings(
    standing: Sequence[Contacts | None], rates: Sequence[float], lengths: Sequence[int]
) -> tuple[Int[Array, "_points"], ...]:
    """Landing frames of the left foot, and of the right foot, over all clips.

    Contacts are at the clips' own frame rates; frames are numbered over the clips at 30 Hz, of these lengths.
    """
    sets: list[list[int]] = [[], []]
    start = 0
    for contacts, fps, length in zip(standing, rates, lengths, strict=True):
        for side in (0, 1) if contacts is not None else ():
            down = contacts.landings(side) * (RATE / fps)  # type: ignore[union-attr]
            sets[side] += [start + min(round(frame), length - 1) for frame in down]
        start += length
    return tuple(np.array(points, dtype=np.int64) for points in sets if points)


def _has_feet(skeleton: Skeleton) -> bool:
    return {"left_foot", "right_foot"} <= set(skeleton.roles)


# --- rhythms ----------------------------------------------------------------------------------------------------------


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
