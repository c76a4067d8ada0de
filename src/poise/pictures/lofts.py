"""Closed smooth solids for the mannequin: rings of varying cross-section along an axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.types import Array

_CAP_ANGLES = np.radians([18.0, 42.0, 66.0])  # rings of a rounded end, measured from its pole
_SHORTEST = 1e-9
_ROUNDNESS = 2.2  # of an ellipse it is 2; more is flatter at the ends


@dataclass(frozen=True, eq=False)
class Solid:
    """A closed triangle mesh with smooth normals; triangles are counter-clockwise seen from outside."""

    vertices: Float[Array, "vertices 3"]
    normals: Float[Array, "vertices 3"]
    triangles: Int[Array, "triangles 3"]


@dataclass(frozen=True, eq=False)
class Axes:
    """The frame of a solid: an origin and three unit axes, right-handed: side x along = front."""

    origin: Float[Array, "3"]
    side: Float[Array, "3"]
    along: Float[Array, "3"]
    front: Float[Array, "3"]


def axes(origin: Float[Array, "3"], along: Float[Array, "3"], side: Float[Array, "3"] | None = None) -> Axes:
    """Axes along a direction, with the side as close as possible to the given one."""
    length = float(np.linalg.norm(along))
    if length < _SHORTEST:
        raise InvalidValueError("the axis of a solid must not have length zero")
    along = np.asarray(along, dtype=np.float64) / length
    side = across(along, side)
    return Axes(np.asarray(origin, dtype=np.float64), side, along, np.cross(side, along))


def across(along: Float[Array, "3"], hint: Float[Array, "3"] | None) -> Float[Array, "3"]:
    """A unit vector perpendicular to `along`, as close as possible to the hint; an arbitrary one without a hint."""
    for candidate in (hint, np.eye(3)[np.argmin(np.abs(along))]):
        if candidate is not None:
            rest = candidate - along * (candidate @ along)
            if np.linalg.norm(rest) > 1e-3 * np.linalg.norm(candidate):
                return np.asarray(rest / np.linalg.norm(rest))
    raise AssertionError("the axis least along a unit vector is never parallel to it")


def loft(
    stations: Float[Array, "rings 4"], place: Axes, *, sides: int = 14, squareness: float = 2.0
) -> Solid:
    """A solid through cross-sections, with rounded ends beyond the first and the last.

    A station is (distance along, half width, half depth, shift to the front); the cross-section is an ellipse, or with
    more squareness a superellipse.
    """
    rings, poles = [*stations], []
    for (along, width, depth, shift), outward in ((stations[0], -1.0), (stations[-1], 1.0)):
        reach = outward * float(min(width, depth))
        cap = [(along + reach * np.cos(a), width * np.sin(a), depth * np.sin(a), shift) for a in _CAP_ANGLES]
        rings = [*cap, *rings] if outward < 0 else [*rings, *cap[::-1]]
        poles.append([0.0, along + reach, shift])
    return _skin(np.array(rings), np.array(poles), place, sides=sides, squareness=squareness)


def egg(place: Axes, profile: Float[Array, "knots 4"], *, height: float) -> Solid:
    """A closed round body standing on the origin, rounded at both ends, a little flatter than an ellipse.

    The profile is (fraction of the height, half width, half depth, shift to the front).
    """
    t = 0.5 - 0.5 * np.cos(
        np.radians(np.array([14.0, 30.0, 48.0, 66.0, 84.0, 102.0, 120.0, 138.0, 154.0, 167.0]))
    )
    drawn_in = (1.0 - np.abs(2.0 * t - 1.0) ** _ROUNDNESS) ** (1.0 / _ROUNDNESS)
    width, depth, shift = (smooth_curve(t, profile[:, 0], profile[:, k]) for k in (1, 2, 3))
    rings = np.stack([height * t, width * drawn_in, depth * drawn_in, shift], axis=-1)
    poles = np.array([[0.0, 0.0, profile[0, 3]], [0.0, height, profile[-1, 3]]])
    return _skin(rings, poles, place, sides=18, squareness=_ROUNDNESS)


def _skin(
    rings: Float[Array, "rings 4"], poles: Float[Array, "2 3"], place: Axes, *, sides: int, squareness: float
) -> Solid:
    """The surface through rings, closed by a pole at each end."""
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    width = np.sign(np.cos(angle)) * np.abs(np.cos(angle)) ** (2.0 / squareness)
    depth = np.sign(np.sin(angle)) * np.abs(np.sin(angle)) ** (2.0 / squareness)
    local = np.stack(
        [
            rings[:, 1, None] * width,
            np.broadcast_to(rings[:, 0, None], (len(rings), sides)),
            rings[:, 2, None] * depth + rings[:, 3, None],
        ],
        axis=-1,
    ).reshape(-1, 3)
    vertices = (
        np.concatenate([local, poles]) @ np.stack([place.side, place.along, place.front]) + place.origin
    )
    # Triangles between neighbouring rings, and from the end rings to the two poles, which come last.
    here = np.arange(len(rings) * sides).reshape(len(rings), sides)
    turned = np.roll(here, -1, axis=1)
    a, b, c, d = here[:-1], turned[:-1], here[1:], turned[1:]
    walls = np.concatenate([np.stack([a, c, b], -1).reshape(-1, 3), np.stack([b, c, d], -1).reshape(-1, 3)])
    bottom = np.stack([here[0], turned[0], np.full(sides, len(rings) * sides)], -1)
    top = np.stack([turned[-1], here[-1], np.full(sides, len(rings) * sides + 1)], -1)
    triangles = np.concatenate([walls, bottom, top])
    # Normals are the area-weighted means of the adjacent faces.
    corners = vertices[triangles].transpose(1, 0, 2)
    faces = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    normals = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(normals, triangles[:, corner], faces)
    length = np.linalg.norm(normals, axis=-1, keepdims=True)
    return Solid(vertices, normals / np.where(length > 0, length, 1.0), triangles)


def ball(origin: Float[Array, "3"], radius: float, *, sides: int = 14) -> Solid:
    """A sphere."""
    equator = np.array([[-1e-3 * radius, radius, radius, 0.0], [1e-3 * radius, radius, radius, 0.0]])
    return loft(equator, axes(origin, np.array([0.0, 1.0, 0.0])), sides=sides)


def tapered(
    start: Float[Array, "3"], end: Float[Array, "3"], radii: Float[Array, "rings"], *, sides: int = 13
) -> Solid:
    """A round limb from start to end, with evenly spaced radii."""
    length = float(np.linalg.norm(end - start))
    distance = np.linspace(0.0, length, len(radii))
    stations = np.stack([distance, radii, radii, np.zeros(len(radii))], axis=-1)
    return loft(stations, axes(start, end - start), sides=sides)


def smooth_curve(
    x: Float[Array, "n"], knots: Float[Array, "knots"], values: Float[Array, "knots"]
) -> Float[Array, "n"]:
    """A smooth curve through values at knots: cubic pieces with the slopes of the neighbours (Catmull and Rom 1974)."""
    slopes = np.gradient(values, knots)
    at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    step = knots[at + 1] - knots[at]
    t = (x - knots[at]) / step
    rise = t * t * (3.0 - 2.0 * t)
    bend = t * (1.0 - t) * step * (slopes[at] * (1.0 - t) - slopes[at + 1] * t)
    return np.asarray(values[at] + rise * (values[at + 1] - values[at]) + bend)
