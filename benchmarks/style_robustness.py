"""Thousands of handle sets far outside the data: a style must answer each with finite numbers and honest words.

    python benchmarks/style_robustness.py [--sets 5000] [CLIP ...]

Learns a style (of the performer's throw, without clips), asks it for five random handles 0.3 to 10 m from the body,
and counts; then places training poses and random poses, whose percentiles should be high and low.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np

from poise import performer
from poise.evaluation.handles import HANDLES
from poise.formats import read_motion
from poise.priors.style.prior import StylePrior
from poise.solvers.constraints import Position
from poise.solvers.solve import Solver


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clips", nargs="*", type=Path)
    parser.add_argument("--sets", type=int, default=5000)
    given = parser.parse_args()
    motions = [read_motion(clip) for clip in given.clips] or [performer.act("throw", fps=30)]
    style = StylePrior.learn(motions, dimensions=3, active=100)
    far_targets(style, given.sets)
    q = np.concatenate([style.space.q_from_frames(m.root_positions, m.rotations) for m in motions])
    known = [style.percentile(pose) for pose in q[:: max(1, len(q) // 200)]]
    print(f"training poses: median percentile {np.median(known):.0f}, lowest {min(known):.0f}")


def far_targets(style: StylePrior, sets: int) -> None:
    """Solve random handles, and count the outcomes."""
    rng = np.random.default_rng(0)
    solver = Solver(style, [Position(handle, (0.0, 0.0, 0.0)) for handle in HANDLES])
    words: Counter[str] = Counter()
    percentiles, broken, dishonest, begun = [], 0, 0, time.perf_counter()
    for _ in range(sets):
        scale = np.exp(rng.uniform(np.log(0.3), np.log(10.0)))
        targets = rng.normal(loc=(0.0, 1.0, 0.0), scale=scale, size=(len(HANDLES), 3))
        solution = solver.solve(targets=targets)
        left = max(residual.value for residual in solution.residuals)
        broken += not (np.all(np.isfinite(solution.q)) and np.isfinite(left))
        dishonest += solution.reached != (left <= solver.problem.settings.tolerance)
        words[solution.status.name.lower()] += 1
        percentiles.append(solution.percentile or 0.0)
    print(f"{sets} sets in {time.perf_counter() - begun:.0f} s: {dict(words)}")
    print(f"not finite: {broken}; status against residuals: {dishonest}")
    print(
        f"percentile: median {np.median(percentiles):.1f}, 99th of a hundred {np.percentile(percentiles, 99):.1f}"
    )


if __name__ == "__main__":
    main()
