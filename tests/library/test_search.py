"""Searches: exact ones agree with a plain sort, the others follow a performance, and find their way back."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import poise
from poise import performer
from poise.errors import InvalidValueError
from poise.evaluation.searches import (
    ExactSearch,
    FaissSearch,
    GraphSearch,
    NeighbourGraph,
    build_graph,
    graph_of,
)
from poise.library import (
    CoherentSearch,
    ExhaustiveSearch,
    Poses,
    QueryMetric,
    coherent,
)

MARKERS = ["left_hand", "right_hand", "left_foot", "right_foot", "head"]


@pytest.fixture(scope="module")
def poses():
    walks = [performer.act("walk", speed=speed, seconds=3.0, fps=60, seed=1) for speed in (0.9, 1.2, 1.5)]
    return Poses.of_motions([*walks, performer.act("box", fps=60, seed=2), performer.act("throw", fps=60)])


@pytest.fixture(scope="module")
def graph(poses):
    return build_graph(poses)


@pytest.fixture(scope="module")
def metric(poses):
    return QueryMetric.balanced(poses, poses.space.handles(MARKERS))


@pytest.fixture(scope="module")
def rows(poses, metric):
    return metric.rows(poses, poses.space.handles(MARKERS))


def by_sorting(rows, query, count):
    known = ~np.isnan(query)
    return np.argsort(((rows[:, known] - query[known]) ** 2).sum(axis=1), kind="stable")[:count]


def queries(rows, *, every=37, noise=0.02):
    rng = np.random.default_rng(0)
    picked = rows[::every]
    return picked + noise * rng.normal(size=picked.shape).astype(np.float32)


def test_rows_are_equation_2(poses, metric, rows):
    """The squared distance of two rows is the metric's value, with the weights it says."""
    handles = poses.space.handles(MARKERS)
    points, maps = poses.marker_positions(handles), poses.maps
    before, before_that, now = maps[10].astype(float), maps[9].astype(float), points[11].astype(float)
    query = metric.query(now, before, before_that, maps=maps.shape[1])
    expected = (
        metric.alpha * ((points[30] - now) ** 2).sum() / metric.metres**2
        + (1 - metric.alpha) * ((maps[30] - (2 * before - before_that)) ** 2).sum() / metric.radians**2
    )
    assert ((rows[30] - query) ** 2).sum() == pytest.approx(expected, rel=1e-4)


def test_rows_kept_in_a_file_are_the_same_and_mapped(poses, metric, rows, tmp_path):
    kept = metric.rows(poses, poses.space.handles(MARKERS), keep=tmp_path / "rows.safetensors")
    np.testing.assert_array_equal(kept, rows)
    assert isinstance(kept.base, np.memmap)


@pytest.mark.parametrize("kind", ["exhaustive", "exact", "coherent", "faiss"])
def test_exact_searches_agree_with_a_sort(kind, rows, graph):
    search = {
        "exhaustive": lambda: ExhaustiveSearch(rows),
        "exact": lambda: ExactSearch(graph.runs, rows),
        "coherent": lambda: CoherentSearch(graph.runs, rows, care=1.0),
        "faiss": lambda: FaissSearch(rows),
    }[kind]()
    for query in queries(rows):
        found = search.nearest(query, 10)
        np.testing.assert_array_equal(found.frames, by_sorting(rows, query, 10))
        assert np.all(np.diff(found.distances) >= 0)


@pytest.mark.parametrize("kind", [ExhaustiveSearch, FaissSearch])
def test_unknown_columns_take_no_part(kind, rows):
    query = queries(rows)[3].copy()
    query[2:9] = np.nan
    np.testing.assert_array_equal(kind(rows).nearest(query, 5).frames, by_sorting(rows, query, 5))


def test_c3d_files_are_written_after_a_search(tmp_path):
    pytest.importorskip("ezc3d")
    script = (
        "import sys, numpy as np, poise; from poise.motion import Markers;"
        "from poise.evaluation.searches import FaissSearch;"
        "FaissSearch(np.eye(4)).nearest(np.zeros(4), 1);"
        "poise.write(Markers(('A',), np.ones((2, 1, 3)), 60.0), sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.c3d")], check=True)
    assert len(poise.read(tmp_path / "a.c3d")) == 2


def test_excluded_frames_are_left_out(rows, graph):
    for search in (
        ExhaustiveSearch(rows),
        ExactSearch(graph.runs, rows),
        CoherentSearch(graph.runs, rows),
        FaissSearch(rows),
        GraphSearch(graph, rows),
    ):
        found = search.nearest(rows[100], 20, exclude=slice(50, 180))
        assert len(found.frames) == 20
        assert not np.any((found.frames >= 50) & (found.frames < 180))


def test_exact_search_looks_at_fewer_frames(rows, graph):
    found = ExactSearch(graph.runs, rows).nearest(rows[40], 5)
    assert found.visited < len(rows) / 2


def performance(rows, rng, *, frames, step):
    """From somewhere near the library through it and out of it; now and then a jump, or columns that are unknown."""
    query = rows[rng.integers(len(rows))] + 0.3 * rng.normal(size=rows.shape[1])
    unseen = slice(0, 0)
    for _ in range(frames):
        query = query + step * rng.normal(size=rows.shape[1]) / np.sqrt(rows.shape[1])
        if rng.random() < 0.05:
            query = rows[rng.integers(len(rows))].astype(float)
        if rng.random() < 0.1:
            unseen = slice(0, 3 * int(rng.integers(0, 3)))
        seen = query.copy()
        seen[unseen] = np.nan
        yield seen.astype(np.float32)


@given(seed=st.integers(0, 10_000), step=st.sampled_from([0.003, 0.05, 0.5]))
@example(seed=38, step=0.5)  # nearly all of the last neighbours are left out
@settings(max_examples=15, deadline=None)
def test_the_coherent_search_misses_nothing_with_full_care(rows, graph, seed, step):
    rng = np.random.default_rng(seed)
    search, everything = CoherentSearch(graph.runs, rows, care=1.0), ExhaustiveSearch(rows)
    for number, query in enumerate(performance(rows, rng, frames=40, step=step)):
        without = slice(30, 90) if number % 3 == 0 else None
        found = search.nearest(query, 7, exclude=without)
        best = everything.nearest(query, 7, exclude=without)
        np.testing.assert_allclose(found.distances, best.distances, rtol=1e-6)


def test_with_less_care_only_frames_that_hardly_matter_are_missed(rows, graph):
    """Through jumps, and markers that are not seen: what is found is nearly as near, for fewer looks."""
    far, looked = [], {1.0: 0, coherent.CARE: 0}
    for seed in range(5):
        searches = {care: CoherentSearch(graph.runs, rows, care=care) for care in looked}
        for query in performance(rows, np.random.default_rng(seed), frames=60, step=0.05):
            found = {care: search.nearest(query, 20) for care, search in searches.items()}
            for care, each in found.items():
                looked[care] += each.visited
            careful, default = (np.sqrt(found[care].distances).mean() for care in looked)
            far.append(default / max(careful, 1e-9))
    assert looked[coherent.CARE] < 0.85 * looked[1.0]
    assert 1.0 <= np.mean(far) < 1.002
    assert np.max(far) < 1.05


def test_the_coherent_search_goes_on_when_its_memory_is_full(rows, graph, monkeypatch):
    monkeypatch.setattr(coherent, "MEMORY", 5)
    search, everything = CoherentSearch(graph.runs, rows, care=1.0), ExhaustiveSearch(rows)
    for query in rows[100:150] + np.float32(0.05):
        found = search.nearest(query, 10)
        np.testing.assert_allclose(found.distances, everything.nearest(query, 10).distances, rtol=1e-6)


def test_the_coherent_search_looks_at_few_frames_of_a_performance_far_from_the_library(rows, graph):
    search = CoherentSearch(graph.runs, rows)
    visited = [search.nearest(row, 5).visited for row in rows[100:160] + np.float32(0.05)]
    assert np.mean(visited[1:]) < 0.25 * len(rows)
    assert visited[0] > 1.5 * np.mean(visited[1:])


def test_the_coherent_search_begins_everywhere_and_when_other_markers_are_seen(rows, graph):
    search = CoherentSearch(graph.runs, rows)
    hidden = rows[6].copy()
    hidden[:3] = np.nan
    assert [search.nearest(row, 5).everywhere for row in (rows[4], rows[5], hidden)] == [True, False, True]
    search.forget()
    assert search.nearest(hidden, 5).everywhere


def test_the_graph_follows_a_performance(poses, rows, graph, metric):
    """Markers of a walk that is in no clip: what the graph finds is what an exact search finds, for far fewer looks."""
    walk = Poses.of_motions([performer.act("walk", speed=1.35, seconds=2.0, fps=60, seed=9)])
    points = walk.marker_positions(MARKERS)
    graphed, exact = GraphSearch(graph, rows, probes=8), ExactSearch(graph.runs, rows)
    missed, before, before_that = 0, None, None
    for frame in points:
        query = metric.query(frame.astype(float), before, before_that, maps=poses.maps.shape[1])
        found, best = graphed.nearest(query, 5), exact.nearest(query, 5)
        missed += found.frames[0] != best.frames[0]
        before, before_that = poses.maps[best.frames[0]].astype(float), before
    assert missed <= 2


def test_the_graph_finds_its_way_back(rows, graph):
    """From one clip to another at once: the jump is seen, the whole library searched, and the graph goes on."""
    search = GraphSearch(graph, rows, probes=1)
    for frame in range(20, 40):
        search.nearest(rows[frame] + 0.01, 5)
    there = len(rows) - 60
    found = search.nearest(rows[there] + 0.01, 5)
    assert found.everywhere
    assert there in found.frames
    assert not search.nearest(rows[there + 1] + 0.01, 5).everywhere


def test_a_new_performance_starts_everywhere(rows, graph):
    search = GraphSearch(graph, rows)
    assert search.nearest(rows[3], 5).everywhere
    assert not search.nearest(rows[4] + 0.001, 5).everywhere
    search.forget()
    assert search.nearest(rows[5], 5).everywhere


def test_runs_cover_every_frame_once(poses, graph):
    runs = graph.runs
    assert (runs.starts[0], runs.starts[-1]) == (0, len(poses))
    assert np.all(np.diff(runs.starts) > 0)
    assert np.all((runs.middles >= runs.starts[:-1]) & (runs.middles < runs.starts[1:]))
    for first, last in zip(poses.starts[:-1], poses.starts[1:], strict=True):
        assert first in runs.starts
        assert last in runs.starts
    for run in range(0, len(runs), 7):
        inside = poses.maps[runs.starts[run] : runs.starts[run + 1]]
        furthest = np.abs(inside - poses.maps[runs.middles[run]]).mean(axis=1).max()
        assert runs.radii[run] == pytest.approx(furthest, abs=1e-6)


def test_runs_are_joined_once_and_to_those_beside_them(graph):
    assert len(graph.neighbours) == graph.offsets[-1]
    for run in range(len(graph)):
        edges = graph.neighbours[graph.offsets[run] : graph.offsets[run + 1]]
        assert run not in edges
        assert len(set(edges.tolist())) == len(edges)
        assert {run - 1, run + 1} & set(range(len(graph))) <= set(edges.tolist())


def test_a_graph_is_kept_with_its_library(library):
    first = graph_of(library)
    place = library.cache / "graph.safetensors"
    written = place.stat().st_mtime_ns
    np.testing.assert_array_equal(graph_of(library).neighbours, first.neighbours)
    assert place.stat().st_mtime_ns == written
    assert NeighbourGraph.load(place, fingerprint="another library's", frames=1) is None
    place.write_bytes(place.read_bytes()[:100])
    np.testing.assert_array_equal(graph_of(library).neighbours, first.neighbours)


def test_mistakes_are_told(rows, poses, graph):
    with pytest.raises(InvalidValueError, match=r"`care` must be between 0 and 1 .*; got 1\.5"):
        CoherentSearch(graph.runs, rows, care=1.5)
    with pytest.raises(InvalidValueError, match="`count` must be at least 1; got 0"):
        ExhaustiveSearch(rows).nearest(rows[0], 0)
    with pytest.raises(InvalidValueError, match=r"a query needs \d+ columns"):
        ExhaustiveSearch(rows).nearest(rows[0, :5], 3)
    with pytest.raises(InvalidValueError, match="must be between 0 and 1; got 2"):
        QueryMetric(2.0)
    with pytest.raises(InvalidValueError, match="`degree` must be at least 1; got 0"):
        build_graph(poses, degree=0)
