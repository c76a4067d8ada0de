"""Draw the rhythm of clips, a row each: foot contacts, the phase, and transition points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from PIL import Image

from poise.motion.contacts import Contacts
from poise.motion.motion import Motion
from poise.pictures.latent_map import INK, PALE_INK, PAPER, image_of
from poise.pictures.latent_paths import LANDINGS
from poise.pictures.plots import Axes, Plot
from poise.priors.dynamics.rhythm import Rhythm
from poise.skeleton.roles import SIDES
from poise.types import Array

_DPI, _WIDTH, _ROW = 100, 11.0, 1.25
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
    plot.text(
        0.015,
        1.0 - 0.3 / height,
        "Phase within a turn, standing feet (L, R), transitions",
        color=INK,
        fontsize=12,
    )
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
            axes.fill_between(
                times, low, low + 0.12, where=row.feet[:, side].tolist(), color=colour, linewidth=0
            )
        axes.text(
            -0.006 * longest, low + 0.05, label[0].upper(), color=colour, fontsize=7, ha="right", va="center"
        )
    colours = dict(zip(SIDES, LANDINGS, strict=True))
    for name, marks in row.transitions.items():
        axes.vlines(list(marks), 0.0, 1.45, color=colours.get(name, OTHERS), linewidth=0.9, linestyle=":")
    axes.set(xlim=(0.0, longest), ylim=(0.0, 1.45), yticks=[0.0, 0.5, 1.0])
    axes.tick_params(labelsize=7, colors=PALE_INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_ylabel(row.title, rotation=0, ha="right", va="center", fontsize=9, color=INK, labelpad=22)
