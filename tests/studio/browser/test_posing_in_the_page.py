"""What a person does first: drag a hand, hold a joint, switch the model, explore the style."""

import math
from collections.abc import Callable

import pytest

from studio_page import StudioPage, angle

CENTIMETRE = 0.01


def test_a_dragged_hand_is_where_the_pointer_is_and_the_far_foot_stays(studio: StudioPage) -> None:
    foot = studio.joint("left_foot")
    start = studio.pixel(studio.joint("right_hand"))
    studio.drag(start, (-40, -60), release=False)
    studio.wait("window.poise.state.pose.value.residuals.length > 0")
    studio.page.mouse.up()
    studio.settled()
    reached = studio.pixel(studio.joint("right_hand"))
    assert math.dist(reached, (start[0] - 40, start[1] - 60)) < 3  # pixels
    target = studio.handles()["RightHand"]["position"]
    assert math.dist(studio.joint("right_hand"), target) < CENTIMETRE
    assert math.dist(studio.joint("left_foot"), foot) < CENTIMETRE
    assert studio.ask("state.selected.value") == "RightHand"
    studio.until(lambda: studio.page.get_by_text("All handles met").is_visible(), "the words")


def test_a_click_holds_a_joint_and_keys_change_it(studio: StudioPage) -> None:
    studio.page.mouse.click(*studio.pixel(studio.joint("left_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    before = studio.handles()["LeftHand"]
    assert before["pinned"]
    assert before["hard"]
    studio.page.keyboard.press("h")
    studio.wait("!window.poise.state.scene.value.handles[0].hard")
    studio.page.keyboard.press("ArrowUp")
    studio.wait(f"window.poise.state.scene.value.handles[0].position[1] > {before['position'][1]} + 0.005")
    studio.page.keyboard.press("Delete")
    studio.wait("window.poise.state.scene.value.handles.length === 0")
    studio.page.keyboard.press("Control+z")
    studio.wait("window.poise.state.scene.value.handles.length === 1")


def test_numbers_put_a_handle_to_the_millimetre(studio: StudioPage) -> None:
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    height = studio.page.get_by_label("Y in centimetres")
    height.fill("120.5")
    height.press("Enter")
    studio.until(lambda: abs(studio.joint("right_hand")[1] - 1.205) < 0.002, "the hand at 120.5 cm")


def test_numbers_typed_before_the_server_answers_are_all_taken(studio: StudioPage) -> None:
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    studio.page.evaluate(  # the page renders between them, but no message can arrive
        """async () => {
          for (const [axis, value] of [["X", "-31"], ["Y", "121"], ["Z", "41"]]) {
            const field = document.querySelector(`[aria-label="${axis} in centimetres"]`);
            field.value = value;
            field.dispatchEvent(new InputEvent("input", { bubbles: true }));
            for (let turn = 0; turn < 20; turn += 1) await null;
            field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
            for (let turn = 0; turn < 20; turn += 1) await null;
          }
        }"""
    )
    studio.settled()
    (handle,) = studio.handles().values()
    assert handle["position"] == pytest.approx([-0.31, 1.21, 0.41])


def test_what_cannot_be_reached_is_said(studio: StudioPage) -> None:
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    height = studio.page.get_by_label("Y in centimetres")
    height.fill("400")
    height.press("Enter")
    studio.until(lambda: studio.page.locator(".readout", has_text="out of reach").is_visible(), "the words")
    assert studio.page.locator(".missed-by").inner_text().endswith("off")


def test_a_hand_ahead_of_the_answer_is_not_called_out_of_reach(studio: StudioPage) -> None:
    studio.drag_joint("right_hand", (-30, -50))
    studio.settled()
    shown = studio.page.evaluate(
        """async () => {
          window.poise.state.dragged.value = { id: "RightHand", position: [0, 2.5, 0] };
          for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
          return [document.querySelector(".handles input").value, document.querySelectorAll(".missed").length];
        }"""
    )
    assert shown == ["0.0", 0]


def test_a_slow_movement_changes_the_resolution_once(studio: StudioPage) -> None:
    shares = studio.page.evaluate(
        """() => {
          const pace = new window.poise.stage.pace.constructor(() => {});
          const gaps = [1000, 50, 50, 50, 16, 16, 50, 16, 16];
          let now = 0;
          return gaps.map((gap) => pace.tick((now += gap)));
        }"""
    )
    assert shares == [1, 1, 1, *[0.5] * 6]


@pytest.mark.parametrize("kind", ["From recordings", "Plain IK"])
def test_another_model_keeps_the_handles_and_shows_the_one_before(studio: StudioPage, kind: str) -> None:
    studio.drag_joint("right_hand", (-30, -50))
    studio.settled()
    target = studio.handles()["RightHand"]["position"]
    studio.press(kind, within="Kind of model")
    studio.wait("window.poise.state.ghostOf.value")
    taken = {"From recordings": "gaussian", "Plain IK": "plain"}[kind]
    studio.wait(f"window.poise.state.model.value.kind === '{taken}'")
    studio.settled()
    assert math.dist(studio.joint("right_hand"), target) < CENTIMETRE
    visible = "stage.ghosts.get('before').mesh.visible"
    studio.until(lambda: studio.ask(visible) is (kind == "From recordings"), "the ghost")


def test_the_gizmo_moves_along_an_axis_and_turns(studio: StudioPage) -> None:
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    start = studio.joint("right_hand")
    studio.page.keyboard.press("w")
    studio.drag_gizmo(start, (0.0, 0.45), (0, -40))
    studio.settled()
    moved = studio.handles()["RightHand"]["position"]
    assert moved[1] > start[1] + 2 * CENTIMETRE
    assert (moved[0], moved[2]) == pytest.approx((start[0], start[2]), abs=0.002)
    assert math.dist(studio.joint("right_hand"), moved) < CENTIMETRE
    before = studio.turn("right_hand")
    studio.page.keyboard.press("e")
    studio.drag_gizmo(studio.joint("right_hand"), (0.75, 0.0), (-3, -24))  # a turn that the style has seen
    studio.wait("window.poise.state.scene.value.handles[0].rotation !== null")
    studio.settled()
    held = studio.handles()["RightHand"]["rotation"]
    studio.until(lambda: angle(studio.turn("right_hand"), held) < 0.02, "the hand to be turned")
    assert angle(before, held) > 0.15


def test_undo_and_redo_go_back_and_forth_without_loss(studio: StudioPage) -> None:
    start = studio.joint("right_hand")
    for way in ((-30, -50), (10, 60), (25, -30)):
        studio.drag_joint("right_hand", way)
        studio.settled()
    end = studio.joint("right_hand")
    steps = studio.ask("state.scene.value.undo")
    for left in range(steps - 1, -1, -1):
        studio.page.keyboard.press("Control+z")
        studio.wait(f"window.poise.state.scene.value.undo === {left}")
    studio.until(lambda: math.dist(studio.joint("right_hand"), start) < 1e-4, "the pose of the start")
    assert studio.handles() == {}
    undo = studio.page.get_by_role("button", name="Undo")
    studio.until(undo.is_disabled, "nothing to undo")
    for done in range(1, steps + 1):
        studio.press("Redo")
        studio.wait(f"window.poise.state.scene.value.undo === {done}")
    studio.until(lambda: math.dist(studio.joint("right_hand"), end) < 1e-4, "the pose of the end")


def test_look_mirror_views_and_starting_again(studio: StudioPage) -> None:
    studio.drag_joint("right_hand", (-30, -50))
    studio.settled()
    hand, root = studio.joint("right_hand"), studio.joint("pelvis")
    before = studio.turn("head")
    studio.press("Look at a point")
    studio.wait("window.poise.state.scene.value.lookAt")
    studio.drag(studio.pixel(tuple(studio.ask("state.scene.value.lookAt"))), (60, 10))
    studio.settled()
    studio.until(lambda: angle(studio.turn("head"), before) > 0.05, "the head to turn")
    studio.press("Look at a point")
    studio.wait("!window.poise.state.scene.value.lookAt")
    studio.page.keyboard.press("m")
    studio.wait("window.poise.state.scene.value.handles[0].joint === 'LeftHand'")
    mirrored = (2 * root[0] - hand[0], hand[1], hand[2])
    studio.until(lambda: math.dist(studio.joint("left_hand"), mirrored) < 0.05, "the other hand up there")
    camera = studio.ask("stage.camera.position.toArray()")
    studio.page.keyboard.press("4")
    studio.until(lambda: math.dist(studio.ask("stage.camera.position.toArray()"), camera) > 1.0, "the view")
    studio.press("Reset")
    studio.wait("window.poise.state.scene.value.handles.length === 0")


def test_sliders_blend_styles(studio: StudioPage) -> None:
    studio.drag_joint("right_hand", (-30, -50))
    studio.settled()
    target = studio.handles()["RightHand"]["position"]
    studio.page.get_by_role("button", name="Blend styles").click()
    before = studio.joint("left_hand")
    studio.page.get_by_role("slider", name="walk", exact=True).fill("0.6")
    studio.wait("window.poise.state.scene.value.weights.length === 2")
    studio.settled()
    weights = {weight["model"]: weight["weight"] for weight in studio.ask("state.scene.value.weights")}
    assert weights == {"reach": 1, "walk": 0.6}
    studio.until(lambda: math.dist(studio.joint("left_hand"), before) > 0.005, "another body")
    assert math.dist(studio.joint("right_hand"), target) < CENTIMETRE


def test_the_space_of_a_model_in_time_is_a_cylinder_to_drag_on(studio: StudioPage) -> None:
    studio.press("In time", within="Kind of model")
    studio.wait("window.poise.state.latentMap.value?.cylinder")
    studio.page.get_by_role("switch", name="Keep handles where they are").uncheck(force=True)
    map_ = studio.page.get_by_label("Style space: drag")
    box = map_.bounding_box()
    assert box is not None
    centre = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    before = studio.joint("left_foot")
    studio.drag(centre, (50, 0))
    studio.settled()
    studio.until(
        lambda: math.dist(studio.joint("left_foot"), before) > CENTIMETRE, "another moment of the walk"
    )
    place, pixels = studio.ask("state.latentPlace.value"), map_.evaluate("(map) => map.toDataURL()")
    studio.page.mouse.move(*centre)
    studio.page.mouse.wheel(0, 100)
    studio.until(lambda: map_.evaluate("(map) => map.toDataURL()") != pixels, "the cylinder to turn")
    assert studio.ask("state.latentPlace.value") == place


def test_dragging_in_style_space_moves_the_body(studio: StudioPage) -> None:
    studio.wait("window.poise.state.latentMap.value")
    box = studio.page.get_by_label("Style space: drag").bounding_box()
    assert box is not None
    centre = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    studio.page.mouse.move(*centre)
    studio.wait("window.poise.stage.ghosts.get('hover')?.mesh.visible")
    studio.page.get_by_role("switch", name="Keep handles where they are").uncheck(force=True)
    before = studio.joint("right_hand")
    studio.drag(centre, (60, 30))
    studio.until(lambda: math.dist(studio.joint("right_hand"), before) > CENTIMETRE, "another body")
    studio.settled()
    left, right, bottom, top = studio.ask("state.latentMap.value.extent")
    x, y = studio.ask("state.latentPlace.value")
    share = ((x - left) / (right - left), (top - y) / (top - bottom))
    wanted = (0.5 + 60 / box["width"], 0.5 + 30 / box["height"])
    assert share == pytest.approx(wanted, abs=0.02)


def test_style_space_gives_way_to_handles_that_are_held(studio: StudioPage) -> None:
    studio.wait("window.poise.state.latentMap.value")
    studio.page.mouse.click(*studio.pixel(studio.joint("left_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    held = studio.joint("left_hand")
    box = studio.page.get_by_label("Style space: drag").bounding_box()
    assert box is not None
    studio.drag((box["x"] + 100, box["y"] + 100), (50, 40))
    studio.settled()
    assert math.dist(studio.joint("left_hand"), held) < CENTIMETRE


def test_two_people_do_not_see_each_other(open_page: Callable[[], StudioPage]) -> None:
    one, other = open_page(), open_page()
    before = other.joint("right_hand")
    one.drag_joint("right_hand", (-30, -50))
    one.settled()
    assert len(one.handles()) == 1
    assert other.handles() == {}
    assert other.joint("right_hand") == before


def test_the_page_explains_itself(studio: StudioPage) -> None:
    studio.page.keyboard.press("?")
    studio.until(lambda: studio.page.get_by_role("dialog", name="Help").is_visible(), "the help to open")
    studio.page.keyboard.press("Escape")
    studio.until(lambda: not studio.page.get_by_role("dialog", name="Help").is_visible(), "help to close")
    studio.page.keyboard.press("t")
    assert studio.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_palm_is_a_handle_beside_the_hand(studio: StudioPage) -> None:
    studio.page.get_by_label("Add a handle").select_option("left_palm")
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    (handle,) = studio.handles().values()
    assert (handle["id"], handle["joint"]) == ("left_palm", "LeftHand")
    assert math.hypot(*handle["offset"]) > 0.03
    assert studio.page.get_by_role("button", name="left palm", exact=True).is_visible()
    offered = studio.page.get_by_label("Add a handle").locator("option").all_inner_texts()
    assert "left hand" in offered
    assert "left palm" not in offered
