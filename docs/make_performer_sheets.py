"""Draws the contact sheets of docs/performer.md: every action, every style, every performer."""

from pathlib import Path

from PIL import Image

from poise.motion import Motion
from poise.motion.edit import trim
from poise.performer import ACTIONS, PERFORMERS, STYLES, act
from poise.pictures import contact_sheet, draw_panels

SHEETS = Path(__file__).parent / "images" / "performer"
WIDTH, COLOURS = 1200, 64

# Action: parameters, and the seconds that show it best.
ACTING: dict[str, tuple[dict[str, object], float, float]] = {
    "walk": ({}, 1.0, 2.0),
    "run": ({}, 1.0, 1.66),
    "walk_to_run": ({}, 0.9, 3.3),
    "run_to_walk": ({}, 1.5, 3.6),
    "jump": ({}, 0.0, 2.3),
    "hop": ({}, 0.5, 1.4),
    "box": ({"combination": "jab cross hook uppercut"}, 0.5, 2.12),
    "throw": ({}, 0.3, 2.1),
    "kick": ({}, 0.2, 1.7),
    "reach": ({}, 0.92, 0.93 + 7 * 1.9),
    "sit": ({}, 0.3, 2.5),
    "stand_up": ({}, 0.1, 2.0),
    "wave": ({}, 0.0, 2.6),
    "idle": ({}, 0.0, 8.0),
}


def main() -> None:
    """Writes docs/images/performer/*.png."""
    SHEETS.mkdir(parents=True, exist_ok=True)
    for action in ACTIONS:
        parameters, start, end = ACTING[action]
        motion = trim(act(action, seconds=max(end, 5.0), **parameters), start, end)
        keep(row(motion, action), action)
    for style in STYLES:
        keep(row(trim(act("walk", style=style, seconds=4.0), 1.2, 2.6), f"walk, {style}"), f"style-{style}")
    keep(
        draw_panels(
            {name: act("idle", performer=name, seconds=1.0)[0] for name in PERFORMERS},
            size=(190, 330),
            columns=6,
        ),
        "performers",
    )
    keep(row(trim(act("walk", turn=0.9, speed=1.2, seconds=6.0), 0.5, 5.5), "walk, turn=0.9"), "turn")


def row(motion: Motion, title: str) -> Image.Image:
    """Eight poses in one row."""
    return contact_sheet(motion, poses=8, width=WIDTH, layout="row", columns=8, title=title)


def keep(picture: Image.Image, name: str) -> None:
    """Saves the picture with few colours, to be small."""
    path = SHEETS / f"{name}.png"
    picture.convert("RGB").quantize(colors=COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
