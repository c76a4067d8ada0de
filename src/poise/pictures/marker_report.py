"""Pictures of takes: where markers are on the body and why, and what was seen and filled over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from PIL import Image, ImageDraw

from poise.motion.motion import Motion
from poise.pictures import labels as words
from poise.pictures.mannequin import Colour, build_mannequin
from poise.pictures.plots import Axes, Plot, colors, image_of
from poise.pictures.scene import figure, figure_of, fitted, floor_under, marker, render, rod
from poise.pictures.subject import facing_of
from poise.skeleton.skeleton import Pose
from poise.types import Array

SEEN: Colour = (0.16, 0.55, 0.33)
FILLED: Colour = (0.93, 0.55, 0.13)
FLAGGED: Colour = (0.76, 0.09, 0.36)
_INK, _PALE = "#1f2933", "#e4e9ee"
_POSES, _POSE_SIZE = 6, (300, 380)
_RADIUS = 0.018  # metres of a drawn marker
_TURN, _RISE = np.radians(35.0), np.radians(8.0)
_WIDTH = _POSES * _POSE_SIZE[0]
_COLUMNS = 900  # of time in the chart
_PLACES_SIZE, _ROW = (320, 560), 17
_FAR = 0.03  # metres of a marker from its place
_DARK: Colour = (0.12, 0.16, 0.2)


def draw_marker_report(
    motion: Motion,
    labels: Sequence[str],
    points: Float[Array, "frames markers 3"],
    sigmas: Float[Array, "frames markers"],
    *,
    measured: Bool[Array, "frames markers"],
    unsure: float,
) -> Image.Image:
    """Gaps, fills and their uncertainty over time, above poses of the body with its markers drawn over it."""
    state = np.where(measured, 0, np.where(sigmas > unsure, 2, 1))
    height, seconds = 2.6 + 0.16 * len(labels), len(state) / motion.fps
    plot = Plot(figsize=(_WIDTH / 100, height), dpi=100, layout="constrained")
    upper, lower = plot.subplots(2, 1, sharex=True, height_ratios=[0.16 * len(labels), 1.7])
    title = f"{motion.name}: {len(labels)} markers, {seconds:.1f} s"
    plot.suptitle(title, x=0.01, ha="left", color=_INK, fontweight="bold")
    _states(upper, labels, state, seconds)
    _uncertainty(lower, state, sigmas, motion.fps, unsure)
    return words.arranged([[image_of(plot)], [draw_markers_on_body(motion, points, state)]])


def draw_marker_places(
    pose: Pose,
    points: Float[Array, "markers 3"],
    places: Float[Array, "markers 3"],
    rows: Sequence[str],
    *,
    title: str,
) -> Image.Image:
    """A body from three sides with its numbered markers, each joined to its place, beside a row of text for each.

    Markers farther than 30 mm from their place have another colour.
    """
    body, seen = figure_of(pose, opacity=0.55), np.isfinite(points).all(axis=1)
    far = np.linalg.norm(points - places, axis=1) > _FAR
    joined = [
        rod(a, b, radius=0.3 * _RADIUS, colour=_DARK) for a, b in zip(points[seen], places[seen], strict=True)
    ]
    dots = [
        marker(point, radius=0.7 * _RADIUS, colour=FLAGGED if off else SEEN)
        for point, off in zip(points[seen], far[seen], strict=True)
    ]
    facing = facing_of(pose.skeleton, pose.world[0][None])
    around = np.concatenate([body.vertices, points[seen]])
    height = max(_PLACES_SIZE[1], 60 + _ROW * -(-len(rows) // 2))
    pictures = []
    for name, turn in (("front", 0.0), ("its left", 0.5 * np.pi), ("back", np.pi)):
        size, margins = (_PLACES_SIZE[0], height), (0.06, 0.08, 0.06, 0.06)
        view = fitted(around, azimuth=facing + turn, elevation=0.05, size=size, margins=margins, lens=8.0)
        pictures.append(Image.fromarray(render([body], view, over=[*joined, *dots])))
        words.write_title(pictures[-1], name, scale=0.8)
        for number in np.flatnonzero(seen).tolist():
            x, y, _ = view.project(points[number]).tolist()
            words.write_under(pictures[-1], str(number + 1), (x + 9.0, y - 8.0), scale=0.75)
    listed = Image.new("RGB", (_WIDTH - 3 * _PLACES_SIZE[0], height), pictures[0].getpixel((0, 0)))
    words.write_title(listed, title, scale=0.9)
    half = -(-len(rows) // 2)
    for number, text in enumerate(rows):
        column, row = divmod(number, half)
        colour = words.colour_bytes(FLAGGED if far[number] else _DARK)
        at = (14 + column * listed.width // 2, 48 + row * _ROW)
        ImageDraw.Draw(listed).text(at, f"{number + 1}  {text}", fill=colour, font=words.font(0.8, 13))
    return words.arranged([[*pictures, listed]])


def draw_markers_on_body(
    motion: Motion, points: Float[Array, "frames markers 3"], state: Array
) -> Image.Image:
    """Poses with their markers: seen (state 0), filled (1), too uncertain (2).

    The frames are spread over the take; each is the one with the most markers filled of its stretch.
    """
    stretches = [part for part in np.array_split(np.arange(len(state)), _POSES) if len(part)]
    missing = (state > 0).sum(axis=1)
    mannequin = build_mannequin(motion.skeleton, rotations=motion.rotations[:: max(1, len(motion) // 50)])
    pictures = []
    for frame in (int(part[np.argmax(missing[part])]) for part in stretches):
        positions, matrices = motion[frame].world
        body = figure(mannequin, positions, matrices)
        dots = [
            marker(point, radius=_RADIUS, colour=(SEEN, FILLED, FLAGGED)[kind])
            for point, kind in zip(points[frame], state[frame], strict=True)
            if np.isfinite(point).all()
        ]
        azimuth, margins = facing_of(motion.skeleton, positions[None]) - _TURN, (0.06, 0.1, 0.06, 0.06)
        ground = floor_under([body], float(min(0.0, body.vertices[:, 1].min())))
        view = fitted(body.vertices, azimuth=azimuth, elevation=_RISE, size=_POSE_SIZE, margins=margins)
        pictures.append(Image.fromarray(render([body], view, floor=ground, over=dots)))
        words.write_title(pictures[-1], f"{frame / motion.fps:.2f} s", scale=0.8)
    return words.arranged([pictures])


def _states(axes: Axes, labels: Sequence[str], state: Array, seconds: float) -> None:
    """One row per marker, one column per moment: the worst that happened in it."""
    edges = np.unique(np.linspace(0, len(state), min(_COLUMNS, len(state)) + 1).astype(int))
    worst = np.maximum.reduceat(state, edges[:-1], axis=0)
    colours = colors.ListedColormap([_PALE, colors.to_hex(FILLED), colors.to_hex(FLAGGED)])
    axes.imshow(
        worst.T, aspect="auto", cmap=colours, vmin=0, vmax=2, extent=(0, seconds, len(labels), 0),
        interpolation="nearest",
    )  # fmt: skip
    axes.set_yticks(np.arange(len(labels)) + 0.5, labels, fontsize=7, color=_INK)
    axes.tick_params(length=0)
    for name, colour in (("seen", _PALE), ("filled", FILLED), ("too uncertain", FLAGGED)):
        axes.plot([], [], "s", color=colour, label=name)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False, fontsize=8)


def _uncertainty(
    axes: Axes, state: Array, sigmas: Float[Array, "frames markers"], fps: float, unsure: float
) -> None:
    hidden = np.where(state > 0, 1000 * sigmas, np.nan)
    busy = np.isfinite(hidden).any(axis=1)
    middle, most = np.full(len(state), np.nan), np.full(len(state), np.nan)
    if busy.any():
        middle[busy], most[busy] = np.nanmedian(hidden[busy], axis=1), np.nanmax(hidden[busy], axis=1)
    seconds, label = np.arange(len(state)) / fps, "up to the least certain"
    axes.fill_between(seconds, middle, most, color=FILLED, alpha=0.3, linewidth=0, label=label)
    axes.plot(seconds, middle, color=FILLED, linewidth=1.2, label="median of what was filled")
    axes.axhline(1000 * unsure, color=FLAGGED, linewidth=0.8, linestyle=":")
    axes.set_ylabel("deviation, mm", fontsize=8, color=_INK)
    axes.set_xlabel("seconds", fontsize=8, color=_INK)
    axes.set_ylim(0, max(1.15 * 1000 * unsure, 1.1 * float(np.nanmax(middle)) if busy.any() else 0.0))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=_INK)
    axes.legend(loc="upper left", frameon=False, fontsize=8, ncols=2)
