"""The three.js page of the documentation, in Chromium: it gets a motion from `poise serve --mmcp`, and it moves."""

from __future__ import annotations

import io
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

mmcp = pytest.importorskip("poise.apps.mmcp")
ROOT = Path(__file__).parents[3]
THREE = ROOT / "src" / "poise" / "studio" / "web" / "node_modules" / "three"
CDN = "https://cdn.jsdelivr.net/npm/three@0.187.0/"


@pytest.mark.skipif(not THREE.is_dir(), reason="three.js is not installed")
def test_the_page_of_the_documentation_plays_a_motion(tmp_path: Path, chromium_browser: Browser) -> None:
    text = (ROOT / "docs" / "threejs.md").read_text(encoding="utf-8")
    (sample,) = re.findall(r"```html\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "index.html").write_text(sample, encoding="utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    pages = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    ready: Queue[int] = Queue()
    threading.Thread(target=mmcp.serve, args=(0,), kwargs={"ready": ready.put}, daemon=True).start()
    address = f"http://127.0.0.1:{pages.server_port}/?poise=http://127.0.0.1:{ready.get(timeout=120)}"
    context = chromium_browser.new_context()
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.route(
        f"{CDN}**",
        lambda route: route.fulfill(
            path=THREE / route.request.url.removeprefix(CDN),
            content_type="text/javascript",
            headers={"access-control-allow-origin": "*"},  # as the network's copy has it
        ),
    )
    page.goto(address)
    page.wait_for_function("/joints|[Ee]rror/.test(document.title)", timeout=240_000)
    assert re.fullmatch(r"\d+ joints, 2\.0 s", page.title())
    shots = []
    for _ in range(2):
        page.wait_for_timeout(500)
        shots.append(np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("L"), dtype=float))
    (tmp_path / "shot.png").write_bytes(page.screenshot())
    context.close()
    pages.shutdown()
    pages.server_close()
    assert not wrong
    assert shots[0].std() > 2.0
    assert np.abs(shots[0] - shots[1]).max() > 20.0
