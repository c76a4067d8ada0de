"""`poise info FILE...`: what is in motion files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import AS_FOUND, ReadingOptions
from poise.errors import InvalidValueError, PoiseError

app = App(
    name="info",
    help_epilogue="""\
A motion file seldom names its unit of length. The reader infers it from the
body's size and says what it chose and why; --units overrides. The T-pose that
some conversions put in the first frame is left out and reported.

Examples:
  poise info walk.bvh
  poise info walk.bvh --json
  poise info clips/*.bvh
  poise info strange.bvh --units cm --keep-first
""",
)


@app.default
def info(
    *files: Annotated[Path, Parameter(help="Motion files: BVH, AMC, C3D, TRC or GLB.")],
    json: Annotated[bool, Parameter(help="Print JSON: an object, or a list for several files.")] = False,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Show what is in motion files."""
    if not files:
        raise InvalidValueError("name at least one motion file; see poise info --help")
    found, failures = _descriptions(files, reading.given)
    if json:
        terminal.print_json(found[0] if len(files) == 1 else found)
    elif len(files) == 1:
        _show_one(found[0])
    else:
        _show_many(found)
    if failures:
        raise PoiseError(
            f"{len(failures)} of {len(files)} files could not be read: {', '.join(map(str, failures))}"
        )


def _descriptions(files: Sequence[Path], options: dict[str, Any]) -> tuple[list[dict[str, Any]], list[Path]]:
    """The contents of each file, and the unreadable ones: among several files, a bad one does not hide the rest."""
    from poise.apps.describe import describe
    from poise.formats import read

    found, failures = [], []
    with terminal.counting("reading") as report:
        for done, file in enumerate(files, start=1):
            try:
                found.append(describe(read(file, **options)))
            except PoiseError as error:
                if len(files) == 1:
                    raise
                failures.append(file)
                terminal.warn(str(error))
            report(done, len(files))
    return found, failures


def _show_one(about: dict[str, Any]) -> None:
    shared = [
        (
            "frames",
            f"{about['frames']} at {about['fps']:g} Hz, {about['seconds']:.2f} s{_first_frame(about)}",
        ),
        ("units", f"{about['units']} ({about['metres_per_unit']:g} m): {about['units_reason']}"),
    ]
    particular = _motion_facts(about) if about["kind"] == "motion" else _marker_facts(about)
    notes = [("note", note) for note in about["notes"]]
    terminal.print_facts(f"{about['name']} ({about['format']})", [*shared, *particular, *notes])
    for warning in about["warnings"]:
        terminal.warn(warning)


def _first_frame(about: dict[str, Any]) -> str:
    return (
        " (a T-pose in the first frame was left out; --keep-first keeps it)"
        if about["dropped_first_frame"]
        else ""
    )


def _motion_facts(about: dict[str, Any]) -> list[tuple[str, str]]:
    roles = ", ".join(f"{role}={joint}" for role, joint in about["roles"].items())
    return [
        ("joints", f"{about['joints']}, and {about['end_sites']} end sites"),
        ("height", f"{about['height_m']:.2f} m"),
        ("roles", roles or "none found"),
        ("still joints", ", ".join(about["still_joints"]) or "none"),
    ]


def _marker_facts(about: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("markers", f"{about['markers']}: {', '.join(about['marker_names'])}"),
        ("gaps", f"{about['gaps_percent']:g} % of all points, in {len(about['markers_with_gaps'])} markers"),
    ]


def _show_many(found: Sequence[dict[str, Any]]) -> None:
    terminal.print_table(
        ("file", "frames", "Hz", "seconds", "joints", "height", "units", "warnings"),
        (
            (
                Path(about["path"]).name or about["name"],
                str(about["frames"]),
                f"{about['fps']:g}",
                f"{about['seconds']:.2f}",
                f"{about['joints']}" if about["kind"] == "motion" else f"{about['markers']} markers",
                f"{about['height_m']:.2f} m" if about["height_m"] is not None else "",
                about["units"],
                str(len(about["warnings"])),
            )
            for about in found
        ),
    )
