"""Protocol `search` (Chai and Hodgins 2005, Table 1): nearest frames during a performance, by the graph and otherwise.

All clips are in the library; while one is performed, its own frames and copies of them are left out. All methods are
asked the same queries: the markers of the performed clip, and the two poses before as put together by an exact search.
What a method loses is the angle between the poses put together from its frames and from the exact ones: means weighted
by closeness.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.handles import Row
from poise.evaluation.splits import Fold
from poise.library import (
    ExactSearch,
    ExhaustiveSearch,
    FaissSearch,
    Found,
    GraphSearch,
    NeighbourGraph,
    Poses,
    QueryMetric,
    Search,
    build_graph,
)
from poise.motion.edit import resample
from poise.motion.mirror import mirror
from poise.motion.motion import Motion

Array = np.ndarray

METHODS = ("graph", "faiss", "exhaustive")
MARKERS = (
    *("left_hand", "right_hand", "left_foot", "right_foot", "left_upper_arm", "right_upper_arm"),
    *("left_thigh", "right_thigh", "head"),
)
NEIGHBOURS = 30
SLOW = 0.78  # the speed of the slow copies: with mirrored ones, they make a library 3.3 times as large
SHARES = (0.25, 0.5)  # of the clips, in smaller libraries

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class _Searched:
    """A library ready to be searched."""

    poses: Poses
    metric: QueryMetric
    rows: Float[Array, "frames columns"]
    graph: NeighbourGraph
    seconds: float

    def search(self, method: str) -> Search:
        if method == "graph":
            return GraphSearch(self.graph, self.rows)
        return FaissSearch(self.rows) if method == "faiss" else ExhaustiveSearch(self.rows)


def evaluate_search(
    folds: Sequence[Fold],
    *,
    methods: Sequence[str] = METHODS,
    stride: int = 1,
    progress: Progress = lambda _what, _done, _all: None,
) -> list[Row]:
    """A row per method on the whole library, then per method (but the exhaustive) on smaller and larger ones."""
    if stride < 1:
        raise InvalidValueError(f"the stride is 1 or more frames; got {stride}")
    for method in methods:
        if method not in METHODS:
            raise UnknownNameError("search", method, METHODS)
    clips = [*folds[0].train, *folds[0].test]
    performed = [len(folds[0].train) + number for number in range(len(folds[0].test))]
    rows: list[Row] = []
    sizes = ["whole", *(f"{share:g} of it" for share in SHARES), "with copies"]
    for done, size in enumerate(sizes):
        progress(f"library {size}", done, len(sizes))
        library, tests = _library(clips, performed, size)
        wanted = [method for method in methods if size == "whole" or method != "exhaustive"]
        rows += _measured(library, tests, wanted, size=size, stride=stride)
    return rows


def _library(
    clips: Sequence[Motion], performed: Sequence[int], size: str
) -> tuple[_Searched, list[tuple[slice, slice]]]:
    """The clips of a size; the frames of each performed one, and those besides that hold the same."""
    chosen = [clips[number] for number in performed]
    others = [clip for number, clip in enumerate(clips) if number not in set(performed)]
    if size.endswith("of it"):
        others = others[:: round(1 / float(size.split()[0]))]
    copies = size == "with copies"
    families = [[clip, *(_copies(clip) if copies else ())] for clip in (*chosen, *others)]
    begun = time.process_time()
    poses = Poses.of_motions([clip for family in families for clip in family])
    graph = build_graph(poses)
    seconds = time.process_time() - begun
    handles = poses.space.handles(MARKERS)
    metric = QueryMetric.balanced(poses, handles)
    ends = np.cumsum([0, *(sum(len(clip) for clip in family) for family in families)]).tolist()
    tests = [
        (slice(ends[number], ends[number] + len(clip)), slice(ends[number], ends[number + 1]))
        for number, clip in enumerate(chosen)
    ]
    return _Searched(poses, metric, metric.rows(poses, handles), graph, seconds), tests


def _copies(clip: Motion) -> Iterator[Motion]:
    yield replace(mirror(clip), name=f"{clip.name} mirrored")
    if len(clip) > 1:
        yield replace(resample(clip, clip.fps / SLOW), fps=clip.fps, name=f"{clip.name} slow")


def _measured(
    library: _Searched,
    tests: Sequence[tuple[slice, slice]],
    methods: Sequence[str],
    *,
    size: str,
    stride: int,
) -> list[Row]:
    """The methods' rows on one library; all see the same queries, and the exact search leads."""
    exact = ExactSearch(library.graph.runs, library.rows)
    searches = {method: library.search(method) for method in methods}
    for search in (exact, *searches.values()):  # nothing is compiled during the measurement
        for row in library.rows[:2]:
            search.nearest(row, NEIGHBOURS)
    tallies: dict[str, list[tuple[float, float, int, bool]]] = {method: [] for method in methods}
    for own, same in tests:
        for search in searches.values():
            search.forget()
        for query, best in _performance(library, exact, own, same, stride):
            for method, search in searches.items():
                begun = time.process_time()
                found = search.nearest(query, NEIGHBOURS, exclude=same)
                took = time.process_time() - begun
                lost = _angle(_pose(library.poses, found) - best)
                tallies[method].append((took, lost, found.visited, found.everywhere))
    return [_row(method, size, library, np.array(tally)) for method, tally in tallies.items()]


def _performance(
    library: _Searched, exact: ExactSearch, own: slice, same: slice, stride: int
) -> Iterator[tuple[Float[Array, "columns"], Float[Array, "maps"]]]:
    """A clip's queries one after the other, with the poses that an exact search leads to."""
    count, before, before_that = 3 * len(MARKERS), None, None
    markers = np.asarray(library.rows[own, :count], dtype=np.float64) / library.metric.scales[0]
    for frame in markers[::stride]:
        query = library.metric.query(
            frame.reshape(-1, 3), before, before_that, maps=library.poses.maps.shape[1]
        )
        best = _pose(library.poses, exact.nearest(query, NEIGHBOURS, exclude=same))
        yield query, best
        before, before_that = best, before


def _pose(poses: Poses, found: Found) -> Float[Array, "maps"]:
    """The mean of the found poses, the closer the heavier."""
    weights = 1.0 / (found.distances + 1e-6)
    return np.asarray(weights @ poses.maps[found.frames] / weights.sum(), dtype=np.float64)


def _angle(difference: Float[Array, "maps"]) -> float:
    return float(np.degrees(np.linalg.norm(difference.reshape(-1, 3), axis=-1).mean()))


def _row(method: str, size: str, library: _Searched, tally: Float[Array, "frames 4"]) -> Row:
    seconds, lost, visited, everywhere = tally.T
    return {
        "method": method,
        "library": size,
        "size": len(library.poses),
        "visited": float(visited.mean()),
        "visited_share": float(visited.mean() / len(library.poses)),
        "visited_max": float(visited.max()),
        "deg_lost": float(lost.mean()),
        "deg_lost_p95": float(np.percentile(lost, 95)),
        "ms_per_frame": float(1000 * seconds.mean()),
        "ms_p95": float(1000 * np.percentile(seconds, 95)),
        "searched_everywhere": int(everywhere.sum()),
        "frames": len(tally),
        "build_s": library.seconds if method == "graph" else 0.0,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }
