"""Pictures of single poses: with the targets of handles, with ghosts, side by side; a character with its roles."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.pictures import labels
from poise.pictures.mannequin import TONES, Colour
from poise.pictures.scene import Figure, figure_of, fitted, floor_under, marker, render, rod
from poise.pictures.subject import facing_of, floor_height, subject_of
from poise.priors.prior import Prior
from poise.skeleton.roles import ARM_ROLES, LEG_ROLES, SIDES, TRUNK_ROLES
from poise.skeleton.skeleton import Pose
from poise.types import Array

Handles = Mapping[str, ArrayLike] | Sequence[ArrayLike]

_ELEVATION, _TURN = np.radians(9.0), np.radians(38.0)
_TARGET: Colour = (0.80, 0.10, 0.38)
_GHOST: Colour = (0.34, 0.40, 0.52)
_GHOST_OPACITY = 0.40
_TARGET_RADIUS = 0.024  # of the height
_APART = 0.01  # metres between joint and target from which a rod is drawn


def draw_pose(
    pose: Pose,
    *,
    handles: Handles = (),
    ghosts: Sequence[Pose] = (),
    size: tuple[int, int] = (480, 480),
    title: str = "",
    floor: float | None = None,
) -> Image.Image:
    """Draw one pose.

    `handles` are target points in metres, drawn as spheres; given by joint name or role, a rod connects each to its
    joint if they are apart. `ghosts` are other poses, pale behind this one. `floor` is its height, by default
    estimated.
    """
    return draw_panels({title: pose}, handles=handles, ghosts=ghosts, size=size, floor=floor)


def draw_model(prior: Prior, *, poses: int = 5, size: tuple[int, int] = (240, 320)) -> Image.Image:
    """A picture of a model's known poses, side by side; `size` is that of one."""
    maps, ups = prior.known_poses()
    chosen = np.unique(np.round(np.linspace(0, len(maps) - 1, poses)).astype(np.int64))
    known = [prior.space.pose_from_q(prior.space.standing(maps[k], ups[k])) for k in chosen]
    titles = [prior.kind, *(" " * number for number in range(1, len(known)))]
    return draw_panels(dict(zip(titles, known, strict=True)), size=size)


def draw_panels(
    poses: Mapping[str, Pose],
    *,
    handles: Handles = (),
    ghosts: Sequence[Pose] = (),
    size: tuple[int, int] = (360, 480),
    columns: int | None = None,
    floor: float | None = None,
) -> Image.Image:
    """Named poses side by side, with one camera and the same handles and ghosts, for comparison."""
    if not poses:
        raise InvalidValueError("there is no pose to draw")
    pairs = list(handles.items()) if isinstance(handles, Mapping) else [(None, point) for point in handles]
    targets = [(name, np.asarray(point, dtype=np.float64)) for name, point in pairs]
    for name, point in targets:
        if point.shape != (3,) or not np.all(np.isfinite(point)):
            raise InvalidValueError(
                f"the handle {name or ''} needs a target of three finite numbers; got {point}"
            )
    figures = {name: figure_of(pose) for name, pose in poses.items()}
    solid = [*figures.values(), *(figure_of(pose) for pose in ghosts)]
    behind = [figure_of(pose, opacity=_GHOST_OPACITY, tint=_GHOST) for pose in ghosts]
    if floor is None:
        floor = floor_height(np.array([min(float(body.vertices[:, 1].min()) for body in solid)]))
    first = next(iter(poses.values()))
    places = np.asarray(first.positions)
    azimuth = facing_of(first.skeleton, places[None]) - _TURN
    points = np.concatenate([
        *(body.vertices for body in solid), [[places[0, 0], floor, places[0, 2]]],
        *(point[None] for _, point in targets),
    ])  # fmt: skip
    view = fitted(points, azimuth=azimuth, elevation=_ELEVATION, size=size, margins=(0.07, 0.11, 0.07, 0.07))
    ground, scale = floor_under(solid, floor), max(0.6, min(size) / 480)
    panels = []
    for name, pose in poses.items():
        shown = [figures[name], *behind]
        panels.append(Image.fromarray(render(shown, view, floor=ground, over=_marks(pose, targets))))
        labels.write_title(panels[-1], name, scale=scale)
        labels.write_key(panels[-1], scale=scale)
    columns = columns or min(len(panels), 5)
    return labels.arranged([panels[k : k + columns] for k in range(0, len(panels), columns)])


def _marks(pose: Pose, targets: Sequence[tuple[str | None, Float[Array, "3"]]]) -> list[Figure]:
    """A sphere at each target, and a rod from its joint if that is elsewhere."""
    found, height = list[Figure](), max(0.3, pose.skeleton.height)
    for name, point in targets:
        found.append(marker(point, radius=_TARGET_RADIUS * height, colour=_TARGET))
        if name is not None and np.linalg.norm(point - (joint := pose.positions[name])) > _APART:
            found.append(rod(joint, point, radius=0.2 * _TARGET_RADIUS * height, colour=_TARGET))
    return found


_SIZE = (1100, 900)
_RADIUS = 0.011  # of stature
_CHAINS = (
    TRUNK_ROLES,
    *(tuple(f"{side}_{part}" for part in limb) for side in SIDES for limb in (ARM_ROLES, LEG_ROLES)),
)


def draw_roles(character: Motion) -> Image.Image:
    """The character in its own pose, a ball at every joint with a role, and the names of role and joint."""
    shown, skeleton = subject_of(character), character.skeleton
    at = {role: character.positions[role][0] for role in skeleton.roles}
    radius = _RADIUS * max(skeleton.height, 0.1)
    tones = {role: TONES[role.partition("_")[0] if role.startswith(SIDES) else "centre joint"] for role in at}
    over = [marker(point, radius=radius, colour=tones[role]) for role, point in at.items()]
    for chain in _CHAINS:
        for top, end in itertools.pairwise(role for role in chain if role in at):
            over.append(rod(at[top], at[end], radius=0.35 * radius, colour=tones[end]))
    body, margins = shown.figure(0), (0.24, 0.08, 0.24, 0.05)
    view = fitted(body.vertices, azimuth=shown.facing, elevation=0.05, size=_SIZE, margins=margins, lens=8.0)
    image = Image.fromarray(render([body], view, floor=floor_under([body], shown.floor), over=over))
    places = {f"{role}: {skeleton.roles[role]}": view.project(point)[:2] for role, point in at.items()}
    # Labels are in two columns, ordered by height, each with a line to its joint.
    draw, face = ImageDraw.Draw(image), labels.font(1.0, 13)
    for to_left in (True, False):
        own = [words for words, place in places.items() if (place[0] < image.width / 2) == to_left]
        rows = np.linspace(60, image.height - 30, max(len(own), 2))
        for words, row in zip(sorted(own, key=lambda each: float(places[each][1])), rows, strict=False):
            column = 14.0 if to_left else image.width - 14.0
            draw.text((column, row), words, fill=labels.INK, font=face, anchor="lm" if to_left else "rm")
            start = column + (1 if to_left else -1) * (face.getlength(words) + 6)
            draw.line([(start, row), tuple(places[words])], fill=labels.PALE_INK, width=1)
    labels.write_title(image, character.name, f"{len(skeleton)} joints, {skeleton.height:.2f} m")
    labels.write_key(image)
    return image
