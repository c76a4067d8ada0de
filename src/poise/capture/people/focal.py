"""The focal length of a camera of which nothing is known, from a person.

Near things look larger than far ones the more, the shorter the lens is for a picture of the same size. The detector's
shapes say what of a person is near. The focal length is that under which they fit their pixels best, held by lenses as
they mostly are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from poise.capture.people.watched import WatchedPerson, placed_shapes
from poise.geometry.cameras import Camera

USUAL = 0.25  # relative deviation of lenses from the usual one
EXACT = 0.15  # relative deviation of what typical shapes say ...
CURVED = 1.7  # ... whose misfit grows by so much of its least, times the squared relative error
LONGER = 1.2  # times as long as lenses are the shapes make them seem
WITHIN = 2.5  # times longer or shorter than usual
MOST = 40  # frames that are looked at
_WEIGHT = 1.0 / (2.0 * CURVED * EXACT**2)


def with_focal(person: WatchedPerson) -> WatchedPerson:
    """The same person before a camera with the likeliest focal length; its own is the usual one."""
    chosen = person.frames(slice(None, None, max(1, len(person) // MOST)))
    tried = np.linspace(-np.log(WITHIN), np.log(WITHIN), 9)
    least = min(misfit(chosen, by) for by in tried)

    def cost(by: float) -> float:
        off = misfit(chosen, by + np.log(LONGER))
        return float(_WEIGHT * off / max(least, 1e-12) + 0.5 * (by / USUAL) ** 2)

    found = minimize_scalar(cost, bounds=(tried[0], tried[-1]), method="bounded", options={"xatol": 0.01})
    return replace(person, cameras=[_lengthened(person.cameras[0], float(found.x))])


def misfit(person: WatchedPerson, by: float) -> float:
    """Mean square of how far shapes are from pixels under exp(by) times the lens, in sides of the person's square."""
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
