"""Pictures of motion models: paths in a latent space (Urtasun et al. 2008, Figs. 1, 2 and 5), and rhythms of clips.

Light places are where the model is certain. Training paths are coloured by activity, landings of the left and the
right foot are marked, and the path of a simulation or an animation is drawn above them. A rhythm is a row: foot
contacts, the phase, and transition points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from PIL import Image

from poise.motion.contacts import Contacts
from poise.motion.motion import Motion
from poise.pictures.latent_map import INK, PALE_INK, PAPER, draw_map
from poise.pictures.latent_plane import LatentPlane
from poise.pictures.plots import Axes, Plot, image_of
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.sequences import Rhythm
from poise.skeleton.roles import SIDES
from poise.types import Array

Paths = Mapping[str, Float[Array, "frames latent"]]

ACTIVITIES = ("#2b6cb0", "#c05621", "#6b46c1", "#2c7a7b", "#975a16")
GENERATED = ("#111111", "#c2185b", "#7b8794")
LANDINGS = ("#d3202f", "#1a9850")
_DPI = 100


def draw_latent_paths(prior: DynamicsPrior, paths: Paths | None = None, *, title: str = "") -> Image.Image:
    """The latent space in three dimensions, and as a map of the model's certainty."""
    plot = Plot(figsize=(13.6, 7.0), dpi=_DPI, facecolor=PAPER)
    if prior.dimensions >= 3:
        draw_paths_3d(plot.add_axes((0.0, 0.02, 0.5, 0.88), projection="3d"), prior, paths or {})
    draw_paths_2d(plot.add_axes((0.53, 0.06, 0.45, 0.82)), prior, paths or {})
    labels = ", ".join(each.label for each in prior.structure.dimensions)
    plot.text(0.015, 0.945, title or "A latent space of motion", fontsize=15, color=INK)
    plot.text(0.985, 0.945, f"{len(prior.latents)} poses; {labels}", fontsize=10, color=PALE_INK, ha="right")
    words = [(_colour(prior, name), f"— {name}") for name in prior.frames.activity_names]
    words += [(colour, f"● {side} foot lands") for colour, side in zip(LANDINGS, SIDES, strict=True)]
    words += [(colour, f"— {name}") for name, colour in zip(paths or {}, GENERATED, strict=False)]
    for number, (colour, text) in enumerate(words):
        plot.text(0.02 + 0.115 * number, 0.018, text, fontsize=10, color=colour)
    return image_of(plot)


def draw_models(priors: Mapping[str, DynamicsPrior], *, title: str = "") -> Image.Image:
    """Several models of the same motions side by side, as Fig. 2."""
    columns = min(4, len(priors))
    rows = -(-len(priors) // columns)
    plot = Plot(figsize=(3.6 * columns, 3.7 * rows + 0.6), dpi=_DPI, facecolor=PAPER)
    top = 1.0 - 0.6 / (3.7 * rows + 0.6)
    for number, (name, prior) in enumerate(priors.items()):
        row, column = divmod(number, columns)
        height = top / rows
        place = (column / columns, top - (row + 1) * height, 1.0 / columns, 0.92 * height)
        axes: Any = plot.add_axes(place, projection="3d")
        draw_paths_3d(axes, prior, {})
        plot.text(place[0] + 0.02, place[1] + 0.94 * height, name, fontsize=12, color=INK)
    title = title or "One set of motions, several models"
    plot.text(0.015, 1.0 - 0.32 / (3.7 * rows + 0.6), title, fontsize=14, color=INK)
    return image_of(plot)


def draw_paths_3d(axes: Any, prior: DynamicsPrior, paths: Paths) -> None:
    """Training paths, landings and generated paths over the first three dimensions."""
    latents, frames = prior.latents[:, :3], prior.frames
    for (first, end), name in zip(frames.bounds(), frames.activities, strict=True):
        axes.plot(*latents[first:end].T, color=_colour(prior, name), linewidth=1.1, alpha=0.75)
    for points, colour in zip(frames.transitions, LANDINGS, strict=False):
        axes.scatter(*latents[points].T, color=colour, s=26, depthshade=False)
    for path, colour in zip(paths.values(), GENERATED, strict=False):
        axes.plot(*path[:, :3].T, color=colour, linewidth=2.2)
    axes.set_facecolor(PAPER)
    axes.set_box_aspect(np.ptp(latents, axis=0) + 0.25 * np.ptp(latents), zoom=0.98)
    axes.set(xticklabels=[], yticklabels=[], zticklabels=[])
    axes.view_init(elev=24, azim=-62)


def draw_paths_2d(axes: Axes, prior: DynamicsPrior, paths: Paths) -> None:
    """The plane in which training points spread most, light where the model is certain."""
    latents, frames = prior.latents, prior.frames
    plane = LatentPlane.of(latents)
    draw_map(axes, prior, plane)
    for (first, end), name in zip(frames.bounds(), frames.activities, strict=True):
        seen = plane.split(latents[first:end])[0]
        axes.plot(*seen.T, color=_colour(prior, name), linewidth=1.0, marker=".", markersize=3, alpha=0.9)
    for points, colour in zip(frames.transitions, LANDINGS, strict=False):
        seen = plane.split(latents[points])[0]
        axes.scatter(seen[:, 0], seen[:, 1], color=colour, s=34, zorder=5, edgecolor="white")
    for path, colour in zip(paths.values(), GENERATED, strict=False):
        axes.plot(*plane.split(path)[0].T, color=colour, linewidth=2.0, zorder=6)


def _colour(prior: DynamicsPrior, activity: str) -> str:
    return ACTIVITIES[prior.frames.activity_names.index(activity) % len(ACTIVITIES)]


_WIDTH, _ROW = 11.0, 1.25
_LETTER = 0.075  # width of one of a title's, in inches like the others
OTHERS = "#6b46c1"  # transition points that are not landings


@dataclass(frozen=True, eq=False)
class RhythmRow:
    """The data of one clip to draw."""

    title: str
    fps: float
    turns: Float[Array, "frames"]
    feet: Bool[Array, "frames 2"] | None
    transitions: Mapping[str, Sequence[float]]


def rhythm_row(rhythm: Rhythm, standing: Contacts | None, motion: Motion) -> RhythmRow:
    """What is drawn of it."""
    turns = rhythm.radians(np.arange(len(motion)) / motion.fps) / (2.0 * np.pi)
    feet = None if standing is None else standing.feet
    return RhythmRow(f"{rhythm.name}\n{rhythm.activity}", motion.fps, turns, feet, rhythm.transitions)


def draw_rhythms(rows: Sequence[RhythmRow]) -> Image.Image:
    """All clips below each other on one time axis."""
    height = _ROW * len(rows) + 0.9
    plot = Plot(figsize=(_WIDTH, height), dpi=_DPI, facecolor=PAPER)
    letters = max(len(line) for row in rows for line in row.title.splitlines())
    left = min(0.4, max(0.16, (0.6 + _LETTER * letters) / _WIDTH))
    longest = max(len(row.turns) / row.fps for row in rows)
    for number, row in enumerate(rows):
        bottom = (height - 0.45 - _ROW * (number + 1) + 0.3) / height
        axes = plot.add_axes((left, bottom, 0.97 - left, (_ROW - 0.35) / height), facecolor=PAPER)
        _draw_row(axes, row, longest)
        axes.tick_params(labelbottom=number == len(rows) - 1)
    title = "Phase within a turn, standing feet (L, R), transitions"
    plot.text(0.015, 1.0 - 0.3 / height, title, color=INK, fontsize=12)
    plot.text(0.97, 0.12 / height, "seconds", color=PALE_INK, fontsize=9, ha="right")
    return image_of(plot)


def _draw_row(axes: Axes, row: RhythmRow, longest: float) -> None:
    times = np.arange(len(row.turns)) / row.fps
    within = np.remainder(row.turns, 1.0)
    within = np.where(np.concatenate([np.diff(within) < -0.5, [False]]), np.nan, within)
    axes.plot(times, within, color=INK, linewidth=1.2)
    for side, (label, colour) in enumerate(zip(SIDES, LANDINGS, strict=True)):
        low = 1.28 - 0.16 * side
        if row.feet is not None:
            standing = row.feet[:, side].tolist()
            axes.fill_between(times, low, low + 0.12, where=standing, color=colour, linewidth=0)
        at, name = (-0.006 * longest, low + 0.05), label[0].upper()
        axes.text(*at, name, color=colour, fontsize=7, ha="right", va="center")
    colours = dict(zip(SIDES, LANDINGS, strict=True))
    for name, marks in row.transitions.items():
        axes.vlines(list(marks), 0.0, 1.45, color=colours.get(name, OTHERS), linewidth=0.9, linestyle=":")
    axes.set(xlim=(0.0, longest), ylim=(0.0, 1.45), yticks=[0.0, 0.5, 1.0])
    axes.tick_params(labelsize=7, colors=PALE_INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_ylabel(row.title, rotation=0, ha="right", va="center", fontsize=9, color=INK, labelpad=22)
