"""A body from landmarks on rays: sides, sizes, which way is up, and whole takes with truth."""

from dataclasses import replace

import numpy as np
import pytest

import poise
from poise.capture.people.solving import Trust
from poise.capture.people.take import capture_person, detected_motion, fitted_body, size_on_floor
from poise.errors import InvalidValueError
from poise.geometry.cameras import Camera
from poise.motion.contacts import foot_contacts, foot_slide
from poise.performer import Body
from poise.skeleton.pose_space import PoseSpace
from poise.vision.people import unknown_camera
from poise.vision.people.person import INDEX, LOWER, NAMES, OTHER_SIDE, handles_of
from poise.vision.people.unknown_camera import level_camera, upright_camera
from poise.vision.people.watched import (
    DEPTH,
    WatchedPerson,
    flattened,
    meeting_places,
    placed_shapes,
    ray_gaps,
    with_sides,
)

FPS = 20.0
FRONT = Camera.looking_at((0.0, 0.9, 1.0), eye=(0.8, 1.5, 4.5), size=(640, 480))
SIDE = Camera.looking_at((0.0, 0.9, 1.0), eye=(4.0, 1.4, 0.5), size=(640, 480))


@pytest.fixture(scope="module")
def walk() -> poise.Motion:
    return poise.performer.act("walk", seconds=1.5, fps=FPS, seed=1)


@pytest.fixture(scope="module")
def places(walk):
    """Where the landmarks truly are."""
    space = PoseSpace(walk.skeleton)
    handles = space.handles(handles_of(walk.skeleton)[0])
    return space.points(space.q_from_frames(walk.root_positions, walk.rotations), handles)


def seen_by(cameras, places, *, noise=1.0, depth=0.05, deeper=1.0, seed=0) -> WatchedPerson:
    """What a detector would say of true places: pixels, and shapes that are off in depth."""
    rng, frames = np.random.default_rng(seed), len(places)
    pixels = np.stack([camera.project(places) for camera in cameras], axis=1)
    hips = places[:, [INDEX["left_hip"], INDEX["right_hip"]]].mean(axis=1, keepdims=True)
    shapes = np.stack([(places - hips) @ camera.rotation.T for camera in cameras], axis=1)
    shapes[..., 2] *= deeper
    shapes[..., 2] += rng.normal(0.0, depth, shapes.shape[:3])
    return WatchedPerson(
        cameras,
        pixels + rng.normal(0.0, noise, pixels.shape),
        np.full((frames, len(cameras), len(NAMES)), 0.9),
        shapes,
        np.full((frames, len(cameras)), 300.0),
        FPS,
    )


def error_of(found, walk) -> float:
    """Mean distance of joints, seen from the root, in metres."""
    roles = [f"{side}_{part}" for side in ("left", "right") for part in ("hand", "forearm", "shin", "foot")]
    gaps = []
    for one in (found, walk):
        at = np.asarray(one.positions)[:, [one.skeleton.index(role) for role in ("pelvis", *roles)]]
        gaps.append(at[:, 1:] - at[:, :1])
    return float(np.linalg.norm(gaps[0] - gaps[1], axis=-1).mean())


def test_sides_that_a_detector_exchanges_for_a_while_come_back(places):
    person = seen_by([FRONT], places)
    pixels = person.pixels.copy()
    wrong = np.ix_([9, 10, 11], [0], LOWER)
    pixels[wrong] = pixels[np.ix_([9, 10, 11], [0], [OTHER_SIDE[k] for k in LOWER])]
    np.testing.assert_allclose(with_sides(replace(person, pixels=pixels)).pixels, person.pixels)
    np.testing.assert_allclose(with_sides(person).pixels, person.pixels)


def test_rays_of_two_cameras_meet_where_the_person_is(places):
    exact = seen_by([FRONT, SIDE], places, noise=0.0)
    np.testing.assert_allclose(meeting_places(exact), places, atol=1e-5)
    pixels = exact.pixels
    assert ray_gaps(FRONT, pixels[:, 0], SIDE, pixels[:, 1]).max() < 1e-6
    assert np.median(ray_gaps(FRONT, pixels[:, 0], SIDE, pixels[::-1, 1])) > 0.05


def test_a_shape_is_placed_where_its_pixels_want_it():
    space = PoseSpace(Body().skeleton)
    q = space.standing(np.zeros(space.size - 7))
    standing = space.points(q[None], space.handles(handles_of(space.skeleton)[0]))
    camera = Camera.looking_at(tuple(standing[0].mean(axis=0)), eye=(0.0, 1.2, 4.0), size=(640, 480))
    person = seen_by([camera], standing, noise=0.0, depth=0.0)
    found = placed_shapes(camera, person.pixels[:, 0], person.weights[:, 0], person.shapes[:, 0])
    np.testing.assert_allclose(found, standing, atol=0.02)


def test_a_body_gets_the_lengths_that_are_seen(places):
    factor = 1.13
    fitted = fitted_body(Body().skeleton, factor * places)
    assert fitted.height == pytest.approx(factor * Body().skeleton.height, rel=0.02)
    with pytest.raises(InvalidValueError, match="estimate their size"):
        fitted_body(Body().skeleton, np.full_like(places, np.nan))


def test_lengths_that_are_guessed_stay_near_usual_proportions(places):
    """One camera makes an arm short that points to it."""
    short = places.copy()
    for side in ("left", "right"):
        elbow, hand = (INDEX[f"{side}_{joint}"] for joint in ("elbow", "wrist"))
        short[:, hand] = places[:, elbow] + 0.6 * (places[:, hand] - places[:, elbow])

    def forearm(seen, share):
        fitted = fitted_body(Body().skeleton, seen, seen_share=share)
        return np.linalg.norm(fitted.offsets[fitted.index("left_hand")]) / fitted.height

    assert forearm(short, 1.0) == pytest.approx(0.6 * forearm(places, 1.0), rel=0.1)
    assert forearm(short, 0.25) > 0.85 * forearm(places, 0.25)


@pytest.mark.parametrize("pitch", [-25.0, 0.0, 25.0])
def test_who_stands_says_which_way_is_up(places, pitch):
    level = level_camera((640, 480))
    turn = np.radians(pitch)
    tilted = np.array([[1, 0, 0], [0, np.cos(turn), -np.sin(turn)], [0, np.sin(turn), np.cos(turn)]])
    found = upright_camera(level, places @ tilted.T, FPS)
    true_up = level.rotation @ tilted @ (0.0, 1.0, 0.0)
    off = np.degrees(np.arccos(np.clip(true_up @ found.rotation @ (0.0, 1.0, 0.0), -1.0, 1.0)))
    assert off < 8.0


@pytest.mark.parametrize("field", [30.0, 90.0])
def test_the_focal_length_is_found_from_how_near_parts_look_larger(places, field, monkeypatch):
    monkeypatch.setattr(unknown_camera, "LONGER", 1.0)  # true shapes have no bias
    true = Camera.looking_at(
        (0.0, 0.9, 1.0), eye=(0.8, 1.5, 3.5), size=(640, 480), field_of_view=np.radians(field)
    )
    person = replace(seen_by([true], places), cameras=[level_camera((640, 480))])
    off = [
        np.log(one.cameras[0].focal_length / true.focal_length)
        for one in (unknown_camera.with_focal(person), person)
    ]
    assert abs(off[0]) < 0.4 * abs(off[1])
    assert abs(off[1]) > 0.4


@pytest.mark.parametrize("size", [0.8, 1.15])
def test_a_calibrated_camera_sees_how_large_a_person_is_by_the_floor(places, size):
    person = seen_by([FRONT], places)
    guessed = placed_shapes(FRONT, person.pixels[:, 0], person.weights[:, 0], person.shapes[:, 0] / size)
    assert size_on_floor(FRONT, guessed) == pytest.approx(size, rel=0.05)
    assert size_on_floor(FRONT, guessed - (0.0, 3.0, 0.0)) == 1.0  # this world has its floor elsewhere


def test_depths_of_shapes_are_taken_for_less(places):
    flat = flattened(SIDE, places)
    own, less = (
        np.ptp((one - one.mean(axis=1, keepdims=True)) @ SIDE.rotation[2], axis=1) for one in (places, flat)
    )
    assert np.all(less < 0.9 * own)
    np.testing.assert_allclose(SIDE.project(flat), SIDE.project(places), atol=12.0)


def test_two_cameras_give_the_body_and_one_camera_nearly_so(walk, places):
    two = capture_person(seen_by([FRONT, SIDE], places))
    seen = seen_by([FRONT], places, deeper=1.0 / DEPTH)
    one = capture_person(seen, trust=Trust(shape=0.05))  # as far off as was simulated
    assert error_of(two.motion, walk) < 0.03
    assert error_of(one.motion, walk) < 0.06
    assert error_of(one.motion, walk) < error_of(detected_motion(seen, one), walk)
    slide = foot_slide(two.motion, foot_contacts(two.motion))
    assert slide.mean() < 0.05
    hands = [two.motion.skeleton.index(f"{side}_hand") for side in ("left", "right")]
    assert np.all(one.deviations[:, hands] > two.deviations[:, hands])


def test_an_unknown_camera_gives_a_body_that_stands_on_the_floor(places):
    person = replace(seen_by([FRONT], places), cameras=[level_camera((640, 480), FRONT.focal_length)])
    found = capture_person(person, known=False, prior=poise.UniversalPrior(), height=1.8)
    assert found.motion.skeleton.height == pytest.approx(1.8)
    feet = np.asarray(found.motion.positions)[
        :, [found.motion.skeleton.index(f"{s}_toes") for s in ("left", "right")]
    ]
    assert abs(feet[..., 1].min()) < 0.1
    heads = np.asarray(found.motion.positions)[:, found.motion.skeleton.index("head")]
    lean = heads - found.motion.root_positions
    assert np.degrees(np.arccos(lean[:, 1] / np.linalg.norm(lean, axis=1))).max() < 20.0


def test_nobody_seen_is_an_error(places):
    person = seen_by([FRONT], places)
    with pytest.raises(InvalidValueError, match="no camera sees"):
        replace(person, pixels=np.full_like(person.pixels, np.nan))
