"""Nearest rows in compiled code: a heap of the best so far, runs pruned by their radii, and the walk over the graph.

Distances are squared and Euclidean over the columns of weight one; a query's unknown columns have weight zero. A run
whose middle is further than the worst result by more than its radius contains nothing better, and is skipped.
"""

import math

import numpy as np

from poise.compiled import compiled
from poise.types import Array

BEAM = 4  # runs from which a descent continues at once


@compiled
def squared_distance(rows: Array, frame: int, query: Array, weights: Array) -> float:
    """The squared distance, in four parallel sums: a single one would wait for itself at every column."""
    a = b = c = d = np.float32(0.0)
    columns = len(query)
    whole = columns - columns % 4
    for i in range(0, whole, 4):
        g0, g1 = rows[frame, i] - query[i], rows[frame, i + 1] - query[i + 1]
        g2, g3 = rows[frame, i + 2] - query[i + 2], rows[frame, i + 3] - query[i + 3]
        a += weights[i] * g0 * g0
        b += weights[i + 1] * g1 * g1
        c += weights[i + 2] * g2 * g2
        d += weights[i + 3] * g3 * g3
    for i in range(whole, columns):
        gap = rows[frame, i] - query[i]
        a += weights[i] * gap * gap
    return float((a + b) + (c + d))


@compiled
def offer(frames: Array, distances: Array, frame: int, distance: float) -> None:
    """Insert a frame into the heap of the best, whose first element is the worst, if it is better than that."""
    if distance >= distances[0]:
        return
    count, place = len(frames), 0
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and distances[child + 1] > distances[child]:
            child += 1
        if distances[child] <= distance:
            break
        frames[place], distances[place] = frames[child], distances[child]
        place = child
    frames[place], distances[place] = frame, distance


@compiled
def in_order(frames: Array, distances: Array) -> None:
    order = np.argsort(distances, kind="mergesort")
    frames[:], distances[:] = frames[order], distances[order]


@compiled
def scan(rows: Array, query: Array, weights: Array, excluded: Array, frames: Array, distances: Array) -> int:
    """Compare every frame; return the number compared."""
    for frame in range(len(rows)):
        if not excluded[0] <= frame < excluded[1]:
            offer(frames, distances, frame, squared_distance(rows, frame, query, weights))
    in_order(frames, distances)
    return len(rows)


@compiled
def run_radii(rows: Array, starts: Array, middles: Array, radii: Array) -> None:
    """The largest distance of every run's rows from that of its middle frame."""
    ones = np.ones(rows.shape[1], np.float32)
    for run in range(len(middles)):
        furthest = 0.0
        for frame in range(starts[run], starts[run + 1]):
            furthest = max(furthest, squared_distance(rows, frame, rows[middles[run]], ones))
        radii[run] = math.sqrt(furthest) * (1.0 + 1e-5)  # single precision may round the distance down


@compiled
def _look_into(
    numbers: Array, count: int, rows: Array, runs: tuple[Array, Array, Array], query: Array, weights: Array,
    excluded: Array, frames: Array, distances: Array, bounds: Array,
) -> int:  # fmt: skip
    """Compare the middles of runs, then frames of those that may contain better ones, best first; return the count.

    `bounds` are lower bounds on the distances of their frames.
    """
    starts, middles, radii = runs
    for place in range(count):
        run = numbers[place]
        squared = squared_distance(rows, middles[run], query, weights)
        bounds[place] = max(0.0, math.sqrt(squared) - radii[run])
        if not excluded[0] <= middles[run] < excluded[1]:
            offer(frames, distances, middles[run], squared)
    looked_at = count
    promising = np.flatnonzero(bounds[:count] * bounds[:count] < distances[0])
    for place in promising[np.argsort(bounds[promising])]:
        if bounds[place] * bounds[place] >= distances[0]:
            break
        run = numbers[place]
        for frame in range(starts[run], starts[run + 1]):
            if frame != middles[run] and not excluded[0] <= frame < excluded[1]:
                looked_at += 1
                offer(frames, distances, frame, squared_distance(rows, frame, query, weights))
    return looked_at


@compiled
def search_all_runs(
    rows: Array, runs: tuple[Array, Array, Array], query: Array, weights: Array, excluded: Array,
    frames: Array, distances: Array,
) -> int:  # fmt: skip
    """Exact search: every run's middle, then the frames of runs that may contain better ones; return the count."""
    count = len(runs[1])
    numbers, bounds = np.arange(count), np.empty(count)
    looked_at = _look_into(numbers, count, rows, runs, query, weights, excluded, frames, distances, bounds)
    in_order(frames, distances)
    return looked_at


@compiled
def walk(
    rows: Array, runs: tuple[Array, Array, Array], run_of: Array, links: tuple[Array, Array], seeds: Array,
    probes: tuple[int, int], marks: tuple[int, Array, Array], query: Array, weights: Array, excluded: Array,
    frames: Array, distances: Array,
) -> int:  # fmt: skip
    """Walk the graph from the runs of the last neighbours to the neighbours of better ones until none is better.

    `probes` are a few other runs of the library; the walk first descends from the nearest of them.
    """
    waiting, bounds = np.empty(len(run_of), np.int64), np.empty(len(run_of))
    looked_at, count = 0, 0
    for probe in range(probes[0], probes[1]):
        count = _await(probe % len(runs[1]), marks, waiting, count)
    nearest = np.inf
    while count > 0:
        looked_at += _look_into(
            waiting, count, rows, runs, query, weights, excluded, frames, distances, bounds
        )
        order = np.argsort(bounds[:count])[:BEAM]
        if bounds[order[0]] >= nearest:
            break
        nearest = bounds[order[0]]
        count = _await_neighbours(waiting[order], links, marks, waiting, 0)
    count = 0
    for seed in seeds:
        count = _await(seed, marks, waiting, count)
    count = _await_neighbours(seeds, links, marks, waiting, count)
    while count > 0:
        looked_at += _look_into(
            waiting, count, rows, runs, query, weights, excluded, frames, distances, bounds
        )
        count = _await_neighbours(_runs_of(frames, run_of), links, marks, waiting, 0)
    in_order(frames, distances)
    return looked_at


@compiled
def _await(run: int, marks: tuple[int, Array, Array], waiting: Array, count: int) -> int:
    """Put an unseen run in the queue; return the queue's new length."""
    stamp, seen, _ = marks
    if seen[run] == stamp:
        return count
    seen[run] = stamp
    waiting[count] = run
    return count + 1


@compiled
def _await_neighbours(
    numbers: Array, links: tuple[Array, Array], marks: tuple[int, Array, Array], waiting: Array, count: int
) -> int:
    """Put the neighbours of runs in the queue, once per run; return the queue's new length."""
    stamp, _, expanded = marks
    offsets, neighbours = links
    for run in numbers:
        if expanded[run] != stamp:
            expanded[run] = stamp
            for edge in range(offsets[run], offsets[run + 1]):
                count = _await(neighbours[edge], marks, waiting, count)
    return count


@compiled
def _runs_of(frames: Array, run_of: Array) -> Array:
    """The runs of the best frames so far; empty slots have none."""
    found, count = np.empty(len(frames), np.int32), 0
    for frame in frames:
        if frame >= 0:
            found[count] = run_of[frame]
            count += 1
    return found[:count]
