"""Lenses, rigs and their files, and where rays meet."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poise.errors import InvalidValueError, ParseError
from poise.vision.rig import fundamental, load_rig, save_rig
from poise.vision.simulator import front_rig
from poise.vision.triangulate import epipolar_distances, epipolar_line, triangulate

RIG = front_rig()
places = st.tuples(st.floats(-0.8, 0.8), st.floats(0.1, 1.8), st.floats(-0.8, 0.8))


@given(places)
@settings(max_examples=50, deadline=None)
def test_a_pixel_and_its_ray_belong_together(place):
    camera = RIG.cameras[0]
    pixel = camera.project(np.array(place))
    ray = camera.rays(pixel)
    to_point = np.array(place) - camera.pinhole.centre
    assert np.linalg.norm(np.cross(ray, to_point)) < 1e-6
    assert np.allclose(camera.pinhole.project(np.array(place)), camera.straightened(pixel), atol=1e-5)


def test_the_lens_bends_as_opencv_says():
    cv2 = pytest.importorskip("cv2")
    camera = RIG.cameras[1]
    points = np.random.default_rng(0).uniform((-0.8, 0.1, -0.8), (0.8, 1.8, 0.8), (20, 3))
    theirs, _ = cv2.projectPoints(
        points,
        cv2.Rodrigues(camera.pinhole.rotation)[0],
        camera.pinhole.translation.copy(),
        camera.pinhole.intrinsics.copy(),
        camera.distortion.copy(),
    )
    assert np.allclose(camera.project(points), theirs.reshape(-1, 2), atol=1e-8)


@given(places)
@settings(max_examples=30, deadline=None)
def test_rays_of_two_cameras_meet_at_the_point(place):
    pixels = np.stack([camera.project(np.array(place)) for camera in RIG.cameras])
    meeting = triangulate(RIG.cameras, pixels)
    assert np.allclose(meeting.point, place, atol=1e-6)
    assert meeting.pixels_off < 1e-4
    assert np.all(np.linalg.eigvalsh(meeting.covariance) > 0)


def test_the_covariance_of_a_meeting_is_that_of_many_noisy_ones():
    rng, place, noise = np.random.default_rng(1), np.array([0.1, 1.0, 0.2]), 0.5
    exact = np.stack([camera.project(place) for camera in RIG.cameras])
    found = np.stack(
        [triangulate(RIG.cameras, exact + noise * rng.standard_normal((2, 2))).point for _ in range(400)]
    )
    expected = triangulate(RIG.cameras, exact, noise=noise).covariance
    assert np.allclose(found.std(axis=0), np.sqrt(np.diag(expected)), rtol=0.2)


def test_one_camera_is_not_enough_to_place_a_point():
    with pytest.raises(InvalidValueError, match="at least two cameras"):
        triangulate(RIG.cameras[:1], np.zeros((1, 2)))


def test_points_lie_on_their_epipolar_lines():
    first, second = RIG.cameras
    place = np.array([0.2, 1.2, 0.1])
    pixels = [first.project(place), second.project(place)]
    straight = [first.straightened(pixels[0])[None], second.straightened(pixels[1])[None]]
    assert epipolar_distances(fundamental(first, second), *straight)[0, 0] < 1e-3
    line = epipolar_line(first, second, pixels[0])
    assert np.linalg.norm(line - pixels[1], axis=1).min() < 8  # it is given at some points only


def test_a_rig_file_keeps_every_number(tmp_path):
    save_rig(RIG, tmp_path / "rig.toml")
    again = load_rig(tmp_path / "rig.toml")
    for camera, same in zip(RIG.cameras, again.cameras, strict=True):
        assert (camera.name, camera.size) == (same.name, same.size)
        assert np.array_equal(camera.pinhole.matrix, same.pinhole.matrix)
        assert np.array_equal(camera.distortion, same.distortion)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[[camera]]", "[camera", "not TOML"),
        ("[[camera]]", "[[lens]]", "lens: no key 'lens'; valid: camera"),
        (
            "distortion = [",
            "distorted = [",
            r"camera\[1\].distortion: is missing",
        ),
        ("size = [640, 480]", "size = [640]", r"camera\[1\].size: expected 2 finite numbers"),
        ("translation = [", 'translation = ["a", ', "translation: expected 3 finite numbers"),
        (
            "distortion = [-0.12",
            "distortion = [nan",
            r"camera\[1\].distortion: expected 5 finite numbers",
        ),
        ("rotation = [[", "rotation = [[1.0, 1.0, 1.0], [", "rotation: expected 3 rows of 3 finite numbers"),
    ],
)
def test_a_damaged_rig_file_says_what_is_wrong(tmp_path, before, after, message):
    path = tmp_path / "rig.toml"
    save_rig(RIG, path)
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(ParseError, match=message):
        load_rig(path)


def test_a_camera_that_is_not_there_is_named():
    with pytest.raises(Exception, match="did you mean camera2"):
        RIG["camera3"]
