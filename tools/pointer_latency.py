"""How long the pointer waits for its frame, in the real page: from a move to the end of the drawing that answers it.

python tools/pointer_latency.py [--seconds 4]

A hand is dragged under every model of the studio, with the map of its space open where it has one. Drawing in 3D is
left out, and the page is put together as on a machine without a graphics card: to imitate one takes 60 ms of processor
a frame. The parts, as medians: until the page sends the move (the browser hands moves over once a frame of the screen),
until the pose is there, and until it is drawn (with the next frame of the screen).
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

SOFTWARE = ("--disable-gpu", "--enable-unsafe-swiftshader", "--no-sandbox")

WATCH = """() => {
  const { state, stage } = window.poise;
  const begun = new Map();
  let moved = 0;
  window.waits = [];
  stage.renderer.render = () => {};
  window.addEventListener("pointermove", (event) => void (moved = event.timeStamp), { capture: true });
  state.asked.subscribe((seq) => void begun.set(seq, [moved, performance.now()]));
  state.pose.subscribe(({ seq }) => void begun.get(seq)?.splice(2, 1, performance.now()));
  const draw = stage.draw.bind(stage);
  stage.draw = (...given) => {
    draw(...given);
    const { seq } = state.pose.value;
    if (begun.has(seq)) window.waits.push([...begun.get(seq), performance.now()]);
    for (const known of [...begun.keys()]) if (known <= seq) begun.delete(known);
  };
}"""
EVERY = 1 / 60  # seconds between two moves of the hand
RADIUS = 40  # pixels


def waits(studio: StudioPage, seconds: float) -> np.ndarray:
    """The times at which each move of a circular drag was made, sent, answered and drawn, in milliseconds."""
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
    return np.array(studio.page.evaluate("() => window.waits"))


def models(studio: StudioPage) -> Iterator[str]:
    """Select one model after the other, each from its own pose; a new one may have to be learned first."""
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
    """Wait until no task is running, and remove all handles."""
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
        with browser(SOFTWARE) as opened:
            studio = StudioPage(opened.new_page(viewport={"width": 1280, "height": 800}), server.address)
            studio.page.evaluate(WATCH)
            heads = ("moves", "median", "p95", "to send", "to answer", "to draw")
            print(f"{'model':24s}" + "".join(f"{head:>10s}" for head in heads) + "   milliseconds")
            for model in models(studio):
                times = waits(studio, seconds)
                took = times[:, -1] - times[:, 0]
                row = (np.median(took), np.percentile(took, 95), *np.median(np.diff(times), axis=0))
                print(f"{model:24s}{len(took):10d}" + "".join(f"{each:10.1f}" for each in row), flush=True)
    finally:
        server.kill()


if __name__ == "__main__":
    main()
