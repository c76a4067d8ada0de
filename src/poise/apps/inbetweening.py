"""Pose to pose: whole poses at times in, a natural motion that meets them exactly out; by the motion prior.

The prior's Gaussian over the motion is a term of the one solver over time (`solvers.sequence`), so feet stay where they
stand, and every other constraint can be asked between the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.apps.retargeting import retarget
from poise.compiled import work_clock
from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.splines import EASES
from poise.motion.contacts import foot_contacts, foot_handles, foot_positions
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.performer.acting import LONGEST, acted
from poise.performer.bodies import Body
from poise.performer.gait import RUNNING_SPEEDS, WALKING_SPEEDS
from poise.performer.steps import path_through
from poise.priors.motion.carrying import Frames
from poise.priors.motion.prior import Between, MotionPrior, on_frames
from poise.priors.terms import Term, Unknowns
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.retarget import size_ratio
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.constraints import Constraint, Position
from poise.solvers.sequence import solve_terms
from poise.solvers.solution import MotionSolution
from poise.solvers.solve import solve
from poise.types import Array

STANDS = 0.5  # probability above which a foot stands
FIRM = 0.002  # metres: tolerance of a foot that stands
ROLLS = 3  # frames about a key in which a foot that does not stand there yet, or no longer, rolls
TEMPI = (0.25, 4.0)
PLANNED = 60.0  # frames a second of the planned steps
SOONEST = 0.2  # seconds from either end of a walk in which no landing is a key


@dataclass(frozen=True, eq=False)
class Walk:
    """A walk or run through points (x, z) on the floor, in metres, at a speed in metres a second.

    The procedural performer plans the steps; a pose of each landing is a key, and the motion prior moves between them.
    """

    path: Sequence[Sequence[float]]
    speed: float = 1.3

    def __post_init__(self) -> None:
        if not WALKING_SPEEDS[0] <= self.speed <= RUNNING_SPEEDS[1]:
            raise InvalidValueError(
                f"a body walks or runs at {WALKING_SPEEDS[0]:g} to {RUNNING_SPEEDS[1]:g} m/s; got {self.speed:g}"
            )
        if self.seconds > LONGEST:
            raise InvalidValueError(f"a walk takes at most {LONGEST:g} s; this one takes {self.seconds:.0f}")

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return float(path_through(self.path)[0][-1]) / self.speed

    def landings(self, skeleton: Skeleton) -> list[tuple[float, Pose]]:
        """The body where each foot lands, and at the end, with the times since the start."""
        planner = Body()
        ratio = size_ratio(planner.skeleton, skeleton)
        speed = self.speed / ratio
        gait = "walk" if speed <= WALKING_SPEEDS[1] else "run"
        path = (np.asarray(self.path, dtype=np.float64) / ratio).tolist()
        steps = acted(gait, performer=planner, path=path, speed=speed, seconds=self.seconds, fps=PLANNED)
        body = retarget(steps.motion, skeleton, contacts="feet")
        down = np.stack([steps.grounded(side) for side in SIDES], axis=-1)
        lands = np.flatnonzero((down[1:] & ~down[:-1]).any(axis=-1)) + 1
        lands = lands[(lands > PLANNED * SOONEST) & (lands < len(body) - PLANNED * SOONEST)]
        return [*((frame / PLANNED, body[int(frame)]) for frame in lands), (self.seconds, body[-1])]


@dataclass(frozen=True, eq=False)
class PoseKey:
    """A pose at a time in seconds, and how the body goes on from there to the next key.

    The pose is whole, or places of some handles: then it is the universal prior's pose near where the body passes. It
    may be held for some seconds, and a walk may follow. With a `tempo` of 2, the body moves to the next key as it would
    in twice the time, only faster.
    """

    time: float
    pose: Pose | Mapping[str, Sequence[float]]
    hold: float = 0.0
    ease: str = "none"
    tempo: float = 1.0
    walk: Walk | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.hold) and self.hold >= 0.0):
            raise InvalidValueError(f"a key is held for 0 or more seconds; got {self.hold:g}")
        if not TEMPI[0] <= self.tempo <= TEMPI[1]:
            raise InvalidValueError(
                f"the tempo of a key is from {TEMPI[0]:g} to {TEMPI[1]:g}; got {self.tempo:g}"
            )
        if self.ease not in EASES:
            raise InvalidValueError(f"ease is one of {', '.join(EASES)}; got {self.ease!r}")

    @property
    def end(self) -> float:
        """The time when the hold and the walk are over."""
        return self.time + self.hold + (self.walk.seconds if self.walk else 0.0)


class Stance(NamedTuple):
    """A foot, `left` or `right`, stands from one time to another, in seconds."""

    foot: str
    start: float
    end: float


Layer = Callable[[Between, PoseSpace], tuple[Sequence[Sequence[Constraint]], Sequence[Term]]]
"""From a motion through keys to what else is asked: constraints of every frame, and terms."""


def through_keys(
    keys: Sequence[PoseKey], *, fps: float, contacts: bool | Sequence[Stance] = True, loop: bool = False,
    variant: int = 0, layer: Layer = lambda found, _space: ([()] * len(found.motion), ()),
) -> MotionSolution:  # fmt: skip
    """The motion through keys. See `poise.inbetween`."""
    begun, skeleton = work_clock(), skeleton_of(keys)
    prior, universal = MotionPrior(skeleton), UniversalPrior(skeleton)
    found = passing(_solved(sorted(keys, key=lambda key: key.time), universal), prior, fps=fps, loop=loop)
    if variant:
        found = prior.another(found, np.random.default_rng(variant))
    seen = (found.contacts > STANDS) & foot_contacts(found.motion).feet
    standing = seen if contacts is True else np.zeros_like(seen)
    for foot, begin, end in () if isinstance(contacts, bool) else contacts:
        if foot not in SIDES:
            raise InvalidValueError(f"a foot that stands is one of {', '.join(SIDES)}; got {foot!r}")
        standing[round(begin * fps) : round(end * fps) + 1, SIDES.index(foot)] = True
    references = rotations.mean(found.motion.rotations)
    references[0] = rotations.IDENTITY
    space = PoseSpace(skeleton, references=references)
    asked, terms = layer(found, space)
    frames = [[*one, *feet] for one, feet in zip(asked, planted(found, standing), strict=True)]
    start = Unknowns(space.q_from_frames(found.motion.root_positions, found.motion.rotations))
    made = solve_terms(universal, frames, [*prior.terms(found, space), *terms], start, fps=fps, space=space)
    each = 1e6 * (work_clock() - begun) / len(made)
    return replace(
        made,
        solutions=[replace(one, microseconds=each) for one in made.solutions],
        deviations=found.point_deviations[:, prior.carrier.fit.rows],
        standing=standing,
    )


def passing(
    keys: Sequence[tuple[PoseKey, Pose]], prior: MotionPrior, *, fps: float, loop: bool = False
) -> Between:
    """The motion that the prior expects through keys in order of time; feet that stand may still slide."""
    timeline = _Timeline.of(keys, prior.skeleton, fps)
    inside, poses = timeline.looped() if loop else (timeline.inside, timeline.poses)
    found = prior.through(inside, poses, fps=fps)
    return found.sampled(timeline.when + (timeline.inside[-1] if loop else 0), timeline.keys)


def straight(keys: Sequence[tuple[PoseKey, Pose]], skeleton: Skeleton, *, fps: float) -> Motion:
    """Keys with every joint turned evenly from one to the next, for bodies that the motion prior does not know."""
    timeline = _Timeline.of(keys, skeleton, fps)
    before = np.clip(
        np.searchsorted(timeline.inside, timeline.when, side="right") - 1, 0, len(timeline.inside) - 2
    )
    share = (timeline.when - timeline.inside[before]) / np.diff(timeline.inside)[before]
    return Motion(skeleton, fps, *timeline.poses.between(before, before + 1, share))


def planted(found: Between, standing: Bool[Array, "frames 2"]) -> list[list[Constraint]]:
    """Feet that stay in place while they stand: where a key has them, else at their mean place."""
    motion, handles = found.motion, foot_handles(found.motion.skeleton)
    points = foot_contacts(motion).points
    points = (points | ~points.any(axis=-1, keepdims=True)) & standing[..., None]
    places = foot_positions(motion).reshape(len(motion), -1, 3)
    frames: list[list[Constraint]] = [[] for _ in range(len(motion))]
    for point, down in enumerate(points.reshape(len(motion), -1).T):
        for run in runs(down):
            own = np.arange(run.start, run.stop)
            keys = np.intersect1d(own, found.keys)
            landing = np.setdiff1d(found.keys, keys)[:, None] + np.arange(-ROLLS, ROLLS + 1)
            for frame in np.setdiff1d(own, [*keys, *landing.ravel()]):
                place = places[own, point].mean(axis=0)
                if len(keys):
                    place = np.array([np.interp(frame, keys, column) for column in places[keys, point].T])
                frames[frame].append(Position(handles[point], place, tolerance=FIRM))
    return frames


def skeleton_of(keys: Sequence[PoseKey]) -> Skeleton:
    """The skeleton of the keys' whole poses; that of the procedural performer if there are none."""
    return next((key.pose.skeleton for key in keys if isinstance(key.pose, Pose)), Body().skeleton)


@dataclass(frozen=True, eq=False)
class _Timeline:
    """Keys on the frames of the motion, and on those inside: before holds, eases and tempi."""

    keys: Int[Array, "keys"]  # frames that are given
    when: Float[Array, "frames"]  # the frame inside that each frame shows
    inside: Int[Array, "poses"]
    poses: Frames

    @classmethod
    def of(cls, keys: Sequence[tuple[PoseKey, Pose]], skeleton: Skeleton, fps: float) -> _Timeline:
        """The frames of keys in order of time."""
        begins, poses = on_frames([(key.time, pose) for key, pose in keys], skeleton, fps)
        ends = begins + np.rint([key.hold * fps for key, _ in keys]).astype(int)
        if np.any(late := ends[:-1] >= begins[1:]):
            time = keys[int(np.argmax(late))][0].time
            raise InvalidValueError(
                f"the key at {time:g} s is held until the next one or longer; hold it for less"
            )
        gaps = [
            max(1, round((after - end) * key.tempo))
            for end, after, (key, _) in zip(ends, begins[1:], keys, strict=False)
        ]
        inside, when = np.cumsum([0, *gaps]), np.zeros(ends[-1] + 1)
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            when[begin : end + 1] = inside[number]
            if number < len(gaps):
                share = np.linspace(0.0, 1.0, begins[number + 1] - end + 1)[1:-1]
                eased = EASES[keys[number][0].ease](share)
                when[end + 1 : begins[number + 1]] = inside[number] + eased * gaps[number]
        whole = np.concatenate([np.arange(a, b + 1) for a, b in zip(begins, ends, strict=True)])
        return cls(whole, when, inside, poses)

    def looped(self) -> tuple[Int[Array, "poses"], Frames]:
        """The cycle between one before it and one after it; its last pose is the first, where the last key stands."""
        roots, turns = self.poses.roots.copy(), self.poses.turns.copy()
        upright = np.array([1.0, 0.0, 1.0, 0.0])
        first, last = (rotations.normalize(turns[end, 0] * upright) for end in (0, -1))
        turn = rotations.multiply(last, rotations.conjugate(first))
        turns[-1] = np.concatenate([rotations.multiply(turn, turns[0, 0])[None], turns[0, 1:]])
        roots[-1, 1] = roots[0, 1]
        back = _moved(roots[:-1], turns[:-1], roots[-1], rotations.conjugate(turn), roots[0])
        ahead = _moved(roots[1:], turns[1:], roots[0], turn, roots[-1])
        length = self.inside[-1]
        at = np.concatenate([self.inside[:-1], self.inside + length, self.inside[1:] + 2 * length])
        own = (back, Frames(roots, turns), ahead)
        return at, Frames(np.concatenate([f.roots for f in own]), np.concatenate([f.turns for f in own]))


def _moved(roots: Array, turns: Array, about: Array, turn: Array, to: Array) -> Frames:
    """Frames turned about a point, which goes to another."""
    first = rotations.multiply(turn, turns[:, :1])
    return Frames(to + rotations.rotate(turn, roots - about), np.concatenate([first, turns[:, 1:]], axis=1))


def _solved(keys: Sequence[PoseKey], prior: UniversalPrior) -> list[tuple[PoseKey, Pose]]:
    """All keys with whole poses."""
    whole = [(key.time, key.pose) for key in keys if isinstance(key.pose, Pose)]
    times, last, found = np.array([time for time, _ in whole]), max(len(whole) - 1, 0), []
    for key in keys:
        pose, near = key.pose, None
        if not isinstance(pose, Pose):
            if whole:  # where a body that goes from pose to pose on straight lines passes at that time
                roots, turns = (
                    [getattr(p, name) for _, p in whole] for name in ("root_position", "rotations")
                )
                before = np.clip(np.searchsorted(times, [key.time], side="right") - 1, 0, max(last - 1, 0))
                after = np.minimum(before + 1, last)
                share = np.clip(
                    (key.time - times[before]) / np.maximum(times[after] - times[before], 1e-9), 0.0, 1.0
                )
                passed = Frames(np.stack(roots), np.stack(turns)).between(before, after, share)
                near = prior.space.q_from_frames(*passed)[0]
            pose = solve(prior, [Position(name, place) for name, place in pose.items()], start=near).pose
        found.append((key, pose))
        if key.walk:
            begun = key.time + key.hold
            found += [(PoseKey(begun + t, p), p) for t, p in key.walk.landings(prior.space.skeleton)]
    for (earlier, _), (later, _) in pairwise(found):
        if later.time <= earlier.time:
            raise InvalidValueError(
                f"the walk before the key at {later.time:g} s ends at {earlier.time:.2f} s; "
                "give that key a later time, or the walk a higher speed"
            )
    return found
