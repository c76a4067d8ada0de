"""Draws the moving picture of README and front page: performers side by side, each doing something in some style."""

from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image, ImageSequence

from poise import performer, pictures
from poise.motion import Motion

TARGET = Path(__file__).parent / "images" / "performer.gif"
SECONDS, FPS = 2.4, 12.5
PANEL = (168, 216)
COLOURS = 32

PERFORMANCES = (
    ("walk, proud", {"action": "walk", "style": "proud", "performer": "maya"}),
    ("run", {"action": "run", "performer": "kofi"}),
    ("box, energetic", {"action": "box", "style": "energetic", "performer": "otto"}),
    ("throw", {"action": "throw", "performer": "alex"}),
)


def main() -> None:
    """Writes docs/images/performer.gif."""
    reels = [reel(performer.act(**what, seconds=SECONDS, fps=60), title) for title, what in PERFORMANCES]
    frames = [side_by_side(panels) for panels in zip(*reels, strict=True)]
    palette = frames[0].quantize(colors=COLOURS, dither=Image.Dither.NONE)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    flat[0].save(
        TARGET, save_all=True, append_images=flat[1:], duration=round(1000 / FPS), loop=0, optimize=True
    )
    print(f"{TARGET.name}: {len(flat)} frames, {TARGET.stat().st_size / 1e6:.2f} MB")


def reel(motion: Motion, title: str) -> list[Image.Image]:
    """The frames of one panel."""
    with TemporaryDirectory() as folder:
        path = pictures.animate(motion, Path(folder) / "panel.gif", size=PANEL, fps=FPS, title=title)
        with Image.open(path) as film:
            return [frame.convert("RGB") for frame in ImageSequence.Iterator(film)]


def side_by_side(panels: tuple[Image.Image, ...]) -> Image.Image:
    """Panels in one row."""
    width, height = PANEL
    row = Image.new("RGB", (width * len(panels), height))
    for place, panel in enumerate(panels):
        row.paste(panel, (place * width, 0))
    return row


if __name__ == "__main__":
    main()
