"""Label a first frame from one camera, and estimate the performer's position.

One camera sees no depth. A layout is tried at every heading under weak perspective: matched to the blobs, scaled and
shifted, in rounds. Its scale gives the performer's distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from poise.types import Array
from poise.vision.first_labels import matched
from poise.vision.lens import LensCamera

_HEADINGS, _ROUNDS, _PROMISING = 16, 8, 24


@dataclass(frozen=True, eq=False)
class InPicture:
    """The marker positions of a layout, the blob of each (-1: none), and their mean error in metres."""

    points: Float[Array, "markers 3"]
    numbers: Int[Array, "markers"]
    distance: float


@dataclass(frozen=True, eq=False)
class _Fit:
    """A flat layout (metres, in the picture's axes) at a scale (inverse depth) and a shift."""

    turned: Array
    flat: Array
    scale: float
    shift: Array
    markers: Array
    numbers: Array
    distance: float


def find_in_picture(
    camera: LensCamera, centres: Float[Array, "blobs 2"], layouts: Float[Array, "layouts markers 3"]
) -> InPicture:
    """The layout and heading that explain the blobs best."""
    seen = camera.plane_from_pixels(centres)
    starts = [
        _closer(seen, *_start(seen, camera, layout, heading))
        for layout in layouts
        for heading in np.arange(_HEADINGS) * 2 * np.pi / _HEADINGS
    ]
    fits = sorted(starts, key=lambda fit: fit.distance)[:_PROMISING]
    for _ in range(_ROUNDS):
        fits = [_closer(seen, fit.turned, fit.flat, fit.scale, fit.shift) for fit in fits]
    best = min(fits, key=lambda fit: fit.distance)
    numbers = np.full(layouts.shape[1], -1)
    numbers[best.markers] = best.numbers
    return InPicture(_in_world(camera, best), numbers, best.distance)


def _start(
    seen: Array, camera: LensCamera, layout: Array, heading: float
) -> tuple[Array, Array, float, Array]:
    c, s = np.cos(heading), np.sin(heading)
    turned = (layout - layout.mean(axis=0)) @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]).T
    flat = turned @ camera.pinhole.rotation[:2].T
    scale = float(np.ptp(seen[:, 1]) / max(np.ptp(flat[:, 1]), 1e-9))
    shift = 0.5 * (seen.max(axis=0) + seen.min(axis=0)) - 0.5 * scale * (flat.max(axis=0) + flat.min(axis=0))
    return turned, flat, scale, shift


def _closer(seen: Array, turned: Array, flat: Array, scale: float, shift: Array) -> _Fit:
    """One round: the nearest assignment, and the scale and shift that fit it best."""
    markers, numbers = matched(np.linalg.norm((scale * flat + shift)[:, None] - seen[None], axis=-1), np.inf)
    own, theirs = flat[markers], seen[numbers]
    middle, their_middle = own.mean(axis=0), theirs.mean(axis=0)
    scale = float(np.sum((own - middle) * (theirs - their_middle)) / max(np.sum((own - middle) ** 2), 1e-9))
    scale = max(scale, 0.05)
    shift = their_middle - scale * middle
    gaps = np.linalg.norm(scale * own + shift - theirs, axis=1)
    return _Fit(turned, flat, scale, shift, markers, numbers, float(gaps.mean()) / scale)


def _in_world(camera: LensCamera, fit: _Fit) -> Array:
    depth = 1.0 / fit.scale
    place = np.array([fit.shift[0] * depth, fit.shift[1] * depth, depth])
    in_camera = fit.turned @ camera.pinhole.rotation.T + place
    return np.asarray((in_camera - camera.pinhole.translation) @ camera.pinhole.rotation)
