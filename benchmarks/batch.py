"""Poses per second: thousands of different problems in one call on one core and on two, and one call each."""

from __future__ import annotations

import numpy as np

from benchmarks.table import Row, best_seconds
from poise.evaluation.handles import HANDLES, targets_of
from poise.evaluation.speed import body, prior, walk
from poise.geometry import rotations
from poise.solvers.constraints import Position
from poise.solvers.solve import solve, solve_batch

PROBLEMS = 5000


def run() -> list[Row]:
    """gaussian-100 and five handles with a free root: every problem has its own targets."""
    model, rng = prior(100), np.random.default_rng(0)
    handles = body().handles(HANDLES)
    recorded = np.concatenate([targets_of(walk(seed=seed), handles) for seed in range(11, 21)])
    targets = _turned(recorded[rng.integers(len(recorded), size=PROBLEMS)], rng)
    problems = [[Position(name, point) for name, point in zip(HANDLES, one, strict=True)] for one in targets]
    solve_batch(model, problems[:10])  # nothing is compiled during the measurement
    alone, both, loop = (
        PROBLEMS / seconds
        for seconds in best_seconds(
            lambda: solve_batch(model, problems, threads=1),
            lambda: solve_batch(model, problems, threads=2),
            lambda: [solve(model, problem) for problem in problems],
            repeats=3,
        )
    )
    return [
        Row("solve_batch on two cores", both, "poses/s", alone, "one core"),
        Row("solve in a loop", loop, "poses/s", alone, "solve_batch on one core"),
    ]


def _turned(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every set of points rotated about the vertical and moved over the floor, each differently."""
    angles = rng.uniform(-np.pi, np.pi, size=len(points))
    turns = rotations.matrix_from_quaternion(
        np.column_stack([np.cos(angles / 2), 0 * angles, np.sin(angles / 2), 0 * angles])
    )
    return np.einsum("nab,nhb->nha", turns, points) + rng.normal(size=(len(points), 1, 3)) * (1.0, 0.0, 1.0)
