"""Work on many clips by several processes, and on a real cluster: the same answers as in one process."""

import json

import numpy as np
import pytest

from poise import performer
from poise.engine import Engine
from poise.evaluation.handles import evaluate_handles
from poise.evaluation.splits import Fold
from poise.priors.gaussian import GaussianPrior
from poise.solvers.constraints import Position
from poise.solvers.solve import solve_batch

METHODS = ("dls", "gaussian-10")


@pytest.fixture(scope="module")
def walks():
    return [
        performer.act("walk", seconds=1.0, fps=15, seed=seed, speed=1.0 + 0.2 * seed) for seed in range(3)
    ]


@pytest.fixture(scope="module")
def expected(walks):
    return accuracy(evaluate_handles([Fold(tuple(walks[:2]), (walks[2],))], methods=METHODS))


def accuracy(rows):
    """All that does not depend on the machine, in the order of the methods."""
    assert [row["method"] for row in rows] == list(METHODS)
    return [
        {name: value for name, value in row.items() if name != "method" and not name.startswith("ms_")}
        for row in rows
    ]


def assert_same(rows, expected):
    for row, other in zip(accuracy(rows), expected, strict=True):
        assert row == pytest.approx(other, rel=1e-6)


def test_an_evaluation_in_two_processes(walks, expected):
    folds = [Fold(tuple(walks[:2]), (walks[2],))]
    assert_same(evaluate_handles(folds, methods=METHODS, engine=Engine(2)), expected)


@pytest.mark.slow
def test_the_command_line_spreads_an_evaluation_over_a_cluster(cluster, walks, expected, tmp_path):
    from poise import write
    from poise.cli import main

    files = [tmp_path / f"walk{number}.bvh" for number in range(3)]
    for walk, file in zip(walks, files, strict=True):
        write(walk, file)
    report = tmp_path / "report.json"
    code = main(
        ["evaluate", "handles", "--train", str(files[0]), str(files[1]), "--test", str(files[2]), "--methods",
         ",".join(METHODS), "--json", str(report), "--scheduler", cluster.scheduler_address]
    )  # fmt: skip
    assert code == 0
    rows = json.loads(report.read_text(encoding="utf-8"))["rows"]
    for row, other in zip(rows, expected, strict=True):
        assert row["deg_per_joint"] == pytest.approx(other["deg_per_joint"], rel=1e-2)


@pytest.mark.slow
def test_a_batch_solve_on_a_cluster(cluster, walks, monkeypatch):
    monkeypatch.setattr("poise.solvers.solve.STRETCH", 3)
    prior = GaussianPrior.learn(walks[:2], clusters=10)
    frames = [[Position("left_hand", (0.3, 1.0 + 0.02 * n, 0.2))] for n in range(8)]
    here = solve_batch(prior, frames, threads=1)
    there = solve_batch(prior, frames, engine=Engine(scheduler=cluster.scheduler_address))
    assert len(there) == 8
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(one.pose.rotations, other.pose.rotations, atol=1e-9)
