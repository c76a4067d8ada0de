"""What is to be said of a solved pose: out of reach, off balance, inside itself, unlike what was learned."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from poise.skeleton.clearance import depths
from poise.skeleton.roles import MAIN_ROLES
from poise.solvers import bearing
from poise.solvers.solution import Solution

FAR = 0.01  # metres or radians from which a missed constraint is worth words
OVERHANGS = 0.03  # metres beyond the support from which a body would fall
INSIDE = 0.03  # metres that two parts are inside each other from which they do not just touch


def judged(solution: Solution, *, held: Collection[str] = (), on_floor: bool = True) -> list[str]:
    """What is wrong with a pose, a phrase each; `held` are the roles that handles place."""
    words = [
        f"{one.label}: {one.value:.2f} {one.unit} out of reach" for one in solution.relaxed if one.value > FAR
    ]
    centre, _ = solution.space.centre_of_mass(solution.q)
    if on_floor and (over := bearing.overhang(solution.pose, centre, held=set(held))) > OVERHANGS:
        words.append(f"off balance: the weight is {100 * over:.0f} cm beyond what carries it")
    words += [f"{one} is inside {other}" for one, other in _crossings(solution)]
    return words + ([solution.strangeness] if solution.strangeness else [])


def nearest_in_words(solution: Solution) -> str:
    """The frames that are nearest to a pose; empty where the model keeps none."""
    found = [f"{one.clip} frame {one.frame} ({100 * one.distance:.0f} cm)" for one in solution.nearest()]
    return f"nearest frames: {', '.join(found)}" if found else ""


def _crossings(solution: Solution) -> list[tuple[str, str]]:
    """Parts of a body that are inside each other."""
    skeleton = solution.space.skeleton
    if not set(MAIN_ROLES) <= set(skeleton.roles):
        return []
    deep = depths(skeleton, np.asarray(solution.positions)[None])
    return [pair for pair, depth in deep.items() if depth[0] > INSIDE]
