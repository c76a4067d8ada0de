"""Nearest frames of a library, for every frame of a performance (Chai and Hodgins 2005, section 5.1).

`GraphSearch` walks the graph from the last frame's neighbours and compares few frames, but misses neighbours elsewhere
(see `coherent` for a search that does not). `ExactSearch` prunes whole runs and misses nothing; `FaissSearch` is
faiss' exact search and `ExhaustiveSearch` compares every frame: these are the references for the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError, MissingExtraError
from poise.library import search_kernels
from poise.library.graph import NeighbourGraph
from poise.library.segments import Runs
from poise.types import Array

PROBES = 64  # additional runs compared at every frame, to find better parts of the library over time
_JUMP = 1.5  # times the usual distance: the motion has left the graph's reach
_FOLLOW = 0.1  # update rate of the usual distance
_NOTHING = np.zeros(2, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Found:
    """The nearest frames in order, their squared distances, and the number of frames compared."""

    frames: Int[Array, "found"]
    distances: Float[Array, "found"]
    visited: int
    everywhere: bool = False
    """Whether the whole library was searched: there was no last frame, or its neighbours did not lead here."""


class Search(ABC):
    """Searches for the nearest frames of consecutive queries."""

    @abstractmethod
    def nearest(self, query: Float[Array, "columns"], count: int, *, exclude: slice | None = None) -> Found:
        """The nearest frames to a row, without those in `exclude`; NaN columns are ignored."""

    def forget(self) -> None:  # noqa: B027  # most have no state
        """Start a new performance."""


class ExhaustiveSearch(Search):
    """Compares every frame."""

    def __init__(self, rows: Float[Array, "frames columns"]) -> None:
        self._rows = checked_rows(rows)

    def nearest(self, query: Float[Array, "columns"], count: int, *, exclude: slice | None = None) -> Found:
        """The nearest frames, each one compared."""
        asked = NearestQuery.of(self._rows, query, count, exclude)
        visited = search_kernels.scan(
            self._rows, asked.query, asked.weights, asked.excluded, asked.frames, asked.distances
        )
        return asked.found(visited, everywhere=True)


class ExactSearch(Search):
    """Compares every run, and the frames of runs that may contain one of the nearest; misses nothing."""

    def __init__(self, runs: Runs, rows: Float[Array, "frames columns"]) -> None:
        self._rows, self._runs = checked_rows(rows), with_radii(runs, rows)

    def nearest(self, query: Float[Array, "columns"], count: int, *, exclude: slice | None = None) -> Found:
        """The nearest frames, the same as by comparing all."""
        asked = NearestQuery.of(self._rows, query, count, exclude)
        visited = search_kernels.search_all_runs(
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
        found = self._walked(asked) if len(self._last) else None
        if found is None or not len(found.frames) or np.sqrt(found.distances[-1]) > _JUMP * self._usual:
            found = self._everywhere(NearestQuery.of(self._rows, query, count, exclude), found)
        self._remember(found)
        return found

    def _walked(self, asked: NearestQuery) -> Found:
        self._stamp += 1
        probes = (self._probed, self._probed + self._probes)
        self._probed = probes[1] % len(self._seen)
        visited = search_kernels.walk(
            self._rows, self._runs, self._run_of, self._links, self._last, probes,
            (self._stamp, self._seen, self._expanded), asked.query, asked.weights, asked.excluded,
            asked.frames, asked.distances,
        )  # fmt: skip
        return asked.found(visited)

    def _everywhere(self, asked: NearestQuery, walked: Found | None) -> Found:
        visited = search_kernels.search_all_runs(
            self._rows, self._runs, asked.query, asked.weights, asked.excluded, asked.frames, asked.distances
        )
        self._usual = np.inf  # the usual distance is estimated again from here
        return asked.found(visited + (walked.visited if walked else 0), everywhere=True)

    def _remember(self, found: Found) -> None:
        self._last = np.unique(self._run_of[found.frames])
        if len(found.frames):
            distance = float(np.sqrt(found.distances[-1]))
            known = np.isfinite(self._usual)
            self._usual = (1 - _FOLLOW) * self._usual + _FOLLOW * distance if known else distance


class FaissSearch(Search):
    """faiss' exact search; for queries with unknown columns, which faiss cannot ignore, every frame is compared."""

    def __init__(self, rows: Float[Array, "frames columns"]) -> None:
        self._rows = checked_rows(rows)
        self._exhaustive = ExhaustiveSearch(rows)
        self._faiss = _faiss()
        self._index = self._faiss.IndexFlatL2(rows.shape[1])
        self._index.add(self._rows)

    def nearest(self, query: Float[Array, "columns"], count: int, *, exclude: slice | None = None) -> Found:
        """The nearest frames."""
        if np.isnan(query).any():
            return self._exhaustive.nearest(query, count, exclude=exclude)
        options = {} if exclude is None else {"params": self._without(exclude)}
        distances, frames = self._index.search(
            np.asarray(query, dtype=np.float32)[None], min(count, len(self._rows)), **options
        )
        present = frames[0] >= 0
        return Found(frames[0][present], distances[0][present], len(self._rows), everywhere=True)

    def _without(self, exclude: slice) -> object:
        batch = self._faiss.IDSelectorRange(exclude.start, exclude.stop)
        return self._faiss.SearchParameters(sel=self._faiss.IDSelectorNot(batch))


@dataclass(frozen=True, eq=False)
class NearestQuery:
    """A query in the form of the kernels, and arrays for the results."""

    query: Array
    weights: Array
    excluded: Array
    frames: Array
    distances: Array

    @classmethod
    def of(cls, rows: Array, query: Array, count: int, exclude: slice | None) -> NearestQuery:
        if count < 1:
            raise InvalidValueError(f"`count` must be at least 1; got {count}")
        if query.shape != rows.shape[1:]:
            raise InvalidValueError(
                f"a query needs {rows.shape[1]} columns, as the library's rows have; got {query.shape}"
            )
        unknown = np.isnan(query)
        room = min(count, len(rows))
        return cls(
            np.where(unknown, 0.0, query).astype(np.float32),
            (~unknown).astype(np.float32),
            _NOTHING if exclude is None else np.array([exclude.start, exclude.stop]),
            np.full(room, -1),
            np.full(room, np.inf),
        )

    def found(self, visited: int, *, everywhere: bool = False) -> Found:
        """The results in the arrays after the kernels ran."""
        present = self.frames >= 0
        return Found(self.frames[present], self.distances[present], visited, everywhere)


def checked_rows(rows: Float[Array, "frames columns"]) -> Float[Array, "frames columns"]:
    if len(rows) == 0:
        raise InvalidValueError("the library has no frames to search")
    plain = np.ascontiguousarray(rows, dtype=np.float32)
    if plain.flags.writeable:
        plain = plain.view()
        plain.flags.writeable = False
    return plain


def with_radii(runs: Runs, rows: Float[Array, "frames columns"]) -> tuple[Array, Array, Array]:
    """Runs with their radii among these rows."""
    radii = np.empty(len(runs))
    search_kernels.run_radii(checked_rows(rows), runs.starts, runs.middles, radii)
    return runs.starts, runs.middles, radii


def _faiss() -> ModuleType:
    with suppress(ImportError):
        import ezc3d  # noqa: F401 - it cannot write C3D files if it is loaded after faiss
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError("faiss-cpu", extra="library", purpose="searching with faiss") from error
    faiss.omp_set_num_threads(1)
    return faiss
