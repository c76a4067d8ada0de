"""Text on pictures (titles, times under poses, the legend of the colours), and pages of several pictures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from PIL import Image, ImageDraw, ImageFont

from poise.pictures.mannequin import TONES, Colour

INK, PALE_INK = (52, 54, 60), (128, 130, 136)


def write_title(image: Image.Image, title: str, detail: str = "", *, scale: float = 1.0) -> None:
    """A title at the top left with a paler detail after it, truncated before the legend."""
    draw, margin = ImageDraw.Draw(image), round(14 * scale)
    room = image.width - key_width(scale) - 3 * margin
    while title and font(scale, 17).getlength(title) > room:
        title = title[:-2].rstrip("…") + "…" if len(title) > 2 else ""
    draw.text((margin, margin), title, fill=INK, font=font(scale, 17))
    used = font(scale, 17).getlength(title) + (10 * scale if title else 0)
    if used + font(scale, 13).getlength(detail) <= room:
        draw.text((margin + used, margin + 3.4 * scale), detail, fill=PALE_INK, font=font(scale, 13))


def write_key(image: Image.Image, *, scale: float = 1.0) -> None:
    """The legend of the left and right colours, at the top right."""
    draw, margin = ImageDraw.Draw(image), 14 * scale
    x = image.width - margin - key_width(scale)
    for side in ("left", "right"):
        draw.ellipse(
            [x, margin + 4 * scale, x + 10 * scale, margin + 14 * scale], fill=colour_bytes(TONES[side])
        )
        draw.text((x + 14 * scale, margin + 1.5 * scale), side, fill=PALE_INK, font=font(scale, 13))
        x += 24 * scale + font(scale, 13).getlength(side)


def write_under(image: Image.Image, text: str, at: tuple[float, float], *, scale: float = 1.0) -> None:
    """A small label centred on a point."""
    ImageDraw.Draw(image).text(at, text, fill=PALE_INK, font=font(scale, 13), anchor="mm")


def key_width(scale: float) -> float:
    """The width of the legend."""
    return sum(24 * scale + font(scale, 13).getlength(side) for side in ("left", "right")) - 10 * scale


@cache
def font(scale: float, size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font of all labels."""
    return ImageFont.load_default(size=size * scale)


def colour_bytes(colour: Colour) -> tuple[int, int, int]:
    """A colour in Pillow's form."""
    red, green, blue = (round(255 * part) for part in colour)
    return red, green, blue


def arranged(rows: Sequence[Sequence[Image.Image]], *, top: int = 0) -> Image.Image:
    """Pictures in rows below an empty strip, on paper of the first one's colour; in a row all are equally high."""
    width, height = max(sum(each.width for each in row) for row in rows), sum(row[0].height for row in rows)
    page = Image.new("RGB", (width, top + height), rows[0][0].getpixel((0, 0)))
    y = top
    for row in rows:
        x = 0
        for picture in row:
            page.paste(picture, (x, y))
            x += picture.width
        y += row[0].height
    return page
