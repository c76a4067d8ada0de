"""Options that several commands share: input, output, and their messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.main import sentence
from poise.errors import InvalidValueError
from poise.formats.tables import declared

if TYPE_CHECKING:
    from poise.motion.markers import Markers
    from poise.motion.motion import Motion
    from poise.priors.dynamics.prior import DynamicsPrior
    from poise.types import Array


def about(text: str, *names: str, **options: Any) -> Parameter:
    """What the help says of an option, and its names if they are not that of the parameter."""
    if names:
        options["name"] = names
    return Parameter(help=text, **options)


def command(epilogue: str) -> Callable[[Callable[..., int | None]], App]:
    """A function as a command of its name: its parameters are the options, its help the docstring and this text.

    It may return an exit code.
    """

    def made(function: Callable[..., int | None]) -> App:
        app = App(name=function.__name__.replace("_", "-"), help_epilogue=epilogue)
        app.default(function)
        return app

    return made


def _check_output(path: Path | None, *, markers: bool | None = False, besides: tuple[str, ...] = ()) -> None:
    from poise.apps.outputs import ANIMATIONS, STILLS
    from poise.formats.registry import check_output

    if path is not None:
        check_output(path, markers=markers, besides=besides if markers else (*STILLS, *ANIMATIONS, *besides))


def _check_picture(path: Path | None, *, moving: bool = False) -> None:
    from poise.apps.outputs import ANIMATIONS, STILLS
    from poise.errors import UnknownNameError

    valid = (*STILLS, *ANIMATIONS) if moving else STILLS
    if path is not None and path.suffix.lower() not in valid:
        raise UnknownNameError("picture format for the extension", path.suffix, valid)


def _file(text: str, *names: str, check: Callable[..., None] = _check_output, **options: Any) -> Parameter:
    """An option for a file to write. Its name is checked before the command does anything."""
    return about(text, *names, validator=lambda _kind, path: check(path, **options))


_O = ("--output", "-o")
_MOTION = _file("The file to write: .bvh .glb .png .gif ...", *_O)
_PICTURE = _file("The picture to write: .png.", *_O, check=_check_picture)
Output = Annotated[Path, _MOTION]
OptionalOutput = Annotated[Path | None, _MOTION]
KeyedOutput = Annotated[
    Path,
    _file("The file to write: .bvh .glb .png .gif ...; with --keys also .toml.", *_O, besides=(".toml",)),
]
MarkerOutput = Annotated[Path, _file("The file to write: .c3d, .trc.", *_O, markers=True)]
Target = Annotated[Path, _file("The file to write.", markers=None)]
Picture = Annotated[Path, _PICTURE]
OptionalPicture = Annotated[Path | None, _PICTURE]
Film = Annotated[Path, _file("The picture: .png, .gif or .mp4.", *_O, check=_check_picture, moving=True)]
Onto = Annotated[
    Path | None,
    about(
        "A character (.glb, .vrm, .bvh ...) to retarget the result to. A GLB or VRM keeps its mesh. "
        "For .mot: an OpenSim model (.osim)."
    ),
]
Start = Annotated[float | None, about("Start at this second.")]
End = Annotated[float | None, about("End at this second.")]
Hue = Annotated[
    str, about("Colours of markers: red, 0.33 (a hue), or LFIN=red,RFIN=green; others are bright.")
]
Json = Annotated[bool, about("Print the result as JSON.")]
ModelFile = Annotated[Path, about("The model file to write.", *_O)]
Style = Annotated[Path, about("A style written by poise learn --kind style.")]
MotionModel = Annotated[Path, about("A model written by poise learn --kind dynamics.")]
WayPicture = Annotated[Path | None, about("Also draw the path through the latent space.")]
Height = Annotated[float | None, about("The person's height in metres, if known.")]
Uncertainty = Annotated[
    bool, about("Also write the uncertainty of each joint, per frame (.uncertainty.json).")
]
Jobs = Annotated[int, about("The number of processes.")]
Scheduler = Annotated[str, about("Use the dask cluster at this address (tcp://host:8786) instead.")]


Units = Annotated[
    float | str | None, about("The file's unit of length: m, cm, mm, dm, inch, cmu, or metres per unit.")
]
Up = Annotated[str | None, about("The file's own vertical axis: +Z, Y, -X ...")]


@dataclass(frozen=True)
class Reading:
    """How files are read, where that is said."""

    units: Units = None
    keep_first: Annotated[bool, about("Keep the first frame even if it is an added T-pose.")] = False
    up: Up = None
    strict: Annotated[
        bool, about("Refuse files that contradict themselves: times, units, frame numbers.")
    ] = False

    @property
    def given(self) -> dict[str, Any]:
        """The given options of the reader; a format that does not know one of them raises."""
        return {name: value for name, value in vars(self).items() if value not in (None, False)}

    def motion(self, path: Path) -> Motion:
        """The motion in a file; prints the reader's warnings."""
        from poise.formats import read_motion

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


def files_of(files: Sequence[Path], what: str) -> tuple[Path | None, Path]:
    """The model, if one is named, and the file after it; `what` says in a message what to give."""
    if not 1 <= len(files) <= 2:
        raise InvalidValueError(f"give {what}; got {len(files)} files")
    return (None, files[0]) if len(files) == 1 else (files[0], files[1])


def draw_way(prior: DynamicsPrior, name: str, latents: Array, picture: Path) -> str:
    """Draw a motion's path in the latent space of its model; return what was drawn, in words."""
    from poise.apps.outputs import save_picture
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
    fields = []
    for name, plain in kinds.items():  # several choices are one, of which the help shows every name once
        parts = get_args(plain) if get_origin(plain) in (Union, UnionType) else (plain,)
        choices = [choice for part in parts if get_origin(part) is Literal for choice in get_args(part)]
        others = [part for part in parts if get_origin(part) is not Literal]
        plain = Union[(*others, *([Literal[tuple(choices)]] if choices else []))]
        fields.append((name, Annotated[plain | None, about(sentence(". ".join(helps[name])))], None))
    return make_dataclass("Flags", fields, frozen=True, namespace={"__module__": __name__})
