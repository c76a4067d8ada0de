"""`poise convert IN OUT`: convert between file formats, with trimming, resampling and mirroring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import AS_FOUND, End, Onto, ReadingOptions, Start, Target, warn_of, write_motion

if TYPE_CHECKING:
    from poise.motion.markers import Markers
    from poise.motion.motion import Motion

app = App(
    name="convert",
    help_epilogue="""\
The extension selects the format: .bvh .amc .glb for motions, .trc .c3d for
markers. .png .gif .mp4 draw the motion.

Examples:
  poise convert walk.bvh walk.glb
  poise convert walk.amc walk.bvh
  poise convert run.bvh step.bvh --start 0.5 --end 1.3 --fps 60
  poise convert throw.bvh left-handed.bvh --mirror
  poise convert walk.bvh out.glb --onto character.glb
  poise convert characters.glb#run run.bvh
  poise convert characters.glb clip.bvh --all
  poise convert walk.bvh walk.mot --onto Rajagopal2015.osim
""",
)


@app.default
def convert(
    source: Annotated[Path, Parameter(help="The file to read.")],
    target: Target,
    *,
    start: Start = None,
    end: End = None,
    fps: Annotated[float | None, Parameter(help="Frames per second to resample to.")] = None,
    mirror: Annotated[bool, Parameter(help="Swap left and right.")] = False,
    reading: ReadingOptions = AS_FOUND,
    to_units: Annotated[
        str | None,
        Parameter(help="The unit to write (BVH, USD, TRC, C3D): m, cm, mm, ... Default: the format's own."),
    ] = None,
    onto: Onto = None,
    all: Annotated[bool, Parameter(help="Write every animation of the file, each as OUT_NAME.")] = False,
) -> None:
    """Convert between file formats; trim, resample, mirror."""
    from poise.formats import each_animation
    from poise.formats.registry import stem_of
    from poise.formats.text import unique_names

    parts, cut = each_animation(source), {"start": start, "end": end, "fps": fps, "mirrored": mirror}
    if not all and len(parts) > 1:
        terminal.warn(
            f"{source.name} has {len(parts)} animations and this is the first: "
            f"--all writes each, {parts[-1].name} only that one"
        )
    chosen = parts if all else [source]
    stems = unique_names(stem_of(part, target.stem) for part in chosen)
    for part, stem in zip(chosen, stems, strict=True):
        _convert(part, target.with_name(stem + target.suffix), reading.given, cut, to_units, onto)


def _convert(
    source: Path,
    target: Path,
    read_with: dict[str, Any],
    cut: dict[str, Any],
    to_units: str | None,
    onto: Path | None,
) -> None:
    from poise.errors import InvalidValueError
    from poise.formats import read
    from poise.formats.registry import files_of
    from poise.motion.edit import edited

    sources = {file.resolve() for file in files_of(source, "read")}
    for file in files_of(target, "write"):
        if file.resolve() in sources:
            raise InvalidValueError(f"{file} is the file to be read; give what is written a name of its own")
    with terminal.working(f"reading {source.name}"):
        original = read(source, **read_with)
        changed = edited(original, **cut)
    warn_of(original)
    writing = _writing(original, source, target, cut["start"], to_units)
    print(write_motion(changed, target, onto=onto, **writing))


def _writing(
    original: Motion | Markers, source: Path, target: Path, start: float | None, units: str | None
) -> dict[str, Any]:
    """Options of the writer: the unit, and for C3D the file whose analog channels are kept, from its first frame."""
    from poise.motion.edit import frames_between

    options: dict[str, Any] = {} if units is None else {"units": units}
    if original.origin.format == "c3d" and target.suffix.lower() == ".c3d":
        options["analogs"] = (source, frames_between(original, start or 0.0, None).start)
    return options
