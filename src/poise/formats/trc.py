"""TRC, the marker files of Motion Analysis and OpenSim: a five-line header and one tab-separated row per frame.

Layout after the OpenSim documentation, "Marker (.trc) Files". An empty cell is a gap and reads as NaN. Poise writes
Y up, as OpenSim expects, and says so; Motion Analysis systems often write Z up, so the up axis is inferred and can be
given.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.bounds import LARGEST_NUMBER
from poise.errors import InvalidValueError, ParseError
from poise.formats.files import existing_file, replacing
from poise.formats.laboratory import chosen_up, stated_unit, y_up
from poise.formats.text import finite_numbers, is_number_word, numbers, text_lines, unique_names
from poise.formats.units import metres_per_unit
from poise.motion.markers import Markers
from poise.motion.motion import Doubt
from poise.types import Array

_HEADER_LINES = 5
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # ends a cell or a line in some reader
_SAME_RATE = 0.02  # relative: times are often rounded to milliseconds
_SIZES = (0.02, 100.0)  # metres between the markers of one moment
_UP = "+Y up"  # at the end of the first line of the files that Poise writes
_GAP_WORDS = frozenset({"", "nan", "-nan", "nan(ind)", "-nan(ind)", "na", "null"})


@dataclass(frozen=True)
class _TrcHeader:
    """The contents of lines 2 to 4: settings by lower-case name, and marker labels."""

    settings: dict[str, str]
    labels: tuple[str, ...]
    path: Path

    def number(self, name: str) -> float | None:
        if name not in self.settings:
            return None
        return finite_numbers([self.settings[name]], path=self.path, line=3, what=f"the header's {name}")[0]

    @property
    def rate(self) -> float:
        rate = self.number("datarate") or 0.0
        if rate <= 0:
            said = self.settings["datarate"]
            raise ParseError(f"DataRate must be above zero; got {said}", path=self.path, line=3)
        return rate


def read(path: str | os.PathLike[str], *, units: str | float | None = None, up: str | None = None) -> Markers:
    """Read the markers of a TRC file, in metres and Y up; `units` and `up` ("+Z") override the file."""
    file = existing_file(path)
    lines = text_lines(file)
    header = _read_header(lines, path=file)
    unit = stated_unit(header.settings["units"], given=units, path=file)
    rows = _read_rows(lines, header=header)
    missing = np.isnan(rows).sum(axis=2)
    points = np.where(missing[..., None] > 0, np.nan, rows) * unit.metres
    stated = "+Y" if lines[0].rstrip().endswith(_UP) else None
    axis, why = chosen_up(header.labels, points, given_up=up, stated_up=stated, default_up="+Y")
    partial = int(np.count_nonzero((missing == 1) | (missing == 2)))
    gaps = (f"{partial} points lack one or two coordinates; read as gaps",) if partial else ()
    doubts = (*_doubts(header, lines, points, unit.name), *gaps)
    origin = unit.origin(file, "trc", len(points), notes=[f"{axis} is up: {why}"], warnings=doubts)
    return Markers(header.labels, y_up(points, axis), header.rate, name=file.stem, origin=origin)


def write(markers: Markers, path: str | os.PathLike[str], *, units: str | float = "mm") -> None:
    """Write markers as TRC, Y up, with gaps as empty cells; one at the end of a row has a NaN."""
    if not isinstance(markers, Markers):
        raise InvalidValueError(f"a TRC file holds markers; got a {type(markers).__name__}")
    if not markers.labels:
        raise InvalidValueError("a TRC file needs at least one marker; got none")
    metres, target = metres_per_unit(units), Path(path)
    frames, count, rate = len(markers), len(markers.labels), f"{markers.fps:.10g}"
    names = "DataRate CameraRate NumFrames NumMarkers Units OrigDataRate OrigDataStartFrame OrigNumFrames"
    values = (rate, rate, frames, count, units, rate, 1, frames)
    labels = "\t\t\t".join(_CONTROL.sub(" ", label) for label in markers.labels)
    header = (
        f"PathFileType\t4\t(X/Y/Z)\t{_CONTROL.sub(' ', target.name)}\t{_UP}",
        "\t".join(names.split()),
        "\t".join(map(str, values)),
        f"Frame#\tTime\t{labels}\t\t",
        "\t\t" + "\t".join(f"X{k}\tY{k}\tZ{k}" for k in range(1, count + 1)),
    )
    with replacing(target) as file:
        file.write("\n".join(header) + "\n\n")
        decimals = max(4, 8 + round(np.log10(metres)))  # a hundredth of a micrometre
        for number, row in enumerate(markers.points / metres):
            cells = ["" if np.isnan(value) else f"{value:.{decimals}f}" for value in row.ravel().tolist()]
            cells[-1] = cells[-1] or "NaN"  # OpenSim drops an empty cell at the end of a row
            file.write("\t".join([str(number + 1), f"{number / markers.fps:.6f}", *cells]) + "\n")


# --- reading -------------------------------------------------------------------------------------------------------


def _read_header(lines: list[str], *, path: Path) -> _TrcHeader:
    if not lines[0].strip().lower().startswith("pathfiletype"):
        raise ParseError(f"a TRC file starts with PathFileType; got {lines[0][:40]!r}", path=path, line=1)
    if len(lines) < _HEADER_LINES:
        raise ParseError(
            f"the header needs {_HEADER_LINES} lines; the file ends after {len(lines)}", path=path
        )
    names, values = ([cell.strip() for cell in _cells(line) if cell.strip()] for line in lines[1:3])
    settings = dict(zip((name.lower() for name in names), values, strict=False))
    for needed in ("datarate", "units"):
        if needed not in settings:
            raise ParseError(f"the header has no {needed}; got {' '.join(names)[:80]!r}", path=path, line=2)
    labels = _cells(lines[3])[2:]
    labels = [label.strip() for label in labels if label.strip()]
    if not labels:
        raise ParseError("the fourth line has no marker names", path=path, line=4)
    return _TrcHeader(settings, unique_names(labels), path)


def _read_rows(lines: list[str], *, header: _TrcHeader) -> Float[Array, "frames markers 3"]:
    """The coordinates of every frame; missing cells at the end are gaps if whole markers are missing."""
    rows, count = [], 3 * len(header.labels)
    for number, line in enumerate(lines[_HEADER_LINES:], start=_HEADER_LINES + 1):
        if not line.strip():
            continue
        cells = _cells(line)[2:]
        while len(cells) > count and not cells[-1].strip():
            cells.pop()
        if len(cells) % 3 == 0 and "\t" in line:
            del cells[count:]  # unlabelled points
        if len(cells) > count or len(cells) % 3 or ("\t" not in line and len(cells) < count):
            needed = f"{len(header.labels)} markers need {count} coordinates"
            raise ParseError(f"{needed}; got {len(cells)}", path=header.path, line=number)
        cells += [""] * (count - len(cells))
        words = ["nan" if cell.strip().lower() in _GAP_WORDS else cell for cell in cells]
        values = numbers(words, path=header.path, line=number, what="coordinates")
        if any(abs(value) > LARGEST_NUMBER for value in values):
            raise ParseError("a coordinate is infinite or absurdly large", path=header.path, line=number)
        rows.append(values)
    if not rows:
        raise ParseError("there are no frames after the header", path=header.path)
    return np.array(rows).reshape(len(rows), len(header.labels), 3)


def _cells(line: str) -> list[str]:
    """The cells of a line: between tabs, or between commas or spaces if the file has no tabs."""
    plain = line.rstrip("\n")
    mark = next((mark for mark in ("\t", ",") if mark in plain), None)
    return plain.split(mark)


def _doubts(
    header: _TrcHeader, lines: list[str], points: Float[Array, "frames markers 3"], unit: str
) -> Iterator[Doubt]:
    """Warnings where the header's counts and rate, or the unit, differ from the content."""
    pairs = (
        ("nummarkers", len(header.labels), "markers are named"),
        ("numframes", len(points), "rows are there"),
    )
    for name, count, what in pairs:
        if (number := header.number(name)) is not None and number != count:
            yield Doubt(f"the header's {name} is {number:g} but {count} {what}")
    cells = [_cells(line)[:2] for line in lines[_HEADER_LINES:] if line.strip()]
    frames, times = (
        np.array([float(row[k]) if len(row) > k and is_number_word(row[k]) else np.nan for row in cells])
        for k in (0, 1)
    )
    steps, jumps = np.diff(times), np.diff(frames)
    if len(steps) and not np.isnan(steps).any():
        odd = jumps != np.median(jumps)
        if np.any(steps <= 0):
            row = int(np.argmax(steps <= 0)) + 2
            yield Doubt(
                f"the times do not increase: row {row} has {times[row - 1]:g} s after {times[row - 2]:g} s"
            )
        elif not np.isnan(frames).any() and np.any(odd):
            row = int(np.argmax(odd)) + 2
            yield Doubt(
                f"the frame numbers jump: row {row} has {frames[row - 1]:g} after {frames[row - 2]:g}"
            )
        elif (
            abs((own := 1.0 / steps[steps < 1.5 * np.median(steps)].mean()) / header.rate - 1.0) > _SAME_RATE
        ):
            yield Doubt(
                f"the header's rate is {header.rate:g} Hz, which was used, but the times are {own:.4g} Hz"
            )
    counts = Counter(label.strip() for label in _cells(lines[3])[2:] if label.strip())
    if twice := [label for label, count in counts.items() if count > 1]:
        yield Doubt(f"labels that are there twice: {', '.join(twice[:5])}; the later ones got numbers")
    spans = np.nanmax(points, axis=1, initial=-np.inf) - np.nanmin(points, axis=1, initial=np.inf)
    span = float(np.max(np.where(np.isfinite(spans), spans, 0.0), initial=0.0))
    if points.shape[1] >= 3 and not _SIZES[0] <= span <= _SIZES[1]:
        yield Doubt(
            f"the markers are {span:.2g} m apart; is the file's unit, {unit}, right (units= overrides it)?"
        )
