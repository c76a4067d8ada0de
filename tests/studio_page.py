"""The studio's page in Chromium, as tests and pictures use it: what a person does, and what is on the stage."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

WITHOUT_GRAPHICS_CARD = (
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--no-sandbox",
)
PATIENCE = 300.0  # seconds: only a failure waits as long; machines may be busy, and compile on the way
PAGE = Path(__file__).parents[1] / "src" / "poise" / "studio" / "web" / "dist" / "index.html"

Point = tuple[float, float]
Place = tuple[float, float, float]
Turn = tuple[float, float, float, float]


def chromium() -> str | None:
    """Where Chromium is, if it is."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def browser(options: Sequence[str] = WITHOUT_GRAPHICS_CARD) -> Iterator[Browser]:
    """A browser that draws without a graphics card."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=list(options))
        yield opened
        opened.close()


class Server:
    """`poise studio` as a process of its own, which can be killed and started again on the same port."""

    def __init__(
        self, models: Sequence[Path] = (), *, cache: Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._models = models
        self._env = os.environ | ({"POISE_CACHE": str(cache)} if cache else {}) | dict(env or {})
        self.address = self._start("0")

    def _start(self, port: str) -> str:
        command = [
            sys.executable,
            "-m",
            "poise",
            "studio",
            *map(str, self._models),
            "--no-open",
            "--port",
            port,
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self._env)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"http://\S+", line):
                return found[0]
        raise RuntimeError(f"the studio ended with {self._process.wait()} before it listened")

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def start_again(self) -> None:
        self._start(self.address.rstrip("/").rpartition(":")[2])


class StudioPage:
    """One page of the studio. Everything is asked of the scene, not of pixels."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.problems: list[str] = []
        self.strangers: list[str] = []
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)
        page.on("request", lambda request: self._meet(request.url, address))
        page.goto(address)
        self.wait("window.poise?.state.pose.value")

    def _meet(self, url: str, address: str) -> None:
        if not url.startswith((address, address.replace("http", "ws", 1), "blob:", "data:")):
            self.strangers.append(url)

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {{ const {{ state, stage }} = window.poise; return {expression} }}")

    def wait(self, expression: str) -> None:
        self.until(lambda: self.page.evaluate(f"() => Boolean({expression})"), expression)

    def until(self, is_so: Callable[[], bool], words: str = "") -> None:
        end = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < end, f"waited in vain for {words}; problems: {self.problems}"
            self.page.wait_for_timeout(25)

    def joint(self, role: str) -> Place:
        """Where the stage shows a joint, in metres."""
        place = self.page.evaluate(
            """(role) => {
              const number = window.poise.state.body.value.joints.findIndex((joint) => joint.role === role);
              return [...window.poise.shownJoints.value.slice(number * 7, number * 7 + 3)];
            }""",
            role,
        )
        return (place[0], place[1], place[2])

    def turn(self, role: str) -> Turn:
        """How the stage shows a joint turned in the world, as a quaternion (wxyz)."""
        turn = self.page.evaluate(
            """(role) => {
              const number = window.poise.state.body.value.joints.findIndex((joint) => joint.role === role);
              return [...window.poise.shownJoints.value.slice(number * 7 + 3, number * 7 + 7)];
            }""",
            role,
        )
        return (turn[0], turn[1], turn[2], turn[3])

    def handles(self) -> dict[str, dict[str, Any]]:
        return {handle["joint"]: handle for handle in self.ask("state.scene.value.handles")}

    def pixel(self, place: Place) -> Point:
        """Where a place of the world is on the page."""
        x, y = self.page.evaluate(
            """(place) => {
              const { stage } = window.poise;
              const box = stage.canvas.getBoundingClientRect();
              const [x, y] = stage.project(place);
              return [x + box.left, y + box.top];
            }""",
            list(place),
        )
        return (x, y)

    # --- doing -------------------------------------------------------------------------------------------------------

    def press(self, name: str, *, within: str | None = None) -> None:
        scope = self.page.get_by_role("group", name=within) if within else self.page
        scope.get_by_role("button", name=name, exact=True).first.click()

    def laid_out(self) -> None:
        """Waits until the motion is solved and the lanes of its contacts, which move the stage, are laid out."""
        self.wait("window.poise.state.progress.value.size === 0")
        self.page.wait_for_timeout(300)

    def work_in(self, workspace: str) -> None:
        self.page.get_by_role("navigation").get_by_role("button", name=workspace).click()

    def show_frame(self, frame: int) -> None:
        """Moves the playhead, and lets go of it."""
        field = self.page.get_by_role("textbox", name="Frame", exact=True)
        field.fill(str(frame))
        field.press("Enter")
        self.wait(f"window.poise.frame.value === {frame}")
        field.blur()

    def key_path(self, frame: int) -> None:
        """Keys the selected handle's own path at a frame."""
        self.settled()
        self.page.keyboard.press("k")
        self.wait(f"window.poise.state.scene.value.timeline.keys.some((key) => key.frame === {frame})")
        self.laid_out()

    def key_by_hand(self) -> None:
        """Keys only what is asked for."""
        self.page.get_by_role("switch", name="Auto").uncheck(force=True)

    def on_photo(self, pixel: Point, *, side: int) -> Point:
        """Where a pixel of a square photo is on the page: it is shown whole and centred."""
        box = self.page.get_by_label("Picture: click").bounding_box()
        assert box is not None
        scale = min(box["width"], box["height"]) / side
        left, top = (
            box["x"] + (box["width"] - side * scale) / 2,
            box["y"] + (box["height"] - side * scale) / 2,
        )
        return left + scale * pixel[0], top + scale * pixel[1]

    def drag(self, start: Point, way: Point, *, steps: int = 4, release: bool = True) -> None:
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move(start[0] + way[0], start[1] + way[1], steps=steps)
        if release:
            self.page.mouse.up()

    def drag_joint(self, role: str, way: Point, **options: Any) -> None:
        self.drag(self.pixel(self.joint(role)), way, **options)

    def drag_gizmo(self, at: Place, grip: Point, way: Point) -> None:
        """Drags the gizmo that stands at a place; `grip` is where on it, in its own units to the right and up."""
        self.until(lambda: self._is_on_gizmo(self._on_gizmo(at, grip)), "the gizmo under the pointer")
        self.drag(self._on_gizmo(at, grip), way, steps=6)

    def _on_gizmo(self, at: Place, grip: Point) -> Point:
        x, y = self.page.evaluate(
            """([at, [right, up]]) => {
              const { stage } = window.poise;
              const { camera, canvas } = stage;
              const wide = (1.9 * Math.tan((Math.PI * camera.fov) / 360)) / camera.zoom;
              const away = camera.position.distanceTo({ x: at[0], y: at[1], z: at[2] });
              const unit = (away * Math.min(wide, 7) * 0.75) / 4;
              const [x, y, z] = stage.screenAxes().right.toArray();
              const place = [at[0] + unit * right * x, at[1] + unit * (right * y + up), at[2] + unit * right * z];
              const box = canvas.getBoundingClientRect();
              const pixel = stage.project(place);
              return [pixel[0] + box.left, pixel[1] + box.top];
            }""",
            [list(at), list(grip)],
        )
        return (x, y)

    def _is_on_gizmo(self, pixel: Point) -> bool:
        """Whether the gizmo lights up where the pointer is, so that it would be dragged."""
        self.page.mouse.move(*pixel)
        return bool(self.ask("stage.scene.children.some((each) => each.controls?.axis)"))

    def settled(self) -> None:
        """Waits until the fine model has answered everything that was asked."""
        self.wait(
            "(({ pose, asked, dragged }) => !dragged.value && pose.value.fine && pose.value.seq >= asked.value)"
            "(window.poise.state)"
        )


def angle(one: Sequence[float], other: Sequence[float]) -> float:
    """By how much two turns (wxyz) differ, in radians."""
    return 2.0 * math.acos(min(1.0, abs(sum(a * b for a, b in zip(one, other, strict=True)))))
