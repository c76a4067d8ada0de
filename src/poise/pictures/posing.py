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
from poise.pictures.mannequin import TONES, Colour, Mannequin, build_mannequin
from poise.pictures.scene import Figure, Floor, PictureView, figure, fitted, floor_under, marker, render, rod
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
    bodies = {name: _Body(pose) for name, pose in poses.items()}
    behind = [_Body(pose) for pose in ghosts]
    ground = _floor_of([*bodies.values(), *behind]) if floor is None else floor
    view, place = _shared_view([*bodies.values(), *behind], handles, ground, size)
    panels = [_panel(name, body, handles, behind, view, place) for name, body in bodies.items()]
    return _tiled(panels, columns or min(len(panels), 5))


class _Body:
    """A pose with its mannequin in the world."""

    def __init__(self, pose: Pose) -> None:
        from poise.skeleton.kinematics import world_transforms

        self.pose = pose
        self.mannequin: Mannequin = build_mannequin(pose.skeleton, rotations=pose.rotations[None])
        self.positions, self.matrices = world_transforms(pose.skeleton, pose.root_position, pose.rotations)

    def figure(self, *, ghost: bool = False) -> Figure:
        """The mannequin, or a pale ghost of it."""
        opacity, tint = (_GHOST_OPACITY, _GHOST) if ghost else (1.0, None)
        return figure(self.mannequin, self.positions, self.matrices, opacity=opacity, tint=tint)

    @property
    def height(self) -> float:
        """The approximate height of the fully extended skeleton, for the size of markers."""
        return max(0.3, self.pose.skeleton.height)


def _floor_of(bodies: Sequence[_Body]) -> float:
    return floor_height(np.array([min(float(body.figure().vertices[:, 1].min()) for body in bodies)]))


def _targets(handles: Handles) -> list[tuple[str | None, Float[Array, "3"]]]:
    """Each handle's joint, if it has one, and its target."""
    pairs = list(handles.items()) if isinstance(handles, Mapping) else [(None, point) for point in handles]
    found = [(name, np.asarray(point, dtype=np.float64)) for name, point in pairs]
    for name, point in found:
        if point.shape != (3,) or not np.all(np.isfinite(point)):
            raise InvalidValueError(
                f"the handle {name or ''} needs a target of three finite numbers; got {point}"
            )
    return found


def _shared_view(
    bodies: Sequence[_Body], handles: Handles, ground: float, size: tuple[int, int]
) -> tuple[PictureView, Floor]:
    first = bodies[0]
    azimuth = facing_of(first.pose.skeleton, first.positions[None]) - _TURN
    figures = [body.figure() for body in bodies]
    targets = [point for _, point in _targets(handles)]
    shadow = np.array([[first.positions[0, 0], ground, first.positions[0, 2]]])
    points = np.concatenate([*(f.vertices for f in figures), shadow, *(point[None] for point in targets)])
    view = fitted(points, azimuth=azimuth, elevation=_ELEVATION, size=size, margins=(0.07, 0.11, 0.07, 0.07))
    return view, floor_under(figures, ground)


def _panel(
    name: str, body: _Body, handles: Handles, behind: Sequence[_Body], view: PictureView, floor: Floor
) -> Image.Image:
    shown = [body.figure(), *(ghost.figure(ghost=True) for ghost in behind)]
    image = Image.fromarray(render(shown, view, floor=floor, over=_marks(body, handles)))
    scale = max(0.6, min(image.size) / 480)
    labels.write_title(image, name, scale=scale)
    labels.write_key(image, scale=scale)
    return image


def _marks(body: _Body, handles: Handles) -> list[Figure]:
    """A sphere at each target, and a rod from its joint if that is elsewhere."""
    found = []
    for name, point in _targets(handles):
        found.append(marker(point, radius=_TARGET_RADIUS * body.height, colour=_TARGET))
        if name is not None:
            joint = body.positions[body.pose.skeleton.index(name)]
            if np.linalg.norm(point - joint) > _APART:
                found.append(rod(joint, point, radius=0.2 * _TARGET_RADIUS * body.height, colour=_TARGET))
    return found


def _tiled(panels: Sequence[Image.Image], columns: int) -> Image.Image:
    width, height = panels[0].size
    rows = -(-len(panels) // columns)
    page = Image.new("RGB", (width * min(columns, len(panels)), height * rows), panels[0].getpixel((0, 0)))
    for number, panel in enumerate(panels):
        page.paste(panel, (number % columns * width, number // columns * height))
    return page


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
