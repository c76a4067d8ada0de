"""Pose to pose: whole poses at times in, a natural motion that meets them exactly out; by the motion prior.

fps = 30
[[keys]]
time = 0.0
pose = "crouch.bvh:12"              # a file and a frame; frame 0 if none is named
[[keys]]
time = 0.8
handles = { right_hand = [-0.3, 1.6, 0.3] }   # solved by the universal prior, near where the body passes
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.formats import read
from poise.formats.named_files import RefusedNameError, named_file
from poise.formats.tables import FieldError, read_declared
from poise.geometry import rotations
from poise.motion.contacts import foot_contacts, foot_handles, foot_positions
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.performer.bodies import Body
from poise.priors.motion.carrying import Frames
from poise.priors.motion.prior import Between, MotionPrior, on_frames
from poise.priors.prior import Prior
from poise.priors.terms import Unknowns
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose
from poise.solvers.constraints import Constraint, Position
from poise.solvers.sequence import solve_terms
from poise.solvers.solution import MotionSolution
from poise.solvers.solve import solve
from poise.types import Array

Key = Pose | Mapping[str, Sequence[float]]
"""A whole pose, or positions of some handles, whose pose the universal prior finds."""

STANDS = 0.5  # probability above which a foot stands
FIRM = 0.002  # metres: tolerance of a foot that stands


def inbetween(
    keys: Sequence[tuple[float, Key]] | str | os.PathLike[str], *, fps: float = 30.0, contacts: bool = True
) -> MotionSolution:
    """Return the motion through keys at times in seconds, or through those of a script's file.

    Keys that are whole poses are met exactly; all must have one skeleton. A key of handles is a pose by the universal
    prior first, around where the body passes between the whole poses, or where it stands. With `contacts`, feet that
    stand stay in place.
    """
    if isinstance(keys, (str, os.PathLike)):
        script = read_declared(_Script, Path(keys))
        keys, fps = script.read(Path(keys)), script.fps
    ordered = sorted(keys, key=lambda key: key[0])
    poses = [key for _, key in ordered if isinstance(key, Pose)]
    skeleton = poses[0].skeleton if poses else Body().skeleton
    begun, universal, prior = clock.perf_counter(), UniversalPrior(skeleton), MotionPrior(skeleton)
    at, frames = on_frames(_solved(ordered, universal), skeleton, fps)
    found = prior.through(at, frames, fps=fps)
    made = through(prior, found, planted(found) if contacts else [[] for _ in found.motion], universal)
    microseconds = 1e6 * (clock.perf_counter() - begun) / len(made)
    return replace(made, solutions=[replace(one, microseconds=microseconds) for one in made.solutions])


def through(
    prior: MotionPrior, found: Between, frames: Sequence[Sequence[Constraint]], scored: Prior
) -> MotionSolution:
    """The likeliest motion through the keys of a motion that also meets constraints, frame by frame.

    Joints that the motion prior does not move keep what the keys have.
    """
    motion = found.motion
    references = rotations.mean(motion.rotations)
    references[0] = rotations.IDENTITY
    space = PoseSpace(motion.skeleton, references=references)
    start = Unknowns(space.q_from_frames(motion.root_positions, motion.rotations))
    made = solve_terms(scored, frames, prior.terms(found, space), start, fps=motion.fps, space=space)
    return replace(
        made,
        deviations=found.point_deviations[:, prior.carrier.fit.rows],
        standing=found.contacts > STANDS,
    )


def planted(found: Between) -> list[list[Constraint]]:
    """Feet that stay in place while they stand: where a key has them, else at their mean place."""
    motion, handles = found.motion, foot_handles(found.motion.skeleton)
    standing = foot_contacts(motion).points & (found.contacts > STANDS)[..., None]
    places = foot_positions(motion).reshape(len(motion), -1, 3)
    frames: list[list[Constraint]] = [[] for _ in range(len(motion))]
    for point, down in enumerate(standing.reshape(len(motion), -1).T):
        for run in runs(down):
            own = np.arange(run.start, run.stop)
            keys = np.intersect1d(own, found.keys)
            for frame in np.setdiff1d(own, keys):
                place = places[own, point].mean(axis=0)
                if len(keys):
                    place = np.array([np.interp(frame, keys, column) for column in places[keys, point].T])
                frames[frame].append(Position(handles[point], place, tolerance=FIRM))
    return frames


def _solved(keys: Sequence[tuple[float, Key]], prior: UniversalPrior) -> list[tuple[float, Pose]]:
    """All keys as whole poses."""
    times = np.array([time for time, key in keys if isinstance(key, Pose)])
    poses = [key for _, key in keys if isinstance(key, Pose)]
    found = []
    for time, key in keys:
        if isinstance(key, Pose):
            found.append((time, key))
            continue
        near = _passing(times, poses, time, prior.space) if poses else None
        found.append(
            (time, solve(prior, [Position(name, place) for name, place in key.items()], start=near).pose)
        )
    return found


def _passing(
    times: Float[Array, "poses"], poses: Sequence[Pose], time: float, space: PoseSpace
) -> Float[Array, "size"]:
    """Where a body that goes from pose to pose on straight lines passes at a time."""
    frames = Frames(np.stack([p.root_position for p in poses]), np.stack([p.rotations for p in poses]))
    last = max(len(times) - 1, 0)
    before = np.clip(np.searchsorted(times, [time], side="right") - 1, 0, max(last - 1, 0))
    after = np.minimum(before + 1, last)
    share = np.clip((time - times[before]) / np.maximum(times[after] - times[before], 1e-9), 0.0, 1.0)
    roots, turns = frames.between(before, after, share)
    return space.q_from_frames(roots, turns)[0]


# --- the file ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _KeyTable:
    time: float
    pose: str = ""
    handles: dict[str, Float[np.ndarray, "3"]] | None = None

    def __post_init__(self) -> None:
        if bool(self.pose) == bool(self.handles):
            raise FieldError("pose", 'a key needs a pose, such as "crouch.bvh:12", or the places of handles')


@dataclass(frozen=True, eq=False)
class _Script:
    """An in-betweening script as it is written."""

    keys: tuple[_KeyTable, ...]
    fps: float = 30.0

    def read(self, path: Path) -> list[tuple[float, Key]]:
        """The keys, with their poses read."""
        return [
            (key.time, key.handles or pose_from(key.pose, path.parent))  # type: ignore[misc]
            for key in self.keys
        ]


def pose_from(name: str, folder: Path) -> Pose:
    """A frame of a file in a folder, as `crouch.bvh:12`; frame 0 if none is named."""
    file, _, number = name.rpartition(":") if name.rpartition(":")[2].isdigit() else (name, "", "0")
    try:
        clip = read(named_file(folder, file))
    except RefusedNameError as error:
        raise InvalidValueError(str(error)) from error
    if not isinstance(clip, Motion):
        raise InvalidValueError(f"{file} holds markers; a key needs the pose of a skeleton")
    if int(number) >= len(clip):
        raise InvalidValueError(f"{file} has frames 0 to {len(clip) - 1}; got frame {number}")
    return clip[int(number)]
