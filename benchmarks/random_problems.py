"""Ten thousand random problems of hard handles inside human limits: no limit violated, none failed, and how close.

Targets come from random poses inside the limits, so every problem can be solved; starts are other such poses.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.table import Row
from poise.performer import PERFORMERS
from poise.skeleton.limits import human_limits
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import Position
from poise.solvers.solution import Status
from poise.solvers.solve import Solver

PROBLEMS = 10_000
HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
ROUNDING = 1e-9  # radians


def run() -> list[Row]:
    """Half of the problems with a free root, half with a given one."""
    rng = np.random.default_rng(0)
    skeleton = PERFORMERS["alex"].skeleton
    space = PoseSpace(skeleton.with_limits(human_limits(skeleton)))
    handles = space.handles(HANDLES)
    placeholders = [Position(name, (0.0, 0.0, 0.0)) for name in HANDLES]
    solvers = [Solver(space, placeholders, root="solved"), Solver(space, placeholders, root="given")]
    lower, upper = (side[7 - 1 :] for side in solvers[0].problem.limits)
    violated, failed, unmet, worst = 0, 0, 0, 0.0
    begun = time.perf_counter()
    for number in range(PROBLEMS):
        goal, start = (_random_pose(lower, upper, rng) for _ in range(2))
        start[:7] = goal[:7]
        targets, _ = space.handle_positions(goal, handles)
        solution = solvers[number % 2].solve(start, targets=targets)
        maps = solution.q[7:]
        violated += bool(np.any(maps < lower - ROUNDING) or np.any(maps > upper + ROUNDING))
        failed += solution.status is Status.BROKEN or not np.all(np.isfinite(solution.q))
        reached, _ = space.handle_positions(solution.q, handles)
        distance = float(np.linalg.norm(reached - targets, axis=1).max())
        unmet += distance > 1e-3
        worst = max(worst, distance)
    note = f"{PROBLEMS:,} problems"
    return [
        Row("solutions that violate a joint limit", violated, "", note=note),
        Row("solves without a usable pose", failed, "", note=note),
        Row("with a handle more than 1 mm off", unmet, "", note="without a prior"),
        Row("the worst handle", 1000 * worst, "mm", note=note),
        Row("a problem", 1e6 * (time.perf_counter() - begun) / PROBLEMS, "us", note="making it included"),
    ]


def _random_pose(lower: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A pose in the middle three quarters of every joint's range."""
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    maps = middle + 0.75 * half * rng.uniform(-1.0, 1.0, size=len(middle))
    return np.concatenate([rng.normal(size=3), [1.0, 0.0, 0.0, 0.0], maps])
