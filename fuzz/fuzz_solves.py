"""Poses bodies by wild constraints with every prior and without one: python fuzz/fuzz_solves.py --count 10000

Each case is ten solves: far targets, contradictions, priorities, tolerances, numbers that are not finite. What is not
refused must be finite, inside the limits, and where its residuals say it is.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_models import check, make_models
from running import Case, parser, run

from poise.errors import PoiseError
from poise.priors.model_file import load
from poise.priors.prior import Prior
from poise.skeleton.pose_space import Handle
from poise.solvers.constraints import (
    CentreOfMass,
    Constraint,
    Distance,
    HalfSpace,
    Line,
    LookAt,
    Orientation,
    Plane,
    Position,
)  # fmt: skip

SOLVES = 10
JOINTS = ("left_hand", "right_hand", "left_foot", "right_foot", "head", "pelvis", "chest", "left_forearm")
SCALES = (0.3, 0.3, 0.3, 1.0, 10.0, 1e3, 1e4, 1e9, np.inf, np.nan)


def main() -> int:
    """Fuzzes, and returns 1 if anything failed."""
    options = parser(__doc__, count=10_000).parse_args()
    with tempfile.TemporaryDirectory() as name:
        priors = {kind: load(Path(name) / f"{kind}.poise") for kind in make_models(Path(name))}
    for prior in priors.values():  # what is compiled at first use must not count as slow
        check(prior, [wild(np.random.default_rng(0), scale=0.3) for _ in range(3)])
    cases: dict[str, Case] = {kind: partial(_case, prior) for kind, prior in priors.items()}
    return 1 if run(cases, options) else 0


def _case(prior: Prior, generator: np.random.Generator, folder: Path) -> None:
    for _ in range(SOLVES):
        scale = float(generator.choice(SCALES))
        try:
            constraints = [wild(generator, scale=scale) for _ in range(int(generator.integers(0, 6)))]
            (folder / "constraints").write_text(repr(constraints))
            check(prior, constraints)
        except PoiseError:
            continue


def wild(generator: np.random.Generator, *, scale: float) -> Constraint:
    """A constraint of any kind, perhaps far away, soft, or of some priority."""
    offset = tuple(generator.normal(0.0, 0.05, 3)) if generator.random() < 0.3 else (0.0, 0.0, 0.0)
    at = Handle(str(generator.choice(JOINTS)), offset)
    place = generator.normal((0.0, 1.0, 0.0), 0.3) * (1.0 if generator.random() < 0.5 else scale)
    shared: dict[str, Any] = {"priority": int(generator.choice([0, 0, 0, 1, 2, 7, -3, 78, 10**6]))}
    if generator.random() < 0.4:
        shared["tolerance"] = float(generator.choice([1e-12, 1e-5, 0.01, 0.1, 1.0, 1e3, 1e200, np.nan]))
    elif generator.random() < 0.2:
        shared["weight"] = float(generator.choice([0.0, 1e-320, 1e-3, 1.0, 1e9, 1e308]))
    kinds = (
        lambda: Position(at, place, **shared),
        lambda: Position(at, place, **shared),
        lambda: Orientation(at, generator.normal(size=4), **shared),
        lambda: LookAt(at, place, **shared),
        lambda: Line(at, place, generator.normal(size=3), **shared),
        lambda: Plane(at, place, generator.normal(size=3), **shared),
        lambda: HalfSpace(at, place, **shared),
        lambda: Distance(at, str(generator.choice(JOINTS)), float(abs(place[0])), **shared),
        lambda: CentreOfMass([place[[0, 2]]], **shared),
    )
    return kinds[int(generator.integers(len(kinds)))]()


if __name__ == "__main__":
    sys.exit(main())
