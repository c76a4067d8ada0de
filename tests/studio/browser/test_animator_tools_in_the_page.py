"""What an animator does in the page: turn joints, paste poses, move keys, work on ranges, lock contacts, keep poses."""

import math
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

import poise
from poise.geometry import rotations
from poise.performer import act
from studio_page import StudioPage, angle

LEFT, RULER, LANE = 10, 24, 24  # pixels on the timeline


@pytest.fixture
def walking(studio: StudioPage, tmp_path: Path) -> StudioPage:
    """A walk that was opened."""
    path = tmp_path / "walk.bvh"
    poise.write(act("walk", seconds=3.0, fps=20), path)
    studio.work_in("Animate")
    studio.page.get_by_label("Start from a clip").set_input_files(path)
    studio.wait(
        "window.poise.state.motion.value?.frames === 60 && window.poise.state.progress.value.size === 0"
    )
    return studio


def turn(studio: StudioPage, role: str) -> None:
    """Turns a joint by the gizmo's ring."""
    studio.page.keyboard.press("e")
    studio.page.mouse.click(*studio.pixel(studio.joint(role)))
    studio.drag_gizmo(studio.joint(role), (0.75, 0.0), (-12, -45))
    studio.settled()


def on_lane(studio: StudioPage, frame: float, lane: int) -> tuple[float, float]:
    """Where a frame of a lane is on the page; lane -1 is the ruler."""
    box = studio.page.get_by_role("slider", name="Frame").bounding_box()
    assert box is not None
    frames = studio.ask("state.scene.value.timeline.frames")
    x = box["x"] + LEFT + (box["width"] - 2 * LEFT) * frame / (frames - 1)
    return x, box["y"] + RULER + (lane + 0.5) * LANE


def along(studio: StudioPage, first: int, last: int, lane: int = -1) -> None:
    """Drags over the timeline from a frame to another."""
    start, end = on_lane(studio, first, lane), on_lane(studio, last, lane)
    studio.drag(start, (end[0] - start[0], 0))


def head_turns(studio: StudioPage) -> list[float]:
    """How the head is turned in every frame, relative to the neck's frame of the first: w of its world rotation."""
    return studio.ask(
        "Array.from({ length: state.motion.value.frames }, (_, frame) => state.motion.value.at(frame)"
        "[7 * state.body.value.joints.findIndex((joint) => joint.role === 'head') + 3])"
    )


def test_a_joint_is_turned_without_a_handle_and_nothing_else_moves(studio: StudioPage) -> None:
    before, hips, other = studio.turn("left_upper_arm"), studio.joint("pelvis"), studio.joint("right_hand")
    turn(studio, "left_upper_arm")
    studio.until(lambda: angle(studio.turn("left_upper_arm"), before) > 0.2, "the arm to turn")
    assert studio.handles() == {}
    assert (studio.joint("pelvis"), studio.joint("right_hand")) == (hips, other)
    studio.page.keyboard.press("Control+z")
    studio.until(lambda: angle(studio.turn("left_upper_arm"), before) < 1e-3, "the arm as it was")


def test_a_turn_on_the_timeline_is_a_key_that_moves_in_time(walking: StudioPage) -> None:
    studio, before = walking, head_turns(walking)
    studio.show_frame(30)
    turn(studio, "head")
    studio.wait("window.poise.state.scene.value.timeline.poses[0]?.frame === 30")
    studio.until(lambda: abs(head_turns(studio)[30] - before[30]) > 0.01, "the turn in the motion")
    assert head_turns(studio)[15] == before[15]
    along(studio, 30, 40, lane=0)
    studio.wait("window.poise.state.scene.value.timeline.poses[0]?.frame === 40")
    studio.until(lambda: head_turns(studio)[27] == before[27], "the turn to have left")
    assert abs(head_turns(studio)[40] - before[40]) > 0.01
    studio.page.keyboard.press("Delete")
    studio.wait("window.poise.state.scene.value.timeline.poses.length === 0")
    studio.until(lambda: head_turns(studio) == before, "the recording as it was")


def test_poses_are_copied_pasted_and_mirrored(studio: StudioPage) -> None:
    turn(studio, "left_upper_arm")
    studio.page.keyboard.press("Control+c")
    raised, lowered = studio.joint("left_hand"), studio.joint("right_hand")
    studio.page.keyboard.press("Control+z")
    studio.until(lambda: math.dist(studio.joint("left_hand"), raised) > 0.05, "the pose before")
    studio.page.keyboard.press("Control+v")
    studio.until(lambda: math.dist(studio.joint("left_hand"), raised) < 0.01, "the pose that was copied")
    studio.page.keyboard.press("Control+Shift+v")
    studio.until(lambda: abs(studio.joint("right_hand")[1] - raised[1]) < 0.03, "the other arm raised")
    assert abs(studio.joint("left_hand")[1] - lowered[1]) < 0.03


def test_joints_that_are_selected_together_turn_and_move_together(studio: StudioPage) -> None:
    studio.settled()  # a body that still moves is clicked on where it no longer is
    before = {role: studio.turn(role) for role in ("left_upper_arm", "right_upper_arm")}
    studio.page.keyboard.press("e")
    studio.page.mouse.click(*studio.pixel(studio.joint("right_upper_arm")))
    studio.until(
        lambda: studio.ask("state.selectedJoints.value.length") == 1, "the first joint to be selected"
    )
    studio.page.keyboard.down("Shift")
    studio.page.mouse.click(*studio.pixel(studio.joint("left_upper_arm")))
    studio.page.keyboard.up("Shift")
    studio.until(lambda: studio.ask("state.selectedJoints.value.length") == 2, "both joints to be selected")
    studio.drag_gizmo(studio.joint("left_upper_arm"), (0.75, 0.0), (-12, -45))
    studio.settled()
    for role, was in before.items():
        studio.until(lambda role=role, was=was: angle(studio.turn(role), was) > 0.2, f"the {role} to turn")
    studio.page.keyboard.press("Control+z")
    for role, was in before.items():  # else the hands below are clicked on where they no longer are
        studio.until(lambda role=role, was=was: angle(studio.turn(role), was) < 0.01, f"the {role} as before")
    studio.page.keyboard.press("q")
    studio.page.keyboard.press("Escape")
    for role, name in (("left_hand", "LeftHand"), ("right_hand", "RightHand")):
        studio.page.keyboard.down("Shift")
        studio.page.mouse.click(*studio.pixel(studio.joint(role)))
        studio.page.keyboard.up("Shift")
        studio.until(lambda name=name: name in studio.handles(), f"a handle on {name}")
    hands = [studio.joint("left_hand"), studio.joint("right_hand")]
    studio.drag_joint("left_hand", (0, -30))
    studio.settled()
    ways = [
        now[1] - was[1]
        for now, was in zip([studio.joint("left_hand"), studio.joint("right_hand")], hands, strict=True)
    ]
    assert min(ways) > 0.05
    assert ways[0] == pytest.approx(ways[1], abs=0.01)


def test_a_range_is_chosen_played_reversed_and_zoomed_to(walking: StudioPage) -> None:
    studio, before = walking, head_turns(walking)
    studio.page.keyboard.down("Shift")
    along(studio, 20, 40)
    studio.page.keyboard.up("Shift")
    assert studio.ask("state.range.value") == [20, 40]
    studio.page.keyboard.press("Space")
    seen: set[int] = set()
    studio.until(lambda: seen.add(studio.ask("window.poise.frame.value")) or len(seen) > 3, "frames to pass")
    studio.page.keyboard.press("Space")
    assert all(20 <= frame <= 40 for frame in seen - {0})
    studio.press("Reverse range")
    studio.until(lambda: head_turns(studio) != before, "the range reversed")
    assert head_turns(studio)[:20] == before[:20]
    studio.page.mouse.move(*on_lane(studio, 30, -1))
    studio.page.mouse.wheel(0, -300)
    studio.until(lambda: studio.page.get_by_role("button", name="Show all frames").is_visible(), "the zoom")
    studio.press("Show all frames")
    studio.press("Clear the range")
    studio.wait("!window.poise.state.range.value")


def boxed(studio: StudioPage, corners: list[tuple[float, float]], key: str) -> None:
    """Draws a box between two corners while a key is held."""
    studio.page.keyboard.down(key)
    studio.drag(corners[0], (corners[1][0] - corners[0][0], corners[1][1] - corners[0][1]))
    studio.page.keyboard.up(key)


def around(studio: StudioPage, *roles: str) -> list[tuple[float, float]]:
    """The corners of a box about joints."""
    places = [studio.pixel(studio.joint(role)) for role in roles]
    return [
        tuple(pick(values) + by for values in zip(*places, strict=True))
        for pick, by in ((min, -25), (max, 25))
    ]


def test_a_box_selects_handles_or_joints(studio: StudioPage) -> None:
    camera = studio.ask("stage.camera.position.toArray()")
    studio.page.keyboard.press("2")
    for role in ("left_hand", "right_hand", "head"):
        studio.page.mouse.click(*studio.pixel(studio.joint(role)))
    studio.wait("window.poise.state.handles.value.length === 3")
    studio.page.keyboard.press("Escape")
    boxed(studio, around(studio, "left_hand", "right_hand"), "Shift")
    assert set(studio.ask("state.selectedJoints.value")) == {"LeftHand", "RightHand"}
    boxed(studio, around(studio, "head"), "Shift")
    assert set(studio.ask("state.selectedJoints.value")) == {"LeftHand", "RightHand", "Head"}
    studio.page.keyboard.press("e")
    studio.page.keyboard.press("b")
    corners = around(studio, "left_shin", "left_foot")
    studio.drag(corners[0], (corners[1][0] - corners[0][0], corners[1][1] - corners[0][1]))
    chosen = studio.ask("state.selectedJoints.value")
    assert {"LeftLeg", "LeftFoot"} <= set(chosen)
    assert "RightLeg" not in chosen
    studio.page.keyboard.press("1")
    assert studio.ask("stage.camera.position.toArray()") == pytest.approx(camera)  # the view did not turn


def test_a_box_on_the_timeline_selects_keys_of_its_lanes(studio: StudioPage) -> None:
    studio.work_in("Animate")
    studio.page.keyboard.press("2")
    for role in ("right_hand", "left_hand"):
        studio.page.mouse.click(*studio.pixel(studio.joint(role)))
    studio.wait("window.poise.state.handles.value.length === 2")
    boxed(studio, around(studio, "left_hand", "right_hand"), "Shift")
    for frame, keys in ((0, 2), (30, 4)):
        studio.show_frame(frame)
        studio.page.keyboard.press("k")
        studio.wait(f"window.poise.state.scene.value.timeline.keys.length === {keys}")
    studio.laid_out()
    boxed(studio, [on_lane(studio, 20, 1), on_lane(studio, 40, 2)], "Shift")
    both = {("RightHand", 30), ("LeftHand", 30)}
    studio.until(lambda: chosen_keys(studio) == both, "both keys of frame 30")
    assert studio.ask("state.range.value") is None
    studio.page.mouse.click(*on_lane(studio, 60, 2))
    studio.until(lambda: not chosen_keys(studio), "nothing to be selected")
    boxed(studio, [on_lane(studio, 50, 1), on_lane(studio, -2, 1)], "Shift")
    row = {("RightHand", 0), ("RightHand", 30)}
    studio.until(lambda: chosen_keys(studio) == row, "the keys of one lane")


def chosen_keys(studio: StudioPage) -> set[tuple[str, int]]:
    return {(key["handle"], key["frame"]) for key in studio.ask("state.selectedKeys.value")}


def test_a_contact_is_found_and_locked(walking: StudioPage) -> None:
    studio = walking
    studio.wait("window.poise.state.contacts.value.some(({ part }) => part === 'left_foot')")
    contact = studio.ask("state.contacts.value.find(({ part }) => part === 'left_foot')")
    middle = (contact["first"] + contact["last"]) // 2
    studio.page.mouse.click(*on_lane(studio, middle, 0))
    studio.press("Lock contact")
    studio.wait("window.poise.state.scene.value.timeline.pins.length > 0")
    joints = {pin["handle"] for pin in studio.ask("state.scene.value.timeline.pins")}
    assert "LeftFoot" in joints
    studio.page.keyboard.press("Control+z")
    studio.wait("window.poise.state.scene.value.timeline.pins.length === 0")


def test_keys_are_eased_and_pulled_in_the_graph(studio: StudioPage) -> None:
    studio.work_in("Animate")
    studio.key_by_hand()
    for frame, way in ((0, (-20, -40)), (40, (30, 30))):
        studio.show_frame(frame)
        studio.drag_joint("right_hand", way)
        studio.key_path(frame)
    studio.wait("window.poise.state.progress.value.size === 0")
    before = studio.ask("state.motion.value.path('RightHand')[10]")
    studio.page.mouse.click(*on_lane(studio, 0, 1))
    studio.page.get_by_label("Easing to the next key").select_option("in")
    studio.until(lambda: studio.ask("state.scene.value.timeline.keys[0].easing") == "in", "the easing")
    studio.until(
        lambda: math.dist(studio.ask("state.motion.value.path('RightHand')[10]"), before) > 0.01,
        "the hand to leave more slowly",
    )
    studio.wait("window.poise.state.progress.value.size === 0")
    studio.press("Graph")
    graph = studio.page.get_by_label("Graph: drag keys")
    box = graph.bounding_box()
    assert box is not None
    key = studio.ask("state.scene.value.timeline.keys[1]")
    values = studio.ask("state.motion.value.path('RightHand').flat()")
    low, high = min(values), max(values)
    share = (key["position"][1] - low) / (high - low)
    at = (on_graph(box, 40), box["y"] + box["height"] - 12 - share * (box["height"] - RULER - 24))
    studio.drag(at, (0, -25))
    studio.until(
        lambda: studio.ask("state.scene.value.timeline.keys[1].position[1]") > key["position"][1] + 0.01,
        "the key to be higher",
    )
    studio.wait("window.poise.state.progress.value.size === 0")


def test_a_tangent_is_pulled_in_the_graph_and_made_flat(studio: StudioPage) -> None:
    studio.work_in("Animate")
    studio.key_by_hand()
    for frame, way in ((0, (-20, -40)), (45, (30, 30)), (89, (-20, -30))):
        studio.show_frame(frame)
        studio.settled()
        studio.drag_joint("right_hand", way)
        studio.key_path(frame)
    studio.wait("window.poise.state.progress.value.size === 0")  # the path below is of the solved motion
    studio.press("Graph")

    def key_at() -> tuple[float, float]:
        box, path = graph_box(studio), studio.ask("state.motion.value.path('RightHand')")
        low, high = bounds(path)
        tall = box["height"] - RULER - 24
        return on_graph(box, 45), box["y"] + box["height"] - 12 - (path[45][1] - low) / (high - low) * tall

    select_in_graph(studio, key_at)
    box, at, path = graph_box(studio), key_at(), studio.ask("state.motion.value.path('RightHand')")
    (low, high), tall = bounds(path), box["height"] - RULER - 24
    rise = (path[46][1] - path[44][1]) / 2 / (high - low) * tall  # pixels a frame
    end = at[0] + 44, at[1] - 44 * rise * 89 / (box["width"] - 2 * LEFT)
    studio.drag(end, (0, -30))
    studio.wait("window.poise.state.scene.value.timeline.keys[1].tangent")
    tangent = studio.ask("state.scene.value.timeline.keys[1].tangent")
    assert tangent[1] > 30 * (path[46][1] - path[44][1]) / 2 + 0.1
    studio.until(
        lambda: studio.ask("state.motion.value.path('RightHand')[47][1]") > path[47][1] + 0.01,
        "the hand to rise after the key",
    )
    studio.page.get_by_label("Tangent of the curve").select_option("flat")
    studio.until(lambda: studio.ask("state.scene.value.timeline.keys[1].tangent") == [0, 0, 0], "a flat key")


def test_a_tangent_of_turns_is_pulled_in_the_graph(studio: StudioPage) -> None:
    studio.work_in("Animate")
    studio.page.mouse.click(*studio.pixel(studio.joint("head")))
    studio.wait("window.poise.state.handles.value.length === 1")
    studio.page.keyboard.press("e")
    studio.key_by_hand()
    for frame, way in ((0, (0, 0)), (45, (-12, -45)), (89, (12, 45))):
        studio.show_frame(frame)
        studio.settled()
        studio.drag_gizmo(studio.joint("head"), (0.75, 0.0), way)
        studio.key_path(frame)
    studio.press("Graph")
    studio.page.get_by_role("button", name="Turn", exact=True).click()
    for axis in ("Y", "Z"):
        studio.page.get_by_role("group", name="Curves").get_by_label(axis).uncheck()
    rolls = head_rolls(studio, of_world=True)
    middle, half = (min(rolls) + max(rolls)) / 2, max((max(rolls) - min(rolls)) / 2, 5.0)

    def key_at() -> tuple[float, float]:
        box = graph_box(studio)
        share = (rolls[45] - middle + half) / (2 * half)
        return on_graph(box, 45), box["y"] + box["height"] - 12 - share * (box["height"] - RULER - 24)

    select_in_graph(studio, key_at)
    box, at = graph_box(studio), key_at()  # the tools of the key have moved it
    rise = (rolls[46] - rolls[44]) / 2 / (2 * half) * (box["height"] - RULER - 24)  # pixels a frame
    studio.drag((at[0] + 44, at[1] - 44 * rise * 89 / (box["width"] - 2 * LEFT)), (0, -30))
    studio.wait("window.poise.state.scene.value.timeline.keys[1].spin")
    studio.until(
        lambda: head_rolls(studio, of_world=True)[47] > rolls[47] + 0.5,
        "the head to turn further after the key",
    )
    studio.page.get_by_label("Tangent of the curve").select_option("flat")
    studio.until(lambda: studio.ask("state.scene.value.timeline.keys[1].spin") == [0, 0, 0], "a flat key")


def test_a_joint_is_turned_by_its_curve(walking: StudioPage) -> None:
    studio = walking
    studio.show_frame(30)
    turn(studio, "head")
    studio.wait("window.poise.state.scene.value.timeline.poses.length === 1")
    studio.laid_out()
    studio.press("Graph")
    studio.page.get_by_role("button", name="Turn", exact=True).click()
    for axis in ("Y", "Z"):
        studio.page.get_by_role("group", name="Curves").get_by_label(axis).uncheck()
    before, steps = head_turns(studio), studio.ask("state.scene.value.undo")
    values = head_rolls(studio)
    box, (low, high) = graph_box(studio), (min(values), max(values))
    middle, half = (low + high) / 2, max((high - low) / 2, 5.0)
    share = (values[30] - middle + half) / (2 * half)
    x = box["x"] + LEFT + (box["width"] - 2 * LEFT) * 30 / 59
    studio.drag((x, box["y"] + box["height"] - 12 - share * (box["height"] - RULER - 24)), (0, 20))
    studio.wait(f"window.poise.state.scene.value.undo === {steps + 1}")
    studio.until(lambda: abs(head_turns(studio)[30] - before[30]) > 1e-3, "the head to turn")
    after = head_turns(studio)
    assert after[:17] == before[:17]
    assert after[43:] == before[43:]


def head_rolls(studio: StudioPage, *, of_world: bool = False) -> list[float]:
    """How the head is turned about X against its parent, or the world, in every frame, in degrees."""
    both = studio.ask(
        "(([head, motion]) => Array.from({ length: motion.frames }, (_, frame) =>"
        " [state.body.value.joints[head].parent, head].map((joint) =>"
        " [...motion.at(frame).slice(7 * joint + 3, 7 * joint + 7)])))"
        "([state.body.value.joints.findIndex((joint) => joint.role === 'head'), state.motion.value])"
    )
    still = np.array([1.0, 0.0, 0.0, 0.0])
    turns = [
        rotations.multiply(still if of_world else rotations.conjugate(np.array(neck)), np.array(head))
        for neck, head in both
    ]
    return [math.degrees(math.atan2(2 * (y * z + w * x), 1 - 2 * (x * x + y * y))) for w, x, y, z in turns]


def graph_box(studio: StudioPage) -> dict[str, float]:
    box = studio.page.get_by_label("Graph: drag keys").bounding_box()
    assert box is not None
    return {**box}


def bounds(path: list[list[float]]) -> tuple[float, float]:
    values = [value for place in path for value in place]
    return min(values), max(values)


def select_in_graph(studio: StudioPage, key_at: Callable[[], tuple[float, float]]) -> None:
    """Clicks a key where it is now, until its tools are there: lanes that come late move the graph, and so do tools."""

    def selected() -> bool:
        if studio.ask("state.selectedKeys.value.length") != 1:
            studio.page.mouse.click(*key_at())
            studio.page.wait_for_timeout(500)
        return studio.page.get_by_label("Tangent of the curve").count() == 1

    studio.until(selected, "the key to be selected")


def on_graph(box: object, frame: int) -> float:
    assert isinstance(box, dict)
    return float(box["x"]) + LEFT + (float(box["width"]) - 2 * LEFT) * frame / 89


def test_the_library_keeps_finds_and_blends_poses(studio: StudioPage) -> None:
    turn(studio, "left_upper_arm")
    raised = studio.joint("left_hand")
    studio.page.get_by_role("button", name="Poses", exact=True).click()
    studio.page.get_by_label("Name of the pose").fill("arm up")
    studio.press("Keep")
    studio.wait("window.poise.state.poses.value?.poses.length === 1")
    studio.page.keyboard.press("Control+z")
    studio.until(lambda: math.dist(studio.joint("left_hand"), raised) > 0.05, "the pose before")
    start = studio.joint("left_hand")
    studio.page.get_by_label("Find a pose").fill("nothing like it")
    kept = studio.page.get_by_role("button", name="Take pose arm up")
    studio.until(lambda: kept.count() == 0, "nothing to be found")
    studio.page.get_by_label("Find a pose").fill("ARM")
    studio.press("Take pose arm up")
    studio.until(lambda: math.dist(studio.joint("left_hand"), raised) < 0.01, "the pose that was kept")
    studio.page.get_by_role("slider", name="Amount").fill("0.5")
    studio.until(
        lambda: 0.02 < math.dist(studio.joint("left_hand"), start) < math.dist(raised, start) - 0.02,
        "half of it",
    )
    with studio.page.expect_download() as download:
        studio.press("Save poses")
    assert download.value.suggested_filename == "library.poses"
    studio.press("Remove pose arm up")
    studio.wait("window.poise.state.poses.value?.poses.length === 0")


def test_views_without_perspective_frame_and_snap(studio: StudioPage) -> None:
    def width() -> float:
        left, right = studio.pixel((-0.5, 0.9, 0.0)), studio.pixel((0.5, 0.9, 0.0))
        return right[0] - left[0]

    studio.page.keyboard.press("2")
    before = width()
    studio.page.keyboard.press("0")
    studio.wait("window.poise.stage.isFlat")
    assert width() == pytest.approx(before, rel=0.02)
    studio.page.keyboard.press("2")
    near, far = studio.pixel((0.5, 0.9, 0.5)), studio.pixel((0.5, 0.9, -0.5))
    assert math.dist(near, far) < 2
    studio.page.keyboard.press("n")
    studio.drag_joint("right_hand", (-33, -47))
    studio.settled()
    for value in studio.handles()["RightHand"]["position"]:
        assert value / 0.05 == pytest.approx(round(value / 0.05), abs=1e-6)
    studio.page.keyboard.press("f")
    middle = studio.page.evaluate("window.poise.stage.controls.target.toArray()")
    assert math.dist(middle, studio.joint("right_hand")) < 0.05
    studio.press("View options")
    studio.page.get_by_role("dialog", name="View options").get_by_role("button", name="Maya").click()
    studio.page.keyboard.press("Escape")
    camera = studio.ask("stage.camera.position.toArray()")
    studio.drag((200, 300), (60, 0))
    assert studio.ask("stage.camera.position.toArray()") == camera
    studio.page.keyboard.down("Alt")
    studio.drag((200, 300), (60, 0))
    studio.page.keyboard.up("Alt")
    assert math.dist(studio.ask("stage.camera.position.toArray()"), camera) > 0.1


def test_a_hand_that_is_dragged_over_a_prop_snaps_to_its_surface(studio: StudioPage) -> None:
    studio.page.get_by_role("button", name="Props", exact=True).click()
    studio.page.get_by_label("Add a prop").select_option("box")
    studio.wait("window.poise.state.scene.value.props.length === 1")
    studio.page.keyboard.press("q")
    studio.page.keyboard.press("n")
    x, _, z = studio.ask("state.scene.value.props[0].position")
    start, top = studio.pixel(studio.joint("left_hand")), studio.pixel((x + 0.1, 0.5, z - 0.1))
    studio.drag(start, (top[0] - start[0], top[1] - start[1]))
    studio.settled()
    hand = studio.ask("state.scene.value.handles[0].position")
    assert hand[1] == pytest.approx(0.53, abs=1e-3)  # the box's height, and a hand's thickness
    assert (hand[0], hand[2]) == pytest.approx((x + 0.1, z - 0.1), abs=0.03)
    studio.page.keyboard.press("n")


def test_a_handle_is_glued_to_a_prop_that_is_moved(studio: StudioPage) -> None:
    studio.page.mouse.click(*studio.pixel(studio.joint("left_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    studio.page.get_by_role("button", name="Props", exact=True).click()
    studio.page.get_by_label("Add a prop").select_option("box")
    studio.wait("window.poise.state.scene.value.props.length === 1")
    studio.page.get_by_role("button", name="left hand", exact=True).click()
    studio.page.get_by_label("Glued to").select_option("box")
    studio.wait("window.poise.state.scene.value.handles[0].glued === 'box'")
    start = studio.joint("left_hand")
    studio.page.get_by_role("button", name="box", exact=True).click()
    height = studio.page.get_by_label("Position Y in centimetres")
    height.fill("10")
    height.press("Enter")
    studio.until(lambda: abs(studio.joint("left_hand")[1] - start[1] - 0.1) < 0.01, "the hand to go along")
    studio.wait("window.poise.stage.props.group.children.length === 1")
    studio.work_in("Animate")
    x, _, z = studio.ask("state.scene.value.props[0].position")
    studio.page.mouse.click(*studio.pixel((x + 0.1, 0.2, z + 0.25)))  # the box, on the stage
    studio.wait("window.poise.state.selectedProp.value === 'box'")
    height.fill("15")
    height.press("Enter")
    studio.wait("window.poise.state.scene.value.timeline.poses.length === 1")
    assert studio.ask("state.scene.value.timeline.poses[0].handles") == ["LeftHand"]
    assert abs(studio.joint("left_hand")[1] - start[1] - 0.15) < 2e-3
    studio.press("Undo")
    studio.wait("window.poise.state.scene.value.timeline.poses.length === 0")
    assert abs(studio.ask("state.scene.value.props[0].position[1]") - 0.1) < 1e-6
    studio.press("Remove box")
    studio.wait("window.poise.state.scene.value.props.length === 0")


def test_a_video_to_work_from_follows_the_playhead(studio: StudioPage, tmp_path: Path) -> None:
    path = tmp_path / "reference.webm"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"VP80"), 10.0, (64, 96))
    for frame in range(20):
        writer.write(np.full((96, 64, 3), 12 * frame, np.uint8))
    writer.release()
    studio.page.get_by_role("button", name="Props", exact=True).click()
    studio.page.get_by_label("GLB, picture or video").set_input_files(path)
    studio.wait("window.poise.state.scene.value.props[0]?.kind === 'video'")
    assert studio.ask("state.scene.value.props[0].size")[:2] == pytest.approx([1.2, 1.8])
    studio.wait("window.poise.stage.props.videos.size === 1")
    studio.work_in("Animate")
    studio.show_frame(30)
    moment = "[...stage.props.videos.values()][0].image.currentTime"
    studio.until(lambda: abs(studio.ask(moment) - 1.0) < 1e-3, "the video to be at one second")


def test_a_deleted_handle_is_not_painted(studio: StudioPage) -> None:
    at = studio.pixel(studio.joint("left_hand"))
    studio.page.mouse.click(*at)
    studio.page.mouse.move(at[0] - 200, at[1])
    studio.until(lambda: painted(studio, at), "the handle to be painted")
    studio.page.keyboard.press("Delete")
    studio.until(lambda: not painted(studio, at), "nothing to be painted there")


def painted(studio: StudioPage, at: tuple[float, float]) -> bool:
    """Whether there is a mark over the body at a place of the page."""
    alpha = studio.page.evaluate(
        """([x, y]) => {
          const paper = document.querySelector(".stage-paper");
          const box = paper.getBoundingClientRect();
          const ratio = paper.width / box.width;
          return paper.getContext("2d").getImageData((x - box.left) * ratio, (y - box.top) * ratio, 1, 1).data[3];
        }""",
        list(at),
    )
    return bool(alpha)


def test_the_tour_goes_step_by_step_and_can_be_skipped(studio: StudioPage) -> None:
    tour = studio.page.get_by_role("note", name="Tour")
    studio.until(lambda: "1 of 5" in tour.inner_text(), "the first step")
    studio.drag_joint("right_hand", (-20, -30))
    studio.settled()
    studio.until(lambda: "2 of 5" in tour.inner_text(), "the next step")
    tour.get_by_role("button", name="Next").click()
    studio.until(lambda: "3 of 5" in tour.inner_text(), "the step after it")
    tour.get_by_role("button", name="Skip the tour").click()
    studio.until(lambda: tour.count() == 0, "the tour to be gone")


def test_fingers_drag_a_hand_and_two_of_them_turn_the_view(studio: StudioPage) -> None:
    start = studio.joint("right_hand")
    x, y = studio.pixel(start)
    touch(studio, [[(x, y)], [(x - 20, y - 20)], [(x - 40, y - 50)]])
    studio.settled()
    reached = studio.pixel(studio.joint("right_hand"))
    assert math.dist(reached, (x - 40, y - 50)) < 4
    camera, handles = studio.ask("stage.camera.position.toArray()"), studio.handles()
    x, y = studio.pixel(studio.joint("chest"))
    touch(studio, [[(x, y)], [(x, y), (x + 60, y)], [(x + 30, y), (x + 120, y)], [(x + 60, y), (x + 180, y)]])
    assert math.dist(studio.ask("stage.camera.position.toArray()"), camera) > 0.1
    assert studio.handles() == handles


def touch(studio: StudioPage, moments: list[list[tuple[float, float]]]) -> None:
    """Fingers on the page, moment by moment, as the browser reports them."""
    client = studio.page.context.new_cdp_session(studio.page)
    down = 0
    for places in moments:
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        kind = "touchStart" if len(points) > down else "touchMove"
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        down = len(points)
        studio.page.wait_for_timeout(50)
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    client.detach()
