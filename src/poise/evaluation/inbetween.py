"""Protocol `inbetween`: poses at keys of an unseen clip in, the motion between them out, at 30 frames a second.

Windows, lengths and metrics are those of Harvey et al. 2020 ("Robust motion in-betweening", LAFAN1): ten past frames
and one target are given, or two poses alone, or a key every 15, 30 and 45 frames. L2P is the distance of all joint
positions after division by their deviations over the training clips, L2Q that of world quaternions, NPSS the difference
of their power spectra (Gopalakrishnan et al. 2019).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.animate import slow_accelerations
from poise.evaluation.report import ABOUT, Protocol, ProtocolOptions, Request, Row
from poise.evaluation.splits import Fold, read_motion
from poise.formats.tables import Range
from poise.geometry import rotations
from poise.motion.contacts import Contacts, foot_contacts, foot_slide
from poise.motion.edit import resample
from poise.motion.motion import Motion
from poise.motion.ranges import still_mask
from poise.motion.world import headings, joint_positions
from poise.priors.motion.carrying import Frames
from poise.priors.motion.layout import TURNING
from poise.priors.motion.network import shipped
from poise.priors.motion.prior import MotionPrior, interpolated
from poise.priors.prior import Prior
from poise.priors.style.prior import StylePrior
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kinematics import turns_in_world
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Skeleton
from poise.types import Array, NamedProgress, silent

FPS = 30.0
PAST, BETWEEN, PERIODS = (10, 1), (5, 15, 30, 45), (15, 30, 45)
WINDOW, APART = 56, 40  # frames: ten past ones, the longest gap and the target; between the starts of windows
LONG = 91  # frames of a window with a key every few frames
HERTZ = 10.0  # accelerations above this are more and more noise of the recording
HANDLES = ("pelvis", "head", "left_hand", "right_hand", "left_foot", "right_foot")

Answer = Callable[[Motion, Bool[Array, "frames"]], Motion]
"""From a window, of which only the given frames may be read, to the whole of it."""


@dataclass(frozen=True)
class InbetweenOptions(ProtocolOptions):
    """Which windows are tested."""

    stride: Annotated[int, Range(least=1), "test on every Nth window"] = 1
    past: Annotated[int, Range(least=0), "only the rows with so many past frames; 0: all rows"] = 0
    lafan1: Annotated[
        Path | None, "a folder with LAFAN1's BVH files: windows, statistics and joints of its benchmark"
    ] = None


@dataclass(frozen=True)
class Task:
    """Which frames of a window are given."""

    length: int
    past: int
    between: int
    every: int = 0

    @property
    def given(self) -> Bool[Array, "frames"]:
        """Per frame, whether it is given."""
        at = np.arange(self.length)
        if self.every:
            return at % self.every == 0
        return (at < self.past) | (at == self.length - 1)

    @property
    def row(self) -> Row:
        """Its columns in the report."""
        return {"past": self.past, "between": self.between, **({"every": self.every} if self.every else {})}


TASKS = (
    *(Task(past + between + 1, past, between) for past in PAST for between in BETWEEN),
    *(Task(LONG - (LONG - 1) % every, 1, every - 1, every) for every in PERIODS),
)


@dataclass(frozen=True, eq=False)
class Window:
    """A part of a clip, and what is compared."""

    motion: Motion
    contacts: Contacts
    moving: Int[Array, "moving"]
    spread: Float[Array, "moving 3"]  # of positions, over the training clips

    def cut(self, task: Task) -> Iterator[Window]:
        """The part for a task, if the window is long enough; with fewer past frames, the gap stays where it is."""
        first = 0 if task.every else PAST[0] - task.past
        if first + task.length <= len(self.motion):
            part = slice(first, first + task.length)
            yield replace(self, motion=self.motion[part], contacts=_part(self.contacts, part))

    @staticmethod
    def all_of(clip: Motion, clips: Sequence[Motion], stride: int) -> Iterator[Window]:
        """All windows of a clip, as long as the longest task where the clip is.

        The deviations come with the motion prior for joints of CMU's names, over its training clips; those of other
        skeletons are measured on the clips that are tested.
        """
        contacts, skeleton, known = foot_contacts(clip), clip.skeleton, shipped().places
        moving = np.union1d([0], np.flatnonzero(~still_mask(clips) & ~skeleton.is_end_site))
        if set(TURNING) <= set(skeleton.names) and len(known):
            spread = np.ones((len(skeleton), 3))
            spread[[skeleton.index(name) for name in TURNING]] = known
        else:
            spread = place_spread([one for one in clips if one.skeleton.same_topology(skeleton)])
        for start in range(0, len(clip) - WINDOW + 1, APART * stride):
            part = slice(start, min(start + LONG, len(clip)))
            yield Window(clip[part], _part(contacts, part), moving, spread[moving])

    @staticmethod
    def of_lafan1(test: Sequence[Motion], train: Sequence[Motion], stride: int) -> list[list[Window]]:
        """The windows of each test clip in LAFAN1's benchmark, with the deviations of its training windows."""
        joints = np.flatnonzero(~test[0].skeleton.is_end_site)
        seen = []
        for clip in train:
            places = joint_positions(clip)[:, joints]
            ahead = rotations.rotate(clip.rotations[:, 0], np.array([0.0, 1.0, 0.0]))  # of LAFAN1's hips
            turns = np.arctan2(ahead[:, 2], ahead[:, 0])
            for start in range(0, len(clip) - 50, 20):
                window = places[start : start + 50].copy()
                window[..., [0, 2]] -= window[:, :1, [0, 2]].mean(axis=0)
                about = np.array([0.0, turns[start + PAST[0] - 1], 0.0])
                seen.append(rotations.rotate(rotations.quaternion_from_expmap(about), window))
        spread = np.concatenate(seen).std(axis=0)
        return [
            [
                Window(clip[start : start + 65], _part(contacts, slice(start, start + 65)), joints, spread)
                for start in range(0, len(clip) - 65, 40 * stride)
            ]
            for clip, contacts in ((clip, foot_contacts(clip)) for clip in test)
        ]


def _part(contacts: Contacts, part: slice) -> Contacts:
    return Contacts(contacts.feet[part], contacts.points[part], contacts.floor)


@dataclass
class Sums:
    """Errors of a method on one task, gathered over windows."""

    parts: dict[str, list[Array]] = field(default_factory=dict)

    def add(self, window: Window, given: Bool[Array, "frames"], found: Motion, seconds: float) -> None:
        """Add one window."""
        true, moving, asked = window.motion, window.moving, ~given
        places, true_places = (joint_positions(one)[:, moving] for one in (found, true))
        turns, true_turns = (one.rotations[:, moving[1:]] for one in (found, true))
        world, true_world = (
            turns_in_world(one.skeleton, one.rotations)[asked][:, moving] for one in (found, true)
        )
        world = np.where(np.sum(world * true_world, -1, keepdims=True) < 0, -world, world)
        gap = (places - true_places)[asked]
        stands = window.contacts.feet & asked[:, None]
        slow, true_slow = (
            np.linalg.norm(slow_accelerations(one, HERTZ)[:, moving], axis=-1)[asked].sum()
            for one in (found, true)
        )
        kept = np.linalg.norm((places - true_places)[given], axis=-1)
        # NPSS: per feature, the power of the recording and how far the spectrum's power moved.
        power, true_power = (
            np.square(np.real(np.fft.fft(one.reshape(len(one), -1), axis=0))) for one in (world, true_world)
        )
        total = true_power.sum(0)
        share, true_share = power / np.maximum(power.sum(0), 1e-12), true_power / np.maximum(total, 1e-12)
        moved = np.abs(np.cumsum(share, 0) - np.cumsum(true_share, 0)).sum(0)
        for name, value in {
            "cm": np.linalg.norm(gap, axis=-1).mean(1),
            "angles": rotations.geodesic_distance(turns, true_turns)[asked].mean(1),
            "world": rotations.geodesic_distance(world, true_world).mean(1),
            "l2p": np.sqrt(np.square(gap / window.spread).sum((1, 2))),
            "l2q": np.sqrt(np.square(world - true_world).sum((1, 2))),
            "power": total, "moved": moved,
            "slide": foot_slide(found, window.contacts)[stands],
            "true_slide": foot_slide(true, window.contacts)[stands],
            "keys": np.atleast_1d(kept.max()),
            "slow": np.atleast_1d(slow), "true_slow": np.atleast_1d(true_slow),
            "seconds": np.atleast_1d(seconds),
        }.items():  # fmt: skip
            self.parts.setdefault(name, []).append(np.ravel(value))

    @property
    def metrics(self) -> dict[str, float]:
        """Means over all frames that were asked for."""
        all_of = {name: np.concatenate(parts) for name, parts in self.parts.items()}

        def mean(values: Array) -> float:
            return float(values.mean()) if len(values) else 0.0

        return {
            "mpjpe_cm": 100 * mean(all_of["cm"]),
            "deg_per_joint": float(np.degrees(mean(all_of["angles"]))),
            "world_deg": float(np.degrees(mean(all_of["world"]))),
            "l2p": mean(all_of["l2p"]),
            "l2q": mean(all_of["l2q"]),
            "npss": float(np.average(all_of["moved"], weights=all_of["power"])),
            "slide_cm_s": 100 * mean(all_of["slide"]),
            "slide_recorded_cm_s": 100 * mean(all_of["true_slide"]),
            "acceleration_10hz": float(all_of["slow"].sum() / all_of["true_slow"].sum()),
            "key_mm": 1000 * float(all_of["keys"].max()),
            "ms_per_window": 1000 * mean(all_of["seconds"]),
            "windows": len(all_of["seconds"]),
        }


def evaluate_inbetween(
    folds: Sequence[Fold],
    *,
    methods: Sequence[str] = (),
    options: InbetweenOptions | None = None,
    progress: NamedProgress = silent,
) -> list[Row]:
    """A row per method and task."""
    options, names = options or InbetweenOptions(), list(methods or USUAL)
    for name in names:
        if name not in METHODS:
            raise UnknownNameError("method", name, METHODS)
    tasks = [task for task in TASKS if options.past in (0, task.past) and not (options.lafan1 and task.every)]
    sums = {(name, task): Sums() for name in names for task in tasks}
    done, total = 0, len(names) * sum(len(fold.test) for fold in folds)
    for fold in folds:
        test = [resample(clip, FPS) for clip in fold.test]
        if options.lafan1:
            windows = Window.of_lafan1(test, fold.train, options.stride)
        else:
            windows = [list(Window.all_of(clip, test, options.stride)) for clip in test]
        for name in names:
            answer_on = METHODS[name](fold)
            for clip, starts in zip(test, windows, strict=True):
                progress(name, done, total)
                answer = answer_on(clip.skeleton)
                for task in tasks:
                    for cut in (own for window in starts for own in window.cut(task)):
                        begun = time.perf_counter()
                        found = answer(cut.motion, task.given)
                        sums[name, task].add(cut, task.given, found, time.perf_counter() - begun)
                done += 1
    if not all(one.parts for one in sums.values()):
        raise InvalidValueError(f"in-betweening needs clips of {LONG} frames at {FPS:g} Hz at least")
    return [{"method": name, **task.row, **one.metrics} for (name, task), one in sums.items()]


def place_spread(clips: Sequence[Motion]) -> Float[Array, "joints 3"]:
    """Deviations of joint positions over windows, each relative to its last past frame."""
    sums, squares, count = 0.0, 0.0, 0
    for clip in clips:
        places, turns = joint_positions(clip), headings(clip)
        for start in range(0, len(clip) - WINDOW + 1, APART // 2):
            origin = start + PAST[0] - 1
            about = rotations.quaternion_from_expmap(np.array([0.0, -turns[origin], 0.0]))
            floor = places[origin, 0] * np.array([1.0, 0.0, 1.0])
            seen = rotations.rotate(about, places[start : start + WINDOW] - floor)
            sums, squares, count = sums + seen.sum(0), squares + np.square(seen).sum(0), count + len(seen)
    mean = sums / max(count, 1)
    return np.sqrt(np.maximum(squares / max(count, 1) - np.square(mean), 1e-6))


# --- methods -------------------------------------------------------------------------------------------------------


def _given(window: Motion, given: Bool[Array, "frames"]) -> tuple[Array, Frames]:
    at = np.flatnonzero(given)
    return at, Frames(window.root_positions[at], window.rotations[at])


def _interpolation(_: Fold) -> Callable[[Skeleton], Answer]:
    def answer(window: Motion, given: Bool[Array, "frames"]) -> Motion:
        at, poses = _given(window, given)
        return window.with_frames(*interpolated(poses, at, len(window)))

    return lambda _skeleton: answer


def _hermite(_: Fold) -> Callable[[Skeleton], Answer]:
    """Cubic curves whose velocity at a key is the mean of those before and after it."""

    def answer(window: Motion, given: Bool[Array, "frames"]) -> Motion:
        at, poses = _given(window, given)
        steps = np.diff(at)[:, None]
        moves = np.diff(poses.roots, axis=0) / steps
        turns = rotations.expmap_from_quaternion(
            rotations.multiply(rotations.conjugate(poses.turns[:-1]), poses.turns[1:])
        )
        roots, found = window.root_positions.copy(), window.rotations.copy()

        def at_keys(speeds: Float[Array, "gaps *n"]) -> Float[Array, "keys *n"]:
            """Velocities at keys from those between them: the shorter gap weighs more."""
            weight = 1.0 / np.diff(at).reshape(-1, *(1,) * (speeds.ndim - 1))
            total = np.concatenate([weight[:1], weight[1:] + weight[:-1], weight[-1:]])
            sums = weight * speeds
            return np.concatenate([sums[:1], sums[1:] + sums[:-1], sums[-1:]]) / total

        speeds, spins = at_keys(moves), at_keys(turns / steps[..., None])
        for k in np.flatnonzero(np.diff(at) > 1):
            gap = at[k + 1] - at[k]
            t = np.arange(1, gap) / gap
            own = slice(at[k] + 1, at[k + 1])
            shape = np.stack([3 * t**2 - 2 * t**3, gap * (t - 2 * t**2 + t**3), gap * (t**3 - t**2)], -1)
            step = poses.roots[k + 1] - poses.roots[k]
            roots[own] = poses.roots[k] + shape @ np.stack([step, speeds[k], speeds[k + 1]])
            turn = np.einsum("ts,sji->tji", shape, np.stack([turns[k], spins[k], spins[k + 1]]))
            found[own] = rotations.multiply(poses.turns[k], rotations.quaternion_from_expmap(turn))
        return window.with_frames(roots, found)

    return lambda _skeleton: answer


def _motion(_: Fold) -> Callable[[Skeleton], Answer]:
    """As `poise inbetween` answers: the motion prior, and feet that stay where they stand."""
    from poise.apps.inbetweening import PoseKey, through_keys

    def answer(window: Motion, given: Bool[Array, "frames"]) -> Motion:
        keys = [PoseKey(frame / FPS, window[int(frame)]) for frame in np.flatnonzero(given)]
        return through_keys(keys, fps=FPS).motion

    return lambda _skeleton: answer


def _network(_: Fold) -> Callable[[Skeleton], Answer]:
    """The motion prior's mean alone."""

    def on(skeleton: Skeleton) -> Answer:
        prior = MotionPrior(skeleton)
        return lambda window, given: prior.filled(window, given).motion

    return on


def _paths(learn: Callable[[Fold], Prior], fold: Fold) -> Callable[[Skeleton], Answer]:
    """The paths of six handles through the keys, as `poise keyframe` solves them; keys keep their poses."""
    from poise.apps.keyframing import keyframe
    from poise.apps.keyframing_script import MODEL, HandlePath, Script, StyleChange

    prior = learn(fold)

    def on(skeleton: Skeleton) -> Answer:
        own = prior.on_body(skeleton)
        handles = [Handle(skeleton.names[skeleton.index(role)]) for role in HANDLES]

        def answer(window: Motion, given: Bool[Array, "frames"]) -> Motion:
            at = np.flatnonzero(given)
            places = joint_positions(window)[at]
            unturned, kinds = np.full((len(at), 3), np.nan), ("none",) * len(at)
            paths = tuple(
                HandlePath(h, at / FPS, places[:, skeleton.index(h.joint)], unturned, kinds) for h in handles
            )
            script = Script("", (len(window) - 1) / FPS, FPS, paths, (), (StyleChange(name=MODEL),), {})
            found = keyframe(own, script).motion
            roots, turns = found.root_positions.copy(), found.rotations.copy()
            roots[at], turns[at] = window.root_positions[at], window.rotations[at]
            return window.with_frames(roots, turns)

        return answer

    return on


METHODS: dict[str, Callable[[Fold], Callable[[Skeleton], Answer]]] = {
    "interpolation": _interpolation,
    "hermite": _hermite,
    "keyframe": partial(_paths, lambda _fold: UniversalPrior()),
    "style": partial(_paths, lambda fold: StylePrior.learn(fold.train)),
    "mean": _network,
    "motion": _motion,
}
USUAL = ("interpolation", "hermite", "motion")


def lafan1(folder: Path) -> Fold:
    """LAFAN1's benchmark: subjects 1 to 4 for training, subject 5 for testing."""
    files = sorted(folder.glob("*_subject[1-5].bvh"))
    train, test = (
        tuple(read_motion(file) for file in files if file.stem.endswith("5") == last)
        for last in (False, True)
    )
    if not (train and test):
        raise InvalidValueError(
            f"{folder} has no files such as walk1_subject5.bvh of training and test subjects"
        )
    return Fold(train, test)


def _run(request: Request, progress: NamedProgress) -> list[Row]:
    options, methods = request.options, request.methods
    folds = [lafan1(options.lafan1)] if options.lafan1 else request.folds()
    return evaluate_inbetween(folds, methods=methods, options=options, progress=progress)


PROTOCOL = Protocol(
    "inbetween",
    ABOUT["inbetween"],
    _run,
    methods=tuple(METHODS),
    Options=InbetweenOptions,
    untrained=("", "interpolation", "hermite", "keyframe", "mean", "motion"),
)
