"""Constraints of every kind from TOML tables, each for a time span: `[[constraints]]` in scripts.

[[constraints]]
kind = "look-at"                    # or another of solvers.constraints.CONSTRAINTS
handle = "head"
target = [0.0, 1.6, 5.0]
from = 0.5                          # or time = 0.5 for a single frame; all frames by default
to = 1.5
tolerance = 0.1                     # soft; exact without it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass

import numpy as np
from jaxtyping import Bool, Float

from poise.formats.tables import FieldError, Table, declared, key_of
from poise.solvers.constraints import CONSTRAINTS, Constraint, constraint_from
from poise.types import Array

SLACK = 1e-9  # seconds: rounding tolerance of times


@dataclass(frozen=True, eq=False)
class Timed:
    """A constraint from one time to another, inclusive; None is the start or the end of the script."""

    constraint: Constraint
    start: float | None = None
    end: float | None = None

    def holds(self, times: Float[Array, "frames"]) -> Bool[Array, "frames"]:
        """Mask of the times at which it holds; a single moment selects the nearest."""
        start, end = (
            (times[0] if self.start is None else self.start),
            (times[-1] if self.end is None else self.end),
        )
        if start == end:
            return np.asarray(np.arange(len(times)) == np.argmin(np.abs(times - start)))
        return np.asarray((times >= start - SLACK) & (times <= end + SLACK))


def timed_constraints(table: Table, key: str) -> tuple[Timed, ...]:
    """All constraints of a list of tables."""
    return tuple(_timed(entry) for entry in table.tables(key))


def check_within(duration: float, times: Mapping[str, float | None]) -> None:
    """Raise if a time is outside the script, with its position in the file."""
    for place, time in times.items():
        if time is not None and not -SLACK <= time <= duration + SLACK:
            raise FieldError(place, f"is outside the duration, 0 to {duration:g} s; got {time:g} s")


def check_constraints(duration: float, constraints: tuple[Timed, ...]) -> None:
    """Raise if constraints are at times outside the script, or end before they begin."""
    for number, timed in enumerate(constraints, start=1):
        place = f"constraints[{number}]"
        if timed.start is not None and timed.start == timed.end:
            check_within(duration, {f"{place}.time": timed.start})
        check_within(duration, {f"{place}.from": timed.start, f"{place}.to": timed.end})
        if timed.end is not None and timed.end < (timed.start or 0.0):
            raise FieldError(
                f"{place}.to",
                f"a constraint must end after it begins; got {timed.start:g} to {timed.end:g} s",
            )


def table_of(kind: str) -> str:
    """The TOML template of a kind of constraint; optional keys are comments."""
    needed, others = [f'kind = "{kind}"'], list[str]()
    for field, annotation in declared(CONSTRAINTS[kind]):
        is_needed = field.default is MISSING and field.default_factory is MISSING
        (needed if is_needed else others).append(f"{key_of(field, annotation)} = ")
    return "\n".join(["[[constraints]]", *needed, *(f"# {line}" for line in others)])


def _timed(table: Table) -> Timed:
    if table.has("time"):
        start = end = table.get("time", float)
    else:
        start, end = table.get("from", float, None), table.get("to", float, None)
    return Timed(constraint_from(table), start, end)
