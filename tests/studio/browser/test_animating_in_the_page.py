"""Keys, playback and files in the page."""

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, WebSocketRoute

import poise
from osc_receiver import Receiver, receiving
from poise.capture.feeds.humanoid import BONES
from poise.performer import act
from poise.skeleton.kinematics import world_transforms
from studio_page import Place, Server, StudioPage, angle


def test_answers_that_come_late_do_not_move_the_playhead(server: Server, chromium_browser: Browser) -> None:
    late: list[Callable[[], None]] | None = None

    def pass_on(page: WebSocketRoute) -> None:
        studio = page.connect_to_server()
        page.on_message(studio.send)
        studio.on_message(
            lambda said: page.send(said) if late is None else late.append(partial(page.send, said))
        )

    context = chromium_browser.new_context(viewport={"width": 1000, "height": 640})
    context.route_web_socket(re.compile("/ws"), pass_on)
    studio = StudioPage(context.new_page(), server.address)
    studio.work_in("Animate")
    studio.page.wait_for_timeout(300)
    late = []
    studio.drag_joint("right_hand", (-20, -40))
    studio.show_frame(40)
    studio.until(lambda: len(late or []) > 3, "answers that wait")
    held, late = late, None
    for send in held:
        send()
    studio.wait("window.poise.state.scene.value.timeline.poses.length === 1")
    assert studio.ask("window.poise.frame.value") == 40
    studio.settled()
    studio.drag_joint("right_hand", (30, 30))
    studio.wait("window.poise.state.scene.value.timeline.poses.length === 2")
    assert [key["frame"] for key in studio.ask("state.scene.value.timeline.poses")] == [0, 40]
    context.close()


def test_three_keys_make_a_motion_that_plays(studio: StudioPage) -> None:
    studio.work_in("Animate")
    wanted = {}
    for frame, way in ((0, (-20, -40)), (20, (-20, -40)), (40, (30, 30))):
        studio.show_frame(frame)
        studio.wait("window.poise.state.progress.value.size === 0")  # a key is solved in the background
        studio.settled()
        studio.drag_joint("right_hand", way)
        studio.wait(f"window.poise.state.scene.value.timeline.poses.some((key) => key.frame === {frame})")
        studio.settled()
        wanted[frame] = studio.handles()["RightHand"]["position"]
    studio.wait("window.poise.state.progress.value.size === 0")
    for frame, position in wanted.items():
        studio.show_frame(frame)
        studio.until(lambda to=position: math.dist(studio.joint("right_hand"), to) < 0.01, f"frame {frame}")
    studio.page.keyboard.press("Space")
    studio.wait("window.poise.state.playing.value")
    seen: set[int] = set()
    studio.until(lambda: seen.add(studio.ask("window.poise.frame.value")) or len(seen) > 3, "frames to pass")
    studio.page.keyboard.press("Space")
    studio.wait("!window.poise.state.playing.value")


def test_a_key_of_another_frame_before_the_hand_is_not_picked(studio: StudioPage) -> None:
    studio.work_in("Animate")
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    studio.show_frame(40)
    studio.page.evaluate(
        """(hand) => {
          const { state, stage } = window.poise;
          const eye = stage.camera.position.toArray();
          const position = hand.map((value, axis) => value + 0.05 * (eye[axis] - value));
          const key = { handle: state.handles.value[0].id, frame: 20, position, rotation: null, ease: 5 };
          const { timeline } = state.scene.value;
          state.scene.value = { ...state.scene.value, timeline: { ...timeline, keys: [key] } };
        }""",
        list(studio.joint("right_hand")),
    )
    studio.drag_joint("right_hand", (20, -20), release=False)
    studio.wait("window.poise.state.dragged.value?.id === window.poise.state.handles.value[0].id")
    studio.page.mouse.up()


def test_the_pose_goes_out_as_bvh_and_glb_and_comes_back(studio: StudioPage, tmp_path: Path) -> None:
    studio.drag_joint("right_hand", (-30, -50))
    studio.settled()
    hand = studio.joint("right_hand")
    for label in ("BVH", "GLB"):
        motion = poise.read(exported(studio, "Export the pose", label, tmp_path))
        positions, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
        np.testing.assert_allclose(positions[0, motion.skeleton.index("right_hand")], hand, atol=0.001)


def test_turns_are_keyed_and_followed(studio: StudioPage) -> None:
    studio.work_in("Animate")
    studio.page.mouse.click(*studio.pixel(studio.joint("right_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    studio.page.keyboard.press("e")
    keys = {}
    for frame, way in ((0, (-12, -45)), (20, (-12, 45))):
        studio.show_frame(frame)
        studio.drag_gizmo(studio.joint("right_hand"), (0.75, 0.0), way)
        studio.wait(f"window.poise.state.scene.value.timeline.poses.some((key) => key.frame === {frame})")
        studio.laid_out()
        keys[frame] = studio.handles()["RightHand"]["rotation"]
    assert angle(keys[0], keys[20]) > 0.3
    for frame, turn in keys.items():
        studio.show_frame(frame)
        studio.until(
            lambda to=turn: angle(studio.turn("right_hand"), to) < 0.03, f"the turn of frame {frame}"
        )


def test_a_path_is_edited_in_space_and_the_frames_around_follow_at_once(studio: StudioPage) -> None:
    studio.work_in("Animate")
    studio.key_by_hand()
    for frame in (0, 20):
        studio.show_frame(frame)
        studio.drag_joint("right_hand", (-15, -20 - frame))
        studio.key_path(frame)
    studio.show_frame(10)

    def key() -> Place:
        x, y, z = studio.ask("state.scene.value.timeline.keys.find(({ frame }) => frame === 20).position")
        return (x, y, z)

    before, between = key(), studio.ask("state.motion.value.path('RightHand')[15]")
    studio.drag(studio.pixel(before), (-40, -25), release=False)
    studio.until(
        lambda: math.dist(studio.ask("state.motion.value.path('RightHand')[15]"), between) > 0.02,
        "the path to follow while the key is dragged",
    )
    assert key() == before  # nothing is taken for good until the hand lets go
    studio.page.mouse.up()
    studio.until(lambda: math.dist(key(), before) > 0.05, "the key to be taken")
    studio.wait("window.poise.state.progress.value.size === 0")
    studio.show_frame(20)
    studio.until(lambda: math.dist(studio.joint("right_hand"), key()) < 0.01, "the hand at the key")


def test_pins_are_ranges_and_the_lane_of_styles_holds_blends(studio: StudioPage) -> None:
    studio.work_in("Animate")
    studio.page.mouse.click(*studio.pixel(studio.joint("left_hand")))
    studio.wait("window.poise.state.scene.value.handles.length === 1")
    studio.show_frame(10)
    studio.press("Pin")
    studio.wait("window.poise.state.scene.value.timeline.pins.length === 1")
    studio.laid_out()
    box = studio.page.get_by_role("slider", name="Frame").bounding_box()
    assert box is not None
    end = (box["x"] + 10 + (box["width"] - 20) * 25 / 89, box["y"] + 24 + 1.5 * 24)
    studio.drag(end, ((box["width"] - 20) * 20 / 89, 0))
    studio.until(
        lambda: studio.ask("state.scene.value.timeline.pins[0].last") == 45, "the pin to last longer"
    )
    assert studio.ask("state.scene.value.timeline.pins[0].first") == 10
    studio.page.get_by_role("button", name="Blend styles").click()
    studio.page.get_by_role("slider", name="walk", exact=True).fill("0.5")
    studio.wait("window.poise.state.scene.value.weights.length === 2")
    studio.show_frame(30)
    studio.page.get_by_role("toolbar", name="Playback and keys").get_by_role("button", name="Style").click()
    studio.wait("window.poise.state.scene.value.timeline.styles.length === 1")
    (style,) = studio.ask("state.scene.value.timeline.styles")
    assert style["frame"] == 30
    assert [weight["model"] for weight in style["weights"]] == ["reach", "walk"]
    studio.wait("window.poise.state.progress.value.size === 0")


def test_pictures_and_films_go_out(studio: StudioPage, tmp_path: Path) -> None:
    studio.work_in("Animate")
    length = studio.page.get_by_role("textbox", name="Length in frames")
    length.fill("6")
    length.press("Enter")
    studio.wait("window.poise.state.scene.value.timeline.frames === 6")
    for frame in (0, 5):
        studio.show_frame(frame)
        studio.drag_joint("right_hand", (-20, -20 - 5 * frame))
        studio.wait(f"window.poise.state.scene.value.timeline.poses.some((key) => key.frame === {frame})")
    studio.wait("window.poise.state.progress.value.size === 0 && window.poise.state.motion.value")
    for group, label, begins in (
        ("Export the pose", "PNG", b"\x89PNG"),
        ("Export the motion", "GIF", b"GIF8"),
        ("Export the motion", "MP4", b"ftyp"),
    ):
        content = exported(studio, group, label, tmp_path).read_bytes()
        assert begins in content[:12]
    with Image.open(tmp_path / "reach.gif") as film:
        assert 2 <= film.n_frames <= 6  # frames that look the same are one
    with Image.open(tmp_path / "reach.png") as picture:
        assert len(set(picture.convert("L").get_flattened_data())) > 20


def test_poses_go_out_live(studio: StudioPage) -> None:
    with receiving() as receiver:
        studio.press("File")
        studio.page.get_by_label("Send to host and port").fill(f"127.0.0.1:{receiver.port}")
        studio.page.get_by_role("switch", name="Send").check(force=True)
        studio.until(lambda: len(receiver.bones()) == len(BONES), "the first pose")
        studio.page.keyboard.press("Escape")
        before = of(receiver)
        studio.drag_joint("right_hand", (-30, -60))
        studio.settled()
        studio.until(
            lambda: math.dist(of(receiver)["RightUpperArm"], before["RightUpperArm"]) > 0.05,
            "the arm to move",
        )
        assert math.dist(of(receiver)["LeftFoot"][3:], before["LeftFoot"][3:]) < 0.2


def test_a_dropped_clip_is_learned_and_used(studio: StudioPage, tmp_path: Path) -> None:
    clip = tmp_path / "my kick.bvh"
    poise.write(act("kick", seconds=1.5, fps=15), clip)
    studio.work_in("Learn")
    studio.page.get_by_label("Choose files").set_input_files(clip)
    studio.press("Learn and use")
    studio.wait("window.poise.state.model.value.name === 'my kick'")
    studio.wait("window.poise.state.learningCurve.value.length > 1")
    studio.work_in("Pose")
    studio.drag_joint("left_hand", (20, -30))
    studio.settled()
    assert math.dist(studio.joint("left_hand"), studio.handles()["LeftHand"]["position"]) < 0.01


def test_a_file_of_no_use_is_refused_in_words(studio: StudioPage, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.bvh"
    nonsense.write_text("HIERARCHY\nROOT", encoding="utf-8")
    studio.work_in("Learn")
    studio.page.get_by_label("Choose files").set_input_files(nonsense)
    studio.press("Learn and use")
    studio.until(lambda: studio.page.get_by_role("alert").is_visible(), "words about it")
    assert "nonsense.bvh" in studio.page.get_by_role("alert").inner_text()


def exported(studio: StudioPage, group: str, label: str, folder: Path) -> Path:
    """A file as the browser saved it."""
    studio.press("File")
    with studio.page.expect_download() as download:
        studio.press(label, within=group)
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    studio.page.keyboard.press("Escape")
    return path


def of(receiver: Receiver) -> dict[str, list[float]]:
    """The last place and turn of every bone."""
    return {name: values for name, *values in receiver.bones()}
