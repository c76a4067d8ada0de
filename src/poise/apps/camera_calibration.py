"""Calibrate cameras from videos of a board and report the result; check cameras later."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from poise.errors import InvalidValueError
from poise.types import Array, Progress, silent
from poise.vision.blobs import Background, Blobs, find_blobs
from poise.vision.calibrate import (
    Board,
    BoardView,
    LensCalibration,
    RigCalibration,
    calibrate_rig,
    on_floor,
    placed_board,
)
from poise.vision.colours import Colours
from poise.vision.rig import Rig, fundamental
from poise.vision.sources import ImageFolder, InStep, Source, open_source, read_picture
from poise.vision.synchronise import offsets_by
from poise.vision.tracker import WHITE
from poise.vision.triangulate import Matcher, epipolar_distances, exclusive, projections, triangulate_all

Views = list[dict[int, BoardView]]

LOOKS_FOR_OTHERS = 4  # pictures in which a board of another size is searched if the right one is not found
LOOKS = 240  # largest number of moments of a video at which the board is searched
MOVED = 6.0  # pixels that a board must move to count as another view
GOOD_ERROR = 1.0  # pixels: largest error of a check before cameras or lenses are suspected to have changed
MEETS = 0.25  # pixels (rms): largest distance of the rays of one marker if the cameras are unchanged
AGREED = 0.75  # share of markers seen by two cameras that must be at one position
GOOD_SCALE = 0.02  # relative error of the squares' size


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A calibration, its views, and notes on them."""

    result: RigCalibration
    views: Views
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """One measured quantity: name, value, unit, and what is wrong with it (empty if nothing)."""

    what: str
    value: float
    unit: str
    wrong: str = ""


def board_from_text(text: str, square: float, *, charuco: float | None = None) -> Board:
    """A board from its inner corners, as in 8x6, and the size of its squares (and markers) in metres."""
    if not (match := re.fullmatch(r"(\d+)x(\d+)", text.strip().lower())):
        raise InvalidValueError(f"give a board by its inner corners, such as 8x6; got {text!r}")
    return Board(int(match[1]), int(match[2]), square, charuco)


def calibrate_from(
    places: Sequence[str | Path],
    board: Board,
    *,
    floor: Path | None = None,
    sync: str = "time",
    progress: Progress = silent,
) -> Calibrated:
    """Calibrate a rig from a video or image folder per camera; `floor` is the first camera's picture of it there."""
    sources = [open_source(place) for place in places]
    names = [Path(source.name).stem for source in sources]
    if len(set(names)) < len(names):
        names = [f"camera{number}" for number in range(1, len(names) + 1)]
    views, notes = find_views(sources, board, sync=sync, progress=progress)
    for source, own in zip(sources, views, strict=True):
        if own:
            continue
        words = f"{source.name}: a board of {board.columns}x{board.rows} inner corners was not found in any picture"
        again, every = source.reopened(), max(1, source.frames // LOOKS_FOR_OTHERS)
        pictures = [entry[1] for number, entry in enumerate(iter(again.read, None)) if number % every == 0]
        again.close()
        for more in ((-1, -1), (1, 1), (-1, 0), (0, -1), (1, 0), (0, 1)):
            other = replace(board, columns=board.columns + more[0], rows=board.rows + more[1])
            if min(other.columns, other.rows) >= 3 and any(map(other.find, pictures)):
                raise InvalidValueError(
                    f"{words}, but one of {other.columns}x{other.rows} was", settings=("board",)
                )
        raise InvalidValueError(
            f"{words}: count inner corners, not squares, and show all of it, sharp and evenly lit",
            settings=("board",),
        )
    result = calibrate_rig(views, names=names)
    if floor is not None:
        view = board.find(read_picture(floor))
        if view is None:
            raise InvalidValueError(f"the board is not seen in {floor.name}; the whole board must be visible")
        result = result.moved(on_floor(result.rig, view))
    else:
        notes = (*notes, "no picture of the floor: heights and the vertical are the first camera's own")
    return Calibrated(result, views, notes)


def camera_rows(found: Calibrated) -> tuple[list[str], list[list[str]]]:
    """A table: each camera's picture size, focal length, error, and numbers of used and missing views."""
    rig, rows = found.result.rig, []
    for camera, lens in zip(rig.cameras, found.result.lenses, strict=True):
        width, height = camera.size
        away = np.linalg.norm(camera.pinhole.centre - rig.cameras[0].pinhole.centre)
        numbers = f"{camera.pinhole.focal_length:.1f} px", f"{lens.error:.3f} px", f"{away:.3f} m"
        counts = str(len(lens.view_errors)), str(len(lens.left_out))
        rows.append([camera.name, f"{width}x{height}", *numbers, *counts])
    return ["camera", "pictures", "focal length", "error", "from the first", "views", "left out"], rows


def view_rows(found: Calibrated) -> tuple[list[str], list[list[str]]]:
    """A table: the error of every view in every camera, in pixels; views left out are marked."""

    def cell(lens: LensCalibration, number: int) -> str:
        if number in lens.left_out:
            return "left out"
        return f"{lens.view_errors[number]:.3f}" if number in lens.view_errors else "-"

    lenses = found.result.lenses
    numbers = sorted({number for own in found.views for number in own})
    rows = [[str(number), *(cell(lens, number) for lens in lenses)] for number in numbers]
    return ["view", *(lens.camera.name for lens in lenses)], rows


def facts(found: Calibrated) -> dict[str, object]:
    """The same data, ready for JSON."""
    return {
        "error_px": found.result.error,
        "shared_views": list(found.result.shared_views),
        "cameras": {
            lens.camera.name: {
                "error_px": lens.error,
                "view_errors_px": {str(number): error for number, error in lens.view_errors.items()},
                "left_out": list(lens.left_out),
                "hints": list(lens.hints),
            }
            for lens in found.result.lenses
        },
        "notes": list(found.notes),
    }


def _is_new(view: BoardView | None, known: Mapping[int, BoardView]) -> bool:
    if view is None or not known:
        return view is not None
    last = known[max(known)]
    _, ours, theirs = np.intersect1d(view.numbers, last.numbers, return_indices=True)
    moved = np.linalg.norm(view.pixels[ours] - last.pixels[theirs], axis=1)
    return len(ours) == 0 or float(moved.mean()) > MOVED


def find_views(
    sources: Sequence[Source], board: Board, *, sync: str = "time", progress: Progress = silent
) -> tuple[Views, tuple[str, ...]]:
    """The board's corners in each camera, by moment; moments in which no board has moved are skipped."""
    views: Views = [{} for _ in sources]
    length = max(source.frames for source in sources)
    every = 1 if any(isinstance(source, ImageFolder) for source in sources) else max(1, length // LOOKS)
    with InStep(sources, offsets=offsets_by(sync, sources)) as steps:
        for number, step in enumerate(steps):
            progress(number + 1, length)
            if number % every:
                continue
            found = [None if picture is None else board.find(picture) for picture in step.pictures]
            if any(_is_new(view, own) for view, own in zip(found, views, strict=True)):
                for view, own in zip(found, views, strict=True):
                    if view is not None:
                        own[number] = view
    return views, tuple(steps.notes)


def check_with_board(
    rig: Rig, sources: Sequence[Source], board: Board, *, sync: str = "time", progress: Progress = silent
) -> list[Check]:
    """Compare the corners of a board with the cameras' predictions: each by itself, and all together."""
    checks = check_sizes(rig, sources)
    if any(check.wrong for check in checks):
        return checks
    views, _ = find_views(sources, board, sync=sync, progress=progress)
    for camera, own in zip(rig.cameras, views, strict=True):
        if not own:
            raise InvalidValueError(f"{camera.name}: the board was not found in any picture")
        errors = []
        for view in own.values():
            seen = camera.moved(*placed_board(camera, view)).project(view.on_board)
            errors.append(float(np.sqrt(np.mean(np.sum((seen - view.pixels) ** 2, axis=1)))))
        checks.append(_judged(f"{camera.name}: corners", errors, "its lens"))
    for a, b in combinations(range(len(rig)), 2):
        shared = sorted(set(views[a]) & set(views[b]))
        if shared:
            checks += _pair_checks(rig, (a, b), [(views[a][k], views[b][k]) for k in shared], board)
    return checks


def check_with_markers(
    rig: Rig, sources: Sequence[Source], *, empty: float = 1.0, sync: str = "time", colours: Colours = WHITE
) -> list[Check]:
    """Check with the markers of a performance whether points seen by two cameras coincide."""
    checks = check_sizes(rig, sources)
    if any(check.wrong for check in checks) or len(rig) < 2:
        return checks
    moments, rooms, backgrounds = (
        list[tuple[Blobs, ...]](),
        [list[Array]() for _ in sources],
        list[Background](),
    )
    with InStep(sources, offsets=offsets_by(sync, sources)) as steps:
        for step in steps:
            whole = [picture for picture in step.pictures if picture is not None]
            if len(whole) < len(sources):
                break
            if step.time < empty - 0.5 / steps.fps:  # the room is still empty
                for room, picture in zip(rooms, whole, strict=True):
                    room.append(picture)
                continue
            backgrounds = backgrounds or [Background.of_frames(room, fps=steps.fps) for room in rooms]
            found = (
                find_blobs(picture, own.foreground(picture), colours.looks(), room=own.room)
                for picture, own in zip(whole, backgrounds, strict=True)
            )
            moments.append(tuple(found))
    for pair in combinations(rig.cameras, 2):
        names = " and ".join(camera.name for camera in pair)
        numbers = [rig.cameras.index(camera) for camera in pair]
        seen = [tuple(blobs[k] for k in numbers) for blobs in moments if all(len(blobs[k]) for k in numbers)]
        if not seen:
            raise InvalidValueError(f"{names} never show markers at the same time")
        share = agreement(Rig(pair), seen)
        wrong = f"under {100 * AGREED:.0f} %: other cameras, another order, or moved cameras"
        checks.append(
            Check(f"{names}: markers whose rays meet", 100.0 * share, "%", "" if share >= AGREED else wrong)
        )
    return checks


def agreement(rig: Rig, seen: Sequence[Sequence[Blobs]]) -> float:
    """The share of points whose rays meet, in front of all cameras and on each other's epipolar lines."""
    matcher = Matcher(rig)
    met = sum(
        candidate.meeting.pixels_off <= MEETS
        for blobs in seen
        for candidate in exclusive(matcher.candidates(blobs))
    )
    return met / sum(min(map(len, blobs)) for blobs in seen)


def check_sizes(rig: Rig, sources: Sequence[Source]) -> list[Check]:
    """Check that there is a source for every camera, with pictures of its size."""
    if len(sources) != len(rig):
        raise InvalidValueError(f"the camera file has {len(rig)} cameras; got {len(sources)} videos")
    checks = []
    for camera, source in zip(rig.cameras, sources, strict=True):
        (width, height), (own_width, own_height) = camera.size, source.size
        wrong = (
            f"{source.name} is {own_width}x{own_height}: the video is from another camera or another setting"
        )
        fits = camera.size == source.size
        checks.append(
            Check(f"{camera.name}: pictures {width}x{height}", float(fits), "", "" if fits else wrong)
        )
    return checks


def _pair_checks(
    rig: Rig, pair: tuple[int, int], views: Sequence[tuple[BoardView, BoardView]], board: Board
) -> list[Check]:
    cameras = [rig.cameras[number] for number in pair]
    names = ", ".join(camera.name for camera in cameras)
    gaps, sides = list[float](), list[float]()
    for a, b in views:
        numbers, in_a, in_b = np.intersect1d(a.numbers, b.numbers, return_indices=True)
        straight = cameras[0].straightened(a.pixels[in_a]), cameras[1].straightened(b.pixels[in_b])
        gaps += np.diag(epipolar_distances(fundamental(*cameras), *straight)).tolist()
        corners = triangulate_all(projections(cameras), np.stack(straight, axis=1))
        follows = (np.diff(numbers) == 1) & (numbers[1:] % board.columns != 0)  # neighbours along the rows
        points = np.stack([corner.point for corner in corners])
        sides += np.linalg.norm(np.diff(points, axis=0), axis=1)[follows].tolist()
    checks = [_judged(f"{names}: corners off epipolar lines", gaps, "where the cameras stand")]
    if sides:
        off = float(np.median(sides)) / board.square - 1.0
        wrong = "" if abs(off) <= GOOD_SCALE else "the squares differ in size from those of the calibration"
        checks.append(Check(f"{names}: squares too large by", 100.0 * off, "%", wrong))
    return checks


def _judged(what: str, errors: Sequence[float], who: str) -> Check:
    value = float(np.median(errors))
    wrong = "" if value <= GOOD_ERROR else f"over {GOOD_ERROR:g}: {who} has changed since; calibrate again"
    return Check(what, value, "px", wrong)
