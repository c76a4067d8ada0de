"""A style's solver against the paper's own: L-BFGS with soft and SQP with hard constraints, from the same handles."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.table import Row
from poise import performer
from poise.evaluation.published.grochow2004 import LBFGS, SQP
from poise.priors.style.prior import StylePrior
from poise.solvers.constraints import Position
from poise.solvers.solve import Solver

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
NAMES = {LBFGS: "L-BFGS, soft", SQP: "SQP, hard"}
POSES = 12

Array = np.ndarray


def run() -> list[Row]:
    """Median time and objective over a few poses of an unseen walk, each from a cold start."""
    learned = StylePrior.learn([performer.act("walk", seconds=8.0, fps=30, seed=1)], dimensions=3, active=100)
    prior = StylePrior(learned.model, limits=learned.limits)  # independent features, as in the paper
    walk = performer.act("walk", seconds=4.0, fps=30, seed=2)
    truth = prior.space.q_from_frames(walk.root_positions, walk.rotations)[:: len(walk) // POSES]
    ours, rows = solved(prior, truth, "map"), []
    for method, name in NAMES.items():
        theirs = solved(prior, truth, method)
        rows.append(Row("a pose from scratch", ours[0] * 1e3, "ms", peer=theirs[0] * 1e3, peer_name=name))
        note = f"{theirs[2]:.0%} within 1 mm, ours {ours[2]:.0%}"
        rows.append(Row("L_IK there (less is better)", ours[1], "nats", theirs[1], name, note))
    return rows


def solved(prior: StylePrior, truth: Array, method: str) -> tuple[float, float, float]:
    """Median seconds and L_IK, and the share of poses whose handles are all within 1 mm."""
    solver = Solver(prior, [Position(name, (0.0, 0.0, 0.0)) for name in HANDLES], root="given", method=method)
    handles = prior.space.handles(HANDLES)
    seconds, losses, reached = [], [], []
    for q in truth:
        targets = prior.space.handle_positions(q, handles)[0]
        start = np.concatenate([q[:7], np.zeros(prior.mean.size)])
        begun = time.perf_counter()
        solution = solver.solve(start, targets=targets)
        seconds.append(time.perf_counter() - begun)
        losses.append(prior.place(solution.q)[1])
        reached.append(solution.reached)
    return float(np.median(seconds[1:])), float(np.median(losses)), float(np.mean(reached))
