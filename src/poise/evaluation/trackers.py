"""Protocol `trackers`: one to six oriented points of an unseen clip in, causally, the whole body out, at 30 Hz.

Head and hands are given, then the feet too, then the pelvis too, as positions and rotations. Metrics are those of
AvatarPoser (Jiang et al. 2022): MPJRE, MPJPE and MPJVE. In a second run, one tracker after the other is lost for some
time, and the frames of the loss are compared with the same frames without it. A stretch's first frames are only seen.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.capture.trackers import JOINT, TrackerPerformance
from poise.errors import InvalidValueError, PoiseError, UnknownNameError
from poise.evaluation.report import ABOUT, Protocol, ProtocolOptions, Request, Row
from poise.evaluation.splits import EVERY_LEARNED, Fold
from poise.formats.tables import Range
from poise.geometry import rotations
from poise.motion.edit import resample
from poise.motion.motion import Motion
from poise.motion.ranges import still_mask
from poise.motion.recordings import find_file
from poise.motion.world import joint_transforms
from poise.priors.local.prior import LocalPrior
from poise.priors.universal.prior import UniversalPrior
from poise.priors.universal.recordings import ARCHIVE, motion_of, read_table
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.constraints import Constraint, Orientation, Position
from poise.solvers.solve import Follower, Model, Solver
from poise.types import Array, NamedProgress, silent

FPS = 30.0
TRACKED = {
    "head and hands": ("head", "left_hand", "right_hand"),
    "feet too": ("head", "left_hand", "right_hand", "left_foot", "right_foot"),
    "pelvis too": ("pelvis", "head", "left_hand", "right_hand", "left_foot", "right_foot"),
}
STRETCH, WARM = 150, 48  # frames that are tracked in a row, and the first of them, which do not count
LOST = 60  # the frame at which a tracker is lost
WIDE = 2.7955  # deviations per axis: the radius of a 95 % region in three dimensions
FEET = ("left_foot", "right_foot", "left_toes", "right_toes")
SPLIT_FILE = "trackers-split.tsv"

Step = Callable[[Array, bool], tuple[Pose, Array] | None]
"""From positions and rotations of the trackers (NaN if lost) to a pose, and the radii of the joints' 95 % regions.

Frames that are not wanted are only seen.
"""


@dataclass(frozen=True)
class TrackersOptions(ProtocolOptions):
    """Which frames are tested, and for how long a tracker is lost."""

    stride: Annotated[int, Range(least=1), "test on every Nth stretch of five seconds"] = 1
    dropout: Annotated[float, Range(least=0.2, most=2.0), "seconds for which a tracker is lost"] = 1.0


@dataclass
class TrackerSums:
    """Errors of a method with some trackers, gathered over stretches."""

    parts: dict[str, list[Array]] = field(default_factory=dict)

    def add(self, **values: Array | float) -> None:
        """Add the values of a stretch."""
        for name, value in values.items():
            self.parts.setdefault(name, []).append(np.ravel(value))

    @property
    def metrics(self) -> dict[str, float]:
        """Means over all frames."""
        all_of = {name: np.concatenate(parts) for name, parts in self.parts.items()}
        means = {name: float(values.mean()) for name, values in all_of.items() if len(values)}
        inside = {"held_95": means["inside"]} if "inside" in means else {}
        lost, kept = means["lost"], means["kept"]
        return {
            "mpjre_deg": float(np.degrees(means["turn"])),
            "mpjpe_cm": 100 * means["place"],
            "mpjve_cm_s": 100 * means["speed"],
            "feet_cm": 100 * means["feet"],
            "tracker_mm": 1000 * float(all_of["missed"].max()),
            "jitter": float(all_of["shake"].sum() / all_of["true_shake"].sum()),
            **inside,
            "lost_cm": 100 * lost,
            "kept_cm": 100 * kept,
            "lost_costs": lost / kept - 1.0,
            "ms_per_frame": 1000 * means["seconds"],
            "frames": len(all_of["seconds"]),
        }


@dataclass(frozen=True, eq=False)
class Stretch:
    """A part of a clip, with its joints in the world."""

    motion: Motion
    places: Float[Array, "frames joints 3"]
    turns: Float[Array, "frames joints 4"]
    moving: Int[Array, "moving"]

    @staticmethod
    def all_of(clip: Motion, clips: Sequence[Motion]) -> Iterator[Stretch]:
        """All stretches of a clip, one after the other."""
        moving = np.union1d([0], np.flatnonzero(~still_mask(clips) & ~clip.skeleton.is_end_site))
        for start in range(0, len(clip) - STRETCH + 1, STRETCH):
            part = clip[start : start + STRETCH]
            places, axes = joint_transforms(part)
            yield Stretch(part, places, rotations.quaternion_from_matrix(axes), moving)

    def run(self, step: Step, roles: Sequence[str], lost: Bool[Array, "frames trackers"]) -> Tracked:
        """The frames after the first ones, which are only seen, and up to the end of a loss."""
        at = [self.motion.skeleton.index(role) for role in roles]
        poses, regions, seconds = [], [], []
        for number, gone in enumerate(lost):
            values = np.concatenate([self.places[number, at], self.turns[number, at]], axis=-1)
            begun = time.process_time()
            found = step(np.where(gone[:, None], np.nan, values), number >= WARM)
            if found is not None:
                seconds.append(time.process_time() - begun)
                poses.append(found[0])
                regions.append(found[1])
        motion = Motion.of_poses(poses, fps=FPS)
        return Tracked(motion, joint_transforms(motion)[0], np.stack(regions), np.array(seconds))


@dataclass(frozen=True, eq=False)
class Tracked:
    """The poses of a stretch."""

    motion: Motion
    places: Float[Array, "frames joints 3"]
    radii: Float[Array, "frames joints"]
    seconds: Float[Array, "frames"]


def evaluate_trackers(
    folds: Sequence[Fold],
    *,
    methods: Sequence[str] = (),
    options: TrackersOptions | None = None,
    progress: NamedProgress = silent,
) -> list[Row]:
    """A row per method and set of trackers."""
    options, names = options or TrackersOptions(), list(methods or USUAL)
    for name in names:
        if name not in METHODS:
            raise UnknownNameError("method", name, METHODS)
    sums = {(name, trackers): TrackerSums() for name in names for trackers in TRACKED}
    tests = [[resample(clip, FPS) for clip in fold.test] for fold in folds]
    stretches = [[one for clip in test for one in Stretch.all_of(clip, test)] for test in tests]
    chosen = [own[:: options.stride] for own in stretches]
    if not any(chosen):
        raise InvalidValueError(f"tracking needs clips of {STRETCH} frames at {FPS:g} Hz at least")
    done, total = 0, len(sums) * sum(map(len, chosen))
    for fold, own in zip(folds, chosen, strict=True):
        for name in names:
            step_on = METHODS[name](fold)
            for number, stretch in enumerate(own):
                for trackers, roles in TRACKED.items():
                    progress(f"{name}, {trackers}", done, total)
                    _add(
                        sums[name, trackers],
                        stretch,
                        partial(step_on, stretch.motion.skeleton),
                        roles,
                        number,
                        options,
                    )
                    done += 1
    return [{"method": name, "trackers": trackers, **one.metrics} for (name, trackers), one in sums.items()]


def _add(
    sums: TrackerSums, stretch: Stretch, make: Callable[[Sequence[str]], Step], roles: Sequence[str], number: int,
    options: TrackersOptions,
) -> None:  # fmt: skip
    """Add a stretch, without and with a loss; `number` chooses the tracker that is lost."""
    end = LOST + round(options.dropout * FPS)
    none = np.zeros((STRETCH, len(roles)), dtype=np.bool_)
    some = none[:end].copy()
    some[LOST:, number % len(roles)] = True
    kept, lost = (stretch.run(make(roles), roles, gone) for gone in (none, some))
    skeleton, moving, places = stretch.motion.skeleton, stretch.moving, stretch.places[WARM:]
    off = kept.places - places
    gaps = np.linalg.norm(off, axis=-1)
    turned = rotations.geodesic_distance(kept.motion.rotations, stretch.motion.rotations[WARM:])
    feet, at = ([skeleton.index(role) for role in those if role in skeleton.roles] for those in (FEET, roles))
    shakes = [np.linalg.norm(np.diff(one[:, moving], n=2, axis=0), axis=-1) for one in (kept.places, places)]
    gone = slice(LOST - WARM, end - WARM)
    sums.add(
        place=gaps[:, moving], turn=turned[:, moving[1:]], feet=gaps[:, feet], missed=gaps[:, at],
        speed=FPS * np.linalg.norm(np.diff(off[:, moving], axis=0), axis=-1),
        shake=shakes[0], true_shake=shakes[1], seconds=kept.seconds, kept=gaps[gone, moving],
        lost=np.linalg.norm(lost.places - places[: len(lost.places)], axis=-1)[gone, moving],
    )  # fmt: skip
    free = np.setdiff1d(moving, at)
    radii, claimed = kept.radii[:, free], np.isfinite(kept.radii[:, free])
    if claimed.any():
        sums.add(inside=(gaps[:, free] <= radii)[claimed])


def _motion(_: Fold) -> Callable[[Skeleton, Sequence[str]], Step]:
    """As `poise perform` follows trackers: the motion prior."""

    def on(skeleton: Skeleton, roles: Sequence[str]) -> Step:
        own = dict.fromkeys(roles, JOINT)
        performance = TrackerPerformance(roles, skeleton=skeleton, fps=FPS, mounts=own)

        def step(values: Array, wanted: bool) -> tuple[Pose, Array] | None:
            if not wanted:
                performance.observe(values)
                return None
            frame = performance.step(values)
            return frame.pose, WIDE * frame.deviations

        return step

    return on


def _per_frame(
    learn: Callable[[Fold, Skeleton], Model], fold: Fold
) -> Callable[[Skeleton, Sequence[str]], Step]:
    """A model of poses, each frame solved from the one before; trackers that are lost are not known."""
    known: dict[bytes, Model] = {}

    def on(skeleton: Skeleton, roles: Sequence[str]) -> Step:
        body = skeleton.offsets.tobytes()
        model = known[body] = known.get(body) or learn(fold, skeleton)
        follower = Follower(partial(Solver, model))

        def step(values: Array, wanted: bool) -> tuple[Pose, Array] | None:
            if not wanted:
                return None
            asked: list[Constraint] = []
            for k in np.flatnonzero(np.isfinite(values).all(axis=1)).tolist():
                asked += [Position(roles[k], values[k, :3], priority=1), Orientation(roles[k], values[k, 3:])]
            solution = follower.step(asked)
            if solution.posterior_of is None:
                return solution.pose, np.full(len(skeleton), np.nan)
            return solution.pose, np.asarray(solution.uncertainty.radii(0.95))

        return step

    return on


METHODS: dict[str, Callable[[Fold], Callable[[Skeleton, Sequence[str]], Step]]] = {
    "dls": partial(_per_frame, lambda _fold, skeleton: skeleton),
    "local": partial(_per_frame, lambda fold, skeleton: LocalPrior.learn(fold.train).on_body(skeleton)),
    "universal": partial(_per_frame, lambda _fold, skeleton: UniversalPrior(skeleton)),
    "motion": _motion,
}
USUAL = ("dls", "universal", "motion")


def _avatarposer() -> list[Fold]:
    """The takes of AvatarPoser's published split that are in CMU's archive."""
    listed, archive = find_file(SPLIT_FILE), find_file(ARCHIVE)
    if listed is None or archive is None:
        raise PoiseError(
            f"this split needs {SPLIT_FILE} and {ARCHIVE}: point POISE_MOCAP at a folder with them"
        )
    rows = csv.DictReader(listed.read_text("utf-8").splitlines(), delimiter="\t")
    part_of = {row["clip"]: row["part"] for row in rows}
    table = read_table(archive)
    numbers = {
        part: [k for k, name in enumerate(table.clips) if part_of.get(name) == part]
        for part in ("train", "test")
    }
    train = tuple(motion_of(table, k, every=EVERY_LEARNED) for k in numbers["train"])
    return [Fold(train, tuple(motion_of(table, k) for k in numbers["test"]))]


def _run(request: Request, progress: NamedProgress) -> list[Row]:
    return evaluate_trackers(
        request.folds(), methods=request.methods, options=request.options, progress=progress
    )


PROTOCOL = Protocol(
    "trackers",
    ABOUT["trackers"],
    _run,
    methods=tuple(METHODS),
    Options=TrackersOptions,
    splits={"avatarposer": _avatarposer},
    untrained=("", "dls", "universal", "motion"),
)
