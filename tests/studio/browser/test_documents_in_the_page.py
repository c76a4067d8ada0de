"""Nothing is lost in the page: a clip edited at one frame, undone, offered to a new tab; and the tools about it."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from poise.formats import write
from poise.performer import act
from poise.studio.scene_files import decoded
from poise.studio.store import FILE
from studio_page import Server, StudioPage

FRAME, EASE = 30, 12


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return write(act("walk", seconds=3.0, fps=30), tmp_path / "stroll.bvh")


@pytest.fixture
def opened(studio: StudioPage, clip: Path) -> StudioPage:
    studio.work_in("Animate")
    studio.page.get_by_label("Start from a clip").last.set_input_files(clip)
    studio.wait("window.poise.state.scene.value.timeline.clip === 'stroll.bvh'")
    studio.wait("window.poise.state.motion.value?.at(89)")
    return studio


def frames(studio: StudioPage) -> list[list[float]]:
    """All frames that the page would play."""
    return studio.page.evaluate(
        "() => Array.from({ length: 90 }, (_, k) => [...window.poise.state.motion.value.at(k)])"
    )


def edit(studio: StudioPage) -> None:
    studio.show_frame(FRAME)
    studio.drag_joint("left_hand", (14, -22))
    studio.wait("window.poise.state.scene.value.timeline.poses.length === 1")
    studio.settled()


def test_a_drag_on_a_clip_changes_the_frames_about_it_and_undo_brings_them_back(opened: StudioPage) -> None:
    before = frames(opened)
    edit(opened)
    opened.until(lambda: frames(opened)[FRAME] != before[FRAME], "the edit in the motion")
    opened.wait("window.poise.state.progress.value.size === 0")
    after = frames(opened)
    changed = [number for number in range(90) if before[number] != after[number]]
    assert min(changed) >= FRAME - EASE
    assert max(changed) <= FRAME + EASE
    steps = opened.ask("state.scene.value.undo")
    opened.press("Undo")  # the handle, its drag and its key are one step
    opened.wait(f"window.poise.state.scene.value.undo === {steps - 1}")
    opened.wait(
        "window.poise.state.scene.value.timeline.poses.length + window.poise.state.handles.value.length === 0"
    )
    opened.until(lambda: frames(opened) == before, "every frame as it was")
    assert opened.ask("state.scene.value.timeline.clip") == "stroll.bvh"
    opened.page.get_by_role("button", name="Undo").focus()
    opened.page.mouse.click(*opened.pixel((1.5, 0.5, 0.0)))
    opened.page.keyboard.press("Space")
    opened.wait("window.poise.state.playing.value && window.poise.frame.value > 2")
    opened.page.keyboard.press("Space")


def test_a_new_tab_and_a_restart_are_offered_what_was_done(
    chromium_browser: Browser, models: list[Path], clip: Path, tmp_path: Path
) -> None:
    server = Server(models, cache=tmp_path)
    context = chromium_browser.new_context(viewport={"width": 1024, "height": 700})
    studio = StudioPage(context.new_page(), server.address)
    studio.work_in("Animate")
    studio.page.get_by_label("Start from a clip").last.set_input_files(clip)
    studio.wait("window.poise.state.motion.value?.at(89)")
    before = frames(studio)
    edit(studio)
    studio.until(lambda: frames(studio) != before, "the edit in the motion")
    studio.wait("window.poise.state.progress.value.size === 0")
    done = frames(studio)
    database = sqlite3.connect(tmp_path / "studio" / FILE)
    kept = "SELECT content FROM scenes"
    studio.until(
        lambda: any(decoded(scene).timeline.poses for (scene,) in database.execute(kept)), "the scene on disk"
    )
    database.close()
    server.kill()
    studio.page.close()
    server.start_again()
    tab = StudioPage(context.new_page(), server.address)
    offer = tab.page.get_by_role("region", name="Earlier work").get_by_role("button", name="stroll.bvh")
    offer.first.click()
    tab.wait("window.poise.state.motion.value?.at(89)")
    tab.until(lambda: frames(tab) == done, "every frame that was edited")
    assert tab.ask("state.scene.value.timeline.poses.length") == 1
    earlier = tab.page.get_by_role("region", name="Earlier work")
    tab.until(lambda: not earlier.is_visible(), "the offer to be gone")
    context.close()
    server.kill()


def test_space_plays_after_a_button_was_clicked(opened: StudioPage) -> None:
    opened.press("Onion")
    opened.page.keyboard.press("Space")
    opened.wait("window.poise.state.playing.value")
    assert opened.ask("state.onion.value")
    opened.page.keyboard.press("Space")
    opened.wait("!window.poise.state.playing.value")


def camera(studio: StudioPage) -> list[float]:
    return studio.ask("stage.camera.position.toArray()")


def test_alt_and_drags_beside_the_gizmo_turn_the_view(studio: StudioPage) -> None:
    start = studio.pixel(studio.joint("right_hand"))
    seen = camera(studio)
    studio.page.keyboard.down("Alt")
    studio.drag(start, (40, 0))
    studio.page.keyboard.up("Alt")
    studio.until(lambda: camera(studio) != seen, "the view to turn")
    assert studio.ask("state.handles.value.length") == 0
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.handles.value.length === 1")
    studio.page.keyboard.press("e")
    seen, hand = camera(studio), studio.joint("left_hand")
    studio.drag(studio.pixel(hand), (30, 0))
    studio.until(lambda: camera(studio) != seen, "the view to turn")
    assert studio.ask("state.handles.value.length") == 1
    assert studio.joint("left_hand") == pytest.approx(hand, abs=1e-4)


def test_what_is_in_front_is_picked(studio: StudioPage) -> None:
    """Of two handles at one place of the screen, the one before the other."""
    studio.page.keyboard.press("2")
    studio.page.wait_for_timeout(300)
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.handles.value.length === 1")
    studio.page.keyboard.press("4")  # from the left
    studio.page.wait_for_timeout(300)
    far, near = studio.pixel(studio.joint("right_hand")), studio.pixel(studio.joint("left_hand"))
    studio.drag(near, (far[0] - near[0], far[1] - near[1]), steps=8)
    studio.settled()
    studio.page.keyboard.press("Escape")
    studio.wait("window.poise.state.selected.value === null")
    place = studio.pixel(studio.joint("right_hand"))
    studio.page.mouse.click(place[0], place[1])
    studio.wait("window.poise.state.selected.value !== null")
    assert studio.ask("state.labelOf(state.selectedHandle.value.joint)") == "left hand"


def painted(studio: StudioPage) -> int:
    """Pixels of the paper that marks are painted on that are not empty."""
    return studio.page.evaluate(
        "() => { const paper = document.querySelector('.stage-paper'); const { width, height } = paper;"
        " const { data } = paper.getContext('2d').getImageData(0, 0, width, height);"
        " return data.filter((value, number) => number % 4 === 3 && value).length }"
    )


def test_a_handle_that_was_removed_is_not_painted(studio: StudioPage) -> None:
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.handles.value.length === 1")
    studio.page.mouse.move(*studio.pixel((1.5, 0.3, 0.0)))
    studio.until(lambda: painted(studio) > 50, "the handle on the paper")
    studio.page.keyboard.press("Delete")
    studio.wait("window.poise.state.handles.value.length === 0")
    studio.until(lambda: painted(studio) == 0, "an empty paper")


def box(studio: StudioPage, selector: str) -> dict[str, Any]:
    found = studio.page.locator(selector).first.bounding_box()
    assert found is not None
    return found  # type: ignore[return-value]


def test_nothing_overlaps_on_a_small_screen(opened: StudioPage) -> None:
    opened.page.set_viewport_size({"width": 1024, "height": 700})
    timeline = box(opened, ".timeline")
    for button in opened.page.locator(".transport > *").all():
        place = button.bounding_box()
        assert place is None or place["x"] + place["width"] <= timeline["x"] + timeline["width"] + 1
    opened.work_in("Pose")
    opened.page.wait_for_timeout(300)
    opened.drag_joint("left_hand", (10, -10))
    opened.settled()
    views, readout = box(opened, ".view-tools"), box(opened, ".readout")
    apart = readout["y"] + readout["height"] <= views["y"] or readout["x"] >= views["x"] + views["width"]
    assert apart


def test_a_long_task_is_stopped(opened: StudioPage) -> None:
    opened.press("File")
    opened.press("MP4", within="Export the motion")
    opened.page.get_by_role("button", name="Stop writing").click()
    opened.wait("window.poise.state.progress.value.size === 0")
