"""An animator's work in time: a walk to a box, picking up and turning; many edits; a narrow page."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser

from poise.priors.model_file import save
from poise.priors.motion.network import FILE
from poise.priors.universal.prior import UniversalPrior
from small_motion import lines_saved
from studio_page import Server, StudioPage

STRIDE = 0.45  # metres


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A studio with the universal prior."""
    folder = tmp_path_factory.mktemp("people")
    save(UniversalPrior(), folder / "people.poise")
    lines = {"POISE_MOTION_WEIGHTS": str(lines_saved(folder / "lines.safetensors"))}
    server = Server([folder / "people.poise"], cache=folder, env={} if FILE.exists() else lines)
    yield server
    server.kill()


@pytest.fixture
def animator(people: Server, chromium_browser: Browser) -> Iterator[StudioPage]:
    context = chromium_browser.new_context(viewport={"width": 1100, "height": 700})
    studio = StudioPage(context.new_page(), people.address)
    studio.work_in("Animate")
    studio.page.keyboard.press("4")  # from the left, where ahead is to the left or right
    studio.laid_out()
    yield studio
    context.close()
    assert studio.problems == []


def put(studio: StudioPage, frame: int, role: str, way: tuple[float, float, float]) -> None:
    """Drags a joint by some metres at a frame."""
    studio.show_frame(frame)
    studio.settled()
    start = studio.joint(role)
    begin, end = studio.pixel(start), studio.pixel(tuple(np.add(start, way).tolist()))
    studio.drag(begin, (end[0] - begin[0], end[1] - begin[1]), steps=8)
    studio.wait(f"window.poise.state.scene.value.timeline.poses.some((key) => key.frame === {frame})")
    studio.settled()


def way_of(studio: StudioPage, role: str) -> np.ndarray:
    """Where a joint is in every frame."""
    return np.array(
        studio.ask(
            "Array.from({ length: state.motion.value.frames }, (_, frame) => [...state.motion.value.at(frame)"
            f".slice(7 * state.body.value.joints.findIndex((joint) => joint.role === '{role}')).slice(0, 3)])"
        )
    )


def test_a_walk_to_a_box_stays_a_walk_when_something_is_picked_up(animator: StudioPage) -> None:
    studio = animator
    for frame, role, ahead in ((12, "left_foot", 1), (24, "right_foot", 2), (36, "left_foot", 1)):
        put(studio, frame, role, (0.0, 0.0, ahead * STRIDE / 1.5))
    studio.laid_out()
    before = {role: way_of(studio, role) for role in ("left_foot", "right_foot")}
    put(studio, 54, "right_hand", (0.0, -0.35, 0.3))
    studio.laid_out()
    frames = [key["frame"] for key in studio.ask("state.scene.value.timeline.poses")]
    assert frames == [0, 12, 24, 36, 54]
    hold_together(studio, frames)
    for role in before:  # far from the new key
        np.testing.assert_allclose(way_of(studio, role)[:24], before[role][:24], atol=0.03)
    put(studio, 66, "right_hand", (0.0, 0.5, -0.1))  # picked up


def hold_together(studio: StudioPage, frames: list[int]) -> None:
    """The pelvis stays up, the hips upright while it walks, and feet where they stand from key to key."""
    hips, spine = way_of(studio, "pelvis"), way_of(studio, "chest")
    assert hips[:, 1].min() > 0.4
    up = (spine - hips) / np.linalg.norm(spine - hips, axis=1, keepdims=True)
    assert np.degrees(np.arccos(up[:37, 1].min())) < 30.0
    for role in ("left_foot", "right_foot"):
        feet = way_of(studio, role)
        for one, other in itertools.pairwise(frames):
            if np.linalg.norm(feet[other] - feet[one]) < 0.004:
                assert np.linalg.norm(feet[one : other + 1] - feet[one], axis=1).max() < 0.005


def test_nudged_and_mirrored_poses_are_keyed_in_one_step(animator: StudioPage) -> None:
    studio = animator
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.handles.value.length === 1")
    for frame, key in ((6, "ArrowUp"), (12, "m")):
        undos = studio.ask("state.scene.value.undo")
        studio.show_frame(frame)
        studio.settled()
        studio.page.keyboard.press(key)
        studio.wait(f"window.poise.state.scene.value.timeline.poses.some((key) => key.frame === {frame})")
        studio.settled()
        assert studio.ask("state.scene.value.undo") == undos + 1
    assert [key["frame"] for key in studio.ask("state.scene.value.timeline.poses")] == [0, 6, 12]


def test_a_phone_shows_every_tool_and_folds_the_panel(people: Server, chromium_browser: Browser) -> None:
    context = chromium_browser.new_context(viewport={"width": 390, "height": 800})
    studio = StudioPage(context.new_page(), people.address)
    studio.settled()
    assert studio.page.evaluate("document.documentElement.scrollWidth") <= 390
    cut = studio.page.evaluate(
        """() => [...document.querySelectorAll("button")].filter((button) => button.offsetParent).filter((button) => {
          const { left, right } = button.getBoundingClientRect();
          const scrolls = button.closest(".tabs, .model-switch, .view-tools");
          return !scrolls && (left < 0 || right > 390);
        }).map((button) => button.ariaLabel ?? button.innerText)"""
    )
    assert cut == []
    panel = studio.page.get_by_role("complementary")
    tall = panel.bounding_box()
    studio.press("Hide the panel")
    studio.until(lambda: panel.bounding_box()["height"] < 0.3 * tall["height"], "the panel to fold")
    studio.laid_out()
    studio.drag_joint("right_hand", (-10, -20))
    studio.wait("window.poise.state.handles.value.length === 1")
    context.close()
    assert studio.problems == []


def test_hands_are_shaped_and_keyed_with_the_pose(studio: StudioPage) -> None:
    studio.work_in("Animate")
    studio.press("Fist", within="Shape of the left hand")
    studio.wait("window.poise.state.scene.value.timeline.poses.length === 1")
    studio.show_frame(45)
    studio.press("Point", within="Shape of the left hand")
    studio.wait("window.poise.state.scene.value.timeline.poses.length === 2")
    keyed = "state.scene.value.timeline.poses.map(({ hands }) => hands.left)"
    assert studio.ask(keyed) == [{"fist": 1}, {"point": 1}]
    studio.laid_out()
    tip = "(frame) => window.poise.state.motion.value.at(frame).slice(29 * 7, 29 * 7 + 3)"  # of the thumb
    places = [studio.page.evaluate(f"[...({tip})({frame})]") for frame in (0, 45)]
    assert len(set(map(tuple, places))) == 2
    studio.page.keyboard.press("Control+z")
    studio.wait("window.poise.state.scene.value.timeline.poses.length === 1")
    assert studio.ask("state.scene.value.hands.left") == {"fist": 1}
