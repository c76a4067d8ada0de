"""Protocol `search` (Chai and Hodgins 2005, Table 1): nearest frames during a performance, by several searches.

All clips are in the library; while one is performed, its own frames and copies of them are left out. All methods get
the same queries: the markers of the performed clip, and the two previous poses synthesized from an exact search. A
method's loss is the angle between the poses synthesized from its frames and from the exact ones, by a principal
subspace of the neighbours and Eq. 9 as in the paper; and, harder, between their distance-weighted means. Searches with
a memory need consecutive frames; so a part of each clip is performed, not every n-th frame of it. Methods without a
memory answer every tenth query only.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.published.subspaces import principal_subspace, synthesize
from poise.evaluation.report import ABOUT, EveryFrame, Protocol, Report, Request, Row, Step
from poise.evaluation.searches import ExactSearch, FaissSearch, GraphSearch, build_graph
from poise.evaluation.splits import Fold
from poise.library import CoherentSearch, ExhaustiveSearch, Found, Poses, QueryMetric, Runs, Search, find_runs
from poise.motion.edit import mirror, resample
from poise.motion.motion import Motion
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.types import Array, NamedProgress, silent

if TYPE_CHECKING:
    from poise.pictures.plots import Plot

_Tally = tuple[float, float, float, int, bool]

METHODS = ("coherent", "coherent-exact", "graph", "faiss", "exhaustive")
OVER_SIZES = ("coherent", "coherent-exact", "faiss")  # the default methods
REMEMBERING = ("coherent", "coherent-exact", "graph")
MARKERS = (
    *("left_hand", "right_hand", "left_foot", "right_foot", "left_upper_arm", "right_upper_arm"),
    *("left_thigh", "right_thigh", "head"),
)
NEIGHBOURS = 30
DIMENSIONS = 6  # of the subspace; the paper's are "usually less than seven"
PERFORMED = 120  # consecutive frames of each clip, from its middle
SPARED = 10  # a method without a memory answers every `SPARED`-th query only
SLOW = 0.78  # speed of the slow copies: with mirrored ones, they enlarge a library 3.3 times
SHARES = (0.25, 0.5)  # of the clips, in smaller libraries
COPIED = ("with mirrored copies", "with all copies")

_AT_HOME = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])  # markers are in the root's frame


@dataclass(frozen=True, eq=False)
class _Searched:
    """A library ready for searching."""

    poses: Poses
    metric: QueryMetric
    handles: Handles
    rows: Float[Array, "frames columns"]
    runs: Runs

    def search(self, method: str) -> tuple[Search, float]:
        """A search and the processor time of its construction."""
        poses, rows = self.poses, self.rows
        made: dict[str, Callable[[], Search]] = {
            "coherent": lambda: CoherentSearch(find_runs(poses), rows),
            "coherent-exact": lambda: CoherentSearch(find_runs(poses), rows, care=1.0),
            "graph": lambda: GraphSearch(build_graph(poses), rows),
            "faiss": lambda: FaissSearch(rows),
            "exhaustive": lambda: ExhaustiveSearch(rows),
        }
        begun = time.process_time()
        return made[method](), time.process_time() - begun

    def pose(
        self, found: Found, markers: Float[Array, "handles 3"], expected: Float[Array, "maps"] | None
    ) -> Float[Array, "maps"]:
        """The pose synthesized from the found ones: a principal subspace, and Eq. 9 in it."""
        near = self.poses.maps[found.frames].astype(np.float64)
        q = synthesize(
            self.poses.space, self.handles, root=_AT_HOME, targets=markers,
            subspace=principal_subspace(near, DIMENSIONS), start=near[0], expected=expected,
        )  # fmt: skip
        return q[ROOT_SIZE:]


@dataclass(frozen=True, eq=False)
class _Moment:
    """One frame of a performance: the query, and the result of an exact search."""

    markers: Float[Array, "handles 3"]
    expected: Float[Array, "maps"] | None
    query: Float[Array, "columns"]
    found: Found
    pose: Float[Array, "maps"]


def evaluate_search(
    folds: Sequence[Fold], *, methods: Sequence[str] = (), stride: int = 1, progress: NamedProgress = silent
) -> list[Row]:
    """A row per method on the whole library, then on smaller and larger ones, there without the exhaustive search.

    Without `methods`, all are measured on the whole library, and `OVER_SIZES` on the others.
    """
    if stride < 1:
        raise InvalidValueError(f"the stride must be at least 1 frame; got {stride}")
    for method in methods:
        if method not in METHODS:
            raise UnknownNameError("search", method, METHODS)
    clips = [*folds[0].train, *folds[0].test]
    performed = [len(folds[0].train) + number for number in range(len(folds[0].test))]
    rows: list[Row] = []
    sizes = ["whole", *(f"{share:g} of it" for share in SHARES), *COPIED]
    for done, size in enumerate(sizes):
        progress(f"library {size}", done, len(sizes))
        library, tests = _library(clips, performed, size)
        wanted = methods or METHODS
        if size != "whole":
            wanted = [method for method in methods or OVER_SIZES if method != "exhaustive"]
        rows += _measured(library, tests, wanted, size=size, stride=stride)
    return rows


def _library(
    clips: Sequence[Motion], performed: Sequence[int], size: str
) -> tuple[_Searched, list[tuple[slice, slice]]]:
    """The clips of a size; the frames of each performed one, and others with the same content."""
    chosen = [clips[number] for number in performed]
    others = [clip for number, clip in enumerate(clips) if number not in set(performed)]
    if size.endswith("of it"):
        others = others[:: round(1 / float(size.split()[0]))]
    families = [[clip] for clip in (*chosen, *others)]
    for family in families:
        clip = family[0]
        if size in COPIED:
            family.append(replace(mirror(clip), name=f"{clip.name} mirrored"))
        if size == COPIED[-1] and len(clip) > 1:
            family.append(replace(resample(clip, clip.fps / SLOW), fps=clip.fps, name=f"{clip.name} slow"))
    poses = Poses.of_motions([clip for family in families for clip in family])
    handles = poses.space.handles(MARKERS)
    metric = QueryMetric.balanced(poses, handles)
    ends = np.cumsum([0, *(sum(len(clip) for clip in family) for family in families)]).tolist()
    tests = [
        (slice(ends[number], ends[number] + len(clip)), slice(ends[number], ends[number + 1]))
        for number, clip in enumerate(chosen)
    ]
    return _Searched(poses, metric, handles, metric.rows(poses, handles), find_runs(poses)), tests


def _measured(
    library: _Searched,
    tests: Sequence[tuple[slice, slice]],
    methods: Sequence[str],
    *,
    size: str,
    stride: int,
) -> list[Row]:
    """The methods' rows on one library; all get the same queries, and the exact search leads."""
    exact = ExactSearch(library.runs, library.rows)
    searches, prepared = {}, {}
    for method in methods:
        searches[method], prepared[method] = library.search(method)
    for search in (exact, *searches.values()):  # nothing is compiled during the measurement
        for row in library.rows[:2]:
            search.nearest(row, NEIGHBOURS)
    tallies: dict[str, list[_Tally]] = {method: [] for method in methods}
    for own, same in tests:
        moments = list(_performance(library, exact, own, same, stride))
        for method, search in searches.items():  # one after the other, so that none clears another's caches
            search.forget()
            asked = moments if method in REMEMBERING else moments[::SPARED]
            for moment in asked:
                begun = time.process_time()
                found = search.nearest(moment.query, NEIGHBOURS, exclude=same)
                took, lost, lost_of_mean = time.process_time() - begun, 0.0, 0.0
                if not np.array_equal(found.frames, moment.found.frames):
                    lost = _angle(library.pose(found, moment.markers, moment.expected) - moment.pose)
                    means = (_mean(library.poses, one) for one in (found, moment.found))
                    lost_of_mean = _angle(np.subtract(*means))
                tallies[method].append((took, lost, lost_of_mean, found.visited, found.everywhere))
    rows: list[Row] = []
    for method, tally in tallies.items():
        seconds, lost, lost_of_mean, visited, everywhere = np.array(tally).T
        rows.append(
            {
                "method": method,
                "library": size,
                "size": len(library.poses),
                "visited": float(visited.mean()),
                "visited_share": float(visited.mean() / len(library.poses)),
                "visited_max": float(visited.max()),
                "deg_lost": float(lost.mean()),
                "deg_lost_p95": float(np.percentile(lost, 95)),
                "deg_lost_of_mean": float(lost_of_mean.mean()),
                "ms_per_frame": float(1000 * seconds.mean()),
                "ms_p95": float(1000 * np.percentile(seconds, 95)),
                "ms_max": float(1000 * seconds.max()),
                "searched_everywhere": int(everywhere.sum()),
                "frames": len(tally),
                "peak_gb": _peak_gigabytes(),
                "prepared_s": prepared[method],
            }
        )
    return rows


def _performance(
    library: _Searched, exact: ExactSearch, own: slice, same: slice, stride: int
) -> Iterator[_Moment]:
    """A part of a clip, query by query, with the poses of an exact search."""
    before: Array | None = None
    before_that: Array | None = None
    first = max(own.start, (own.start + own.stop - PERFORMED * stride) // 2)
    stretch = slice(first, min(own.stop, first + PERFORMED * stride), stride)
    places = (
        np.asarray(library.rows[stretch, : 3 * len(MARKERS)], dtype=np.float64) / library.metric.scales[0]
    )
    for flat in places:
        markers = flat.reshape(-1, 3)
        query = library.metric.query(markers, before, before_that, maps=library.poses.maps.shape[1])
        found = exact.nearest(query, NEIGHBOURS, exclude=same)
        expected = None if before is None or before_that is None else 2.0 * before - before_that
        pose = library.pose(found, markers, expected)
        yield _Moment(markers, expected, query, found, pose)
        before, before_that = pose, before


@dataclass(frozen=True, eq=False)
class GraphStep:
    """One step of a search over the neighbour graph, in the plane in which poses vary most (Fig. 4 of the paper)."""

    places: Float[Array, "frames 2"]
    before: Int[Array, "count"]  # the neighbours of the previous frame
    linked: Int[Array, "linked"]  # those that the graph adds
    found: Int[Array, "count"]


def graph_step(folds: Sequence[Fold]) -> GraphStep:
    """From one frame in the middle of the first test clip to the next but one."""
    clips = [*folds[0].train, *folds[0].test]
    library, ((own, same), *_) = _library(clips, [len(folds[0].train)], "whole")
    graph = build_graph(library.poses)
    moments = list(_performance(library, ExactSearch(library.runs, library.rows), own, same, 2))
    before, found = (one.found.frames for one in moments[len(moments) // 2 :][:2])
    run_of = np.repeat(np.arange(len(graph)), np.diff(graph.runs.starts))
    reached = [graph.neighbours[graph.offsets[k] : graph.offsets[k + 1]] for k in np.unique(run_of[before])]
    linked = np.flatnonzero(np.isin(run_of, np.concatenate(reached)))
    maps = library.poses.maps.astype(np.float64)
    subspace = principal_subspace(maps, 2)
    return GraphStep((maps - subspace.mean) @ subspace.basis, before, np.setdiff1d(linked, before), found)


def graph_figure(step: GraphStep) -> Plot:
    """Fig. 4 of Chai and Hodgins 2005: a search starts at the last frame's neighbours in the neighbour graph."""
    from poise.evaluation import plots

    figure, panels = plots.panels("Poses in the two dimensions in which they vary most", columns=3)
    before = (step.before, plots.CLASSIC, "neighbours of the frame before")
    linked = (step.linked, plots.LEARNED, "linked to them")
    found = (step.found, plots.FROM_DATA, "found")
    layers = ((), (linked, before), (linked, before, found))
    for axes, shown in zip(panels, layers, strict=True):
        axes.plot(*step.places.T, ".", color=plots.GRID, markersize=2)
        for frames, colour, label in shown:
            axes.plot(*step.places[frames].T, ".", color=colour, markersize=5, label=label)
        axes.set(xticks=[], yticks=[])
    panels[-1].legend(frameon=False)
    return figure


def _mean(poses: Poses, found: Found) -> Float[Array, "maps"]:
    """The distance-weighted mean of the found poses."""
    weights = 1.0 / (found.distances + 1e-6)
    return np.asarray(weights @ poses.maps[found.frames] / weights.sum(), dtype=np.float64)


def _angle(difference: Float[Array, "maps"]) -> float:
    return float(np.degrees(np.linalg.norm(difference.reshape(-1, 3), axis=-1).mean()))


def _draw(request: Request, _report: Report, folder: Path, _step: Step) -> list[Path]:
    from poise.evaluation import plots

    return [plots.saved(graph_figure(graph_step(request.folds())), folder / "graph.png")]


PROTOCOL = Protocol(
    "search",
    ABOUT["search"],
    lambda request, progress: evaluate_search(
        request.folds(), methods=request.methods, stride=request.options.stride, progress=progress
    ),
    _draw,
    figures={"search": "search_figure"},
    methods=METHODS,
    Options=EveryFrame,
)


def _peak_gigabytes() -> float:
    """The most memory that this process has used; unknown on Windows."""
    try:
        import resource
    except ImportError:
        return math.nan
    in_bytes = 1 if sys.platform == "darwin" else 1024
    return in_bytes * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9
