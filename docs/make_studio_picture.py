"""Films the studio for README and the documentation: the real page in Chromium, used as a person would."""

import io
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageDraw

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from studio_page import Point, Server, StudioPage, browser

TARGET = Path(__file__).parent / "images" / "studio.webp"
SIZE, SHOWN = (1280, 720), (960, 540)
FRAME = 90  # milliseconds
QUALITY = 72
ARROW = ((0, 0), (0, 17), (4, 13.5), (7, 20), (9.6, 18.8), (6.8, 12.6), (12, 12.4))
NO_HINTS = "localStorage.setItem('poise.hints', 'drag second prior')"


class Film:
    """Pictures of a page, with the pointer where the hand has it."""

    def __init__(self, studio: StudioPage) -> None:
        self.studio = studio
        self.frames: list[tuple[Image.Image, int]] = []
        self.at: Point = (700.0, 600.0)

    def hold(self, milliseconds: int = FRAME) -> None:
        """One picture, shown for so long."""
        self.studio.page.wait_for_timeout(60)
        shot = Image.open(io.BytesIO(self.studio.page.screenshot())).convert("RGB")
        x, y = self.at
        arrow = [(x + right, y + down) for right, down in ARROW]
        ImageDraw.Draw(shot).polygon(arrow, fill="white", outline="black", width=1)
        self.frames.append((shot.resize(SHOWN, Image.Resampling.LANCZOS), milliseconds))

    def go(self, to: Point, *, steps: int = 4) -> None:
        """Moves the pointer."""
        for at in way(self.at, to, steps):
            self.at = at
            self.studio.page.mouse.move(*at)
            self.hold()

    def drag(self, *stations: Point, steps: int = 8) -> None:
        """Drags from where the pointer is through the stations, and lets go."""
        self.studio.page.mouse.down()
        for station in stations:
            self.go(station, steps=steps)
        self.studio.page.mouse.up()
        self.studio.settled()
        self.hold(500)

    def click(self, at: Point) -> None:
        """Goes there and clicks."""
        self.go(at)
        self.studio.page.mouse.click(*at)
        self.studio.page.wait_for_timeout(250)
        self.hold(400)

    def save(self, path: Path) -> None:
        """Writes the film."""
        pictures = [picture for picture, _ in self.frames]
        durations = [duration for _, duration in self.frames]
        pictures[0].save(
            path,
            save_all=True,
            append_images=pictures[1:],
            duration=durations,
            loop=0,
            quality=QUALITY,
            method=5,
        )
        print(
            f"{path.name}: {len(pictures)} pictures, {sum(durations) / 1000:.0f} s, {path.stat().st_size / 1e6:.2f} MB"
        )


def way(start: Point, end: Point, steps: int) -> Iterator[Point]:
    """A hand's way: slow, fast, slow."""
    for step in range(1, steps + 1):
        share = (1 - math.cos(math.pi * step / steps)) / 2
        yield start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


def centre(studio: StudioPage, role: str, name: str) -> Point:
    """The middle of a control."""
    box = studio.page.get_by_role(role, name=name, exact=True).first.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def act(film: Film) -> None:
    """Drag a hand, hold the other, switch the model, wander in the style's space, key a motion and play it."""
    studio = film.studio
    film.hold(700)
    x, y = studio.pixel(studio.joint("right_hand"))
    film.go((x, y))
    film.drag((x - 90, y - 130), (x - 60, y - 210))
    film.go(in_map(studio, 0.42, 0.5))
    film.drag(in_map(studio, 0.6, 0.3), in_map(studio, 0.7, 0.6), in_map(studio, 0.42, 0.5), steps=6)
    film.click(studio.pixel(studio.joint("left_hand")))
    left = film.at
    film.drag((left[0] + 80, left[1] - 80), steps=6)
    film.click(centre(studio, "button", "Gaussian"))
    film.hold(1000)
    film.click(centre(studio, "button", "Style"))
    film.hold(1000)
    keyed(film)


def in_map(studio: StudioPage, right: float, down: float) -> Point:
    """A place in the style's map, as shares of its width and height."""
    box = studio.page.get_by_label("Style space: drag").bounding_box()
    assert box is not None
    return box["x"] + right * box["width"], box["y"] + down * box["height"]


def keyed(film: Film) -> None:
    """Two more places of the hand in time, and the motion between."""
    studio = film.studio
    film.click(centre(studio, "button", "Animate"))
    for frame, move in ((0, (8, 8)), (25, (-60, 100)), (50, (80, -60))):
        show(studio, frame)
        x, y = studio.pixel(studio.joint("right_hand"))
        film.go((x, y), steps=2)
        film.drag((x + move[0], y + move[1]), steps=4)
    studio.wait("window.poise.state.progress.value.size === 0")
    for frame in range(0, 56, 3):
        show(studio, frame)
        film.hold()
    film.hold(600)


def show(studio: StudioPage, frame: int) -> None:
    """Moves the playhead."""
    field = studio.page.get_by_role("textbox", name="Frame", exact=True)
    field.fill(str(frame))
    field.press("Enter")
    studio.wait(f"window.poise.frame.value === {frame}")


def main() -> None:
    """Writes docs/images/studio.webp."""
    server = Server()
    try:
        with browser() as chromium:
            context = chromium.new_context(
                viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light"
            )
            context.add_init_script(NO_HINTS)
            film = Film(StudioPage(context.new_page(), server.address))
            film.studio.wait("window.poise.state.latentMap.value")
            act(film)
            film.save(TARGET)
            context.close()
    finally:
        server.kill()


if __name__ == "__main__":
    main()
