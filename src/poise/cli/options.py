"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

Units = Annotated[
    float | str | None,
    Parameter(help="The file's unit of length: m, cm, mm, inch, cmu, or metres per unit."),
]
KeepFirst = Annotated[bool, Parameter(help="Keep the first frame even if it is an added T-pose.")]
Start = Annotated[float | None, Parameter(help="Leave out what comes before this second.")]
End = Annotated[float | None, Parameter(help="Leave out what comes after this second.")]


def reading(*, units: float | str | None, keep_first: bool) -> dict[str, Any]:
    """The reader's options that were given; a format that does not know one of them will say so."""
    options: dict[str, Any] = {}
    if units is not None:
        options["units"] = units
    if keep_first:
        options["keep_first"] = True
    return options
