"""Write the results of a take: the take with its gaps filled, and a picture that reports on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from poise.capture.marker_tracking import UNSURE
from poise.capture.markers import Capture, fill_gaps
from poise.errors import UnknownNameError
from poise.formats import extensions, write
from poise.formats.c3d import write_filled
from poise.formats.files import make_folder
from poise.motion.markers import Markers


def write_filled_take(source: Path, markers: Markers, path: Path, **options: Any) -> None:
    """Write a C3D file again with only its gaps changed, if input and output are C3D; else a new file."""
    if path.suffix.lower() not in (takes := extensions(markers=True)):
        raise UnknownNameError("format of a take for the extension", path.suffix, takes)
    make_folder(path.parent)
    if markers.origin.format == "c3d" and path.suffix.lower() == ".c3d":
        write_filled(source, markers, path, **options)
    else:
        write(markers, path)


def save_report(capture: Capture, path: Path) -> Path:
    """The picture of a solved take as a PNG file."""
    from poise import pictures
    from poise.pictures.marker_report import draw_marker_report

    filled = fill_gaps(capture)
    image = draw_marker_report(
        capture.motion,
        capture.take.markers.labels,
        filled.points,
        filled.sigmas,
        measured=filled.measured,
        unsure=UNSURE,
    )
    make_folder(path.parent)
    return pictures.save(image, path)
