"""Soft default posture of a keyed body: its hips face the walking direction of the feet, its weight is over them.

Two feet at one moment do not determine the heading; over a stride, one is to the left of the other. In a stride one
foot carries the body, which falls from one to the next; within a third of a second before and after, both do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from poise.apps.keyframing_script import HandlePath, Script
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton
from poise.solvers import bearing
from poise.solvers.constraints import Constraint, LookAt, Orientation
from poise.types import Array

Way = Float[Array, "frames 3"]

STEADY = 0.05  # radians: tolerance of the hips' heading
STRIDE = 1.2  # seconds: window over which the left and right sides of the feet are determined
APART = 0.03  # metres: smallest lateral distance of the feet in it
WOBBLE = 0.05  # metres: variation of that distance without a stride
AROUND = np.array([-0.35, -0.17, 0.0, 0.17, 0.35])  # seconds around a frame at which feet may carry weight


def places_of(paths: Sequence[HandlePath], skeleton: Skeleton) -> dict[str, HandlePath]:
    """The paths of joints with a role, by role."""
    at = {skeleton.index(path.handle.joint): path for path in paths if path.handle.offset == (0.0, 0.0, 0.0)}
    return {role: at[skeleton.index(role)] for role in skeleton.roles if skeleton.index(role) in at}


def headings_of(
    script: Script, places: dict[str, HandlePath], skeleton: Skeleton, times: Float[Array, "frames"]
) -> Iterator[list[Constraint]]:
    """Soft hip headings at these times: from the script, else from its feet."""
    asked = script.heading is not None or (script.keeps_heading and not _says_facing(script, places))
    for heading in forward_of(script, places, times) if asked else np.full((len(times), 3), np.nan):
        known = "pelvis" in skeleton.roles and np.all(np.isfinite(heading))
        yield [bearing.facing(heading, skeleton, at=np.zeros(3), tolerance=STEADY)] if known else []


def forward_of(script: Script, places: dict[str, HandlePath], times: Float[Array, "frames"]) -> Way:
    """The forward direction: from the script, else from its feet; NaN if they do not determine it."""
    if script.heading is not None:
        return np.tile(np.array(script.heading, dtype=np.float64), (len(times), 1))
    return _from_feet(script, places, times)


def _says_facing(script: Script, places: dict[str, HandlePath]) -> bool:
    """Whether rotations, a gaze, or handles other than the feet determine the heading."""
    turned = any(isinstance(timed.constraint, Orientation | LookAt) for timed in script.constraints)
    besides = [role for role in places if role.startswith(SIDES) and not role.endswith("_foot")]
    return bool(script.turns) or turned or bool(besides)


def _from_feet(script: Script, places: dict[str, HandlePath], times: Float[Array, "frames"]) -> Way:
    """The heading perpendicular to the feet's left-right direction over a stride; NaN without feet or if they cross."""
    if not all(f"{side}_foot" in places for side in SIDES):
        return np.full((len(times), 3), np.nan)
    left, right = (places[f"{side}_foot"].at(script.times)[:, [0, 2]] for side in SIDES)
    half = round(0.5 * STRIDE * script.fps)
    first = np.clip(np.rint(times * script.fps).astype(int) - half, 0, max(len(left) - 2 * half - 1, 0))
    return np.array(
        [_across(left[one : one + 2 * half + 1] - right[one : one + 2 * half + 1]) for one in first]
    )


def _across(apart: Float[Array, "moments 2"]) -> Float[Array, "3"]:
    """The forward direction from the vectors between right and left foot: perpendicular to their least variation.

    Striding feet pass each other along the walking direction, not across it.
    """
    known = apart[np.all(np.isfinite(apart), axis=1)]
    if len(known) == 0:
        return np.full(3, np.nan)
    mean, away = known.mean(axis=0), known - known.mean(axis=0)
    x, z = np.linalg.solve(away.T @ away / len(known) + WOBBLE**2 * np.eye(2), mean)
    size = np.hypot(x, z)
    left = mean @ (x, z) / max(size, 1e-12)
    return np.array([-z, 0.0, x]) / size if left > APART else np.full(3, np.nan)


def balances_of(
    script: Script, places: dict[str, HandlePath], skeleton: Skeleton, times: Float[Array, "frames"]
) -> Iterator[list[Constraint]]:
    """The balance constraint of every frame; None if the feet are not keyed."""
    feet = {f"{side}_foot" for side in SIDES}
    asked = script.keeps_balance and feet <= set(places)
    ways = forward_of(script, places, times) if asked else np.full((len(times), 3), np.nan)
    for time, forward in zip(times, ways, strict=True):
        moments = np.clip(time + AROUND, 0.0, script.times[-1])
        at = {role: path.at(moments) for role, path in places.items()} if asked else {}
        known = {role: way for role, way in at.items() if np.all(np.isfinite(way))}
        if not (feet <= set(known) and np.all(np.isfinite(forward))):
            yield []
            continue
        stood = [
            bearing.with_toes({role: way[k] for role, way in known.items()}, skeleton, forward)
            for k in range(len(moments))
        ]
        balance = bearing.balanced_among(stood, skeleton, held=known)
        yield [] if balance is None else [balance]
