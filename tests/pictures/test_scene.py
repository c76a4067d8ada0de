"""The rasteriser and its scenes: things are where they project, in their colours, lit, and on the floor."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bodies import person
from poise.geometry import rotations
from poise.pictures import raster
from poise.pictures.mannequin import build_mannequin
from poise.pictures.scene import Figure, Floor, figure, fitted, looking, marker, render
from poise.skeleton.kinematics import world_transforms

SIZE = (240, 240)


def standing():
    """A person at rest and where the joints are."""
    skeleton = person()
    turns = np.tile(rotations.IDENTITY, (len(skeleton), 1))
    positions, matrices = world_transforms(skeleton, skeleton.offsets[0], turns)
    return skeleton, positions, figure(build_mannequin(skeleton), positions, matrices)


def front_view(shown):
    return fitted(shown.vertices, azimuth=0.0, elevation=np.radians(8.0), size=SIZE)


def hue(pixel):
    red, _, blue = (int(value) for value in pixel)
    return red - blue


@given(azimuth=st.floats(-3.1, 3.1), elevation=st.floats(-1.2, 1.2))
def test_rays_go_through_the_pixels_that_points_project_to(azimuth, elevation):
    view = looking(
        np.array([0.3, 1.0, -0.2]), azimuth=azimuth, elevation=elevation, distance=4.0, focal=300.0, size=SIZE
    )
    point = np.array([0.5, 0.8, 0.1])
    column, row, near = view.project(point)
    rays = view.rays()
    along = rays[0] + column * rays[1] + row * rays[2]
    assert view.eye + along / near == pytest.approx(point, abs=1e-9)


def test_a_fitted_view_shows_everything_inside_its_margins_and_upright():
    points = np.random.default_rng(0).normal(size=(50, 3))
    view = fitted(points, azimuth=0.7, elevation=0.2, size=(300, 200), margins=(0.1, 0.2, 0.1, 0.05))
    seen = view.project(points)
    assert seen[:, 0].min() > 29
    assert seen[:, 0].max() < 271
    assert seen[:, 1].min() > 39
    assert seen[:, 1].max() < 191
    above, below = view.project(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    assert above[1] < below[1]


def test_behind_the_camera_is_never_drawn():
    view = looking(np.zeros(3), azimuth=0.0, elevation=0.0, distance=2.0, focal=100.0, size=SIZE)
    hidden = marker(np.array([0.0, 0.0, 5.0]), radius=0.5, colour=(1.0, 0.0, 0.0))
    empty = render([], view, floor=Floor(-1.0))
    assert np.array_equal(render([hidden], view, floor=Floor(-1.0))[:60], empty[:60])


def test_the_nearer_triangle_wins_whatever_the_order():
    near, far = (
        [[1.0, 1.0, 2.0], [1.0, 9.0, 2.0], [9.0, 1.0, 2.0]],
        [[0.0, 0.0, 1.0], [0.0, 9.0, 1.0], [9.0, 0.0, 1.0]],
    )
    points = np.array(near + far)
    for triangles in (np.array([[0, 1, 2], [3, 4, 5]]), np.array([[3, 4, 5], [0, 1, 2]])):
        nearness, hit = np.zeros((10, 10), np.float32), np.full((10, 10), -1, np.int32)
        raster.fill_triangles(points, triangles, nearness, hit)
        assert triangles[hit[3, 3], 0] == 0
        assert nearness[3, 3] == 2.0
        assert triangles[hit[0, 5], 0] == 3


def test_triangles_that_face_away_are_left_out():
    points = np.array([[1.0, 1.0, 2.0], [1.0, 9.0, 2.0], [9.0, 1.0, 2.0]])
    nearness, hit = np.zeros((10, 10), np.float32), np.full((10, 10), -1, np.int32)
    raster.fill_triangles(points, np.array([[0, 2, 1]]), nearness, hit)
    assert np.all(hit == -1)


def test_blur_keeps_the_sum_and_spreads_evenly():
    texture = np.zeros((31, 31))
    texture[15, 15] = 1.0
    raster.soften(texture, 3)
    assert texture.sum() == pytest.approx(1.0)
    assert texture == pytest.approx(texture[::-1])
    assert texture == pytest.approx(texture.T)
    assert texture[15, 15] == texture.max() < 0.05


def test_joints_are_where_they_project_and_left_is_blue_and_right_is_orange():
    skeleton, positions, shown = standing()
    view = front_view(shown)
    picture, empty = render([shown], view), render([], view)
    changed = np.abs(picture.astype(int) - empty).max(axis=-1) > 20
    places = np.round(view.project(positions)[:, :2]).astype(int)
    turning = places[~skeleton.is_end_site]
    assert np.all(changed[turning[:, 1], turning[:, 0]])
    for side, sign in (("left", -1), ("right", 1)):
        for role in ("forearm", "shin"):
            column, row = places[skeleton.index(f"{side}_{role}")]
            assert sign * hue(picture[row, column]) > 40
    left_hand, right_hand = (places[skeleton.index(f"{side}_hand"), 0] for side in ("left", "right"))
    assert left_hand > right_hand  # who faces the camera has the left hand on the picture's right


def test_no_picture_is_dark_from_any_side():
    _, _, shown = standing()
    for azimuth in np.arange(0.0, 2.0 * np.pi, np.pi / 2):
        view = fitted(shown.vertices, azimuth=azimuth, elevation=0.15, size=SIZE)
        body = np.abs(render([shown], view).astype(int) - render([], view)).max(axis=-1) > 20
        assert 0.04 < body.mean() < 0.5
        assert render([shown], view)[body].mean() > 85


def test_the_shadow_lies_on_the_floor_beside_the_body_and_is_soft():
    _, _, shown = standing()
    view = front_view(shown)
    floor = Floor(0.0, (0.0, 0.0), 4.0)
    picture, empty = (render(figures, view, floor=floor).astype(int) for figures in ([shown], []))
    darker = (empty - picture).sum(axis=-1)
    sole = int(view.project(np.array([0.0, 0.0, 0.0]))[1])
    neutral = np.ptp(picture, axis=-1) < 14
    shadow = (darker > 20) & neutral
    shadow[: sole - 30] = False
    assert shadow.sum() > 150
    assert len(np.unique(darker[shadow])) > 20  # many steps from light to dark


def test_edges_are_smooth():
    ball = marker(np.array([0.0, 1.0, 0.0]), radius=0.5, colour=(0.1, 0.1, 0.1))
    view = looking(
        np.array([0.0, 1.0, 0.0]), azimuth=0.0, elevation=0.0, distance=4.0, focal=300.0, size=SIZE
    )
    row = render([ball], view, floor=Floor(-5.0))[120, :, 0].astype(int)
    inside, outside = row[120], row[5]
    between = (row > inside + 40) & (row < outside - 15)
    assert 1 <= between[:120].sum() <= 6


def test_a_ghost_lets_the_floor_through():
    _, _, shown = standing()
    view = front_view(shown)
    ghost = Figure(shown.vertices, shown.normals, shown.triangles, shown.colours, opacity=0.3)
    solid, faint, empty = (render(f, view).astype(int) for f in ([shown], [ghost], []))
    body = np.abs(solid - empty).sum(axis=-1) > 120
    assert np.all(np.abs(faint - empty).sum(axis=-1)[body] < np.abs(solid - empty).sum(axis=-1)[body])
    assert np.abs(faint - empty).sum(axis=-1)[body].mean() > 10


def test_grid_lines_cover_the_floor_evenly():
    view = looking(np.zeros(3), azimuth=0.0, elevation=np.radians(80.0), distance=6.0, focal=240.0, size=SIZE)
    picture = render([], view, floor=Floor(0.0, (0.0, 0.0), 20.0)).astype(int)
    middle = picture[117, :, 1]  # between two lines that run across
    dark = (middle < np.median(middle) - 2).astype(int)
    lines = np.flatnonzero(np.diff(dark) == 1)
    assert len(lines) >= 10
    assert np.diff(lines) == pytest.approx(0.5 * 240 / 6.0, abs=2)
