"""Pose a body by a few handles, for `poise pose`."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from poise.apps.outputs import STILLS, save, save_claims
from poise.errors import InvalidValueError
from poise.formats.tables import declared, key_of, read_table
from poise.priors.abilities import stands
from poise.priors.evidence import KnownFrames
from poise.priors.model_file import load, opened
from poise.priors.prior import Prior
from poise.skeleton.clearance import depths
from poise.skeleton.roles import MAIN_ROLES
from poise.skeleton.skeleton import Pose
from poise.solvers.constraints import CONSTRAINTS, Constraint, LookAt, Vector, constraint_from
from poise.solvers.corrections import Corrections
from poise.solvers.given import Given, constraints_from
from poise.solvers.posture import FORWARD, Manner, Posture, posed, settings_of
from poise.solvers.solution import Solution
from poise.solvers.touching import overhang
from poise.solvers.uncertainty import Suggestion

KEPT_MODELS, KEPT_SOLVERS = 4, 8  # for `pose`, by model, and by its handles
_KEPT = threading.local()
_people = cache(load)
FAR = 0.01  # metres or radians: smallest miss of a constraint that is reported
SUGGESTED = 3  # handles to add in a JSON report
OVERHANGS = 0.03  # metres beyond the support at which a body would fall
INSIDE = 0.03  # metres: smallest penetration of two parts that is reported


def pose(
    given: Given,
    model: Prior | str | os.PathLike[str] | None = None,
    *,
    look_at: Vector | None = None,
    floor: bool = True,
    heading: bool = True,
    balance: bool = True,
    apart: bool = True,
    tolerance: float = 1e-3,
    corrections: Corrections | str | os.PathLike[str] | None = None,
) -> Solution:
    """Return the most likely pose that meets constraints such as `{"right_hand": (x, y, z)}`; `look_at` aims the head.

    The model is a prior or its file, by default the universal prior. By default the body stands on the floor, faces
    forward, keeps its balance, lets idle arms hang and keeps its limbs apart, unless the model has learned otherwise:
    `floor`, `heading`, `balance` and `apart` switch that off. `poise.solve` adds no such defaults.
    """
    prior, asked = _people() if model is None else opened(model), constraints_from(given)
    asked += [] if look_at is None else [LookAt("head", look_at)]
    manner = Manner(
        0.0 if floor else None,
        heading=FORWARD if heading else None,
        balance=balance,
        arms=balance,
        apart=apart,
        intent=stands(prior),
    )
    if corrections is None:
        return _posture(prior, tolerance).solve(asked, manner)
    layer = corrections if isinstance(corrections, Corrections) else Corrections.load(Path(corrections))

    def find(constraints: list[Constraint], start: np.ndarray | None, patient: bool) -> Solution:
        return layer.solve(prior, constraints, start=start, settings=settings_of(tolerance, patient=patient))

    return posed(asked, prior.space.skeleton, manner, find)


def _posture(prior: Prior, tolerance: float) -> Posture:
    """A posture of this thread, since solvers have state; it keeps its model alive, so that `id` stays unique."""
    kept: OrderedDict[object, Posture] = _KEPT.__dict__.setdefault("postures", OrderedDict())
    key = id(prior), tolerance
    if key not in kept:
        kept[key] = Posture(prior, tolerance=tolerance, kept=KEPT_SOLVERS)
        if len(kept) > KEPT_MODELS:
            kept.popitem(last=False)
    return kept[key]


def handle_from_text(text: str) -> tuple[str, np.ndarray]:
    """A handle and its target from `LeftHand=0.3,1.2,0.4`, in metres."""
    name, equals, numbers = text.partition("=")
    if not equals or not name.strip():
        raise InvalidValueError(
            f"write a handle as NAME=x,y,z in metres, such as LeftHand=0.3,1.2,0.4; got {text!r}"
        )
    return name.strip(), point_from_text(numbers)


def read_constraints(path: Path, text: str | None = None) -> list[Constraint]:
    """The [[constraints]] for one pose in a file, or in a text in its place."""
    table = read_table(path, text)
    found = [constraint_from(entry) for entry in table.tables("constraints")]
    table.done()
    if not found:
        raise table.error("constraints", 'is empty; expected [[constraints]] with a kind such as "look-at"')
    return found


def table_of(kind: str) -> str:
    """The TOML template of a kind of constraint; optional keys are comments."""
    needed, others = [f'kind = "{kind}"'], list[str]()
    for each, annotation in declared(CONSTRAINTS[kind]):
        is_needed = each.default is MISSING and each.default_factory is MISSING
        (needed if is_needed else others).append(f"{key_of(each, annotation)} = ")
    return "\n".join(["[[constraints]]", *needed, *(f"# {line}" for line in others)])


def point_from_text(text: str) -> np.ndarray:
    """A point from `0.3,1.2,0.4`, in metres."""
    try:
        point = np.array([float(number) for number in text.split(",")])
    except ValueError:
        point = np.empty(0)
    if point.shape != (3,) or not np.all(np.isfinite(point)):
        raise InvalidValueError(
            f"write a point as three numbers in metres, such as 0.3,1.2,0.4; got {text!r}"
        )
    return point


def save_pose(
    solution: Solution, path: Path, handles: dict[str, np.ndarray], *, uncertainty: bool = False,
    onto: Path | None = None,
) -> Path:  # fmt: skip
    """Save the pose as a one-frame motion file, or as a picture with its handles and alternatives.

    On a character, a picture shows the character alone.
    """
    if onto is not None:
        return save(solution, path, onto=onto)
    if path.suffix.lower() in STILLS:
        return save(solution, path, handles=handles, ghosts=others_possible(solution) if uncertainty else ())
    if uncertainty:
        save_claims(path, claims(solution))
    return save(solution, path)


def claims(solution: Solution) -> dict[str, Any]:
    """The uncertainty of a pose, joint by joint, and its model's training clips: the file beside an export."""
    known: KnownFrames | None = getattr(solution.prior, "known_frames", None)
    uncertainty = solution.uncertainty

    def rounded(column: Mapping[str, float]) -> dict[str, float]:
        return {joint: round(value, 5) for joint, value in column.items()}

    return {
        "deviation_m": rounded(uncertainty.deviation),
        "radius_95_m": rounded(uncertainty.radii(0.95)),
        "turn_deviation_rad": rounded(uncertainty.turn_deviation),
        "learned_from": [source._asdict() for source in known.sources] if known is not None else [],
    }


def others_possible(solution: Solution, count: int = 5) -> list[Pose]:
    """Other poses that the handles allow, distinct from each other."""
    return [solution.space.pose_from_q(q) for q in solution.uncertainty.alternatives(count)]


def next_handles(solution: Solution) -> list[Suggestion]:
    """Handles to add, the best first; none while the given ones are out of reach."""
    out_of_reach = any(one.value > FAR for one in solution.relaxed)
    return [] if out_of_reach else solution.uncertainty.suggestions()


def missed(solution: Solution) -> bool:
    """Whether a handle is farther from its target than it should be by more than a centimetre."""
    return any(one.unit == "m" and one.value > FAR for one in solution.relaxed)


def suggested(solution: Solution) -> str:
    """The suggested handle to add, in words."""
    if not (best := next(iter(next_handles(solution)), None)):
        return "no handle is suggested: bring those out of reach nearer first"
    roles = {joint: role for role, joint in solution.space.skeleton.roles.items()}
    name = roles.get(best.joint, best.joint)
    widest = max(roles, key=lambda joint: solution.deviation[joint])
    shares = [f"{100 * mode.share:.0f} %" for mode in solution.uncertainty.modes]
    kinds = f"{len(shares)} kinds of poses are possible: {', '.join(shares)}\n" if len(shares) > 1 else ""
    return kinds + (
        f"least sure: {roles[widest]}, {100 * solution.deviation[widest]:.0f} cm; "
        f"a handle on {name} would remove {100 * best.share:.0f} % of the uncertainty"
    )


def report(solution: Solution) -> dict[str, Any]:
    """A solution as JSON."""

    def turned(pose: Pose) -> dict[str, Any]:
        turns = dict(zip(pose.skeleton.names, pose.rotations.tolist(), strict=True))
        places = {name: np.round(pose.positions[name], 5).tolist() for name in pose.skeleton.names}
        return {"root_position": pose.root_position.tolist(), "rotations_wxyz": turns, "positions_m": places}

    return {
        "status": solution.status.name.lower(),
        "words": solution.status.value,
        "reached": solution.reached,
        "iterations": solution.iterations,
        "microseconds": round(solution.microseconds, 1),
        "log_likelihood": solution.log_likelihood,
        "percentile": solution.percentile,
        "strangeness": solution.strangeness,
        "beyond_people": [str(each) for each in solution.beyond_people],
        "nearest_frames": [one._asdict() for one in solution.nearest()],
        "deviation_m": {name: round(value, 5) for name, value in solution.deviation.items()},
        "suggestions": [one._asdict() for one in next_handles(solution)[:SUGGESTED]],
        "residuals": [
            {"constraint": r.label, "value": r.value, "unit": r.unit, "hard": r.hard, "met": r.met}
            for r in solution.residuals
        ],
        "notes": list(solution.notes),
        **turned(solution.pose),
        "modes": [
            {"share": round(mode.share, 3), **turned(solution.space.pose_from_q(mode.q))}
            for mode in solution.uncertainty.modes
        ],
    }


def judged(solution: Solution, asked: Sequence[Constraint], *, on_floor: bool = True) -> list[str]:
    """Problems of a pose for which constraints were given, one phrase each."""
    words = [
        f"{one.label}: {one.value:.2f} {one.unit} out of reach" for one in solution.relaxed if one.value > FAR
    ]
    if on_floor and (over := overhang(solution, asked)) > OVERHANGS:
        words.append(f"off balance: the weight is {100 * over:.0f} cm outside the support")
    skeleton = solution.space.skeleton
    if set(MAIN_ROLES) <= set(skeleton.roles):
        deep = depths(skeleton, np.asarray(solution.positions)[None])
        words += [f"{one} is inside {other}" for (one, other), depth in deep.items() if depth[0] > INSIDE]
    words += [str(each) for each in solution.beyond_people]
    return words + ([solution.strangeness] if solution.strangeness else [])


def nearest_in_words(solution: Solution) -> str:
    """The training frames nearest to a pose; empty if the model keeps none."""
    found = [f"{one.clip} frame {one.frame} ({100 * one.distance:.0f} cm)" for one in solution.nearest()]
    return f"nearest frames: {', '.join(found)}" if found else ""
