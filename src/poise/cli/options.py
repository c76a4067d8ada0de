"""Options of reading that several commands share, and what they say about what was read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from poise.cli import terminal

if TYPE_CHECKING:
    from poise.motion.markers import Markers
    from poise.motion.motion import Motion

Units = Annotated[
    float | str | None,
    Parameter(help="The file's unit of length: m, cm, mm, inch, cmu, or metres per unit."),
]
KeepFirst = Annotated[bool, Parameter(help="Keep the first frame even if it is an added T-pose.")]
Up = Annotated[str | None, Parameter(help="The file's own vertical axis: +Z, Y, -X ...")]
Start = Annotated[float | None, Parameter(help="Leave out what comes before this second.")]
End = Annotated[float | None, Parameter(help="Leave out what comes after this second.")]
Jobs = Annotated[int, Parameter(help="How many processes of this machine work on clips.")]
Scheduler = Annotated[
    str, Parameter(help="Work on the dask cluster with this address (tcp://host:8786) instead.")
]


def reading(*, units: float | str | None, keep_first: bool, up: str | None) -> dict[str, Any]:
    """The reader's options that were given; a format that does not know one of them will say so."""
    options: dict[str, Any] = {}
    if units is not None:
        options["units"] = units
    if keep_first:
        options["keep_first"] = True
    if up is not None:
        options["up"] = up
    return options


def warn_of(*recordings: Motion | Markers) -> None:
    """Shows what the readers warn of; what several files share is shown once, with how many they are."""
    counts = Counter(warning for recording in recordings for warning in recording.origin.warnings)
    for warning, count in counts.items():
        terminal.warn(warning if len(recordings) == 1 else f"{warning} ({count} of {len(recordings)} files)")
