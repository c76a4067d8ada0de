"""What carries a keyed body: its centre of mass stays, softly, over where its feet stand shortly before and after.

In a stride nothing but one foot carries a body, and it falls from one to the next. Over a third of a second to either
side it is carried by both.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from poise.apps.keyframing_heading import forward_of
from poise.apps.keyframing_script import HandlePath, Script
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton
from poise.solvers import bearing
from poise.solvers.constraints import Constraint
from poise.types import Array

AROUND = np.array([-0.35, -0.17, 0.0, 0.17, 0.35])  # seconds about a frame at which feet may carry


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
