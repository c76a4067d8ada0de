"""Constraints of every kind from TOML tables, each for a while: what scripts call `[[constraints]]`.

[[constraints]]
kind = "look-at"                    # or orientation, position, line, plane, above, distance, centre-of-mass
handle = "head"
target = [0.0, 1.6, 5.0]
from = 0.5                          # or time = 0.5 for a single frame; all frames if nothing is said
to = 1.5
tolerance = 0.1                     # soft; met exactly without
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError
from poise.formats.toml_tables import Table
from poise.geometry import rotations
from poise.skeleton.pose_space import Handle
from poise.solvers.constraints import (
    CentreOfMass,
    Constraint,
    Distance,
    HalfSpace,
    Line,
    LookAt,
    Orientation,
    Plane,
    Position,
)

Array = np.ndarray
_SLACK = 1e-9  # seconds by which a time may miss another by rounding


@dataclass(frozen=True, eq=False)
class Timed:
    """A constraint from one time to another, both included."""

    constraint: Constraint
    start: float
    end: float

    def holds(self, times: Float[Array, "frames"]) -> Bool[Array, "frames"]:
        """At which of these times it holds; a single moment is the nearest of them."""
        if self.start == self.end:
            return np.asarray(np.arange(len(times)) == np.argmin(np.abs(times - self.start)))
        return np.asarray((times >= self.start - _SLACK) & (times <= self.end + _SLACK))


def timed_constraint(table: Table, duration: float) -> Timed:
    """A constraint from its table."""
    kind = table.word("kind", among=_KINDS)
    shared: dict[str, Any] = {"name": table.word("name")} if table.has("name") else {}
    if table.has("tolerance"):
        shared["tolerance"] = table.number("tolerance", positive=True)
    start, end = _times(table, duration)
    try:
        constraint = _KINDS[kind](table, shared)
        constraint.check()
    except InvalidValueError as error:
        raise table.error("kind", str(error)) from error
    table.done()
    return Timed(constraint, start, end)


def handle_of(table: Table, key: str = "handle") -> Handle:
    """The handle that a table names, with its offset."""
    return Handle(table.word(key), offset_of(table))


def offset_of(table: Table) -> tuple[float, float, float]:
    """An offset in a joint's frame; none where none is said."""
    if not table.has("offset"):
        return (0.0, 0.0, 0.0)
    x, y, z = table.vector("offset")
    return float(x), float(y), float(z)


def rotation_of(entry: Table) -> Float[Array, "4"]:
    """A quaternion (wxyz), or degrees about x, y, z: first the heading y, then x, then z, about the turned axes."""
    if entry.length("rotation") == 4:
        quaternion = entry.vector("rotation", 4)
        if not np.isclose(np.linalg.norm(quaternion), 1.0, atol=0.01):
            raise entry.error("rotation", f"expected a unit quaternion (wxyz); got {quaternion.tolist()}")
        return rotations.normalize(quaternion)
    x, y, z = np.radians(entry.vector("rotation"))
    return rotations.quaternion_from_euler(np.array([y, x, z]), "YXZ")


def _times(table: Table, duration: float) -> tuple[float, float]:
    if table.has("time"):
        time = table.number("time", least=0.0, most=duration)
        return time, time
    start = table.number("from", 0.0, least=0.0, most=duration)
    return start, table.number("to", duration, least=start, most=duration)


def _optional(table: Table, key: str) -> dict[str, Any]:
    return {key: table.vector(key)} if table.has(key) else {}


def _centre_of_mass(table: Table, shared: dict[str, Any]) -> Constraint:
    if table.has("at"):
        return CentreOfMass([table.vector("at", 2)], **shared)
    return CentreOfMass(list(table.matrix("inside", table.length("inside"), 2)), **shared)


_KINDS: dict[str, Callable[[Table, dict[str, Any]], Constraint]] = {
    "position": lambda table, shared: Position(handle_of(table), table.vector("at"), **shared),
    "orientation": lambda table, shared: Orientation(handle_of(table), rotation_of(table), **shared),
    "look-at": lambda table, shared: LookAt(
        handle_of(table), table.vector("target"), **_optional(table, "axis"), **shared
    ),
    "line": lambda table, shared: Line(
        handle_of(table), table.vector("origin"), table.vector("direction"), **shared
    ),
    "plane": lambda table, shared: Plane(
        handle_of(table), table.vector("point"), **_optional(table, "normal"), **shared
    ),
    "above": lambda table, shared: HalfSpace(
        handle_of(table), table.vector("point"), **_optional(table, "normal"), **shared
    ),
    "distance": lambda table, shared: Distance(
        handle_of(table), table.word("other"), table.number("distance", least=0.0), **shared
    ),
    "centre-of-mass": _centre_of_mass,
}
