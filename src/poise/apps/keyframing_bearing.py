"""How a keyed body bears itself where no key says, softly: its hips face as the feet go, its weight is over them.

Two feet alone do not say which way their owner faces. Over a stride, though, one is to the left of the other. In a
stride one foot carries the body, which falls from one to the next; over a third of a second to either side both do.
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

STEADY = 0.05  # radians that hips turn from their heading, typically
STRIDE = (
    1.2  # seconds over which feet are to the left and the right of each other, whatever they do meanwhile
)
APART = 0.03  # metres that they must then be apart
WOBBLE = 0.05  # metres that this changes by while nobody strides
AROUND = np.array([-0.35, -0.17, 0.0, 0.17, 0.35])  # seconds about a frame at which feet may carry


def places_of(paths: Sequence[HandlePath], skeleton: Skeleton) -> dict[str, HandlePath]:
    """The paths of joints that have a role, by role."""
    at = {skeleton.index(path.handle.joint): path for path in paths if path.handle.offset == (0.0, 0.0, 0.0)}
    return {role: at[skeleton.index(role)] for role in skeleton.roles if skeleton.index(role) in at}


def headings_of(
    script: Script, places: dict[str, HandlePath], skeleton: Skeleton, times: Float[Array, "frames"]
) -> Iterator[list[Constraint]]:
    """Which way hips face at some times, softly: as the script says, else as its feet do."""
    asked = script.heading is not None or (script.keeps_heading and not _says_facing(script, places))
    for heading in forward_of(script, places, times) if asked else np.full((len(times), 3), np.nan):
        known = "pelvis" in skeleton.roles and np.all(np.isfinite(heading))
        yield [bearing.facing(heading, skeleton, at=np.zeros(3), tolerance=STEADY)] if known else []


def forward_of(script: Script, places: dict[str, HandlePath], times: Float[Array, "frames"]) -> Way:
    """Which way is forward: as the script says, else as its feet go; NaN where they do not say."""
    if script.heading is not None:
        return np.tile(np.array(script.heading, dtype=np.float64), (len(times), 1))
    return _from_feet(script, places, times)


def _says_facing(script: Script, places: dict[str, HandlePath]) -> bool:
    """Whether turns, a gaze, or handles besides the feet say which way a body faces."""
    turned = any(isinstance(timed.constraint, Orientation | LookAt) for timed in script.constraints)
    besides = [role for role in places if role.startswith(SIDES) and not role.endswith("_foot")]
    return bool(script.turns) or turned or bool(besides)


def _from_feet(script: Script, places: dict[str, HandlePath], times: Float[Array, "frames"]) -> Way:
    """Across what is left and right of each other over a stride; nothing without feet, and where they cross."""
    if not all(f"{side}_foot" in places for side in SIDES):
        return np.full((len(times), 3), np.nan)
    left, right = (places[f"{side}_foot"].at(script.times)[:, [0, 2]] for side in SIDES)
    half = round(0.5 * STRIDE * script.fps)
    first = np.clip(np.rint(times * script.fps).astype(int) - half, 0, max(len(left) - 2 * half - 1, 0))
    return np.array(
        [_across(left[one : one + 2 * half + 1] - right[one : one + 2 * half + 1]) for one in first]
    )


def _across(apart: Float[Array, "moments 2"]) -> Float[Array, "3"]:
    """Forward, from how far the left foot is from the right one: across the way in which that changes least.

    Feet that stride change places along the way that their owner goes, not across it.
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
    """Of every frame, that its weight is over what carries it; nothing where the feet are not keyed."""
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
