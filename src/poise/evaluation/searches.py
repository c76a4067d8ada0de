"""Searches that the one in use, `library.CoherentSearch`, is compared with (Chai and Hodgins 2005, section 5.1).

`GraphSearch` walks the paper's neighbour graph from the last frame's neighbours and compares few frames, but misses
neighbours elsewhere. `ExactSearch` prunes whole runs and misses nothing; `FaissSearch` is faiss' exact search.

The paper joins frames whose joint angles differ by less than max(f_m / f_c * D, epsilon) on average (Eq. 4). On
hundreds of thousands of frames that gives billions of pairs where people stand still, and leaves rare poses without
neighbours. Here each run is connected to a fixed number of nearest runs and to those before and after it: the size is
linear, and a step over the graph costs the same in dense and sparse parts. The distance is L1, as in Eq. 4, over joint
angles and limb positions: searches are by markers, and poses with similar angles can have distant markers. The graph
does not depend on the marker set, which may change at any time.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.errors import InvalidValueError, MissingExtraError, ParseError
from poise.library.coherent import Runs, find_runs
from poise.library.poses import Poses, QueryMetric
from poise.library.search import (
    ExhaustiveSearch,
    Found,
    NearestQuery,
    Search,
    checked_rows,
    in_order,
    offer,
    squared_distance,
)
from poise.library.store import Library
from poise.library.tensor_file import map_tensors, write_tensors
from poise.schema import Indices, Numbers, Schema
from poise.skeleton.roles import MAIN_ROLES
from poise.skeleton.skeleton import read_only
from poise.types import Array, Progress, silent

PROBES = 64  # additional runs compared at every frame, to find better parts of the library over time
_JUMP = 1.5  # times the usual distance: the motion has left the graph's reach
_FOLLOW = 0.1  # update rate of the usual distance
BEAM = 4  # runs from which a descent continues at once
GRAPH_FILE = "graph.safetensors"
DEGREE = 24  # neighbours per run
LIMBS = tuple(role for role in MAIN_ROLES if role != "pelvis" and not role.endswith("_thigh"))
"""Joints whose positions are compared, besides the joint angles."""
_TILE = 512  # runs compared at once, so that their distances fit into the processor's cache


class ExactSearch(Search):
    """Compares every run, and the frames of runs that may contain one of the nearest; misses nothing."""

    def __init__(self, runs: Runs, rows: Float[Array, "frames columns"]) -> None:
        self._rows, self._runs = checked_rows(rows), with_radii(runs, rows)

    def nearest(self, query: Float[Array, "columns"], count: int, *, exclude: slice | None = None) -> Found:
        """The nearest frames, the same as by comparing all."""
        asked = NearestQuery.of(self._rows, query, count, exclude)
        visited = search_all_runs(
            self._rows, self._runs, asked.query, asked.weights, asked.excluded, asked.frames, asked.distances
        )
        return asked.found(visited, everywhere=True)


class GraphSearch(Search):
    """Walks the neighbour graph from the last frame's neighbours.

    If the frames found are suddenly much further than usual, the whole library is searched, and the walk continues
    from there. At every frame a few other runs of the library are compared too.
    """

    def __init__(
        self, graph: NeighbourGraph, rows: Float[Array, "frames columns"], *, probes: int = PROBES
    ) -> None:
        self._rows, self._runs = checked_rows(rows), with_radii(graph.runs, rows)
        self._links = (graph.offsets, graph.neighbours)
        self._run_of = np.repeat(np.arange(len(graph), dtype=np.int32), np.diff(graph.runs.starts))
        self._seen, self._expanded = (np.zeros(len(graph), dtype=np.int64) for _ in range(2))
        self._stamp, self._probed, self._probes = 0, 0, min(probes, len(graph))
        self.forget()

    def forget(self) -> None:
        """Start a new performance: the first frame is searched everywhere."""
        self._last: Array = np.empty(0, dtype=np.int32)
        self._usual = np.inf

    def nearest(self, query: Float[Array, "columns"], count: int, *, exclude: slice | None = None) -> Found:
        """The nearest frames that the graph leads to."""
        asked = NearestQuery.of(self._rows, query, count, exclude)
        visited, found = 0, None
        if len(self._last):
            self._stamp += 1
            probes = (self._probed, self._probed + self._probes)
            self._probed = probes[1] % len(self._seen)
            marks = (self._stamp, self._seen, self._expanded)
            visited = walk(
                self._rows, self._runs, self._run_of, self._links, self._last, probes, marks,
                asked.query, asked.weights, asked.excluded, asked.frames, asked.distances,
            )  # fmt: skip
            found = asked.found(visited)
        if found is None or not len(found.frames) or np.sqrt(found.distances[-1]) > _JUMP * self._usual:
            asked = NearestQuery.of(self._rows, query, count, exclude)
            visited += search_all_runs(
                self._rows,
                self._runs,
                asked.query,
                asked.weights,
                asked.excluded,
                asked.frames,
                asked.distances,
            )
            self._usual = np.inf  # the usual distance is estimated again from here
            found = asked.found(visited, everywhere=True)
        self._last = np.unique(self._run_of[found.frames])
        if len(found.frames):
            distance = float(np.sqrt(found.distances[-1]))
            known = np.isfinite(self._usual)
            self._usual = (1 - _FOLLOW) * self._usual + _FOLLOW * distance if known else distance
        return found


class FaissSearch(Search):
    """faiss' exact search; for queries with unknown columns, which faiss cannot ignore, every frame is compared."""

    def __init__(self, rows: Float[Array, "frames columns"]) -> None:
        self._rows = checked_rows(rows)
        self._exhaustive = ExhaustiveSearch(rows)
        with suppress(ImportError):
            import ezc3d  # noqa: F401 - it cannot write C3D files if it is loaded after faiss
        try:
            import faiss
        except ImportError as error:
            raise MissingExtraError("faiss-cpu", extra="library", purpose="searching with faiss") from error
        faiss.omp_set_num_threads(1)
        self._faiss: Any = faiss
        self._index = self._faiss.IndexFlatL2(rows.shape[1])
        self._index.add(self._rows)

    def nearest(self, query: Float[Array, "columns"], count: int, *, exclude: slice | None = None) -> Found:
        """The nearest frames."""
        if np.isnan(query).any():
            return self._exhaustive.nearest(query, count, exclude=exclude)
        options: dict[str, Any] = {}
        if exclude is not None:
            batch = self._faiss.IDSelectorRange(exclude.start, exclude.stop)
            options["params"] = self._faiss.SearchParameters(sel=self._faiss.IDSelectorNot(batch))
        asked = np.asarray(query, dtype=np.float32)[None]
        distances, frames = self._index.search(asked, min(count, len(self._rows)), **options)
        present = frames[0] >= 0
        return Found(frames[0][present], distances[0][present], len(self._rows), everywhere=True)


# --- the neighbour graph ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NeighbourGraph:
    """Runs and, for run `i`, its neighbours `neighbours[offsets[i] : offsets[i + 1]]`, nearest first."""

    runs: Runs
    offsets: Int[Array, "runs_and_end"]
    neighbours: Int[Array, "edges"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", read_only(self.offsets, dtype=np.int64))
        object.__setattr__(self, "neighbours", read_only(self.neighbours, dtype=np.int32))

    def __len__(self) -> int:
        return len(self.runs)

    def save(self, path: Path, *, fingerprint: str) -> None:
        """Store it in a file; `fingerprint` identifies its poses."""
        arrays = {
            "starts": self.runs.starts, "middles": self.runs.middles, "radii": self.runs.radii,
            "offsets": self.offsets, "neighbours": self.neighbours,
        }  # fmt: skip
        write_tensors(path, arrays, {"kind": "graph", "of": fingerprint})

    @classmethod
    def load(cls, path: Path, *, fingerprint: str, frames: int) -> NeighbourGraph | None:
        """Load a stored graph; None if it belongs to other poses."""
        arrays, header = map_tensors(path)
        if header.get("kind") != "graph" or header.get("of") != fingerprint:
            return None
        try:
            kept = _GRAPH.checked_arrays(
                arrays, {}, {"frames": frames, "up to frames": frames + 1, "any": 2**40}
            )
            _check_ranges(kept["starts"], frames, len(kept["middles"]))
            _check_ranges(kept["offsets"], len(kept["neighbours"]), len(kept["middles"]))
        except InvalidValueError as error:
            raise ParseError(f"not a graph of these poses: {error}", path=path) from error
        return cls(Runs(kept["starts"], kept["middles"], kept["radii"]), kept["offsets"], kept["neighbours"])


_GRAPH = Schema(
    {},
    lambda _header, _lengths: {
        "middles": Indices(axes="runs", below="frames"),
        "radii": Numbers(axes="runs", least=0.0),
        "starts": Indices(axes="runs_and_end", below="up to frames"),
        "neighbours": Indices(axes="edges", below="runs", empty=True),
        "offsets": Indices(axes="runs_and_end", below="any"),
    },
    {"edges": 1_000_000_000},
)


def _check_ranges(ends: Int[Array, "runs_and_end"], last: int, runs: int) -> None:
    """Raise unless the ranges follow each other from zero to `last`."""
    if len(ends) != runs + 1 or ends[0] != 0 or ends[-1] != last or np.any(np.diff(ends) < 0):
        raise InvalidValueError(f"{len(ends) - 1} ranges do not divide {last} among {runs} runs")


def build_graph(poses: Poses, *, degree: int = DEGREE, progress: Progress = silent) -> NeighbourGraph:
    """Build the graph of a library's poses; all pairs of runs are compared tile by tile, without storing them."""
    if degree < 1:
        raise InvalidValueError(f"`degree` must be at least 1; got {degree}")
    runs = find_runs(poses)
    handles = poses.space.handles([role for role in LIMBS if role in poses.skeleton.roles])
    middles = replace(poses, maps=poses.maps[runs.middles], roots=poses.roots[runs.middles])
    rows = np.ascontiguousarray(QueryMetric.balanced(poses, handles).rows(middles, handles))
    columns, count = np.ascontiguousarray(rows.T), len(runs)
    nearest = np.empty((count, degree), dtype=np.int32)
    for first in range(0, count, _TILE):
        progress(first, count)
        tile = slice(first, min(first + _TILE, count))
        _nearest_runs(rows[tile], columns, first, nearest[tile])
    progress(count, count)
    numbers = np.arange(count, dtype=np.int32)
    beside = np.stack([numbers + 1, numbers - 1], axis=1)  # the runs before and after are neighbours too
    whole = np.concatenate([beside, nearest], axis=1)
    whole[(whole >= count) | (whole < 0)] = -1  # a missing one
    repeated = (whole[:, 2:, None] == beside[:, None, :]).any(axis=-1)
    whole[:, 2:][repeated] = -1
    present = whole >= 0
    return NeighbourGraph(runs, np.concatenate([[0], np.cumsum(present.sum(axis=1))]), whole[present])


@compiled
def _nearest_runs(rows: Array, columns: Array, first: int, nearest: Array) -> None:
    """Per row, the nearest runs in order; -1 if there are no more."""
    width, count = columns.shape
    degree = nearest.shape[1]
    distances = np.empty(_TILE, np.float32)
    for row in range(len(rows)):
        best = np.full(degree, np.float32(np.inf), np.float32)
        found = np.full(degree, np.int32(-1), np.int32)
        for tile in range(0, count, _TILE):
            size = min(_TILE, count - tile)
            distances[:size] = 0.0
            for column in range(width):  # one column of many runs at a time, so that the loops vectorise
                here = rows[row, column]
                line = columns[column, tile : tile + size]
                for other in range(size):
                    distances[other] += abs(line[other] - here)
            for other in range(size):
                distance, run = distances[other], tile + other
                if distance < best[degree - 1] and run != first + row:
                    place = degree - 1
                    while place > 0 and best[place - 1] > distance:
                        best[place], found[place] = best[place - 1], found[place - 1]
                        place -= 1
                    best[place], found[place] = distance, run
        nearest[row] = found


def graph_of(library: Library, *, progress: Progress = silent) -> NeighbourGraph:
    """The neighbour graph of all poses of a library, from its cache or built, which takes a while."""
    poses, place = library.poses, library.cache / GRAPH_FILE
    if place.is_file():
        with suppress(ParseError):  # a damaged one can be built again
            kept = NeighbourGraph.load(place, fingerprint=library.fingerprint, frames=len(poses))
            if kept is not None:
                return kept
    graph = build_graph(poses, progress=progress)
    library.cache.mkdir(exist_ok=True)
    graph.save(place, fingerprint=library.fingerprint)
    return graph


# --- in compiled code -------------------------------------------------------------------------------------------------


def with_radii(runs: Runs, rows: Float[Array, "frames columns"]) -> tuple[Array, Array, Array]:
    """Runs with their radii among these rows."""
    radii = np.empty(len(runs))
    run_radii(checked_rows(rows), runs.starts, runs.middles, radii)
    return runs.starts, runs.middles, radii


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
