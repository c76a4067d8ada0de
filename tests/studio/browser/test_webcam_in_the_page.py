"""The webcam in the page: a real video as Chromium's camera drives the body; and words where there is no camera."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from poise.vision.people import models as networks
from poise.vision.sources import VideoSource
from pose2sim import SINGLE, recordings, webcam_video
from studio_page import WITHOUT_GRAPHICS_CARD, Server, StudioPage, chromium

REFUSE = """(name) => {
  navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("", name));
}"""


@pytest.fixture
def filmed(server: Server, chromium_browser: Browser, tmp_path: Path) -> Iterator[StudioPage]:
    """A page whose camera plays a real recording, there and back."""
    cv2 = pytest.importorskip("cv2")
    clip = webcam_video(
        recordings() / SINGLE / "videos" / "cam02.mp4", tmp_path / "cam.avi", seconds=3.3, side=640
    )
    source, film = VideoSource(clip), tmp_path / "cam.mjpeg"
    with film.open("wb") as file:
        while (read := source.read()) is not None:
            file.write(cv2.imencode(".jpg", read[1])[1].tobytes())
    args = ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"]
    args.append(f"--use-file-for-fake-video-capture={film}")
    opened = chromium_browser.browser_type.launch(
        executable_path=chromium(), args=[*WITHOUT_GRAPHICS_CARD, *args]
    )
    page = StudioPage(opened.new_page(viewport={"width": 1000, "height": 640}), server.address)
    yield page
    opened.close()
    assert page.problems == []


@pytest.mark.skipif(not networks.available(), reason="the networks that find people: run tools/page.py")
def test_one_click_and_the_body_follows_and_is_recorded(filmed: StudioPage) -> None:
    filmed.work_in("Capture")
    filmed.page.get_by_role("button", name="Use the webcam").click()
    filmed.wait("window.poise.state.performing.value?.frames >= 8")
    words = filmed.page.get_by_label("State of the webcam")
    filmed.until(lambda: "ms from picture to pose" in (words.text_content() or ""), "rate and latency")
    assert filmed.page.get_by_label("What the webcam sees").evaluate("video => video.videoWidth") > 0
    assert filmed.joint("head")[1] - min(filmed.joint(f"{s}_foot")[1] for s in ("left", "right")) > 0.9
    filmed.page.get_by_role("button", name="Stop the webcam").click()
    filmed.wait("window.poise.state.scene.value.timeline.clip === 'performance'")
    assert filmed.ask("state.scene.value.timeline.frames") >= 8


@pytest.mark.skipif(not networks.available(), reason="the networks that find people: run tools/page.py")
def test_a_camera_that_is_taken_away_ends_the_take(filmed: StudioPage) -> None:
    filmed.work_in("Capture")
    filmed.page.get_by_role("button", name="Use the webcam").click()
    filmed.wait("window.poise.state.performing.value?.step")
    sees = filmed.page.get_by_label("What the webcam sees")
    sees.evaluate("video => video.srcObject.getVideoTracks()[0].dispatchEvent(new Event('ended'))")
    filmed.page.get_by_text("The camera was disconnected").wait_for()
    filmed.wait("window.poise.state.performing.value?.step === 'over'")


@pytest.mark.parametrize(
    ("name", "words"),
    [("NotAllowedError", "The camera is not allowed"), ("NotFoundError", "No camera was found")],
)
def test_a_camera_that_is_refused_says_why(studio: StudioPage, name: str, words: str) -> None:
    studio.work_in("Capture")
    studio.page.evaluate(REFUSE, name)
    studio.page.get_by_role("button", name="Use the webcam").click()
    studio.page.get_by_text(words).wait_for()
    assert studio.ask("state.performing.value") is None
