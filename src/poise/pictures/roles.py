"""A character from the front with the roles of its joints, for checking."""

from __future__ import annotations

import itertools

import numpy as np
from PIL import Image, ImageDraw

from poise.motion.motion import Motion
from poise.pictures import labels
from poise.pictures.scene import floor_under, marker, render, rod
from poise.pictures.stage import stage
from poise.pictures.view import fitted
from poise.skeleton.mannequin import TONES
from poise.skeleton.roles import ARM_ROLES, LEG_ROLES, SIDES, TRUNK_ROLES

_SIZE = (1100, 900)
_RADIUS = 0.011  # of stature
_CHAINS = (
    TRUNK_ROLES,
    *(tuple(f"{side}_{part}" for part in limb) for side in SIDES for limb in (ARM_ROLES, LEG_ROLES)),
)


def draw_roles(character: Motion) -> Image.Image:
    """The character in its own pose, a ball at every joint with a role, and the names of role and joint."""
    shown, skeleton = stage(character), character.skeleton
    at = {role: character.positions[role][0] for role in skeleton.roles}
    radius = _RADIUS * max(skeleton.height, 0.1)
    over = [marker(point, radius=radius, colour=TONES[_tone(role)]) for role, point in at.items()]
    for chain in _CHAINS:
        known = [role for role in chain if role in at]
        over += [
            rod(at[top], at[end], radius=0.35 * radius, colour=TONES[_tone(end)])
            for top, end in itertools.pairwise(known)
        ]
    body = shown.figure(0)
    view = fitted(
        body.vertices,
        azimuth=shown.facing,
        elevation=0.05,
        size=_SIZE,
        margins=(0.24, 0.08, 0.24, 0.05),
        lens=8.0,
    )
    image = Image.fromarray(render([body], view, floor=floor_under([body], shown.floor), over=over))
    _write(image, {f"{role}: {skeleton.roles[role]}": view.project(point)[:2] for role, point in at.items()})
    labels.write_title(image, character.name, f"{len(skeleton)} joints, {skeleton.height:.2f} m")
    labels.write_key(image)
    return image


def _tone(role: str) -> str:
    return role.partition("_")[0] if role.startswith(SIDES) else "centre joint"


def _write(image: Image.Image, places: dict[str, np.ndarray]) -> None:
    """Labels in two columns, ordered by height, each with a line to its joint."""
    draw, face = ImageDraw.Draw(image), labels.font(1.0, 13)
    middle = image.width / 2
    for to_left in (True, False):
        own = [words for words, place in places.items() if (place[0] < middle) == to_left]
        rows = np.linspace(60, image.height - 30, max(len(own), 2))
        for words, row in zip(sorted(own, key=lambda each: float(places[each][1])), rows, strict=False):
            column = 14.0 if to_left else image.width - 14.0
            draw.text((column, row), words, fill=labels.INK, font=face, anchor="lm" if to_left else "rm")
            start = column + (1 if to_left else -1) * (face.getlength(words) + 6)
            draw.line([(start, row), tuple(places[words])], fill=labels.PALE_INK, width=1)
