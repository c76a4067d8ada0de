"""Keys, playback and files in the page."""

import math
from pathlib import Path

import numpy as np

import poise
from poise.performer import act
from poise.skeleton.kinematics import world_transforms
from studio_page import StudioPage


def test_three_keys_make_a_motion_that_plays(studio: StudioPage) -> None:
    studio.work_in("Animate")
    wanted = {}
    for frame, way in ((0, (-20, -40)), (20, (-20, -40)), (40, (30, 30))):
        studio.show_frame(frame)
        studio.drag_joint("right_hand", way)
        studio.wait(f"window.poise.state.scene.value.timeline.keys.some((key) => key.frame === {frame})")
        keys = studio.ask("state.scene.value.timeline.keys")
        wanted[frame] = next(key["position"] for key in keys if key["frame"] == frame)
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


def test_the_pose_goes_out_as_bvh_and_glb_and_comes_back(studio: StudioPage, tmp_path: Path) -> None:
    studio.drag_joint("right_hand", (-30, -50))
    studio.settled()
    hand = studio.joint("right_hand")
    for label in ("BVH", "GLB"):
        studio.press("File")
        with studio.page.expect_download() as download:
            studio.press(label, within="Export the pose")
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        studio.page.keyboard.press("Escape")
        motion = poise.read(path)
        positions, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
        np.testing.assert_allclose(positions[0, motion.skeleton.index("right_hand")], hand, atol=0.001)


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
