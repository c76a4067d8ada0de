"""Contact sheets: the poses of a clip side by side on one floor."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from PIL import Image

from poise.errors import InvalidValueError, UnknownNameError
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.pictures import labels
from poise.pictures.scene import Figure, Floor, PictureView, fitted, render
from poise.pictures.subject import Subject, heading, subject_of
from poise.types import Array

LAYOUTS = ("auto", "travel", "row")
_ELEVATION = np.radians(9.0)
_TURN, _TURN_TRAVEL = np.radians(38.0), np.radians(62.0)  # of the camera from the heading or the path
_MOST_POSES = 200
_LENS = 14.0  # a long lens: poses at the ends look like those in the middle
_TITLE_HEIGHT, _LABEL_HEIGHT = 42, 30  # pixels at scale 1


def contact_sheet(
    shown: Motion | Markers,
    *,
    poses: int = 8,
    width: int = 1400,
    title: str | None = None,
    layout: str = "auto",
    columns: int | None = None,
) -> Image.Image:
    """A picture of evenly spaced poses with their times.

    `layout` "travel" keeps poses at their positions, which suits a person who crosses the floor; "row" lines them up
    and wraps long rows; "auto" chooses by the distance between poses.
    """
    if not 1 <= poses <= _MOST_POSES:
        raise InvalidValueError(f"a contact sheet must have 1 to {_MOST_POSES} poses; got {poses}")
    if not 100 <= width <= 10_000:
        raise InvalidValueError(f"a contact sheet must be 100 to 10000 pixels wide; got {width}")
    if layout not in LAYOUTS:
        raise UnknownNameError("layout", layout, LAYOUTS)
    show = subject_of(shown)
    frames = np.unique(np.round(np.linspace(0, show.frames - 1, poses)).astype(np.int64))
    people = [_Standing(show.figure(int(f)), show.centres[f], f"{f / show.fps:.2f} s") for f in frames]
    if layout == "travel" or (layout == "auto" and _travels(show, people)):
        strips = [_travel_strip(show, people, width)]
    else:
        strips = _row_strips(show, people, width, columns)
    detail = f"{show.frames / show.fps:.1f} s, {show.frames} frames at {show.fps:g} Hz"
    scale = max(0.6, width / 1400)
    page = labels.arranged([[strip] for strip in strips], top=round(_TITLE_HEIGHT * scale))
    labels.write_title(page, show.name if title is None else title, detail, scale=scale)
    labels.write_key(page, scale=scale)
    return page


@dataclass(frozen=True, eq=False)
class _Standing:
    """A figure, its centre, and its label."""

    figure: Figure
    centre: Float[Array, "3"]
    label: str


def _height(people: list[_Standing], floor: float) -> float:
    """The height of the tallest pose above the floor."""
    return max(0.1, max(float(p.figure.vertices[:, 1].max(initial=floor)) for p in people) - floor)


def _travels(show: Subject, people: list[_Standing]) -> bool:
    """Whether poses are separate at their own positions: a fairly straight path in steps of 0.3 to 1.5 heights."""
    if len(people) < 2:
        return False
    way = np.array([p.centre[[0, 2]] for p in people])
    steps = np.linalg.norm(np.diff(way, axis=0), axis=-1)
    straight = np.linalg.norm(way[-1] - way[0]) > 0.85 * steps.sum()
    tall = _height(people, show.floor)
    return bool(straight and steps.min() > 0.30 * tall and steps.max() < 1.5 * tall)


# --- poses where they happened ---------------------------------------------------------------------------------------


def _travel_strip(show: Subject, people: list[_Standing], width: int) -> Image.Image:
    azimuth = heading(show.centres)[0] - _TURN_TRAVEL
    # Of a figure, a few of the outermost vertices.
    ways = np.array([[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)], dtype=np.float64)
    hulls = [v[np.argmax(v @ ways.T, axis=0)] for v in (p.figure.vertices for p in people) if len(v)]
    points = np.concatenate([*hulls, *(_on_floor(p.centre, show.floor)[None] for p in people)])
    scale = max(0.6, width / 1400)
    height, side = width * 3 // 4, 40 * scale / width
    label = _LABEL_HEIGHT * scale
    view = fitted(points, azimuth=azimuth, elevation=_ELEVATION, size=(width, height), lens=6.0,
                  margins=(side, 0.02, side, label / height))  # fmt: skip
    view = _cropped(view, points, top=round(10 * scale), bottom=round(label + 12 * scale))
    return _strip(show, people, view, width)


def _cropped(view: PictureView, points: Float[Array, "n 3"], *, top: int, bottom: int) -> PictureView:
    """The same view without empty rows above and below its content."""
    rows = view.project(points)[:, 1]
    start = round(float(rows.min())) - top
    height = max(round(float(rows.max())) + bottom - start, 16)
    return replace(view, middle=(view.middle[0], view.middle[1] - start), size=(view.size[0], height))


# --- poses in rows ---------------------------------------------------------------------------------------------------


def _row_strips(show: Subject, people: list[_Standing], width: int, columns: int | None) -> list[Image.Image]:
    azimuth = show.facing - _TURN
    right = np.array([np.cos(azimuth), 0.0, -np.sin(azimuth)])
    spans = np.array([_span(p.figure, right) for p in people])
    cell = max(1.10 * float(np.max(spans[:, 1] - spans[:, 0])), 0.25)
    tall = _height(people, show.floor)
    if not columns:  # rows of even length, wide enough for a strip and still legible
        rows = -(-len(people) // max(1, min(len(people), round(5.2 / (cell / tall)), 10)))
        columns = -(-len(people) // rows)
    view = _row_view(people, show.floor, right, azimuth, cell * columns, width)
    moved = []
    for number, person in enumerate(people):
        # To the middle of its slot, on the row's line.
        goal = (number % columns + 0.5 - 0.5 * columns) * cell
        along = right * (0.5 * (spans[number, 0] + spans[number, 1]))
        flat = np.array([person.centre[0], 0.0, person.centre[2]])
        shift = right * goal - (along + flat - right * (flat @ right))
        shown = replace(person.figure, vertices=person.figure.vertices + shift)
        moved.append(_Standing(shown, person.centre + shift, person.label))
    return [_strip(show, moved[k : k + columns], view, width) for k in range(0, len(moved), columns)]


def _row_view(
    people: list[_Standing], floor: float, right: Float[Array, "3"], azimuth: float, length: float, width: int
) -> PictureView:
    """The common view of all rows: as wide as a full row, as high as the highest pose."""
    back = np.array([np.sin(azimuth), 0.0, np.cos(azimuth)])
    depth = max(float(np.ptp(p.figure.vertices @ back)) if len(p.figure.vertices) else 0.0 for p in people)
    low = min(0.0, *(float(p.figure.vertices[:, 1].min(initial=floor)) - floor for p in people))
    corners = np.array([
        right * (0.5 * length * x) + back * (0.5 * depth * z) + np.array([0.0, floor + y, 0.0])
        for x in (-1, 1) for z in (-1, 1) for y in (low, 0.0)
    ] + [np.array([0.0, floor + _height(people, floor), 0.0])])  # fmt: skip
    scale = max(0.6, width / 1400)
    view = fitted(corners, azimuth=azimuth, elevation=_ELEVATION, size=(width, width), lens=_LENS,
                  margins=(0.01, 0.0, 0.01, 0.0))  # fmt: skip
    return _cropped(view, corners, top=round(16 * scale), bottom=round(_LABEL_HEIGHT * scale))


def _span(shown: Figure, right: Float[Array, "3"]) -> tuple[float, float]:
    across = shown.vertices @ right
    return (float(across.min()), float(across.max())) if across.size else (0.0, 0.0)


# --- drawing ---------------------------------------------------------------------------------------------------------


def _strip(show: Subject, people: list[_Standing], view: PictureView, width: int) -> Image.Image:
    """One row of poses on the floor, each with its label."""
    middle = np.mean([p.centre for p in people], axis=0)
    reach = 1.6 * view.size[0] / view.focal * float(np.linalg.norm(view.eye - middle))
    floor = Floor(show.floor, (float(middle[0]), float(middle[2])), reach)
    image = Image.fromarray(render([p.figure for p in people], view, floor=floor))
    scale = max(0.6, width / 1400)
    for person in people:
        column = view.project(_on_floor(person.centre, show.floor))[0]
        labels.write_under(image, person.label, (float(column), image.height - 14 * scale), scale=scale)
    return image


def _on_floor(centre: Float[Array, "3"], floor: float) -> Float[Array, "3"]:
    return np.array([centre[0], floor, centre[2]])
