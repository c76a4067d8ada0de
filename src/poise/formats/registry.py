"""One place that knows every file format: `read` and `write`, by extension or by content.

A format is one module of this package, imported when first needed. It offers `read(path, *, option=...)` and, where
it can write, `write(value, path, *, option=...)`. Readers open files through `files.existing_file` and writers write
through `files.replacing`, so that errors read alike and no half-written file is left behind.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats.files import existing_file
from poise.motion.markers import Markers
from poise.motion.motion import Motion

_HEAD_BYTES = 4096  # enough of a file to tell its format, leading comments included


@dataclass(frozen=True)
class Format:
    """A file format: its name, the module that reads and writes it, and how to recognise it."""

    name: str
    extensions: tuple[str, ...]
    sniff: Callable[[bytes], bool]

    def function(self, verb: str) -> Callable[..., Any] | None:
        """The module's `read` or `write`, or None where it has none."""
        found: Callable[..., Any] | None = getattr(import_module(f"poise.formats.{self.name}"), verb, None)
        return found


def _first_word(head: bytes) -> bytes:
    """The first word that is not in a comment line, in lower case, whatever byte-order mark comes before it."""
    lines = (line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").lower().splitlines())
    return next((line.split()[0] for line in lines if line and not line.startswith(b"#")), b"")


FORMATS = (
    Format("bvh", (".bvh",), lambda head: _first_word(head) == b"hierarchy"),
    Format("acclaim", (".amc", ".asf"), lambda head: _first_word(head).startswith(b":")),
    Format("c3d", (".c3d",), lambda head: head[1:2] == b"\x50" and 0 < head[0] < 9),
    Format("trc", (".trc",), lambda head: _first_word(head) == b"pathfiletype"),
    Format("gltf", (".glb", ".gltf"), lambda head: head.startswith(b"glTF")),
)


def read(path: str | os.PathLike[str], *, format: str | None = None, **options: Any) -> Motion | Markers:
    """A motion or a marker recording from a file of any known format.

    The format is the one given, else what the content says, else what the extension says. `options` go to the format's
    reader (BVH: `units`, `keep_first`); one that it does not take is an error.
    """
    file = existing_file(path)
    chosen = _named(format) if format else _recognise(file)
    reader = _function(chosen, "read", options)
    value: Motion | Markers = reader(file, **options)
    by_extension = _by_extension(file)
    if format is None and by_extension not in (None, chosen):
        note = f"the extension {file.suffix} is not what the file holds; read as {chosen.name}"
        value = replace(value, origin=replace(value.origin, warnings=(*value.origin.warnings, note)))
    return value


def write(
    value: Motion | Markers, path: str | os.PathLike[str], *, format: str | None = None, **options: Any
) -> Path:
    """Writes a motion or a marker recording in the format given or named by the extension; returns the path."""
    target = Path(path)
    chosen = _named(format) if format else _by_extension(target)
    if chosen is None:
        raise UnknownNameError("file format for the extension", target.suffix, _extensions())
    _function(chosen, "write", options)(value, target, **options)
    return target


def _named(name: str) -> Format:
    for known in FORMATS:
        if name.lower().lstrip(".") == known.name or f".{name.lower().lstrip('.')}" in known.extensions:
            return known
    raise UnknownNameError("file format", name, [known.name for known in FORMATS])


def _by_extension(path: Path) -> Format | None:
    return next((known for known in FORMATS if path.suffix.lower() in known.extensions), None)


def _recognise(path: Path) -> Format:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    chosen = next((known for known in FORMATS if known.sniff(head)), None) or _by_extension(path)
    if chosen is None:
        raise ParseError(
            f"neither the extension nor the content is of a known format; known: {', '.join(_extensions())}",
            path=path,
        )
    return chosen


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


def _extensions() -> list[str]:
    return [extension for known in FORMATS for extension in known.extensions]
