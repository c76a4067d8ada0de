"""A pose over its photo, and its alternatives from the side with the rays of the points (Fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageDraw

from poise.geometry.cameras import Camera
from poise.pictures import labels
from poise.pictures.mannequin import TONES, Colour
from poise.pictures.scene import PictureView, figure_of, fitted, floor_under, marker, render, rod
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose
from poise.types import Array

Points = Mapping[str, Float[Array, "2"]]

_YELLOW: Colour = (0.98, 0.82, 0.10)
_INK = (30, 32, 38)
_HEIGHT = 640  # pixels of the picture
_REACH = 0.9  # metres of each ray shown to either side of the body


def draw_overlay(photo: Image.Image, camera: Camera, points: Points, poses: Sequence[Pose]) -> Image.Image:
    """The first pose's skeleton over the photo, then every pose from the side with the rays."""
    front = _front(photo, camera, points, poses[0])
    panels = [
        _side(pose, camera, points, title=f"{number}" if len(poses) > 1 else "from the side")
        for number, pose in enumerate(poses, start=1)
    ]
    return labels.arranged([[front, *panels]])


def render_photo(pose: Pose, camera: Camera, size: tuple[int, int]) -> Image.Image:
    """The mannequin as seen by a camera: a substitute photo for examples and tests."""
    right, down, forward = camera.rotation
    middle = (float(camera.intrinsics[0, 2]) - 0.5, float(camera.intrinsics[1, 2]) - 0.5)
    view = PictureView(camera.centre, right, -down, -forward, camera.focal_length, middle, size)
    body = figure_of(pose)
    return Image.fromarray(render([body], view, floor=floor_under([body])))


def _front(photo: Image.Image, camera: Camera, points: Points, pose: Pose) -> Image.Image:
    """Draw the skeleton's bones over the photo, and the points as yellow circles."""
    scale, skeleton = _HEIGHT / photo.height, pose.skeleton
    image = photo.convert("RGB").resize(
        (max(1, round(photo.width * scale)), _HEIGHT), Image.Resampling.LANCZOS
    )
    draw = ImageDraw.Draw(image)
    pixels = camera.project(pose.world[0]) * scale
    # A joint has the side of the nearest joint with a role at or above it.
    roles, sides = {name: role.partition("_")[0] for role, name in skeleton.roles.items()}, list[str]()
    for name, parent in zip(skeleton.names, skeleton.parents.tolist(), strict=True):
        own = roles.get(name)
        sides.append(own if own in SIDES else "centre" if own or parent < 0 else sides[parent])
    for width, inked in ((7, True), (4, False)):
        for joint in np.flatnonzero(~skeleton.is_end_site)[1:]:
            ends = pixels[[int(skeleton.parents[joint]), joint]]
            if np.isfinite(ends).all():
                colour = _INK if inked else labels.colour_bytes(TONES[sides[joint]])
                draw.line([*map(tuple, ends)], fill=colour, width=width)
    for pixel in points.values():
        x, y = (float(value) for value in np.asarray(pixel) * scale)
        draw.ellipse([x - 8, y - 8, x + 8, y + 8], outline=_INK, width=4)
        draw.ellipse([x - 7, y - 7, x + 7, y + 7], outline=labels.colour_bytes(_YELLOW), width=3)
    return image


def _side(pose: Pose, camera: Camera, points: Points, *, title: str) -> Image.Image:
    """The body from the side, with each point's ray from in front of it to behind it."""
    body = figure_of(pose)
    middle = 0.5 * (body.vertices.min(axis=0) + body.vertices.max(axis=0))
    depth = float(np.linalg.norm(middle - camera.centre))
    ways = [camera.ray(np.asarray(pixel, dtype=np.float64)) for pixel in points.values()]
    near, far = max(depth - _REACH, 0.1), depth + _REACH
    rays = [(camera.centre + near * way, camera.centre + far * way) for way in ways]
    away = middle - camera.centre
    azimuth = float(np.arctan2(-away[0], -away[2])) + np.pi / 2
    seen = np.concatenate([body.vertices, *(np.stack([start, end]) for start, end in rays)])
    view = fitted(seen, azimuth=azimuth, elevation=np.radians(6.0), size=(round(0.72 * _HEIGHT), _HEIGHT))
    thin = [rod(start, end, radius=0.006, colour=_YELLOW) for start, end in rays]
    dots = [marker(pose.positions[name], radius=0.035, colour=_YELLOW) for name in points]
    ground = floor_under([body], float(body.vertices[:, 1].min()))
    image = Image.fromarray(render([body, *thin], view, floor=ground, over=dots))
    labels.write_title(image, title)
    return image
