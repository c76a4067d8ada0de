"""Contact sheets, animations and posed figures as files that people look at."""

import re
import sys

import numpy as np
import pytest
from PIL import Image

from bodies import moving, person, stepping
from poise import pictures
from poise.errors import InvalidValueError, MissingExtraError, UnknownNameError, installing
from poise.formats.files import FileAccessError
from poise.motion.markers import Markers
from poise.skeleton import Pose, Skeleton

LEFT, RIGHT = np.array([77, 143, 204]), np.array([237, 138, 64])


def standing_still(frames=40):
    motion = stepping(person(), seconds=1.0)
    roots = np.tile(motion.root_positions[0], (frames, 1))
    return motion.with_frames(roots, np.tile(motion.rotations[:1], (frames, 1, 1)), name="Stands")


def travelling(metres, *, seconds=3.0):
    """A walk of this length along +Z."""
    motion = stepping(person(), seconds=seconds)
    roots = motion.root_positions.copy()
    roots[:, 2] = np.linspace(0.0, metres, len(roots))
    return motion.with_frames(roots, motion.rotations)


def coloured(image, colour):
    """Where a picture has about this hue."""
    pixels = np.asarray(image.convert("RGB")).astype(float)
    unit = pixels / (np.linalg.norm(pixels, axis=-1, keepdims=True) + 1e-9)
    return unit @ (colour / np.linalg.norm(colour)) > 0.992


def bodies(image):
    """How many separate groups of columns hold something that is not grey."""
    used = (np.ptp(np.asarray(image).astype(int), axis=-1) > 25)[45:].any(axis=0)
    return int(np.sum(np.diff(used.astype(int)) == 1)) + int(used[0])


def test_a_contact_sheet_shows_every_pose_once():
    sheet = pictures.contact_sheet(standing_still(), poses=5, layout="row", columns=5, width=1000)
    assert sheet.width == 1000
    assert bodies(sheet) == 5


def test_left_and_right_take_as_much_room():
    sheet = pictures.contact_sheet(standing_still(), poses=3, layout="row")
    left, right = coloured(sheet, LEFT).sum(), coloured(sheet, RIGHT).sum()
    assert left > 2000
    assert 0.4 < left / right < 2.5


def test_long_rows_wrap():
    few, many = (
        pictures.contact_sheet(standing_still(60), poses=n, layout="row", width=700) for n in (5, 30)
    )
    assert many.height > 1.8 * few.height
    forced = pictures.contact_sheet(standing_still(60), poses=6, layout="row", columns=2)
    assert forced.height > 2.2 * forced.width * 0.4


def test_a_walk_keeps_its_places_and_a_stand_is_lined_up():
    walk = travelling(5.0)
    auto = pictures.contact_sheet(walk, poses=7, width=600)
    assert np.array_equal(
        np.asarray(auto), np.asarray(pictures.contact_sheet(walk, poses=7, width=600, layout="travel"))
    )
    still = standing_still()
    lined = pictures.contact_sheet(still, poses=4, width=600)
    assert np.array_equal(
        np.asarray(lined), np.asarray(pictures.contact_sheet(still, poses=4, width=600, layout="row"))
    )


def test_a_sheet_has_no_more_poses_than_frames():
    assert bodies(pictures.contact_sheet(standing_still(3), poses=10, layout="row", columns=3)) == 3


def test_the_title_is_the_clip_s_own_unless_given():
    own = np.asarray(pictures.contact_sheet(standing_still(), poses=2, width=600))
    none = np.asarray(pictures.contact_sheet(standing_still(), poses=2, width=600, title=""))
    long = np.asarray(
        pictures.contact_sheet(standing_still(), poses=2, width=600, title="A very long title " * 30)
    )
    assert own.shape == none.shape == long.shape
    assert (own != none)[:42].any()
    assert not (own != none)[60:].any()
    assert np.array_equal(own[:42, -65:], long[:42, -65:])  # the key is not written over


@pytest.mark.parametrize("wrong", [{"poses": 0}, {"width": 10}, {"layout": "spiral"}])
def test_a_sheet_that_cannot_be_is_refused(wrong):
    with pytest.raises((InvalidValueError, UnknownNameError)):
        pictures.contact_sheet(standing_still(), **wrong)


def test_a_gif_has_the_clip_s_length_and_tells_its_progress(tmp_path):
    told = []
    walk = stepping(person(), seconds=1.2, fps=60.0)
    path = pictures.animate(
        walk,
        tmp_path / "walk.gif",
        size=(160, 200),
        fps=15,
        progress=lambda done, total: told.append((done, total)),
    )
    with Image.open(path) as gif:
        durations = []
        for frame in range(gif.n_frames):
            gif.seek(frame)
            durations.append(gif.info["duration"])
        assert gif.size == (160, 200)
        assert sum(durations) == pytest.approx(1200, abs=20)
    assert told == [(k, 18) for k in range(1, 19)]
    assert 5_000 < path.stat().st_size < 400_000


def test_the_camera_goes_along_with_a_walk_so_that_the_person_stays_in_the_picture(tmp_path):
    walk = travelling(6.0)
    path = pictures.animate(walk, tmp_path / "walk.gif", size=(160, 160), fps=5)
    with Image.open(path) as gif:
        for frame in range(gif.n_frames):
            gif.seek(frame)
            columns = np.flatnonzero((coloured(gif, LEFT) | coloured(gif, RIGHT))[25:].any(axis=0))
            assert 5 < columns.mean() < 155
            assert np.ptp(columns) < 130
            assert abs(columns.mean() - 80) < 25


@pytest.mark.parametrize("encoder", ["av", "cv2"])
def test_an_mp4_can_be_read_back(tmp_path, monkeypatch, encoder):
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
    pytest.importorskip(encoder, reason="PyAV is not installed")
    if encoder == "cv2":
        monkeypatch.setitem(sys.modules, "av", None)
    path = pictures.animate(standing_still(20), tmp_path / "still.mp4", size=(161, 120), fps=20)
    video = cv2.VideoCapture(str(path))
    assert video.get(cv2.CAP_PROP_FRAME_COUNT) == 7
    assert video.get(cv2.CAP_PROP_FPS) == pytest.approx(20)
    there, frame = video.read()
    video.release()
    assert there
    assert frame.shape == (120, 160, 3)
    assert frame.mean() > 150
    assert (b"avc1" in path.read_bytes()) == (encoder == "av")


@pytest.mark.parametrize("name", ["clip.mp4", "clip.gif", "clip.png"])
def test_a_picture_without_a_folder_to_lie_in_is_refused(tmp_path, name):
    with pytest.raises(FileAccessError, match=r"cannot write .*: No such file or directory"):
        pictures.save(standing_still(2), tmp_path / "nowhere" / name)


def test_mp4_without_opencv_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtraError, match=re.escape(installing("video"))):
        pictures.animate(standing_still(2), tmp_path / "still.mp4", size=(64, 64))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [{"fps": 0.0}, {"size": (8, 8)}])
def test_an_animation_that_cannot_be_is_refused(tmp_path, wrong):
    with pytest.raises(InvalidValueError):
        pictures.animate(standing_still(2), tmp_path / "still.gif", **wrong)


def test_save_goes_by_the_extension(tmp_path):
    motion = standing_still()
    sheet = pictures.save(motion, tmp_path / "sheet.png", poses=3, width=600)
    pose = pictures.save(motion[0], tmp_path / "pose.png", size=(200, 220))
    again = pictures.save(pictures.draw_pose(motion[0], size=(200, 220)), tmp_path / "again.png")
    clip = pictures.save(motion, tmp_path / "clip.gif", size=(64, 64), fps=5)
    for path, kind, width in ((sheet, "PNG", 600), (pose, "PNG", 200), (clip, "GIF", 64)):
        with Image.open(path) as image:
            assert (image.format, image.width) == (kind, width)
    assert pose.read_bytes() == again.read_bytes()


def test_save_refuses_what_it_cannot_draw(tmp_path):
    motion = standing_still()
    with pytest.raises(UnknownNameError, match="png"):
        pictures.save(motion, tmp_path / "sheet.bmp")
    with pytest.raises(UnknownNameError, match="png"):
        pictures.save(motion[0], tmp_path / "pose.gif")
    with pytest.raises(UnknownNameError, match="poses"):
        pictures.save(motion, tmp_path / "sheet.png", posses=3)


def test_handles_are_spheres_at_their_targets_joined_to_joints_that_miss_them():
    pose = standing_still()[0]
    plain = np.asarray(pictures.draw_pose(pose)).astype(int)
    target = np.array([0.9, 1.2, 0.4])
    loose = np.asarray(pictures.draw_pose(pose, handles=[target])).astype(int)
    tied = np.asarray(pictures.draw_pose(pose, handles={"left_hand": target})).astype(int)
    assert plain.shape == loose.shape == tied.shape
    magenta = [
        ((p[..., 0] - p[..., 1] > 60) & (p[..., 2] - p[..., 1] > 15)).sum() for p in (plain, loose, tied)
    ]
    assert magenta[0] < 5 < 60 < magenta[1] < magenta[2]


def test_a_handle_needs_three_numbers_and_a_known_joint():
    pose = standing_still()[0]
    with pytest.raises(InvalidValueError, match="three finite numbers"):
        pictures.draw_pose(pose, handles=[[0.0, np.nan, 1.0]])
    with pytest.raises(UnknownNameError, match="left_hand"):
        pictures.draw_pose(pose, handles={"left_hnd": [0.0, 1.0, 0.0]})


def test_panels_share_one_camera_and_ghosts_stand_behind():
    motion = moving(person())
    poses = {"first": motion[0], "second": motion[0], "other": motion[20]}
    page = np.asarray(pictures.draw_panels(poses, size=(200, 240)))
    assert page.shape == (240, 600, 3)
    assert np.array_equal(page[40:, :200], page[40:, 200:400])
    assert not np.array_equal(page[40:, :200], page[40:, 400:])
    ghosted = np.asarray(pictures.draw_panels({"first": motion[0]}, ghosts=[motion[20]], size=(200, 240)))
    plain = np.asarray(pictures.draw_panels({"first": motion[0]}, ghosts=[motion[0]], size=(200, 240)))
    assert (ghosted != plain)[40:].any()
    wrapped = pictures.draw_panels(poses, size=(200, 240), columns=2)
    assert wrapped.size == (400, 480)


def test_nothing_to_draw_is_refused():
    with pytest.raises(InvalidValueError):
        pictures.draw_panels({})
    empty = standing_still().with_frames(np.empty((0, 3)), np.empty((0, len(person()), 4)))
    with pytest.raises(InvalidValueError, match="no frame"):
        pictures.contact_sheet(empty)


def test_any_skeleton_can_be_drawn():
    snake = Skeleton(tuple("abc"), np.array([-1, 0, 1]), np.array([[0.0, 0, 0], [0, 0, 0.3], [0, 0, 0.3]]))
    picture = np.asarray(pictures.draw_pose(Pose.rest(snake, root_position=(0.0, 0.2, 0.0)), size=(120, 120)))
    assert np.ptp(picture.astype(int), axis=(0, 1)).max() > 60


def test_markers_are_dots_and_gaps_are_left_out(tmp_path):
    generator = np.random.default_rng(0)
    points = generator.uniform([-0.4, 0.0, -0.4], [0.4, 1.7, 0.4], size=(8, 3))
    frames = np.tile(points, (20, 1, 1))
    frames[5:10, 2] = np.nan
    frames[12] = np.nan
    labels = ("LFHD", "RFHD", "LSHO", "RSHO", "C7", "LANK", "RANK", "S:LTOE")
    markers = Markers(labels, frames, 100.0, name="Dots")
    sheet = pictures.contact_sheet(markers, poses=4, layout="row", width=800)
    assert coloured(sheet, LEFT)[45:].sum() > 50
    assert coloured(sheet, RIGHT)[45:].sum() > 50
    assert pictures.animate(markers, tmp_path / "dots.gif", size=(96, 96), fps=20).stat().st_size > 500
    with pytest.raises(InvalidValueError, match="no marker"):
        pictures.contact_sheet(Markers(("a",), np.full((3, 1, 3), np.nan), 30.0))
