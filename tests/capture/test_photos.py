"""Posing from photos: files and their mistakes, cameras known and estimated, what is saved."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from made_once import learned
from poise import performer
from poise.apps import image
from poise.capture import photos
from poise.capture.photos import (
    Shot,
    check_points,
    point_from_text,
    read_photo,
    read_views,
)
from poise.errors import InvalidValueError, ParseError, PoiseError, UnknownNameError
from poise.formats.camera_file import focal_from_fov, read_camera
from poise.geometry.cameras import Camera
from poise.motion.motion import Motion
from poise.pictures.overlay import draw_overlay, render_photo
from poise.priors.abilities import standing_pose
from poise.priors.style.prior import StylePrior
from poise.skeleton.kinematics import world_transforms
from poise.solvers.bearing import below
from poise.vision.sources import read_picture

SIZE = (480, 360)
ROLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
CAMERA = "size = [480, 360]\nfov = 40\nposition = [1.5, 1.4, 3.5]\ntarget = [0.0, 0.9, 0.0]\n"


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=3.0, fps=30, seed=1)


@pytest.fixture(scope="module")
def style(walk: Motion) -> StylePrior:
    return learned(StylePrior, [walk], dimensions=3, active=40)


def _shot(walk: Motion, frame: int = 40, *, known: bool = True) -> tuple[Shot, np.ndarray]:
    positions, _ = world_transforms(walk.skeleton, walk.root_positions[frame], walk.rotations[frame])
    x, z = positions[0, 0], positions[0, 2]
    camera = Camera.looking_at((x, 0.9, z), eye=(x + 1.5, 1.4, z + 3.6), size=SIZE, field_of_view=0.7)
    pixels = {role: camera.project(positions[walk.skeleton.index(role)]) for role in ROLES}
    return Shot(render_photo(walk[frame], camera, SIZE), pixels, camera if known else None), positions


def test_a_known_camera_gives_the_pose_where_it_is(style: StylePrior, walk: Motion) -> None:
    shot, positions = _shot(walk)
    found = photos.pose_from_shots(style, [shot])
    assert 1 <= len(found) <= 3
    assert np.linalg.norm(found[0].space.forward(found[0].q)[0] - positions, axis=1).mean() < 0.08


def test_an_unknown_camera_is_estimated_and_the_body_stands_on_the_floor(
    style: StylePrior, walk: Motion
) -> None:
    shot, positions = _shot(walk, known=False)
    best = photos.pose_from_shots(style, [shot], fov=float(np.degrees(0.7)))[0]
    body = best.space.forward(best.q)[0]
    assert body[:, 1].min() == pytest.approx(0.0, abs=1e-9)
    assert np.hypot(best.q[0], best.q[2]) < 1e-9
    assert best.distances.max() < 2.0
    distance = np.linalg.norm(best.views[0].camera.centre - body.mean(axis=0))
    assert 2.5 < distance < 6.0
    spread = np.linalg.norm(positions - positions.mean(axis=0), axis=1).mean()
    assert np.linalg.norm(body - body.mean(axis=0), axis=1).mean() == pytest.approx(spread, rel=0.15)


def test_the_mannequin_is_drawn_where_its_joints_are(walk: Motion) -> None:
    shot, _ = _shot(walk)
    pixels = np.asarray(shot.photo).astype(float)
    column, row = np.rint(shot.points["head"]).astype(int)
    assert np.abs(pixels[row, column] - pixels[2, 2]).sum() > 60
    picture = draw_overlay(shot.photo, shot.camera, shot.points, [walk[40], walk[41]])
    assert picture.height == 640
    assert picture.width > 1500


def test_alternatives_are_saved_with_their_numbers(style: StylePrior, walk: Motion, tmp_path: Path) -> None:
    shot, _ = _shot(walk)
    found = photos.pose_from_shots(style, [shot], alternatives=2)
    saved = image.save_alternatives(found, tmp_path / "pose.bvh")
    assert [path.name for path in saved] == ["pose.bvh", "pose-2.bvh"][: len(found)]
    assert image.save_overlay(shot, found, tmp_path / "o" / "check.png").exists()
    assert "points within" in image.described(found[0], found[0])
    assert set(image.report(found)["alternatives"][0]["points_px"]) == set(ROLES)


@pytest.mark.parametrize("part", [8, 4])  # where the camera's tags are, and how many
def test_a_photo_with_damaged_exif_is_read(tmp_path: Path, part: int) -> None:
    photo = Image.new("RGB", (40, 30))
    exif = photo.getexif()
    exif.get_ifd(0x8769)[0xA405] = 28
    photo.save(tmp_path / "a.jpg", exif=exif)
    content = (tmp_path / "a.jpg").read_bytes()
    place = content.index(b"\x87\x69") + part
    (tmp_path / "a.jpg").write_bytes(content[:place] + b"\x7f\xff\xff\xff" + content[place + 4 :])
    assert read_photo(tmp_path / "a.jpg").size == (40, 30)


def test_focal_lengths_come_from_exif(tmp_path: Path) -> None:
    photo = Image.new("RGB", (400, 300))
    exif = photo.getexif()
    exif.get_ifd(0x8769)[0xA405] = 28
    photo.save(tmp_path / "a.jpg", exif=exif)
    shot = Shot(read_photo(tmp_path / "a.jpg"), {})
    assert photos.focal_of(shot, None) == pytest.approx(28 / 36 * 400)
    assert photos.focal_of(shot, 40.0) == pytest.approx(focal_from_fov(40.0, 300))
    Image.new("RGB", (400, 300)).save(tmp_path / "b.jpg")
    assert photos.focal_of(Shot(read_photo(tmp_path / "b.jpg"), {}), None) == pytest.approx(
        focal_from_fov(50.0, 300)
    )


def test_cameras_are_read_in_both_forms(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(CAMERA)
    aimed = read_camera(tmp_path / "a.toml")
    np.testing.assert_allclose(aimed.project(np.array([0.0, 0.9, 0.0])), [240.0, 180.0], atol=1e-9)
    rows = ", ".join(str([float(v) for v in row]) for row in aimed.rotation)
    moved = [float(v) for v in aimed.translation]
    text = (
        f'{{"size": [480, 360], "focal": {aimed.focal_length}, "rotation": [{rows}], "translation": {moved}}}'
    )
    (tmp_path / "b.json").write_text(text)
    np.testing.assert_allclose(read_camera(tmp_path / "b.json").matrix, aimed.matrix)


def test_views_are_read_with_photos_and_cameras(style: StylePrior, walk: Motion, tmp_path: Path) -> None:
    shot, _ = _shot(walk)
    shot.photo.save(tmp_path / "a.png")
    (tmp_path / "cam.toml").write_text(CAMERA)
    points = ", ".join(f"{name} = [{x:.1f}, {y:.1f}]" for name, (x, y) in shot.points.items())
    (tmp_path / "views.toml").write_text(
        f'[[views]]\nphoto = "a.png"\ncamera = "cam.toml"\npoints = {{ {points} }}\n'
    )
    (read,) = read_views(tmp_path / "views.toml")
    assert set(read.points) == set(ROLES)
    with pytest.raises(InvalidValueError, match="several photos need a camera file each"):
        photos.pose_from_shots(style, [read, Shot(read.photo, read.points)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fov = 40", "size: is missing"),
        (CAMERA.replace("fov = 40", "fov = 400"), "fov: expected a number from 1 to 170; got 400"),
        (CAMERA.replace("480", "0"), "size: expected 1 to 20000 pixels"),
        (CAMERA.replace("target", "targte"), "targte: no key 'targte'; did you mean target"),
        (CAMERA + "zoom = 2\n", "zoom: no key 'zoom'"),
        (
            "size = [4, 4]\nfov = 40\ntranslation = [0, 0, 0]\nrotation = [[1, 0, 0], [0, 1, 0], [0, 0, 2]]",
            "rotation: not a rotation",
        ),
        ("size = [4, 4]\nfov = 40\nrotation = [[1, 0, 0]]", "rotation: expected 3 rows of 3 finite numbers"),
    ],
)
def test_bad_cameras_are_told(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "cam.toml").write_text(text)
    with pytest.raises(ParseError, match=message):
        read_camera(tmp_path / "cam.toml")


def test_bad_camera_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ParseError, match="not JSON"):
        read_camera(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(ParseError, match="expected a table"):
        read_camera(tmp_path / "a.json")
    (tmp_path / "v.toml").write_text("x = 1")
    with pytest.raises(ParseError, match="x: no key 'x'; valid: views"):
        read_views(tmp_path / "v.toml")
    (tmp_path / "v.toml").write_text("views = []")
    with pytest.raises(ParseError, match="views: no photo is listed"):
        read_views(tmp_path / "v.toml")


def test_what_is_no_photo_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_text("HIERARCHY\nROOT Hips\n")
    with pytest.raises(ParseError, match=r"a.jpg: not a photo that can be read"):
        read_photo(tmp_path / "a.jpg")
    Image.effect_noise((200, 200), 50).save(tmp_path / "b.png")
    (tmp_path / "c.png").write_bytes((tmp_path / "b.png").read_bytes()[:2000])
    with pytest.raises(ParseError, match=r"c.png: the photo is damaged or truncated"):
        read_photo(tmp_path / "c.png")
    with pytest.raises(PoiseError, match="does not exist"):
        read_photo(tmp_path / "none.jpg")


@pytest.mark.parametrize("text", ["LeftHand", "LeftHand=1", "LeftHand=1,b", "=1,2", "LeftHand=1,2,3"])
def test_points_are_a_name_and_two_numbers(text: str) -> None:
    with pytest.raises(InvalidValueError, match="NAME=column,row"):
        point_from_text(text)


def test_points_must_be_in_the_photo() -> None:
    for pixel, message in (
        ([np.nan, 1.0], "two finite numbers; got nan,1"),
        ([-3.0, 1.0], "outside the photo of 480 x 360 pixels; got -3,1"),
        ([3.0, 361.0], "outside the photo"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            check_points({"head": np.array(pixel)}, SIZE)


def test_points_for_unknown_joints_and_too_few_are_refused(style: StylePrior, walk: Motion) -> None:
    shot, _ = _shot(walk)
    with pytest.raises(UnknownNameError, match=r"'left_hnd'; did you mean left_hand"):
        photos.pose_from_shots(style, [Shot(shot.photo, {"left_hnd": np.array([3.0, 3.0])}, shot.camera)])
    two = dict(list(shot.points.items())[:2])
    with pytest.raises(InvalidValueError, match="at least 3 joints; got 2"):
        photos.pose_from_shots(style, [Shot(shot.photo, two, shot.camera)])
    with pytest.raises(InvalidValueError, match="must be at least 1"):
        photos.pose_from_shots(style, [shot], alternatives=0)
    with pytest.raises(InvalidValueError, match="1 to 170 degrees"):
        photos.pose_from_shots(style, [Shot(shot.photo, shot.points)], fov=0.0)
    with pytest.raises(InvalidValueError, match="-80 to 80"):
        photos.pose_from_shots(style, [Shot(shot.photo, shot.points)], pitch=90.0)


def test_a_small_file_of_a_huge_photo_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    Image.new("1", (10_000, 6_000)).save(tmp_path / "bomb.png")
    assert (tmp_path / "bomb.png").stat().st_size < 100_000
    with pytest.raises(ParseError, match="10000 x 6000 pixels; at most 50 million"):
        read_photo(tmp_path / "bomb.png")
    with pytest.raises(ParseError, match="at most 50 million"):
        read_picture(tmp_path / "bomb.png")


@pytest.mark.parametrize("known", [True, False])
def test_legs_that_a_photo_does_not_show_are_those_of_a_standing_body(
    style: StylePrior, walk: Motion, *, known: bool
) -> None:
    shot, _ = _shot(walk, known=known)
    waist_up = Shot(
        shot.photo, {role: at for role, at in shot.points.items() if "foot" not in role}, shot.camera
    )
    standing = standing_pose(style)
    legs = [*below(walk.skeleton, "left_thigh"), *below(walk.skeleton, "right_thigh")]
    for one in photos.pose_from_shots(style, [waist_up]):
        pose = one.space.pose_from_q(one.q)
        np.testing.assert_allclose(pose.rotations[legs], standing.rotations[legs], atol=1e-9)
        seen = one.views[0].camera.project(np.asarray(pose.positions["left_hand"])[None])[0]
        assert np.linalg.norm(seen - shot.points["left_hand"]) < 10.0
        if known:
            np.testing.assert_allclose(one.views[0].camera.translation, shot.camera.translation)
        else:
            assert np.asarray(pose.positions)[:, 1].min() == pytest.approx(
                np.asarray(standing.positions)[:, 1].min(), abs=1e-6
            )
