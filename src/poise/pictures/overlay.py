"""A pose over its photo, and its alternatives from the side with the rays of the points (Fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageDraw

from poise.geometry.cameras import Camera
from poise.pictures import labels
from poise.pictures.mannequin import TONES, Colour, build_mannequin
from poise.pictures.scene import Figure, figure, fitted, floor_under, marker, render, rod
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.skeleton import Pose, Skeleton
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
    page = Image.new("RGB", (front.width + sum(panel.width for panel in panels), _HEIGHT))
    left = 0
    for picture in (front, *panels):
        page.paste(picture, (left, 0))
        left += picture.width
    return page


def render_photo(pose: Pose, camera: Camera, size: tuple[int, int]) -> Image.Image:
    """The mannequin as seen by a camera: a substitute photo for examples and tests."""
    from poise.pictures.scene import PictureView

    right, down, forward = camera.rotation
    middle = (float(camera.intrinsics[0, 2]) - 0.5, float(camera.intrinsics[1, 2]) - 0.5)
    view = PictureView(camera.centre, right, -down, -forward, camera.focal_length, middle, size)
    body = _figure(pose)
    return Image.fromarray(render([body], view, floor=floor_under([body])))


def _front(photo: Image.Image, camera: Camera, points: Points, pose: Pose) -> Image.Image:
    """Draw the skeleton's bones over the photo, and the points as yellow circles."""
    scale = _HEIGHT / photo.height
    image = photo.convert("RGB").resize(
        (max(1, round(photo.width * scale)), _HEIGHT), Image.Resampling.LANCZOS
    )
    draw = ImageDraw.Draw(image)
    positions, _ = world_transforms(pose.skeleton, pose.root_position, pose.rotations)
    pixels, sides = camera.project(positions) * scale, _sides(pose.skeleton)
    bones = [
        (joint, int(pose.skeleton.parents[joint])) for joint in np.flatnonzero(~pose.skeleton.is_end_site)[1:]
    ]
    for width, inked in ((7, True), (4, False)):
        for joint, parent in bones:
            if np.isfinite(pixels[[joint, parent]]).all():
                colour = _INK if inked else labels.colour_bytes(TONES[sides[joint]])
                draw.line([*map(tuple, pixels[[parent, joint]])], fill=colour, width=width)
    for pixel in points.values():
        _circle(draw, np.asarray(pixel) * scale)
    return image


def _side(pose: Pose, camera: Camera, points: Points, *, title: str) -> Image.Image:
    body = _figure(pose)
    middle = 0.5 * (body.vertices.min(axis=0) + body.vertices.max(axis=0))
    rays = _rays(camera, points, middle)
    away = middle - camera.centre
    azimuth = float(np.arctan2(-away[0], -away[2])) + np.pi / 2
    seen = np.concatenate([body.vertices, *(np.stack([start, end]) for start, end in rays)])
    view = fitted(seen, azimuth=azimuth, elevation=np.radians(6.0), size=(round(0.72 * _HEIGHT), _HEIGHT))
    thin = [rod(start, end, radius=0.006, colour=_YELLOW) for start, end in rays]
    positions, _ = world_transforms(pose.skeleton, pose.root_position, pose.rotations)
    dots = [marker(positions[pose.skeleton.index(name)], radius=0.035, colour=_YELLOW) for name in points]
    ground = floor_under([body], float(body.vertices[:, 1].min()))
    image = Image.fromarray(render([body, *thin], view, floor=ground, over=dots))
    labels.write_title(image, title)
    return image


def _rays(
    camera: Camera, points: Points, middle: Float[Array, "3"]
) -> list[tuple[Float[Array, "3"], Float[Array, "3"]]]:
    """Draw each point's ray, from in front of the body to behind it."""
    depth, found = float(np.linalg.norm(middle - camera.centre)), []
    for pixel in points.values():
        ray = camera.ray(np.asarray(pixel, dtype=np.float64))
        near = max(depth - _REACH, 0.1)
        found.append((camera.centre + near * ray, camera.centre + (depth + _REACH) * ray))
    return found


def _figure(pose: Pose) -> Figure:
    mannequin = build_mannequin(pose.skeleton, rotations=pose.rotations[None])
    return figure(mannequin, *world_transforms(pose.skeleton, pose.root_position, pose.rotations))


def _sides(skeleton: Skeleton) -> list[str]:
    """Per joint the tone of its side: that of the nearest ancestor with a role."""
    roles = {name: role.partition("_")[0] for role, name in skeleton.roles.items()}
    sides: list[str] = []
    for joint, name in enumerate(skeleton.names):
        own, parent = roles.get(name), int(skeleton.parents[joint])
        sides.append(own if own in ("left", "right") else "centre" if own or parent < 0 else sides[parent])
    return sides


def _circle(draw: ImageDraw.ImageDraw, at: Float[Array, "2"]) -> None:
    x, y = (float(value) for value in at)
    draw.ellipse([x - 8, y - 8, x + 8, y + 8], outline=_INK, width=4)
    draw.ellipse([x - 7, y - 7, x + 7, y + 7], outline=labels.colour_bytes(_YELLOW), width=3)
