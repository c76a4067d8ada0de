"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

Units = Annotated[
    str | None, Parameter(help="The file's unit of length (m, cm, mm, inch, cmu), not inferred.")
]
KeepFirst = Annotated[bool, Parameter(help="Keep the first frame even if it is an added T-pose.")]


def reading(*, units: float | str | None, keep_first: bool) -> dict[str, Any]:
    """The reader's options that were given; a format that does not know one of them will say so."""
    options: dict[str, Any] = {}
    if units is not None:
        options["units"] = units
    if keep_first:
        options["keep_first"] = True
    return options
