"""Writes a motion as whatever the file's name asks for: a motion file, a contact sheet or an animation."""

from __future__ import annotations

from pathlib import Path

from poise.errors import UnknownNameError
from poise.formats import FORMATS, write
from poise.formats.files import FileAccessError
from poise.motion.markers import Markers
from poise.motion.motion import Motion

MOTIONS = tuple(extension for known in FORMATS for extension in known.extensions)


def save(value: Motion | Markers, path: Path) -> Path:
    """Writes the motion (or the markers) in the format that the extension names, making its folder if need be."""
    if path.suffix.lower() not in MOTIONS:
        raise UnknownNameError("file format for the extension", path.suffix, MOTIONS)
    make_folder(path.parent)
    return write(value, path)


def make_folder(folder: Path) -> Path:
    """The folder, made if it is not there, its parents too."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileAccessError(f"cannot make the folder {folder}: {error.strerror or error}") from error
    return folder
