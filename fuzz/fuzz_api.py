"""Call Poise's public functions with arguments of any type and size: python fuzz/fuzz_api.py --count 20000 --seed 0"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from running import Case, parser, run

import poise

HAND = {"left_hand": (0.3, 1.2, 0.4)}
Call = Callable[[poise.Motion, poise.GaussianPrior, Any], Any]

CALLS: dict[str, Call] = {
    "Motion.fps": lambda w, _, v: poise.Motion(w.skeleton, v, w.root_positions, w.rotations),
    "Motion.roots": lambda w, _, v: poise.Motion(w.skeleton, 30.0, v, w.rotations),
    "Motion.rotations": lambda w, _, v: poise.Motion(w.skeleton, 30.0, w.root_positions, v),
    "Motion.skeleton": lambda w, _, v: poise.Motion(v, 30.0, w.root_positions, w.rotations),
    "Pose.rotations": lambda w, _, v: poise.Pose(w.skeleton, np.zeros(3), v),
    "Pose.root": lambda w, _, v: poise.Pose(w.skeleton, v, w.rotations[0]),
    "Skeleton.offsets": lambda _w, _, v: poise.Skeleton(("a", "b"), np.array([-1, 0]), v),
    "Skeleton.parents": lambda _w, _, v: poise.Skeleton(("a", "b"), v, np.zeros((2, 3))),
    "Skeleton.names": lambda _w, _, v: poise.Skeleton(v, np.array([-1, 0]), np.zeros((2, 3))),
    "Markers.labels": lambda _w, _, v: poise.Markers(v, np.zeros((2, 1, 3)), 30.0),
    "Markers.points": lambda _w, _, v: poise.Markers(("a",), v, 30.0),
    "Markers.fps": lambda _w, _, v: poise.Markers(("a",), np.zeros((2, 1, 3)), v),
    "JointLimits": lambda _w, _, v: poise.JointLimits(v, np.zeros((1, 3)), np.ones((1, 3))),
    "Handle": lambda _w, g, v: poise.solve(g, {poise.Handle("left_hand", v): (0.3, 1.2, 0.4)}),
    "Position.target": lambda _w, g, v: poise.solve(g, {"left_hand": v}),
    "Position.number": lambda _w, g, v: poise.solve(g, {"left_hand": (v, 1.0, 1.0)}),
    "Position.tolerance": lambda _w, g, v: poise.solve(
        g, [poise.Position("left_hand", (0.3, 1.2, 0.4), tolerance=v)]
    ),
    "Position.priority": lambda _w, g, v: poise.solve(
        g, [poise.Position("left_hand", (0.3, 1.2, 0.4), priority=v)]
    ),
    "Orientation": lambda _w, g, v: poise.solve(g, [poise.Orientation("left_hand", v)]),
    "LookAt": lambda _w, g, v: poise.solve(g, [poise.LookAt("head", v)]),
    "solve.model": lambda _w, _, v: poise.solve(v, HAND),
    "solve.root": lambda _w, g, v: poise.solve(g, HAND, root=v),
    "solve.method": lambda _w, g, v: poise.solve(g, HAND, method=v),
    "solve.settings": lambda _w, g, v: poise.solve(g, HAND, settings=v),
    "solve.start": lambda _w, g, v: poise.solve(g, HAND, start=v),
    "solve.fps": lambda _w, g, v: poise.solve(g, HAND, fps=v),
    "solve.before": lambda _w, g, v: poise.solve(g, HAND, before=v),
    "Settings.tolerance": lambda _w, g, v: poise.solve(g, HAND, settings=poise.Settings(tolerance=v)),
    "Settings.steps": lambda _w, g, v: poise.solve(g, HAND, settings=poise.Settings(finish_steps=v)),
    "track": lambda _w, g, v: poise.track(g, v),
    "solve_batch": lambda _w, g, v: poise.solve_batch(g, v),
    "pose": lambda _w, g, v: poise.pose(v, g),
    "pose.tolerance": lambda _w, g, v: poise.pose(HAND, g, tolerance=v),
    "pose.look_at": lambda _w, g, v: poise.pose(HAND, g, look_at=v),
    "learn.kind": lambda w, _, v: poise.learn(w, kind=v),
    "learn.clusters": lambda w, _, v: poise.learn(w, kind="gaussian", clusters=v),
    "simulate": lambda _w, _, v: poise.simulate(v),
    "retarget": lambda w, _, v: poise.retarget(v, w.skeleton),
    "repair": lambda _w, _, v: poise.repair(v),
    "virtual_markers": lambda _w, _, v: poise.virtual_markers(v),
    "read": lambda _w, _, v: poise.read(v),
    "write": lambda _w, _, v: poise.write(v, "nowhere/a.bvh"),
    "act.seconds": lambda _w, _, v: poise.performer.act("walk", seconds=v, fps=30),
}


def main() -> int:
    """Run the fuzzer; return 1 if anything failed."""
    options = parser(__doc__, count=20_000).parse_args()
    walk = poise.performer.act("walk", seconds=0.3, fps=30)
    model = poise.GaussianPrior.learn([walk], clusters=3)
    poise.pose(HAND, model)
    cases: dict[str, Case] = {name: partial(_case, call, walk, model) for name, call in CALLS.items()}
    return 1 if run(cases, options) else 0


def _case(
    call: Call, walk: poise.Motion, model: poise.GaussianPrior, generator: np.random.Generator, folder: Path
) -> None:
    value = odd_value(generator, walk, model)
    (folder / "value.txt").write_text(repr(value)[:2000])
    call(walk, model, value)


def odd_value(generator: np.random.Generator, walk: poise.Motion, model: poise.GaussianPrior) -> Any:
    """A value of a random type: numbers at the edges, empty and ragged lists, arrays, objects of Poise."""
    plain = (
        10**400, -(10**400), 0, -1, 3, True, 0.5, 1e-320, 1e308, float("nan"), float("inf"), 1j, None, "", "x",
        "solved", b"x", (), {}, object(), np.float32(0.5), np.int8(-3), np.bool_(True), Path("nowhere"),
        walk, model, walk.skeleton, walk[0], poise.Settings(), HAND, [HAND],
        [poise.Position("left_hand", (0.3, 1.2, 0.4))],
    )  # fmt: skip
    kind = generator.integers(0, 4)
    if kind == 0:
        return plain[int(generator.integers(0, len(plain)))]
    if kind == 1:
        return [plain[int(k)] for k in generator.integers(0, len(plain), int(generator.integers(0, 4)))]
    shape = generator.integers(0, 5, int(generator.integers(0, 4)))
    array = generator.normal(size=shape)
    if kind == 2 and array.size:
        array.flat[0] = (np.nan, np.inf, 1e308, 0.0)[int(generator.integers(0, 4))]
    kinds = (np.float64, np.float16, np.int32, np.complex128, np.object_, np.str_)
    with np.errstate(all="ignore"):
        return array.astype(kinds[int(generator.integers(0, len(kinds)))]) if kind == 2 else array.tolist()


if __name__ == "__main__":
    sys.exit(main())
