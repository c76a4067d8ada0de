"""The view of a motion in a notebook, drawn by the widget's own code on a page without Jupyter."""

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from poise.performer import act
from poise.studio.notebook import WIDGET, view
from studio_page import PATIENCE

PAGE = """<body style="margin:0"><div id="cell" style="width:600px"></div><script type="module">
const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const { default: widget } = await import(URL.createObjectURL(new Blob([%s], { type: "text/javascript" })));
const traits = { body: bytes("%s"), range: bytes("%s"), fps: 30, height: 400 };
const drop = widget.render({ model: { get: (name) => traits[name] }, el: document.getElementById("cell") });
window.drop = drop; window.ready = true;
</script></body>"""


def test_the_widget_draws_plays_and_goes(chromium_browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("anywidget")
    shown = view(act("walk", seconds=1.5, fps=30))
    script = json.dumps(WIDGET.read_text("utf-8")).replace("</", "<\\/")
    page = chromium_browser.new_page(viewport={"width": 600, "height": 400})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.set_content(PAGE % (script, *(base64.b64encode(b).decode() for b in (shown.body, shown.range))))
    page.wait_for_function("window.ready")
    first = _seen(page, tmp_path, lambda seen: len(np.unique(seen.reshape(-1, 3), axis=0)) > 500)
    page.get_by_label("Frame").fill("20")
    _seen(page, tmp_path, lambda seen: np.mean(np.abs(seen - first)) > 0.5)  # the body has moved
    page.get_by_label("Play").click()
    page.wait_for_function("document.querySelector('input').value !== '20'")
    page.get_by_label("Pause").click()
    page.evaluate("window.drop()")
    assert page.locator("canvas").count() == 0
    assert problems == []
    page.close()


def _seen(page: Page, folder: Path, shows: Callable[[np.ndarray], bool]) -> np.ndarray:
    """What the page looks like, once it shows something and stands still."""
    before, end = np.empty(0), time.monotonic() + PATIENCE
    while time.monotonic() < end:
        page.screenshot(path=folder / "seen.png")
        seen = np.asarray(Image.open(folder / "seen.png").convert("RGB")).astype(np.float64)
        if shows(seen) and np.array_equal(seen, before):
            return seen
        before = seen
    raise AssertionError("the widget does not show it")
