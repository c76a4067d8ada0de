"""Writes a motion as whatever the file's name asks for: a motion file, a contact sheet or an animation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from poise.errors import UnknownNameError
from poise.formats import extensions, write
from poise.formats.files import make_folder
from poise.motion.markers import Markers
from poise.motion.motion import Motion

STILLS = (".png",)
ANIMATIONS = (".gif", ".mp4")

Progress = Callable[[int, int], None]
"""Called with the pictures drawn so far and how many there will be."""


def save(value: Motion | Markers, path: Path, *, progress: Progress | None = None) -> Path:
    """Writes the motion (or the markers) in the format that the extension names, making its folder if need be."""
    extension = path.suffix.lower()
    if extension in (*STILLS, *ANIMATIONS):
        return draw(value, path, progress=progress)
    if extension not in (motions := extensions()):
        raise UnknownNameError("file format for the extension", extension, (*motions, *STILLS, *ANIMATIONS))
    make_folder(path.parent)
    return write(value, path)


def draw(value: Motion | Markers, path: Path, *, progress: Progress | None = None, **options: Any) -> Path:
    """Draws a contact sheet (.png) or an animation (.gif, .mp4); options are those of `poise.pictures`."""
    extension = path.suffix.lower()
    if extension not in (*STILLS, *ANIMATIONS):
        raise UnknownNameError("picture format for the extension", extension, (*STILLS, *ANIMATIONS))
    from poise import pictures  # not needed, and not waited for, by those who write motion files

    make_folder(path.parent)
    if extension in ANIMATIONS:
        options["progress"] = progress
    return pictures.save(value, path, **options)
