"""C3D, the marker files of optical systems, through ezc3d (Michaud and Begon 2021): points, labels, gaps, units, rates.

A point whose residual is negative, or that lies exactly at the origin, was not seen and reads as NaN. A residual of
zero marks a point that was filled in or modelled rather than measured (C3D user guide, "3D point residuals"); many
exporters leave it zero throughout. Laboratories usually have Z up; POINT:Y_SCREEN states it if present.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, MissingExtraError, ParseError, UnknownNameError
from poise.formats.apart import arrays_of
from poise.formats.c3d_layout import OddLayoutError, check_layout
from poise.formats.files import existing_file, replacing, scratch_folder
from poise.formats.laboratory import UP_AXES, chosen_up, matrix_y_up_from, stated_unit, y_up
from poise.formats.text import unique_names
from poise.formats.units import metres_per_unit
from poise.motion.markers import Markers
from poise.motion.motion import Doubt
from poise.types import Array

_UNLABELLED = "*"
_MODELLED = ("MODELED_MARKERS", "REACTIONS")  # label lists of a model's points
_NOT_POSITIONS = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", *_MODELLED)  # and of other quantities
_OF_EVENTS = ("LABELS", "CONTEXTS", "SUBJECTS", "DESCRIPTIONS")
_OURS = "Poise"
_MILLIMETRES = 1000.0
_MOST_LABELS = 255
_MOST_RESIDUAL_STEPS = 127
_LEAST_RESIDUAL_STEP = 0.01  # millimetres
_SAME_STEP = 1e-3  # of a step: ezc3d truncates to whole steps


def read(
    path: str | os.PathLike[str],
    *,
    units: str | float | None = None,
    up: str | None = None,
    subject: str | None = None,
    keep_unlabelled: bool = False,
) -> Markers:
    """Read the markers of a C3D file, in metres and Y up.

    `units` and `up` ("+Z") override the file. Labels lose their prefix ("Anna:LFHD") if there is one subject; of
    several, `subject` selects one. Points without a label are left out unless `keep_unlabelled`.
    """
    file = existing_file(path)
    oddities: tuple[str, ...] = ()
    try:
        content = _load(file)
    except OddLayoutError as error:
        # In another process, ezc3d, which is compiled and does not check its input, may crash, hang or exhaust memory.
        # What it does not support (SGI's numbers, records of odd types) is read by the pure Python package c3d.
        _ezc3d()
        arrays = arrays_of("c3d", file, reason=error.message)
        points, residuals = arrays.pop("points"), arrays.pop("residuals")
        if points.ndim != 3 or points.shape[1] == 0 or points.nbytes > 32 * file.stat().st_size:
            raise ParseError(error.message, path=file) from error
        group = {name: {"value": value.tolist()} for name, value in arrays.items()}
        data = {"points": points, "meta_points": {"residuals": residuals[None]}}
        content = {"parameters": {"POINT": group}, "data": data}
        oddities = (Doubt(f"the file is not valid C3D ({error.message}); its points were read anyway"),)
    labels = _labels(content)
    kept, warnings = _kept_points(content, labels, keep_unlabelled=keep_unlabelled)
    if not kept:
        raise ParseError("the file has no markers, only outputs such as angles and forces", path=file)
    names, chosen, subject_warnings = _subjects(tuple(labels[k] for k in kept), subject=subject)
    kept = [kept[k] for k in chosen]
    unit = stated_unit(_text(content, "UNITS") or "mm", given=units, path=file)
    points, residuals = _points(content, kept)
    points *= unit.metres
    axis, why = chosen_up(
        names, points, given_up=up, stated_up=_screen_up(content), sure=_is_ours(content), default_up="+Z"
    )
    points = y_up(points, axis)
    absence = ("every marker is missing in every frame",) if np.isnan(points).all() else ()
    doubts = (*oddities, *warnings, *subject_warnings, *absence)
    origin = unit.origin(file, "c3d", len(points), notes=[f"{axis} is up: {why}"], warnings=doubts)
    rates = _values(content, "RATE")
    rate = float(rates[0]) if rates else 0.0
    if not (np.isfinite(rate) and rate > 0):
        raise ParseError(f"POINT:RATE must be above zero; got {rate}", path=file)
    return Markers(names, points, rate, residuals=residuals * unit.metres, name=file.stem, origin=origin)


def write(
    markers: Markers,
    path: str | os.PathLike[str],
    *,
    units: str = "mm",
    analogs: tuple[Path, int] | None = None,
) -> None:
    """Write markers as C3D, Z up, in millimetres or another named unit.

    `analogs` is a C3D file whose analog channels and events are kept, and its frame that is the first one here. Gaps
    get the residual -1. A residual of 0 marks a filled point, and is used for all if the markers have no residuals. A
    file has seven bits for each: they are rounded up, so that measured points differ from filled points and gaps.
    """
    if not isinstance(markers, Markers):
        raise InvalidValueError(f"a C3D file holds markers; got {type(markers).__name__}")
    if not markers.labels or len(markers) == 0 or len(markers.labels) > _MOST_LABELS:
        raise InvalidValueError(
            f"a C3D file needs frames and 1 to {_MOST_LABELS} markers; got {len(markers)} and {len(markers.labels)}"
        )
    content = _ezc3d().c3d()
    group = content["parameters"]["POINT"]
    group["RATE"]["value"] = [markers.fps]
    group["UNITS"]["value"] = [units]
    group["LABELS"]["value"] = list(markers.labels)
    content.add_parameter("POINT", "X_SCREEN", ["+X"])
    content.add_parameter("POINT", "Y_SCREEN", ["+Z"])
    content.add_parameter("MANUFACTURER", "SOFTWARE", [_OURS])
    gaps = np.isnan(markers.points).any(axis=2)
    given = np.zeros(gaps.shape) if markers.residuals is None else markers.residuals
    measured = np.nan_to_num(given) * _MILLIMETRES
    step = max(float(measured.max()) / _MOST_RESIDUAL_STEPS, _LEAST_RESIDUAL_STEP)
    steps = np.ceil(np.round(measured / step, 9))
    residuals = np.where(gaps, -1.0, (steps + _SAME_STEP) * step).T[None]
    scale = 1.0 / (_MILLIMETRES * metres_per_unit(units))
    group["SCALE"]["value"] = [-step * scale]  # negative: coordinates are stored as floats
    turned = markers.points @ matrix_y_up_from("+Z") * _MILLIMETRES
    points = np.ones((4, len(markers.labels), len(markers)))
    points[:3] = np.where(gaps[..., None], 0.0, turned).transpose(2, 1, 0)
    points[:3] *= scale
    content["data"]["points"] = points
    content["data"]["meta_points"]["residuals"] = np.where(residuals < 0.0, residuals, residuals * scale)
    if analogs is not None:
        _keep_others(content, *analogs, frames=len(markers))
    _save(content, path)


def _keep_others(content: Any, source: Path, first: int, *, frames: int) -> None:
    """Copy the analog channels and events of another file for a range of its frames; none from an odd file."""
    try:
        other = _load(source)
    except OddLayoutError:  # its reader has already warned
        return
    samples, group = other["data"]["analogs"], other["parameters"]["ANALOG"]
    rate = float(content["parameters"]["POINT"]["RATE"]["value"][0])
    if samples.shape[1]:
        each = samples.shape[2] // other["data"]["points"].shape[2]
        content["data"]["analogs"] = samples[:, :, first * each : (first + frames) * each]
        own = content["parameters"]["ANALOG"]
        own["RATE"]["value"] = [rate * each]
        for name in ("LABELS", "DESCRIPTIONS", "UNITS"):
            if name in group:
                own[name]["value"] = [_readable(text) for text in group[name]["value"]][: samples.shape[1]]
    group = other["parameters"].get("EVENT", {})
    times = np.atleast_2d(np.asarray(group.get("TIMES", {}).get("value", ()), dtype=np.float64))
    if times.shape[0] == 2:  # C3D counts the times of events from frame 1
        at = 60.0 * times[0] + times[1] - (other["header"]["points"]["first_frame"] + first) / rate
        kept = np.flatnonzero((at > -1e-6) & (at < frames / rate))
        content.add_parameter("EVENT", "USED", [len(kept)])
        content.add_parameter("EVENT", "TIMES", np.stack([np.zeros(len(kept)), np.maximum(at[kept], 0.0)]))
        for name in _OF_EVENTS:
            values = group.get(name, {}).get("value", ())
            if len(values) >= times.shape[1]:
                content.add_parameter("EVENT", name, [_readable(values[k]) for k in kept])


def write_filled(
    source: str | os.PathLike[str],
    markers: Markers,
    path: str | os.PathLike[str],
    *,
    units: str | float | None = None,
    up: str | None = None,
    subject: str | None = None,
) -> int:
    """Write a C3D file again with its gaps filled from markers read from it; everything else is unchanged.

    Only unseen points change, to the markers' points that are not missing, with their residuals, whose step grows if
    the largest would not fit; `units`, `up` and `subject` must be those of the reading. Returns the number of filled
    points.
    """
    file = existing_file(source)
    content = _load(file)
    labels = _labels(content)
    kept, _ = _kept_points(content, labels, keep_unlabelled=True)
    names, chosen, _ = _subjects(tuple(labels[k] for k in kept), subject=subject)
    numbers = {name: kept[k] for name, k in zip(names, chosen, strict=True)}
    unit = stated_unit(_text(content, "UNITS") or "mm", given=units, path=file)
    own, _ = _points(content, list(numbers.values()))
    points, screen = own * unit.metres, _screen_up(content)
    axis, _ = chosen_up(names, points, given_up=up, stated_up=screen, sure=_is_ours(content), default_up="+Z")
    count = 0
    for column, label in enumerate(markers.labels):
        number = numbers[label]
        gap = np.isnan(own[:, names.index(label)]).any(axis=1)
        frames = np.flatnonzero(gap & np.isfinite(markers.points[:, column]).all(axis=1))
        turned = markers.points[frames, column] @ matrix_y_up_from(axis) / unit.metres
        content["data"]["points"][:3, number, frames] = turned.T
        content["data"]["meta_points"]["residuals"][0, number, frames] = (
            0.0 if markers.residuals is None else markers.residuals[frames, column] / unit.metres
        )
        count += len(frames)
    residuals, group = content["data"]["meta_points"]["residuals"], content["parameters"]["POINT"]
    (scale, *_) = group["SCALE"]["value"]
    step = max(float(residuals.max()) / _MOST_RESIDUAL_STEPS, abs(float(scale)))
    if scale < 0:
        group["SCALE"]["value"] = [-step]
        positive = residuals > 0  # rounded up, so that none becomes zero
        residuals[positive] = (np.ceil(np.round(residuals[positive] / step, 6)) + _SAME_STEP) * step
    _save(content, path)
    return count


# --- the file ------------------------------------------------------------------------------------------------------


def _ezc3d() -> ModuleType:
    try:
        import ezc3d
    except ImportError:
        raise MissingExtraError("ezc3d", extra="c3d", purpose="reading and writing C3D files") from None
    module: ModuleType = ezc3d
    return module


def _save(content: Any, path: str | os.PathLike[str]) -> None:
    with scratch_folder() as folder, replacing(path, "wb") as opened:
        written = folder / "markers.c3d"  # ezc3d writes to a file name, not to an open file
        content.write(str(written))
        data, (scale, *_) = written.read_bytes(), content["parameters"]["POINT"]["SCALE"]["value"]
        # ezc3d writes the scale -1 into the header, and other readers compare it with POINT:SCALE.
        opened.write(data[:12] + struct.pack("<f", scale) + data[16:])


def _load(file: Path) -> Any:
    check_layout(file)
    library = _ezc3d()
    try:
        return library.c3d(str(file))
    except (RuntimeError, ValueError, TypeError, OSError, KeyError, IndexError, MemoryError) as error:
        raise OddLayoutError(f"ezc3d cannot read it: {str(error)[:200]}", path=file) from error


def _values(content: Any, name: str) -> list[Any]:
    group = content["parameters"]["POINT"]
    return list(group[name]["value"]) if name in group else []


def _text(content: Any, name: str) -> str:
    values = _values(content, name)
    return str(values[0]).strip() if values else ""


# --- labels and subjects -------------------------------------------------------------------------------------------


def _labels(content: Any) -> list[str]:
    """One label per point: LABELS, LABELS2, ..., and *n for points beyond them."""
    count = content["data"]["points"].shape[1]
    found = [_readable(label) for label in _values(content, "LABELS")]
    page = 2
    while more := _values(content, f"LABELS{page}"):
        found += [_readable(label) for label in more]
        page += 1
    found = [label or f"{_UNLABELLED}{k}" for k, label in enumerate(found[:count])]
    return list(unique_names(found + [f"{_UNLABELLED}{k}" for k in range(len(found), count)]))


def _readable(label: object) -> str:
    """A label as text; bytes that are not UTF-8, as marked by ezc3d, are decoded as Latin-1."""
    text = str(label)
    if any("\udc80" <= character <= "\udcff" for character in text):
        text = text.encode("utf-8", "surrogateescape").decode("latin-1")
    return text.strip()


def _kept_points(
    content: Any, labels: list[str], *, keep_unlabelled: bool
) -> tuple[list[int], tuple[str, ...]]:
    """The indices of the points that are markers, and notes on those left out."""
    others = {str(label).strip() for name in _NOT_POSITIONS for label in _values(content, name)}
    modelled = [label for label in labels if label in others]
    unlabelled = [label for label in labels if label.startswith(_UNLABELLED)]
    left_out = {*modelled, *(() if keep_unlabelled else unlabelled)}
    kept = [k for k, label in enumerate(labels) if label not in left_out]
    if not kept:
        kept = [k for k, label in enumerate(labels) if label not in modelled]
        return kept, ("no point has a label; all were kept",)
    warnings = []
    if modelled:
        warnings.append(f"left out {len(modelled)} outputs that are not positions, such as {modelled[0]}")
    if unlabelled and not keep_unlabelled:
        warnings.append(f"left out {len(unlabelled)} unlabelled points (keep_unlabelled keeps them)")
    return kept, tuple(warnings)


def _subjects(
    labels: tuple[str, ...], *, subject: str | None
) -> tuple[tuple[str, ...], list[int], tuple[str, ...]]:
    """Labels without their subject's prefix, their indices, and a warning if there are several subjects."""
    prefixes = [label.partition(":")[0] if ":" in label else "" for label in labels]
    subjects = tuple(dict.fromkeys(prefix for prefix in prefixes if prefix))
    if subject is not None and subject not in subjects:
        raise UnknownNameError("subject", subject, subjects or ("(labels have no prefix)",))
    if subject is None and len(subjects) > 1:
        names = ", ".join(subjects)
        several = f"markers of several subjects: {names}; subject= picks one"
        return labels, list(range(len(labels))), (several,)
    chosen = [k for k, prefix in enumerate(prefixes) if subject in (None, prefix)]
    bare = [labels[k].removeprefix(f"{prefixes[k]}:") or labels[k] for k in chosen]
    return unique_names(bare), chosen, ()


# --- points --------------------------------------------------------------------------------------------------------


def _points(
    content: Any, kept: list[int]
) -> tuple[Float[Array, "frames markers 3"], Float[Array, "frames markers"]]:
    """Points and residuals in the file's unit and axes; both are NaN if a point was not seen."""
    points = content["data"]["points"][:3, kept].transpose(2, 1, 0).astype(np.float64)
    residuals = content["data"]["meta_points"]["residuals"][0, kept].T.astype(np.float64)
    unseen = (residuals < 0) | np.all(points == 0, axis=2) | ~np.all(np.isfinite(points), axis=2)
    points[unseen] = np.nan
    residuals[unseen] = np.nan
    return points, residuals


def _screen_up(content: Any) -> str | None:
    axis = _text(content, "Y_SCREEN").upper()
    return axis if axis in UP_AXES else None


def _is_ours(content: Any) -> bool:
    return bool(content["parameters"].get("MANUFACTURER", {}).get("SOFTWARE", {}).get("value") == [_OURS])
