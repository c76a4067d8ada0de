"""Protocol `search`: rows for methods and sizes, the default cheap and losing next to nothing."""

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.plots import search_figure
from poise.evaluation.report import Report
from poise.evaluation.search import evaluate_search, graph_figure, graph_step
from poise.evaluation.splits import Fold


@pytest.fixture(scope="module")
def fold():
    walks = [performer.act("walk", speed=1.0 + 0.1 * n, seconds=2.0, fps=60, seed=n) for n in range(5)]
    return Fold(tuple(walks[1:]), (walks[0],))


def test_every_method_on_every_size(fold):
    rows = evaluate_search([fold])
    assert [(row["method"], row["library"]) for row in rows] == [
        *((method, "whole") for method in ("coherent", "coherent-exact", "graph", "faiss", "exhaustive")),
        *(
            (method, size)
            for size in ("0.25 of it", "0.5 of it", "with mirrored copies", "with all copies")
            for method in ("coherent", "coherent-exact", "faiss")
        ),
    ]
    by_name = {(row["method"], row["library"]): row for row in rows}
    whole = by_name["coherent", "whole"]
    assert all(row["deg_lost"] < 0.05 for row in rows if row["method"] == "coherent")
    exact = by_name["coherent-exact", "whole"]
    assert exact["deg_lost"] == exact["deg_lost_of_mean"] == 0.0
    assert whole["visited"] < exact["visited"] < 0.5 * whole["size"]
    assert whole["ms_per_frame"] <= whole["ms_p95"] <= whole["ms_max"]
    assert whole["frames"] == 10 * by_name["exhaustive", "whole"]["frames"]
    assert by_name["graph", "whole"]["deg_lost"] < 0.3
    assert by_name["faiss", "whole"]["deg_lost"] < 1e-3
    assert by_name["exhaustive", "whole"]["deg_lost"] < 1e-9
    assert by_name["exhaustive", "whole"]["visited_share"] == 1.0
    assert by_name["coherent", "with all copies"]["size"] == pytest.approx(3.3 * whole["size"], rel=0.05)
    assert len(search_figure(Report("search", "performer", rows)).axes) == 2


def test_a_step_over_the_graph_finds_frames_that_it_looked_at(fold):
    step = graph_step([fold])
    looked_at = {*step.before.tolist(), *step.linked.tolist()}
    assert np.mean([frame in looked_at for frame in step.found.tolist()]) > 0.9
    assert len(looked_at) < len(step.places)
    assert len(graph_figure(step).axes) == 3


def test_mistakes_are_told(fold):
    with pytest.raises(UnknownNameError, match="no search 'grap'"):
        evaluate_search([fold], methods=["grap"])
    with pytest.raises(InvalidValueError, match="the stride must be at least 1"):
        evaluate_search([fold], stride=0)
