"""Options of reading that several commands share, and what they say about what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from cyclopts import Parameter

from poise.cli import terminal
from poise.cli.overview import sentence
from poise.formats.tables import declared

if TYPE_CHECKING:
    from poise.motion.markers import Markers
    from poise.motion.motion import Motion

Units = Annotated[
    float | str | None,
    Parameter(help="The file's unit of length: m, cm, mm, dm, inch, cmu, or metres per unit."),
]
KeepFirst = Annotated[bool, Parameter(help="Keep the first frame even if it is an added T-pose.")]
Up = Annotated[str | None, Parameter(help="The file's own vertical axis: +Z, Y, -X ...")]
Onto = Annotated[
    Path | None,
    Parameter(
        help="A character (.glb, .vrm, .bvh ...) to carry the result onto; a GLB or VRM keeps its mesh. "
        "For .mot: an OpenSim model (.osim)."
    ),
]
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


def flags_of(declarations: Mapping[str, type], *, of: str = "For {name}: ") -> type:
    """One dataclass of command-line options for all that several dataclasses declare; None is what was not given.

    An option that several declare under one name is one option, which takes what any of them takes; its help says what
    it is for each of them.
    """
    kinds: dict[str, Any] = {}
    helps: dict[str, list[str]] = {}
    for name, declaration in declarations.items():
        for field, annotation in declared(declaration):
            plain = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
            words = [extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, str)]
            kinds[field.name] = kinds[field.name] | plain if field.name in kinds else plain
            helps.setdefault(field.name, []).append(of.format(name=name) + "".join(words))
    fields = [
        (name, Annotated[plain | None, Parameter(help=sentence("; ".join(helps[name])))], None)
        for name, plain in kinds.items()
    ]
    return make_dataclass("Flags", fields, frozen=True, namespace={"__module__": __name__})
