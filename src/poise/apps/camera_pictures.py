"""Pictures of calibration and of every stage from the cameras' pictures to the body (Chai and Hodgins 2005, Fig. 3)."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw

from poise.apps.camera_calibration import Calibrated
from poise.pictures.labels import font
from poise.types import Array
from poise.vision.rig import LensCamera, Rig
from poise.vision.tracker import Moment
from poise.vision.triangulate import epipolar_line

Picture = UInt8[Array, "height width 3"]
Colour = tuple[int, int, int]

INK, PAPER, PALE = (31, 41, 51), (255, 255, 255), (217, 223, 230)
GOOD, BAD, LEFT_OUT = (42, 140, 84), (194, 24, 91), (154, 165, 177)
BONE, SEEN = (240, 150, 40), (250, 220, 60)
_WIDE, _ROW, _RIM = 420, 26, 10  # pixels
_WORST = 1.0  # pixels of error at which a view is drawn as bad


def draw_coverage(found: Calibrated) -> Image.Image:
    """The board's corners in each camera: green if they fit, pink if not, grey if left out."""
    panels = []
    for lens, views in zip(found.result.lenses, found.views, strict=True):
        width, height = lens.camera.size
        scale = _WIDE / width
        panel = Image.new("RGB", (_WIDE, round(height * scale)), (246, 248, 250))
        draw = ImageDraw.Draw(panel)
        for part in (1, 2):
            draw.line((part * _WIDE / 3, 0, part * _WIDE / 3, panel.height), fill=PALE)
            draw.line((0, part * panel.height / 3, _WIDE, part * panel.height / 3), fill=PALE)
        for number, view in views.items():
            bad = min(lens.view_errors.get(number, np.inf) / _WORST, 1.0)
            mixed = (round((1 - bad) * a + bad * b) for a, b in zip(GOOD, BAD, strict=True))
            colour = LEFT_OUT if number in lens.left_out else tuple(mixed)
            for x, y in view.pixels * scale:
                draw.ellipse((x - 2, y - 2, x + 2, y + 2), fill=colour)
        text = f"{lens.camera.name}: {lens.error:.2f} px over {len(lens.view_errors)} views"
        panels.append(_titled(panel, text))
    return stacked(panels)


def draw_stages(
    rig: Rig,
    pictures: Sequence[Picture],
    backgrounds: Sequence[Picture],
    moment: Moment,
    *,
    labels: Sequence[str],
    joints: Float[Array, "joints 3"],
    parents: Sequence[int],
    height: int = 330,
) -> Image.Image:
    """A row per camera, a column per stage: picture, background, foreground, blobs, lines, labels, body.

    All are cut to an upright box around the foreground.
    """
    rows = []
    for number, camera in enumerate(rig.cameras):
        mask = moment.foregrounds[number]
        grey = np.zeros(pictures[number].shape[:2], dtype=np.uint8) if mask is None else mask
        plain, dim = rgb(pictures[number]), (0.45 * rgb(pictures[number])).astype(np.uint8)
        stages = {
            "picture": Image.fromarray(plain),
            "background": Image.fromarray(rgb(backgrounds[number])),
            "foreground": Image.fromarray(np.repeat(grey[..., None], 3, axis=2)),
            "blobs": _blobs(dim, moment, number),
            "epipolar lines": _lines(dim, rig, moment, number),
            "labels": _labels(dim, moment, number, labels),
            "body": draw_body(dim, camera, joints, parents),
        }
        wide, tall = camera.size
        columns = np.flatnonzero((grey > 0).sum(axis=0) > 6)
        middle, half = float(columns.mean()) if len(columns) else wide / 2, 0.3 * tall
        left = int(np.clip(middle - half, 0, max(wide - 2 * half, 0)))
        box = (left, 0, min(int(left + 2 * half), wide), tall)
        size = (round(height * (box[2] - left) / tall), height)
        cropped = [stage.crop(box).resize(size, Image.Resampling.LANCZOS) for stage in stages.values()]
        titles = list(stages) if number == 0 else [""] * len(stages)
        rows.append(stacked([_titled(part, title) for part, title in zip(cropped, titles, strict=True)]))
    return stacked(rows, below=True)


def _blobs(dim: Array, moment: Moment, number: int) -> Image.Image:
    image = Image.fromarray(dim)
    draw = ImageDraw.Draw(image)
    for x, y in moment.blobs[number].centres:
        draw.ellipse((x - 7, y - 7, x + 7, y + 7), outline=SEEN, width=2)
        draw.point((x, y), fill=PAPER)
    return image


def _lines(dim: Array, rig: Rig, moment: Moment, number: int) -> Image.Image:
    """The rays through the blobs of a neighbouring camera in this one's picture, with its own blobs."""
    image = _blobs(dim, moment, number)
    if len(rig) > 1:
        other = number - 1 if number else 1
        draw = ImageDraw.Draw(image)
        for blob, pixel in enumerate(moment.blobs[other].centres):
            line = epipolar_line(rig.cameras[other], rig.cameras[number], pixel)
            if len(line) > 1:
                draw.line([(float(x), float(y)) for x, y in line], fill=_hue(blob), width=1)
    return image


def _labels(dim: Array, moment: Moment, number: int, labels: Sequence[str]) -> Image.Image:
    image = Image.fromarray(dim)
    draw = ImageDraw.Draw(image)
    for marker, (x, y) in enumerate(moment.sighting.pixels[number]):
        if np.isfinite(x):
            draw.ellipse((x - 4, y - 4, x + 4, y + 4), outline=_hue(marker), width=2)
            draw.text((x + 6, y - 7), labels[marker], fill=_hue(marker), font=font(1.0, 11))
    return image


def draw_body(
    dim: Array, camera: LensCamera, joints: Array, parents: Sequence[int], colour: Colour = BONE
) -> Image.Image:
    """The bones of a body over a picture."""
    image = Image.fromarray(dim)
    draw = ImageDraw.Draw(image)
    pixels = camera.project(joints)
    for joint, parent in enumerate(parents):
        if parent >= 0 and np.isfinite(pixels[[joint, parent]]).all():
            draw.line([*pixels[parent], *pixels[joint]], fill=colour, width=4)
    for x, y in pixels[np.isfinite(pixels[:, 0])]:
        draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=PAPER)
    return image


def rgb(picture: Array) -> Array:
    """A picture in the order of colours that files have."""
    return np.ascontiguousarray(picture[..., ::-1])


def _hue(number: int) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb((0.13 + 0.381966 * number) % 1.0, 0.55, 1.0)
    return round(255 * red), round(255 * green), round(255 * blue)


def _titled(panel: Image.Image, title: str) -> Image.Image:
    if not title:
        return panel
    page = Image.new("RGB", (panel.width, panel.height + _ROW), PAPER)
    page.paste(panel, (0, _ROW))
    ImageDraw.Draw(page).text((2, 4), title, fill=INK, font=font(1.0, 14))
    return page


def stacked(parts: Sequence[Image.Image], *, below: bool = False) -> Image.Image:
    """Pictures beside each other, or one below the other."""
    widths, heights = [part.width for part in parts], [part.height for part in parts]
    rims, at = _RIM * (len(parts) - 1), 0
    size = (max(widths), sum(heights) + rims) if below else (sum(widths) + rims, max(heights))
    page = Image.new("RGB", size, PAPER)
    for part in parts:
        page.paste(part, (0, at) if below else (at, 0))
        at += (part.height if below else part.width) + _RIM
    return page
