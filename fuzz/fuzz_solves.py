"""Poses bodies by wild constraints with every prior and without one: python fuzz/fuzz_solves.py --count 50000

Each case is a solve: far targets, contradictions, priorities, tolerances, numbers that are not finite, starts that are
no rotation. Several after each other have the same constraints but for targets and starts, as one prepared solver
takes them. What is not refused must be finite, inside the limits, and where its residuals say it is.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_models import check, make_models
from running import Case, parser, run

from poise.errors import PoiseError
from poise.evaluation.classic import METHODS
from poise.priors.model_file import load
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
from poise.solvers.solve import Model, space_of

OFTEN = {
    "style": 10,
    "dynamics": 10,
    "blend": 5,
}  # cases in a row: these take several times as long as the others
USUALLY = 20
SAME = 145  # cases with the same constraints but for their targets: a row of each kind
JOINTS = ("left_hand", "right_hand", "left_foot", "right_foot", "head", "pelvis", "chest", "left_forearm")
SCALES = (*(0.3,) * 6, *(1.0,) * 6, 10.0, 10.0, 1e3, 1e3, 1e4, 1e9, np.inf, np.nan)
TURNS = ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (1e-200, 0.0, 0.0, 0.0), (3.0, -1.0, 2.0, 0.5))

Random = np.random.Generator


def main() -> int:
    """Run the fuzzer; return 1 if anything failed."""
    options = parser(__doc__, count=10_000).parse_args()
    with tempfile.TemporaryDirectory() as name:
        models: dict[str, Model] = {
            kind: load(Path(name) / f"{kind}.poise") for kind in make_models(Path(name))
        }
    models["dls"] = space_of(models["gaussian"]).skeleton
    cases: dict[str, Case] = {kind: partial(_case, model) for kind, model in models.items()}
    cases["classic"] = partial(_classic_case, models["dls"])
    for number in range(0, 20 * SAME, SAME):  # what is compiled at first use must not count as slow
        for case in cases.values():
            with suppress(PoiseError):
                case(np.random.default_rng([0, number]), Path())
    turns = [kind for kind in cases for _ in range(OFTEN.get(kind, USUALLY))]
    assert len(turns) == SAME
    return 1 if run(cases, options, turns=turns) else 0


def _case(model: Model, generator: Random, _folder: Path) -> None:
    shape, scale = _shape(generator), float(generator.choice(SCALES))
    root = "given" if shape.random() < 0.3 else "solved"
    given = [wild(shape, generator, scale=scale) for _ in range(int(shape.integers(0, 6)))]
    check(model, given, start=wild_start(model, generator), root=root)


def _classic_case(model: Model, generator: Random, _folder: Path) -> None:
    """The classic methods, which support positions only."""
    shape, scale = _shape(generator), float(generator.choice(SCALES))
    method, joints = str(shape.choice(list(METHODS))), JOINTS[: int(shape.integers(1, 5))]
    given = [Position(joint, _place(generator, scale)) for joint in joints]
    check(model, given, start=wild_start(model, generator), method=method)


def _shape(generator: Random) -> Random:
    """The constraints without their targets: the same for several consecutive cases."""
    seed, number = generator.bit_generator.seed_seq.entropy  # type: ignore[attr-defined]
    return np.random.default_rng([seed, number // SAME])


def wild_start(model: Model, generator: Random) -> np.ndarray | None:
    """None, or a pose vector that may be rotated, far away, or not finite."""
    if generator.random() < 0.7:
        return None
    q = generator.normal(0.0, float(generator.choice([0.3, 3.0])), space_of(model).size)
    q[3:7] = TURNS[int(generator.integers(len(TURNS)))]
    if generator.random() < 0.2:
        q[int(generator.integers(len(q)))] = generator.choice([np.nan, np.inf, 1e30, -1e4, 1e-320])
    return q


def wild(shape: Random, generator: Random, *, scale: float) -> Constraint:
    """A constraint of any kind, soft or of some priority (by `shape`), at a target that may be far (by `generator`)."""
    joint, other = map(str, shape.choice(JOINTS, 2))
    at = Handle(joint, tuple(shape.normal(0.0, 0.05, 3))) if shape.random() < 0.3 else joint
    odd = shape.random() < 0.03  # beyond what is taken
    shared: dict[str, Any] = {
        "priority": int(shape.choice([10**6, -(10**6)] if odd else [0, 0, 0, 1, 2, 7, -3, 78]))
    }
    if shape.random() < 0.4:
        shared["tolerance"] = float(
            shape.choice([1e-12, 1e200, np.nan] if odd else [1e-5, 0.01, 0.1, 1.0, 1e3])
        )
    elif shape.random() < 0.2:
        shared["weight"] = float(shape.choice([1e-320, 1e308] if odd else [0.0, 1e-3, 1.0, 1e9]))
    place = _place(generator, scale)
    kinds = (
        lambda: Position(at, place, **shared),
        lambda: Position(at, place, **shared),
        lambda: Orientation(at, generator.normal(size=4), **shared),
        lambda: LookAt(at, place, **shared),
        lambda: Line(at, place, generator.normal(size=3), **shared),
        lambda: Plane(at, place, generator.normal(size=3), **shared),
        lambda: HalfSpace(at, place, **shared),
        lambda: Distance(at, other, float(abs(place[0])), **shared),
        lambda: CentreOfMass([place[[0, 2]]], **shared),
    )
    return kinds[int(shape.integers(len(kinds)))]()


def _place(generator: Random, scale: float) -> np.ndarray:
    return generator.normal((0.0, 1.0, 0.0), 0.3) * (1.0 if generator.random() < 0.5 else scale)


if __name__ == "__main__":
    sys.exit(main())
