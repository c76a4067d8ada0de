"""Exact nearest frames at every frame of a performance, looking only where they can be by now.

A performance moves little from one frame to the next, and by the triangle inequality a frame that was at distance d
when the query was elsewhere is at least d less the way the query has gone since. So every run, and every group of runs,
remembers how near its frames may be at best and since when; only those that may hold one of the nearest by now are
looked at again. This is the temporal coherence of Chai and Hodgins 2005, section 5.1, without their graph: nothing is
missed, however far from the library a performance goes.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.library.search import Asked, Found, checked_rows, with_radii
from poise.library.search_kernels import in_order, offer, run_radii, squared_distance
from poise.library.segments import Runs

Array = np.ndarray

REACH = 0.35  # of the rows' spread: how far the runs of a group are from its centre
LONGEST = 40  # runs in a group
MEMORY = 256  # queries that bounds may be from; older ones are brought up to date together
_SAMPLES = 10_000
_ROUNDING = 1e-5  # distances are in single precision: a bound is that much more careful


class CoherentSearch:
    """Misses nothing, and looks at few frames where a query is close to the ones before it."""

    _bounds: tuple[Array, Array, Array, Array]
    _known: Array | None
    _last: Array

    def __init__(self, runs: Runs, rows: Float[Array, "frames columns"]) -> None:
        self._rows, self._runs = checked_rows(rows), with_radii(runs, rows)
        self._groups = _groups(self._rows, self._runs)
        self._run_of = np.repeat(np.arange(len(runs), dtype=np.int32), np.diff(runs.starts))
        self._looked_into = np.zeros(len(runs), dtype=np.int64)
        self._stamp = 0
        self._queries = np.zeros((MEMORY, rows.shape[1]), dtype=np.float32)
        self.forget()

    def forget(self) -> None:
        """Begin a new performance: the first frame is looked for everywhere."""
        self._last = np.empty(0, dtype=np.int32)
        self._forget_bounds()

    def nearest(self, query: Float[Array, "columns"], count: int, *, exclude: slice | None = None) -> Found:
        """The nearest frames, the same as by comparing all."""
        asked = Asked.of(self._rows, query, count, exclude)
        everywhere = self._known is None or not np.array_equal(self._known, asked.weights)
        if everywhere:  # distances over other columns tell nothing about these
            self._forget_bounds()
            self._known = asked.weights
        moved = self._moved_to(asked.query)
        self._stamp += 1
        visited = follow(
            self._rows, self._runs, self._groups, self._bounds, moved, self._last,
            (self._stamp, self._looked_into), asked.query, asked.weights, asked.excluded,
            asked.frames, asked.distances,
        )  # fmt: skip
        found = asked.found(visited, everywhere=everywhere)
        self._last = np.unique(self._run_of[found.frames])
        return found

    def _forget_bounds(self) -> None:
        groups, runs = len(self._groups[1]), len(self._runs[1])
        self._known = None
        self._asked = 0
        self._bounds = (
            *(np.full(groups, -np.inf), np.zeros(groups, dtype=np.int64)),
            *(np.full(runs, -np.inf), np.zeros(runs, dtype=np.int64)),
        )

    def _moved_to(self, query: Float[Array, "columns"]) -> Float[Array, "queries"]:
        """How far the query is from those remembered; itself is the last of them."""
        if self._asked == MEMORY:
            self._bring_up_to_date()
        self._queries[self._asked] = query
        self._asked += 1
        gaps = self._queries[: self._asked] - query
        return (1.0 + _ROUNDING) * np.linalg.norm(gaps.astype(np.float64), axis=1)

    def _bring_up_to_date(self) -> None:
        """Let all bounds be from the last query, so that the others can be forgotten."""
        last = self._queries[-1].copy()
        moved = np.linalg.norm((self._queries - last).astype(np.float64), axis=1)
        for bounds, since in (self._bounds[:2], self._bounds[2:]):
            bounds -= (1.0 + _ROUNDING) * moved[since]
            since[:] = 0
        self._queries[0], self._asked = last, 1


def _groups(
    rows: Float[Array, "frames columns"], runs: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array]:
    """Neighbouring runs together: the first run of each group (and the end), its centre frame, and its radius."""
    sample = rows[:: max(1, len(rows) // _SAMPLES)].astype(np.float64)
    first_runs, centres = _neighbouring(
        rows, runs[1], REACH * math.sqrt(float(sample.var(axis=0).sum())), LONGEST
    )
    radii = np.empty(len(centres))
    run_radii(rows, runs[0][first_runs], centres, radii)
    return first_runs, centres, radii


@compiled
def _neighbouring(rows: Array, middles: Array, reach: float, longest: int) -> tuple[Array, Array]:
    count, ones = len(middles), np.ones(rows.shape[1], np.float32)
    first_runs, centres = np.empty(count + 1, np.int32), np.empty(count, np.int32)
    groups, first = 0, 0
    while first < count:
        centre = _last_within(rows, middles, first, first, reach, min(count, first + longest // 2), ones)
        end = 1 + _last_within(rows, middles, centre, centre, reach, min(count, first + longest), ones)
        first_runs[groups], centres[groups] = first, middles[centre]
        groups, first = groups + 1, end
    first_runs[groups] = count
    return first_runs[: groups + 1].copy(), centres[:groups].copy()


@compiled
def _last_within(
    rows: Array, middles: Array, origin: int, run: int, reach: float, end: int, ones: Array
) -> int:
    """The last run from `run` on that is in reach of the origin, as are all between."""
    while (
        run + 1 < end
        and squared_distance(rows, middles[run + 1], rows[middles[origin]], ones) <= reach * reach
    ):
        run += 1
    return run


@compiled
def follow(
    rows: Array, runs: tuple[Array, Array, Array], groups: tuple[Array, Array, Array],
    bounds: tuple[Array, Array, Array, Array], moved: Array, seeds: Array, marks: tuple[int, Array],
    query: Array, weights: Array, excluded: Array, frames: Array, distances: Array,
) -> int:  # fmt: skip
    """The last neighbours' runs first, then every group that may hold better ones by now; how many were looked at.

    `bounds` are how near a group's or run's frames may be at best, and to which of the queries, from which the query
    has `moved`.
    """
    looked_at = 0
    for run in seeds:
        looked_at += _look_into(run, rows, runs, marks, query, weights, excluded, frames, distances)
    for group in range(len(groups[1])):
        if bounds[0][group] - moved[bounds[1][group]] < math.sqrt(distances[0]):
            looked_at += _review(
                group, rows, runs, groups, bounds, moved, marks, query, weights, excluded, frames, distances
            )
    in_order(frames, distances)
    return looked_at


@compiled
def _review(
    group: int, rows: Array, runs: tuple[Array, Array, Array], groups: tuple[Array, Array, Array],
    bounds: tuple[Array, Array, Array, Array], moved: Array, marks: tuple[int, Array],
    query: Array, weights: Array, excluded: Array, frames: Array, distances: Array,
) -> int:  # fmt: skip
    """A group's centre, and if that is not far enough away the runs that may hold better ones; leaves new bounds."""
    first_runs, centres, radii = groups
    group_bounds, group_since, run_bounds, run_since = bounds
    now, looked_at, least = len(moved) - 1, 1, np.inf
    bound = _bound(rows, centres[group], radii[group], query, weights)
    if bound < math.sqrt(distances[0]):
        for run in range(first_runs[group], first_runs[group + 1]):
            if run_bounds[run] - moved[run_since[run]] < math.sqrt(distances[0]):
                looked_at += 1
                run_bounds[run] = _bound(rows, runs[1][run], runs[2][run], query, weights)
                run_since[run] = now
                if run_bounds[run] < math.sqrt(distances[0]):
                    looked_at += _look_into(
                        run, rows, runs, marks, query, weights, excluded, frames, distances
                    )
            least = min(least, run_bounds[run] - moved[run_since[run]])
        bound = max(bound, least)
    group_bounds[group], group_since[group] = bound, now
    return looked_at


@compiled
def _bound(rows: Array, centre: int, radius: float, query: Array, weights: Array) -> float:
    """How near the frames within a radius of a centre may be, at best."""
    return (1.0 - _ROUNDING) * math.sqrt(squared_distance(rows, centre, query, weights)) - radius


@compiled
def _look_into(
    run: int, rows: Array, runs: tuple[Array, Array, Array], marks: tuple[int, Array], query: Array,
    weights: Array, excluded: Array, frames: Array, distances: Array,
) -> int:  # fmt: skip
    """The frames of a run, unless they were looked at for this query; how many."""
    stamp, looked_into = marks
    if looked_into[run] == stamp:
        return 0
    looked_into[run] = stamp
    first, last = runs[0][run], runs[0][run + 1]
    for frame in range(first, last):
        if not excluded[0] <= frame < excluded[1]:
            offer(frames, distances, frame, squared_distance(rows, frame, query, weights))
    return last - first
