"""How long the pointer waits for its frame, in the real page: from a move to the end of the drawing that answers it.

python tools/pointer_latency.py [--seconds 4]

A hand is dragged under every model of the studio, with the map of its space open where it has one. Drawing in 3D is
left out: without a graphics card it takes most of the time. The browser hands moves over once a frame of the screen.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from studio_page import Server, StudioPage, browser

WATCH = """() => {
  const { state, stage } = window.poise;
  const sent = new Map();
  let moved = 0;
  window.waits = [];
  stage.renderer.render = () => {};
  window.addEventListener("pointermove", (event) => void (moved = event.timeStamp), { capture: true });
  state.asked.subscribe((seq) => void sent.set(seq, moved));
  const draw = stage.draw.bind(stage);
  stage.draw = (...given) => {
    draw(...given);
    const { seq } = state.pose.value;
    if (sent.has(seq)) window.waits.push(performance.now() - sent.get(seq));
    for (const known of [...sent.keys()]) if (known <= seq) sent.delete(known);
  };
}"""
EVERY = 1 / 60  # seconds between two moves of the hand
RADIUS = 40  # pixels


def waits(studio: StudioPage, seconds: float) -> list[float]:
    """Milliseconds that each move of a drag in circles waited."""
    x, y = studio.pixel(studio.joint("right_hand"))
    studio.page.mouse.move(x, y)
    studio.page.mouse.down()
    studio.page.evaluate("() => void (window.waits = [])")
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        turn = 3.0 * passed
        studio.page.mouse.move(x - RADIUS * math.sin(turn), y - RADIUS * (1 - math.cos(turn)))
        time.sleep(max(0.0, EVERY - (time.monotonic() - begun - passed)))
    studio.page.mouse.up()
    studio.settled()
    found: list[float] = studio.page.evaluate("() => window.waits")
    return found


def models(studio: StudioPage) -> Iterator[str]:
    """Chooses one model after the other, each from its own pose; one that is new may have to be learned first."""
    uses = studio.page.get_by_role("group", name="Kind of model").get_by_role("button")
    which = studio.page.get_by_label("Which model")
    for use in uses.all():
        if use.is_disabled():
            continue
        use.click()
        begin(studio)
        names = which.locator("option").evaluate_all("(all) => all.map(({ value }) => value)")
        for name in names or [studio.ask("state.scene.value.model")]:
            if names:
                which.select_option(name)
                studio.wait(f"window.poise.state.scene.value.model === {name!r}")
            begin(studio)
            yield name


def begin(studio: StudioPage) -> None:
    """Waits until nothing is under way, and lets go of all handles."""
    studio.page.wait_for_timeout(300)
    studio.wait("!window.poise.state.progress.value.size")
    studio.page.keyboard.press("Shift+R")
    studio.wait("window.poise.state.handles.value.length === 0")
    studio.page.wait_for_timeout(1000)


def main() -> None:
    """A row for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    seconds = parser.parse_args().seconds
    server = Server()
    try:
        with browser() as opened:
            studio = StudioPage(opened.new_page(viewport={"width": 1280, "height": 800}), server.address)
            studio.page.evaluate(WATCH)
            print(f"{'model':24s} {'moves':>6s} {'median':>8s} {'p95':>8s}   milliseconds")
            for model in models(studio):
                took = waits(studio, seconds)
                print(f"{model:24s} {len(took):6d} {np.median(took):8.1f} {np.percentile(took, 95):8.1f}")
    finally:
        server.kill()


if __name__ == "__main__":
    main()
