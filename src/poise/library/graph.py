"""The neighbour graph (after Chai and Hodgins 2005, section 5.1), between runs of frames instead of single frames.

The paper joins frames whose joint angles differ by less than max(f_m / f_c * D, epsilon) on average (Eq. 4). On
hundreds of thousands of frames that gives billions of pairs where people stand still, and leaves rare poses without
neighbours. Here each run is connected to a fixed number of nearest runs and to those before and after it: the size is
linear, and a step over the graph costs the same in dense and sparse parts. The distance is L1, as in Eq. 4, over joint
angles and limb positions: searches are by markers, and poses with similar angles can have distant markers. The graph
does not depend on the marker set, which may change at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from poise.compiled import compiled
from poise.errors import InvalidValueError, ParseError
from poise.library.features import QueryMetric
from poise.library.poses import Poses
from poise.library.segments import Runs, find_runs
from poise.library.tensor_file import map_tensors, write_tensors
from poise.schema import Indices, Numbers, Schema
from poise.skeleton.roles import MAIN_ROLES
from poise.skeleton.skeleton import read_only
from poise.types import Array

DEGREE = 24  # neighbours per run
LIMBS = tuple(role for role in MAIN_ROLES if role != "pelvis" and not role.endswith("_thigh"))
"""Joints whose positions are compared, besides the joint angles."""
_TILE = 512  # runs compared at once, so that their distances fit into the processor's cache


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


def build_graph(
    poses: Poses,
    *,
    degree: int = DEGREE,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> NeighbourGraph:
    """Build the graph of a library's poses; all pairs of runs are compared tile by tile, without storing them."""
    if degree < 1:
        raise InvalidValueError(f"`degree` must be at least 1; got {degree}")
    runs = find_runs(poses)
    rows = _compared(poses, runs)
    columns = np.ascontiguousarray(rows.T)
    nearest = np.empty((len(runs), degree), dtype=np.int32)
    for first in range(0, len(runs), _TILE):
        progress(first, len(runs))
        tile = slice(first, min(first + _TILE, len(runs)))
        _nearest_runs(rows[tile], columns, first, nearest[tile])
    progress(len(runs), len(runs))
    return NeighbourGraph(runs, *_joined(nearest))


def _compared(poses: Poses, runs: Runs) -> Float[Array, "runs columns"]:
    """The compared features of runs: joint angles and limb positions of their middle frames."""
    handles = poses.space.handles([role for role in LIMBS if role in poses.skeleton.roles])
    middles = Poses(
        poses.space,
        poses.maps[runs.middles],
        poses.roots[runs.middles],
        poses.starts,
        poses.names,
        poses.rates,
    )
    return np.ascontiguousarray(QueryMetric.balanced(poses, handles).rows(middles, handles))


def _joined(nearest: Int[Array, "runs degree"]) -> tuple[Int[Array, "runs_and_end"], Int[Array, "edges"]]:
    """Neighbours and the runs before and after, as one list per run; -1 marks missing ones."""
    count = len(nearest)
    numbers = np.arange(count, dtype=np.int32)
    beside = np.stack([numbers + 1, numbers - 1], axis=1)
    whole = np.concatenate([beside, nearest], axis=1)
    whole[(whole >= count) | (whole < 0)] = -1
    repeated = (whole[:, 2:, None] == beside[:, None, :]).any(axis=-1)
    whole[:, 2:][repeated] = -1
    present = whole >= 0
    return np.concatenate([[0], np.cumsum(present.sum(axis=1))]), whole[present]


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
