"""Capture in the page: a take with its gaps, markers hidden by hand, and a performer followed live."""

import json
import math
import socket
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.capture.matching import WITH_HEAD, marker_layout
from poise.motion.markers import Markers
from poise.motion.virtual_markers import virtual_markers
from poise.performer import act
from poise.vision.people import models as networks
from pose2sim import SINGLE, recordings
from studio_page import StudioPage


def test_gaps_are_seen_and_markers_hidden(studio: StudioPage, tmp_path: Path) -> None:
    walk = virtual_markers(act("walk", seconds=1.0, fps=30))
    points = walk.points.copy()
    points[10:15, 3] = np.nan
    path = tmp_path / "walk.trc"
    poise.write(Markers(walk.labels, points, walk.fps), path)
    studio.work_in("Capture")
    studio.page.get_by_label("Open a take").set_input_files(path)
    studio.wait("window.poise.state.take.value")
    assert studio.ask("state.take.value.gaps(3)") == [[10, 14]]
    studio.wait("!window.poise.stage.figure.mesh.visible")
    studio.until(lambda: studio.page.get_by_text(walk.labels[3]).first.is_visible(), "the labels")
    other = walk.labels[5]
    studio.page.get_by_role("button", name=f"Hide {other} from here").click()
    studio.wait("window.poise.state.take.value.gaps(5).length === 1")
    studio.page.get_by_role("button", name=f"Show {other} again").click()
    studio.wait("window.poise.state.take.value.gaps(5).length === 0")


@pytest.mark.skipif(not networks.available(), reason="the networks that find people: run tools/page.py")
def test_a_video_is_seen_beside_the_body_and_over_it(studio: StudioPage) -> None:
    studio.work_in("Capture")
    studio.page.get_by_label("Open a video").set_input_files(recordings() / SINGLE / "videos" / "cam01.mp4")
    studio.wait("window.poise.state.scene.value.video")
    studio.laid_out()
    picture = studio.page.locator("video")
    studio.show_frame(10)
    fps = studio.ask("state.scene.value.timeline.fps")
    studio.until(lambda: abs(picture.evaluate("one => one.currentTime") - 10.5 / fps) < 1e-3, "its frame")
    beside = studio.page.locator("video").bounding_box()
    stage = studio.page.locator(".stage-canvas").bounding_box()
    assert beside is not None
    assert stage is not None
    assert beside["x"] + beside["width"] <= stage["x"] + 1.0

    studio.press("Over", within="Where the video is")
    studio.wait("document.querySelector('.video-over video')")
    over, stage = (
        studio.page.locator("video").bounding_box(),
        studio.page.locator(".stage-canvas").bounding_box(),
    )
    assert over == stage
    video = studio.ask("state.scene.value.video")
    assert studio.ask("stage.camera.position.toArray()") == pytest.approx(video["position"])
    left, top = over["x"], over["y"]
    (x, y), height = studio.pixel(studio.joint("head")), over["height"]
    assert 0.1 < (y - top) / height < 0.35  # where he is in the picture
    assert 0.0 < x - left < over["width"]

    studio.press("Off", within="Where the video is")
    studio.until(lambda: studio.page.locator("video").count() == 0, "no video")
    assert studio.ask("stage.camera.position.toArray()") != pytest.approx(video["position"])


def test_the_body_follows_a_performer_live(studio: StudioPage) -> None:
    walk = act("walk", seconds=1.0, fps=30)
    markers = virtual_markers(walk, marker_layout(walk.skeleton, WITH_HEAD, samples=walk.rotations))
    studio.work_in("Capture")
    studio.page.get_by_label("UDP port").fill("0")
    studio.press("Start")
    studio.wait("window.poise.state.performing.value?.step === 'waiting'")
    port = int(studio.ask("state.performing.value.source").rpartition(" ")[2])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tracker:
        for frame in range(20):
            places = dict(zip(markers.labels, markers.points[frame].tolist(), strict=True))
            tracker.sendto(json.dumps(places).encode(), ("127.0.0.1", port))
            studio.wait(f"window.poise.state.performing.value.frames > {frame}")
    studio.until(
        lambda: math.dist(studio.joint("left_hand"), markers.points[19, markers.index("left_hand")]) < 0.02,
        "the hand to be where the marker is",
    )
    figures = studio.page.get_by_label("State of the performance")
    studio.until(lambda: "9 of 9" in figures.inner_text(), "the markers to be counted")
    assert "ms, 95 % within" in figures.inner_text()
    studio.press("Stop")
    studio.wait("window.poise.state.performing.value.step === 'over'")
    studio.wait("window.poise.state.motion.value?.frames === 20")


def test_a_stream_that_cannot_be_opened_is_said(studio: StudioPage) -> None:
    studio.work_in("Capture")
    studio.page.get_by_label("UDP port").fill("nowhere")
    studio.press("Start")
    studio.until(lambda: studio.page.get_by_role("alert").is_visible(), "words about it")
    assert "a port must be a number" in studio.page.get_by_role("alert").inner_text()
