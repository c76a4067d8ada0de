"""Takes the studio's pictures from the real page in Chromium, used as a person would: a film for README, and stills.

python docs/make_studio_picture.py [film] [pose] [animate] [photo] [capture] [live] [learn]      all, if none is named
"""

import io
import json
import math
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import numpy as np
from PIL import Image, ImageDraw
from playwright.sync_api import Browser

import poise
from poise import pictures
from poise.capture.matching import WITH_HEAD, marker_layout
from poise.motion.virtual_markers import virtual_markers
from poise.performer import act

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from studio_page import Point, Server, StudioPage, browser

IMAGES = Path(__file__).parent / "images"
SIZE, SHOWN = (1280, 720), (960, 540)
FRAME = 90  # milliseconds
QUALITY, STILL_QUALITY = 72, 88
ARROW = ((0, 0), (0, 17), (4, 13.5), (7, 20), (9.6, 18.8), (6.8, 12.6), (12, 12.4))
NO_HINTS = (
    "localStorage.setItem('poise.hints', 'drag second prior turn animate');"
    "localStorage.setItem('poise.view.hints', 'false')"
)


# --- a hand and a camera ---------------------------------------------------------------------------------------------


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
        first, *others = [picture for picture, _ in self.frames]
        durations = [duration for _, duration in self.frames]
        first.save(
            path, save_all=True, append_images=others, duration=durations, loop=0, quality=QUALITY, method=5
        )
        seconds, size = sum(durations) / 1000, path.stat().st_size / 1e6
        print(f"{path.name}: {len(self.frames)} pictures, {seconds:.0f} s, {size:.2f} MB")


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


def in_map(studio: StudioPage, right: float, down: float) -> Point:
    """A place in the style's map, as shares of its width and height."""
    box = studio.page.get_by_label("Style space: drag").bounding_box()
    assert box is not None
    return box["x"] + right * box["width"], box["y"] + down * box["height"]


# --- the film --------------------------------------------------------------------------------------------------------


def film(studio: StudioPage) -> None:
    """Drag a hand, wander in the style's space, hold the other hand, switch the model, key a motion and play it."""
    studio.wait("window.poise.state.latentMap.value")
    shown = Film(studio)
    shown.hold(700)
    x, y = studio.pixel(studio.joint("right_hand"))
    shown.go((x, y))
    shown.drag((x - 90, y - 130), (x - 60, y - 210))
    shown.go(in_map(studio, 0.42, 0.5))
    shown.drag(in_map(studio, 0.6, 0.3), in_map(studio, 0.7, 0.6), in_map(studio, 0.42, 0.5), steps=6)
    shown.click(studio.pixel(studio.joint("left_hand")))
    left = shown.at
    shown.drag((left[0] + 80, left[1] - 80), steps=6)
    for model in ("From recordings", "In time", "One action"):
        shown.click(centre(studio, "button", model))
        studio.settled()
        shown.hold(900)
    play_keys(shown)
    shown.save(IMAGES / "studio.webp")


def play_keys(shown: Film) -> None:
    """Places of the hand in time, and the motion between."""
    studio = shown.studio
    shown.click(centre(studio, "button", "Animate"))
    for frame, move in ((0, (8, 8)), (25, (-60, 100)), (50, (80, -60))):
        studio.show_frame(frame)
        x, y = studio.pixel(studio.joint("right_hand"))
        shown.go((x, y), steps=2)
        shown.drag((x + move[0], y + move[1]), steps=4)
    studio.wait("window.poise.state.progress.value.size === 0")
    for frame in range(0, 56, 3):
        studio.show_frame(frame)
        shown.hold()
    shown.hold(600)


# --- stills ----------------------------------------------------------------------------------------------------------


def pose(studio: StudioPage) -> None:
    """Two handles under another model, the previous result behind."""
    studio.drag_joint("right_hand", (-90, -200))
    studio.settled()
    studio.drag_joint("left_hand", (60, -60))
    studio.settled()
    studio.press("From recordings", within="Kind of model")
    studio.wait("window.poise.state.ghostOf.value")
    studio.press("One action", within="Kind of model")
    studio.wait("window.poise.state.model.value.kind === 'style' && window.poise.state.latentMap.value")
    studio.settled()


def animate(studio: StudioPage) -> None:
    """Three keys, a pin, onion skins."""
    studio.work_in("Animate")
    for frame, move in ((0, (-40, -90)), (25, (50, -60)), (50, (20, 110))):
        studio.show_frame(frame)
        studio.drag_joint("right_hand", move)
        studio.wait(f"window.poise.state.scene.value.timeline.keys.some((key) => key.frame === {frame})")
    studio.page.mouse.click(*studio.pixel(studio.joint("left_foot")))
    studio.wait("window.poise.state.scene.value.handles.length === 2")
    studio.show_frame(10)
    studio.press("Pin")
    studio.page.get_by_role("toolbar", name="Playback and keys").get_by_role("button", name="Style").click()
    studio.press("Onion")
    studio.wait("window.poise.state.progress.value.size === 0")
    studio.page.get_by_role("listitem").get_by_role("button", name="right hand", exact=True).first.click()
    studio.show_frame(20)


def photo(studio: StudioPage) -> None:
    """Six points of a throw, which a picture of the performer stands in for."""
    throw = act("throw", fps=30)
    with TemporaryDirectory() as folder:
        picture = Path(folder) / "throw.png"
        pictures.save(pictures.draw_pose(throw[int(0.45 * len(throw))]), picture)
        studio.page.get_by_role("combobox", name="Which model").select_option(label="pitch")
        studio.wait("window.poise.state.model.value.name === 'pitch'")
        studio.work_in("Photo")
        studio.page.get_by_label("Open a picture").set_input_files(picture)
        studio.wait("window.poise.state.scene.value.photo")
        for number, pixel in enumerate(
            ((250, 125), (341, 183), (163, 73), (320, 420), (133, 383), (236, 262))
        ):
            studio.page.mouse.click(*studio.on_photo(pixel, side=480))
            studio.wait(f"window.poise.state.scene.value.photo.points.length > {number}")
        studio.wait("window.poise.state.photoPixels.value && window.poise.state.progress.value.size === 0")


def capture(studio: StudioPage) -> None:
    """A take with gaps, filled."""
    walk = virtual_markers(act("walk", seconds=3.0, fps=60))
    points = walk.points.copy()
    for marker, first, last in ((3, 60, 110), (10, 40, 80), (11, 45, 90), (20, 70, 120), (33, 90, 130)):
        points[first:last, marker] = np.nan
    with TemporaryDirectory() as folder:
        take = poise.write(type(walk)(walk.labels, points, walk.fps), Path(folder) / "walk.trc")
        studio.work_in("Capture")
        studio.page.get_by_label("Open a take").set_input_files(take)
        studio.wait("window.poise.state.take.value")
        studio.press("Fill the gaps")
        studio.wait("window.poise.state.take.value.isFilled")
    studio.show_frame(75)


def live(studio: StudioPage) -> None:
    """A performer who boxes, followed by nine markers."""
    studio.work_in("Capture")
    studio.page.get_by_label("UDP port").fill("0")
    studio.press("Start")
    studio.wait("window.poise.state.performing.value?.step === 'waiting'")
    port = int(studio.ask("state.performing.value.source").rpartition(" ")[2])
    Thread(target=send_boxing, args=(port,), daemon=True).start()
    studio.wait("window.poise.state.performing.value.frames > 100")


def send_boxing(port: int) -> None:
    """The markers of somebody who boxes for a while, sixty times a second."""
    box = act("box", seconds=8.0, fps=60)
    markers = virtual_markers(box, marker_layout(box.skeleton, WITH_HEAD, samples=box.rotations))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tracker:
        for frame in range(len(markers)):
            places = dict(zip(markers.labels, markers.points[frame].tolist(), strict=True))
            tracker.sendto(json.dumps(places).encode(), ("127.0.0.1", port))
            time.sleep(1 / 60)


def learn(studio: StudioPage) -> None:
    """A clip that was dropped, learned and used."""
    with TemporaryDirectory() as folder:
        clip = Path(folder) / "kick.bvh"
        poise.write(act("kick", seconds=1.5, fps=15), clip)
        studio.work_in("Learn")
        studio.page.get_by_label("Choose files").set_input_files(clip)
        studio.press("Learn and use")
        studio.wait("window.poise.state.learningCurve.value.length > 1")
        studio.page.wait_for_timeout(500)


STILLS: dict[str, Callable[[StudioPage], None]] = {
    "pose": pose, "animate": animate, "photo": photo, "capture": capture, "live": live, "learn": learn,
}  # fmt: skip


def open_page(chromium: Browser, server: Server, *, theme: str) -> StudioPage:
    """A page as somebody sees it who knows the studio."""
    context = chromium.new_context(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme=theme)
    context.add_init_script(NO_HINTS)
    return StudioPage(context.new_page(), server.address)


def take_still(chromium: Browser, server: Server, name: str, *, theme: str) -> None:
    """One panel in one theme; the light one belongs to the documentation, the dark one is for looking at."""
    studio = open_page(chromium, server, theme=theme)
    STILLS[name](studio)
    studio.page.mouse.move(700, 20)
    studio.page.wait_for_timeout(1200)
    folder = IMAGES if theme == "light" else Path("out")
    folder.mkdir(exist_ok=True)
    shot = Image.open(io.BytesIO(studio.page.screenshot())).convert("RGB")
    shot.save(
        folder / f"studio-{name}{'' if theme == 'light' else '-dark'}.webp", quality=STILL_QUALITY, method=6
    )
    print(f"studio-{name}, {theme}")
    studio.page.context.close()


def main() -> None:
    """Writes docs/images/studio*, and the dark stills into out/."""
    wanted = sys.argv[1:] or ["film", *STILLS]
    server = Server()
    try:
        with browser() as chromium:
            for name in (name for name in wanted if name in STILLS):
                for theme in ("light", "dark"):
                    take_still(chromium, server, name, theme=theme)
            if "film" in wanted:
                film(open_page(chromium, server, theme="light"))
    finally:
        server.kill()


if __name__ == "__main__":
    main()
