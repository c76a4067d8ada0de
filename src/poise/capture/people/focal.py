"""Estimate the focal length of an unknown camera from a person.

Perspective exaggerates near things more for a shorter lens at the same picture size. The detector's shapes show what
is near. The focal length is the one under which they fit their pixels best, with a prior over typical lenses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poise.capture.people.watched import WatchedPerson, placed_shapes
from poise.geometry.cameras import Camera

USUAL = 0.25  # relative standard deviation of lenses from the usual one
EXACT = 0.15  # relative standard deviation of the estimate from typical shapes ...
CURVED = 1.7  # ... whose misfit grows by this factor of its minimum, times the squared relative error
LONGER = 1.2  # systematic factor by which the shapes overestimate the focal length
WITHIN = 2.5  # largest factor from the usual focal length
MOST = 40  # frames used
_WEIGHT = 1.0 / (2.0 * CURVED * EXACT**2)


def with_focal(person: WatchedPerson) -> WatchedPerson:
    """The person with the camera's most likely focal length; its own is the usual one."""
    from scipy.optimize import minimize_scalar

    chosen = person.frames(slice(None, None, max(1, len(person) // MOST)))
    tried = np.linspace(-np.log(WITHIN), np.log(WITHIN), 9)
    least = min(misfit(chosen, by) for by in tried)

    def cost(by: float) -> float:
        off = misfit(chosen, by + np.log(LONGER))
        return float(_WEIGHT * off / max(least, 1e-12) + 0.5 * (by / USUAL) ** 2)

    found = minimize_scalar(cost, bounds=(tried[0], tried[-1]), method="bounded", options={"xatol": 0.01})
    return replace(person, cameras=[_lengthened(person.cameras[0], float(found.x))])


def misfit(person: WatchedPerson, by: float) -> float:
    """Mean squared distance of shapes from pixels at exp(by) times the focal length, in sides of the square."""
    camera, pixels, weights = _lengthened(person.cameras[0], by), person.pixels[:, 0], person.weights[:, 0]
    off = camera.project(placed_shapes(camera, pixels, weights, person.shapes[:, 0])) - pixels
    squares = np.sum((off / person.sides[:, 0, None, None]) ** 2, axis=-1)
    seen = np.isfinite(squares)
    return float(np.average(squares[seen], weights=weights[seen])) if weights[seen].any() else 0.0


def _lengthened(camera: Camera, by: float) -> Camera:
    scale = np.diag([np.exp(by), np.exp(by), 1.0])
    intrinsics = scale @ camera.intrinsics
    intrinsics[:, 2] = camera.intrinsics[:, 2]
    return replace(camera, intrinsics=intrinsics)
