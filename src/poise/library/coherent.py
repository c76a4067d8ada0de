"""Nearest frames for every frame of a performance, searching only where they can have moved to.

A performance moves little from one frame to the next. By the triangle inequality, a frame at distance d from an
earlier query is now at least d minus the distance that the query has moved since. So every group of runs, and every
run, stores a lower bound on the distance of its frames and the query it belongs to; only those that may now contain
one of the nearest are searched again. This is the temporal coherence of Chai and Hodgins 2005, section 5.1, without
their graph: however far from the library a performance moves, or jumps, all nearest frames are found.

The frames of a group are rarely on the side of its centre where the query is. `care` scales the distances within
groups and runs when deciding whether one may contain better frames: with 1 nothing is missed; with less, some nearly
equivalent frames are missed, for fewer comparisons.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.vq import kmeans2, vq

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.library.poses import Poses
from poise.library.search import Found, NearestQuery, Search, checked_rows, in_order, offer, squared_distance
from poise.skeleton.skeleton import read_only
from poise.types import Array

# --- runs of nearly equal poses: a 120 Hz recording is searched run by run instead of frame by frame -----------------
#
# A run is a part of one clip around a middle frame, with a radius: the largest distance of its poses from that frame.
# By the triangle inequality, anything further from the middle frame than the radius is not in the run.


REACH = np.radians(0.75)  # per joint angle: largest distance of a run's poses from its middle frame
LONGEST = 24  # frames: standing still would otherwise give a run of thousands


@dataclass(frozen=True, eq=False)
class Runs:
    """Run `i` has the frames `starts[i]` up to `starts[i + 1]`; `radii` are mean absolute angles from the middle."""

    starts: Int[Array, "runs_and_end"]
    middles: Int[Array, "runs"]
    radii: Float[Array, "runs"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", read_only(self.starts, dtype=np.int32))
        object.__setattr__(self, "middles", read_only(self.middles, dtype=np.int32))
        object.__setattr__(self, "radii", read_only(self.radii, dtype=np.float32))

    def __len__(self) -> int:
        return len(self.middles)


def find_runs(poses: Poses, *, reach: float = REACH, longest: int = LONGEST) -> Runs:
    """Divide the frames of every clip into runs."""
    return Runs(*_runs(poses.maps, poses.starts, reach, longest))


def runs_of(maps: Float[Array, "frames maps"], *, reach: float = REACH, longest: int = LONGEST) -> Runs:
    """Divide poses of unknown clips into runs."""
    return Runs(*_runs(np.asarray(maps, dtype=np.float32), np.array([0, len(maps)]), reach, longest))


@compiled
def _runs(maps: Array, clip_starts: Array, reach: float, longest: int) -> tuple[Array, Array, Array]:
    frames = len(maps)
    starts, middles = np.empty(frames + 1, np.int32), np.empty(frames, np.int32)
    radii = np.empty(frames, np.float32)
    count = 0
    for clip in range(len(clip_starts) - 1):
        first, last = clip_starts[clip], clip_starts[clip + 1]
        while first < last:
            middle = first  # the last frame within reach of the first; the run ends at its own reach
            while (
                middle + 1 < last
                and middle + 1 - first < longest // 2
                and mean_angle(maps, first, middle + 1) <= reach
            ):
                middle += 1
            end = middle + 1
            while end < last and end - first < longest and mean_angle(maps, middle, end) <= reach:
                end += 1
            radius = 0.0
            for frame in range(first, end):
                radius = max(radius, mean_angle(maps, middle, frame))
            starts[count], middles[count], radii[count] = first, middle, radius
            count += 1
            first = end
    starts[count] = frames
    return starts[: count + 1].copy(), middles[:count].copy(), radii[:count].copy()


@compiled
def mean_angle(maps: Array, a: int, b: int) -> float:
    """The L1 distance of Chai and Hodgins 2005, Eq. 4, per joint angle."""
    total = 0.0
    for column in range(maps.shape[1]):
        total += abs(maps[a, column] - maps[b, column])
    return total / maps.shape[1]


# --- the search ------------------------------------------------------------------------------------------------------

CARE = 0.7
MEMORY = 64  # queries that bounds may refer to; older bounds are updated together
_ROUNDING = 1e-5  # single-precision safety margin of the bounds


class CoherentSearch(Search):
    """Compares few frames if a query is close to previous ones."""

    _known: Array | None
    _last: Array

    def __init__(self, runs: Runs, rows: Float[Array, "frames columns"], *, care: float = CARE) -> None:
        if not 0.0 <= care <= 1.0:
            raise InvalidValueError(f"`care` must be between 0 and 1 (1 misses nothing); got {care}")
        self._rows, self._care = checked_rows(rows), care
        self._groups = group_runs(runs, self._rows)
        order = np.argsort(self._groups.starts)
        self._run_of = np.repeat(order, (self._groups.ends - self._groups.starts)[order])
        self._stamp = 0
        self._queries = np.zeros((MEMORY, rows.shape[1]), dtype=np.float32)
        self.forget()

    def forget(self) -> None:
        """Start a new performance: the first frame is searched everywhere."""
        self._last = np.empty(0, dtype=np.int64)
        self._forget_bounds()

    def nearest(self, query: Float[Array, "columns"], count: int, *, exclude: slice | None = None) -> Found:
        """The nearest frames; with `care` 1 the same as by comparing all."""
        asked = NearestQuery.of(self._rows, query, count, exclude)
        everywhere = self._known is None or not np.array_equal(self._known, asked.weights)
        if everywhere:  # distances over other columns give no bound for these
            self._forget_bounds()
            self._known = asked.weights
        moved = self._moved_to(asked.query)
        self._stamp += 1
        goal = Goal(
            asked.query, asked.weights, bool(asked.weights.all()), asked.excluded, asked.frames,
            asked.distances, self._care, self._stamp,
        )  # fmt: skip
        found = asked.found(
            follow(self._rows, self._groups, self._memory, moved, self._last, goal), everywhere=everywhere
        )
        self._last = np.unique(self._run_of[found.frames])
        return found

    def _forget_bounds(self) -> None:
        groups, runs = len(self._groups.centres), len(self._groups.middles)
        self._known = None
        self._asked = 0
        self._memory = Memory(
            *(np.full(groups, -np.inf, dtype=np.float32), np.zeros(groups, dtype=np.int32)),
            *(np.full(runs, -np.inf, dtype=np.float32), *(np.zeros(runs, dtype=np.int32) for _ in range(3))),
        )

    def _moved_to(self, query: Float[Array, "columns"]) -> Float[Array, "queries"]:
        """Distances of the query from the stored ones; the last is the query itself."""
        if self._asked == MEMORY:  # refer all bounds to the last query, so that the others can be dropped
            last = self._queries[-1].copy()
            moved = (1.0 + _ROUNDING) * np.linalg.norm((self._queries - last).astype(np.float64), axis=1)
            for bounds, since in (self._memory[:2], self._memory[2:4]):
                bounds -= moved[since]
                since[:] = 0
            self._queries[0], self._asked = last, 1
        self._queries[self._asked] = query
        self._asked += 1
        gaps = self._queries[: self._asked] - query
        return (1.0 + _ROUNDING) * np.linalg.norm(gaps.astype(np.float64), axis=1)


class Memory(NamedTuple):
    """Lower bounds on the distances of groups and runs, and the stored query of each."""

    groups: Array
    groups_since: Array
    runs: Array
    runs_since: Array
    looked_into: Array  # stamp of the last query for which a run was searched
    waiting: Array  # work array for run indices


class Goal(NamedTuple):
    """The query, and the results so far: a heap whose first element is the worst."""

    query: Array
    weights: Array
    whole: bool  # whether all columns are known
    excluded: Array
    frames: Array
    distances: Array
    care: float
    stamp: int


@compiled
def follow(rows: Array, groups: FrameGroups, memory: Memory, moved: Array, seeds: Array, goal: Goal) -> int:
    """Search the last neighbours' runs, then all in groups that may contain better frames; return the rows compared.

    `moved` holds the distances of the query from the stored ones.
    """
    looked_at = _look_into(seeds, rows, groups, memory, moved, goal)
    near, distances, compared = _near_groups(groups, memory, moved, goal)
    for group in near:
        if goal.distances[0] < np.inf:  # the results so far decide which others are worth searching
            break
        runs = np.arange(groups.first[group], groups.first[group + 1])
        looked_at += _look_into(runs, rows, groups, memory, moved, goal)
    worth = memory.groups[near] < math.sqrt(goal.distances[0])
    near, distances = near[worth], distances[worth]
    promising = _promising_runs(near, distances, groups, memory, moved, goal)
    looked_at += _look_into(promising, rows, groups, memory, moved, goal)
    for group in near:
        least = np.min(memory.runs[groups.first[group] : groups.first[group + 1]])
        memory.groups[group] = max(memory.groups[group], least)
    in_order(goal.frames, goal.distances)
    return looked_at + compared


@compiled
def _near_groups(groups: FrameGroups, memory: Memory, moved: Array, goal: Goal) -> tuple[Array, Array, int]:
    """The groups that may contain better frames, nearest first; their distances; the number compared."""
    bounds, since, worst = memory.groups, memory.groups_since, math.sqrt(goal.distances[0])
    count = compared = 0
    near, distances = np.empty(len(bounds), np.int64), np.empty(len(bounds))
    for group in range(len(bounds)):
        if bounds[group] - moved[since[group]] < worst:
            distance = math.sqrt(squared_distance(groups.centres, group, goal.query, goal.weights))
            bounds[group] = _nearest_within(distance, goal.care * groups.radii[group])
            since[group] = len(moved) - 1
            compared += 1
            if bounds[group] < worst:
                near[count], distances[count] = group, distance
                count += 1
    order = np.argsort(distances[:count])
    return near[order], distances[order], compared


@compiled
def _promising_runs(
    near: Array, distances: Array, groups: FrameGroups, memory: Memory, moved: Array, goal: Goal
) -> Array:
    """The runs of groups that may contain better frames, by the distance of their middles from the centres."""
    promising, count, worst = memory.waiting, 0, math.sqrt(goal.distances[0])
    bounds, since = memory.runs, memory.runs_since
    care, whole, from_centre, radii = goal.care, goal.whole, groups.from_centre, groups.run_radii
    for place in range(len(near)):
        group, distance = near[place], distances[place]
        for run in range(groups.first[group], groups.first[group + 1]):
            bounds[run] = max(
                _nearest_at(distance, care * from_centre[run], whole) - care * radii[run],
                bounds[run] - moved[since[run]],
            )
            since[run] = len(moved) - 1
            if bounds[run] < worst:
                promising[count] = run
                count += 1
    return promising[:count]


@compiled
def _look_into(
    numbers: Array, rows: Array, groups: FrameGroups, memory: Memory, moved: Array, goal: Goal
) -> int:
    """Search the middles of runs, and frames that may be better, once per query; return the number compared."""
    query, weights, frames, distances = goal.query, goal.weights, goal.frames, goal.distances
    care, whole, excluded, from_middle = goal.care, goal.whole, goal.excluded, groups.from_middle
    bounds, since, looked_at = memory.runs, memory.runs_since, 0
    for run in numbers:
        left_out = excluded[0] <= groups.starts[run] and groups.ends[run] <= excluded[1]
        far = bounds[run] - moved[since[run]] >= math.sqrt(distances[0])
        if left_out or far or memory.looked_into[run] == goal.stamp:
            continue
        looked_at += 1
        memory.looked_into[run] = goal.stamp
        distance = math.sqrt(squared_distance(groups.middles, run, query, weights))
        bounds[run] = _nearest_within(distance, care * groups.run_radii[run])
        since[run] = len(moved) - 1
        for frame in range(groups.starts[run], groups.ends[run]):
            near = _nearest_at(distance, care * from_middle[frame], whole) < math.sqrt(distances[0])
            if near and not excluded[0] <= frame < excluded[1]:
                looked_at += 1
                offer(frames, distances, frame, squared_distance(rows, frame, query, weights))
    return looked_at


@compiled
def _nearest_within(distance: float, radius: float) -> float:
    """Lower bound on the distance of anything within `radius` of a point at `distance`."""
    return (1.0 - _ROUNDING) * distance - (1.0 + _ROUNDING) * radius


@compiled
def _nearest_at(distance: float, apart: float, whole: bool) -> float:
    """Lower bound on the distance of something `apart` from a point at `distance`.

    Over some columns it may be closer to that point than over all; then only one bound holds.
    """
    bound = _nearest_within(distance, apart)
    return max(bound, _nearest_within(apart, distance)) if whole else bound


class FrameGroups(NamedTuple):
    """Group `g` has the runs `first[g]` up to `first[g + 1]`, renumbered to be contiguous."""

    centres: Float[Array, "groups columns"]
    radii: Float[Array, "groups"]  # largest distance of a group's frames from its centre
    first: Int[Array, "groups_and_end"]
    middles: Float[Array, "runs columns"]  # the rows of middle frames
    starts: Int[Array, "runs"]
    ends: Int[Array, "runs"]
    run_radii: Float[Array, "runs"]
    from_centre: Float[Array, "runs"]  # of a run's middle
    from_middle: Float[Array, "frames"]


def group_runs(runs: Runs, rows: Float[Array, "frames columns"]) -> FrameGroups:
    """Groups of at most a quarter of the root of the number of runs: a search compares as many centres as runs."""
    middles = rows[runs.middles]
    parts = divided(middles, max(1, round(math.sqrt(len(runs)) / 4)), rng=np.random.default_rng(0))
    order, sizes = np.concatenate(parts), np.array([len(part) for part in parts])
    first = np.concatenate([[0], np.cumsum(sizes)])
    middles = middles[order]
    centres = np.add.reduceat(middles, first[:-1], axis=0) / sizes[:, None].astype(np.float32)
    from_centre = _distances(middles, centres, np.repeat(np.arange(len(parts)), sizes))
    from_middle = _distances(rows, rows, np.repeat(runs.middles, np.diff(runs.starts)))
    run_radii = np.maximum.reduceat(from_middle, runs.starts[:-1])[order]
    return FrameGroups(
        centres, np.maximum.reduceat(from_centre + run_radii, first[:-1]), first, middles,
        runs.starts[:-1][order], runs.starts[1:][order], run_radii, from_centre, from_middle,
    )  # fmt: skip


def _distances(
    rows: Float[Array, "rows columns"], others: Float[Array, "others columns"], which: Int[Array, "rows"]
) -> Float[Array, "rows"]:
    """The distance of each row from its own one of `others`."""
    distances = np.empty(len(rows), dtype=np.float32)
    for begin in range(0, len(rows), 4096):  # to limit memory
        part = slice(begin, begin + 4096)
        distances[part] = np.linalg.norm(rows[part] - others[which[part]], axis=1)
    return distances


# --- k-means: centres that cover points evenly, and hierarchical division of points into compact parts ---------------


_BRANCHES = 32  # parts per division; larger ones are divided again
_ROUNDS = 4  # of k-means per division: its parts only need to be compact


def lloyd(
    points: Float[Array, "points columns"], centres: Float[Array, "centres columns"], *, rounds: int
) -> Float[Array, "centres columns"]:
    """Lloyd's rounds of k-means; a centre that loses all its points stays in place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of such centres
        return np.asarray(kmeans2(points, centres, iter=rounds, minit="matrix")[0])


def divided(
    points: Float[Array, "points columns"], most: int, *, rng: np.random.Generator
) -> list[Int[Array, "_"]]:
    """Divide points into parts of limited size, recursively (hierarchical k-means)."""
    parts, waiting = [], [np.arange(len(points))]
    while waiting:
        members = waiting.pop()
        if len(members) <= most:
            parts.append(members)
            continue
        own, count = points[members], min(_BRANCHES, -(-len(members) // most))
        centres = lloyd(own, own[rng.choice(len(own), count, replace=False)], rounds=_ROUNDS)
        labels = vq(own, centres)[0]
        branches = [members[labels == number] for number in np.unique(labels)]
        if len(branches) == 1:  # all points are equal
            branches = np.array_split(members, count)
        waiting += branches
    return parts
