"""Nearest frames of a library, for every frame of a performance (Chai and Hodgins 2005, section 5.1).

`coherent.CoherentSearch` is the one in use; `ExhaustiveSearch` compares every frame.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.types import Array

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
        visited = scan(self._rows, asked.query, asked.weights, asked.excluded, asked.frames, asked.distances)
        return asked.found(visited, everywhere=True)


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
            needed = f"a query needs {rows.shape[1]} columns, as the library's rows have"
            raise InvalidValueError(f"{needed}; got {query.shape}")
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


# --- in compiled code -------------------------------------------------------------------------------------------------
# Distances are squared and Euclidean over the columns of weight one; a query's unknown columns have weight zero.


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
