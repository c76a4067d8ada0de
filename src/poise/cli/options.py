"""Options that several commands share: input, output, and their messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from cyclopts import Parameter

from poise.cli import terminal
from poise.cli.main import sentence
from poise.formats.tables import declared

if TYPE_CHECKING:
    from poise.motion.markers import Markers
    from poise.motion.motion import Motion
    from poise.priors.dynamics.prior import DynamicsPrior
    from poise.types import Array

Units = Annotated[
    float | str | None,
    Parameter(help="The file's unit of length: m, cm, mm, dm, inch, cmu, or metres per unit."),
]
Up = Annotated[str | None, Parameter(help="The file's own vertical axis: +Z, Y, -X ...")]


def _checked(check: Callable[..., object], help: str = "", **options: Any) -> Parameter:
    """An option for a file. Its name is checked before the command does anything."""
    return Parameter(help=help, validator=lambda _kind, path: path is None or check(path, **options))


def _check_output(path: Path, *, markers: bool | None = False) -> None:
    from poise.apps.outputs import ANIMATIONS, STILLS
    from poise.formats.registry import check_output

    check_output(path, markers=markers, besides=() if markers else (*STILLS, *ANIMATIONS))


def _check_picture(path: Path, *, moving: bool = False) -> None:
    from poise.apps.outputs import ANIMATIONS, STILLS
    from poise.errors import UnknownNameError

    valid = (*STILLS, *ANIMATIONS) if moving else STILLS
    if path.suffix.lower() not in valid:
        raise UnknownNameError("picture format for the extension", path.suffix, valid)


_NAME = Parameter(name=("--output", "-o"))
_MOTION = _checked(_check_output, "The file to write: .bvh .glb .png .gif ...")
_PICTURE = _checked(_check_picture, "The picture to write: .png.")
Output = Annotated[Path, _NAME, _MOTION]
OptionalOutput = Annotated[Path | None, _NAME, _MOTION]
MarkerOutput = Annotated[Path, _NAME, _checked(_check_output, "The file to write: .c3d, .trc.", markers=True)]
Target = Annotated[Path, _checked(_check_output, "The file to write.", markers=None)]
Picture = Annotated[Path, _NAME, _PICTURE]
OptionalPicture = Annotated[Path | None, _NAME, _PICTURE]
Film = Annotated[Path, _NAME, _checked(_check_picture, "The picture: .png, .gif or .mp4.", moving=True)]
Onto = Annotated[
    Path | None,
    Parameter(
        help="A character (.glb, .vrm, .bvh ...) to retarget the result to. A GLB or VRM keeps its mesh. "
        "For .mot: an OpenSim model (.osim)."
    ),
]
Start = Annotated[float | None, Parameter(help="Start at this second.")]
End = Annotated[float | None, Parameter(help="End at this second.")]
Hue = Annotated[
    str, Parameter(help="Colours of markers: red, 0.33 (a hue), or LFIN=red,RFIN=green; others are bright.")
]
Json = Annotated[bool, Parameter(help="Print the result as JSON.")]
ModelFile = Annotated[Path, _NAME, Parameter(help="The model file to write.")]
Style = Annotated[Path, Parameter(help="A style written by poise learn --kind style.")]
MotionModel = Annotated[Path, Parameter(help="A model written by poise learn --kind dynamics.")]
WayPicture = Annotated[Path | None, Parameter(help="Also draw the path through the latent space.")]
Height = Annotated[float | None, Parameter(help="The person's height in metres, if known.")]
Uncertainty = Annotated[
    bool, Parameter(help="Also write the uncertainty of each joint, per frame (.uncertainty.json).")
]
Jobs = Annotated[int, Parameter(help="The number of processes.")]
Scheduler = Annotated[str, Parameter(help="Use the dask cluster at this address (tcp://host:8786) instead.")]


@dataclass(frozen=True)
class Reading:
    """How files are read, where that is said."""

    units: Units = None
    keep_first: Annotated[bool, Parameter(help="Keep the first frame even if it is an added T-pose.")] = False
    up: Up = None

    @property
    def given(self) -> dict[str, Any]:
        """The given options of the reader; a format that does not know one of them raises."""
        return {name: value for name, value in vars(self).items() if value not in (None, False)}

    def motion(self, path: Path) -> Motion:
        """The motion in a file; prints the reader's warnings."""
        from poise.apps.learning import read_motion

        motion = read_motion(path, **self.given)
        warn_of(motion)
        return motion


ReadingOptions = Annotated[Reading, Parameter(name="*")]
AS_FOUND = Reading()


def write_motion(motion: Motion | Markers, output: Path, *, onto: Path | None = None, **options: Any) -> str:
    """Write a motion, on a character if one is named; return what was written, in words."""
    from poise.apps.outputs import save

    with terminal.counting(f"writing {output.name}") as report:
        save(motion, output, onto=onto, progress=report, **options)
    return f"{output}: {len(motion)} frames at {motion.fps:g} Hz, {terminal.file_size(output)}"


def draw_way(prior: DynamicsPrior, name: str, latents: Array, picture: Path) -> str:
    """Draw a motion's path in the latent space of its model; return what was drawn, in words."""
    from poise.apps.learning import save_picture
    from poise.pictures.latent_paths import draw_latent_paths

    save_picture(draw_latent_paths(prior, {name: latents}), picture)
    return f"{picture}: its way through the latent space, {terminal.file_size(picture)}"


def warn_of(*recordings: Motion | Markers) -> None:
    """Print the readers' warnings; those common to several files once, with their number."""
    counts = Counter(warning for recording in recordings for warning in recording.origin.warnings)
    for warning, count in counts.items():
        terminal.warn(warning if len(recordings) == 1 else f"{warning} ({count} of {len(recordings)} files)")


def flags_of(declarations: Mapping[str, type], *, of: str = "For {name}: ") -> type:
    """One dataclass with the command-line options of several dataclasses; None means not given.

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
        (name, Annotated[plain | None, Parameter(help=sentence(". ".join(helps[name])))], None)
        for name, plain in kinds.items()
    ]
    return make_dataclass("Flags", fields, frozen=True, namespace={"__module__": __name__})
