"""Opens a studio's page in Chromium, waits for its body and drags a hand: tools/use_studio.py ADDRESS [PICTURE]."""

from __future__ import annotations

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import studio_page
from studio_page import StudioPage, browser, chromium

studio_page.PATIENCE = 1800.0  # seconds: a new installation compiles all its kernels meanwhile
WAY = (-40.0, -60.0)  # pixels


def use(address: str, picture: str | None = None) -> None:
    """Ends with an error unless the hand follows the pointer and the page has no problem."""
    with browser() as opened:
        page = opened.new_context(viewport={"width": 1200, "height": 760}).new_page()
        page.set_default_navigation_timeout(1000.0 * studio_page.PATIENCE)
        studio = StudioPage(page, address)
        start = studio.pixel(studio.joint("right_hand"))
        studio.drag(start, WAY)
        studio.settled()
        missed = math.dist(studio.pixel(studio.joint("right_hand")), (start[0] + WAY[0], start[1] + WAY[1]))
        if picture is not None:
            page.screenshot(path=picture)
        if missed > 3.0 or studio.problems:
            raise SystemExit(
                f"use_studio: the hand is {missed:.0f} pixels from the pointer; {studio.problems}"
            )


if __name__ == "__main__":
    if chromium() is None:
        raise SystemExit("use_studio: Chromium is not installed; run tools/browser.sh")
    use(*sys.argv[1:])
