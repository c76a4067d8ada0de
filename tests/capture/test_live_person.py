"""A person followed live by one camera: measured first, then a pose per picture, and placed again after a gap."""

import numpy as np
import pytest

import poise
from poise.capture.performance import motion_of
from poise.capture.webcam import FEWEST, MEASURED, LivePerson, _Calm
from poise.motion.contacts import foot_contacts, foot_slide
from poise.skeleton.pose_space import PoseSpace
from poise.vision.people.person import INDEX, NAMES, handles_of
from poise.vision.people.unknown_camera import level_camera
from poise.vision.people.watched import WatchedPerson

FPS = 15.0
CAMERA = level_camera((640, 480))
ROLES = [f"{side}_{part}" for side in ("left", "right") for part in ("hand", "forearm", "shin", "foot")]


@pytest.fixture(scope="module")
def walk() -> poise.Motion:
    return poise.performer.act("walk", seconds=3.0, fps=FPS, seed=1)


@pytest.fixture(scope="module")
def moments(walk) -> list[WatchedPerson]:
    """What a detector would say: pixels, and shapes that are off in depth."""
    space, rng = PoseSpace(walk.skeleton), np.random.default_rng(0)
    q = space.q_from_frames(walk.root_positions, walk.rotations)
    places = np.add(space.points(q, space.handles(handles_of(walk.skeleton)[0])), (0.0, 0.6, -6.5))
    hips = places[:, [INDEX["left_hip"], INDEX["right_hip"]]].mean(axis=1, keepdims=True)
    shapes = (places - hips) @ CAMERA.rotation.T
    shapes[..., 2] += rng.normal(0.0, 0.05, shapes.shape[:2])
    pixels = CAMERA.project(places) + rng.normal(0.0, 1.0, (*places.shape[:2], 2))
    seen, side = np.full((1, 1, len(NAMES)), 0.9), np.full((1, 1), 300.0)
    return [
        WatchedPerson([CAMERA], pixel[None, None], seen, shape[None, None], side, 1.0)
        for pixel, shape in zip(pixels, shapes, strict=True)
    ]


def from_the_pelvis(motion: poise.Motion) -> np.ndarray:
    places = np.asarray(motion.positions)
    at = [motion.skeleton.index(role) for role in ("pelvis", *ROLES)]
    return places[:, at[1:]] - places[:, at[:1]]


def test_a_machine_that_is_slow_at_first_does_not_lose_the_floor(moments) -> None:
    """The person is measured at less than one picture a second, and followed at fifteen."""
    live, at, last = LivePerson(), 0.0, None
    for number, moment in enumerate(moments[: FEWEST + 12]):
        last = live.step(moment, at)
        at += 1.5 if number < FEWEST - 1 else 1.0 / FPS
    assert last is not None
    assert 1.0 < last.positions["head"][1] < 2.2


def test_the_newest_pose_is_near_the_truth_and_standing_feet_stay(walk, moments) -> None:
    live = LivePerson(height=walk.skeleton.height)
    poses = [live.step(moment, k / FPS) for k, moment in enumerate(moments)]
    measured = max(FEWEST - 1, int(np.ceil(MEASURED * FPS))) + 1
    assert all(pose is None for pose in poses[:measured])
    assert live.measured is not None
    found = motion_of([pose for pose in poses if pose is not None], FPS)
    assert len(found) == len(walk) - measured
    away = np.linalg.norm(from_the_pelvis(found) - from_the_pelvis(walk[measured:]), axis=-1)
    assert away.mean() < 0.09
    contacts = foot_contacts(found)
    assert contacts.feet.any()
    assert foot_slide(found, contacts)[contacts.feet].mean() < 0.25  # metres per second, of a walk at 1.2
    feet = np.asarray(found.positions)[:, [found.skeleton.index(f"{s}_foot") for s in ("left", "right")], 1]
    assert np.all(feet.min(axis=1) < 0.25)
    assert np.all(feet > -0.05)


def test_shaking_is_calmed_and_fast_turns_are_followed() -> None:
    walk = poise.performer.act("walk", seconds=0.2, fps=10, seed=1)
    space, rng = PoseSpace(walk.skeleton), np.random.default_rng(0)
    still = space.q_from_frames(walk.root_positions, walk.rotations)[0]
    calm = _Calm(space, still)
    poses = [space.integrate(still, rng.normal(0.0, 0.01, space.freedoms)) for _ in range(60)]
    found = [calm.step(q, 1 / 30) for q in poses]
    shaking = [np.abs(np.diff(np.stack(one), axis=0)).mean() for one in (poses, found)]
    assert shaking[1] < 0.5 * shaking[0]
    moved = still.copy()
    for _ in range(15):
        moved = moved.copy()
        moved[0] += 0.1  # metres, 3 a second
        found.append(calm.step(moved, 1 / 30))
    assert moved[0] - found[-1][0] < 0.1


def test_who_comes_back_elsewhere_is_placed_there_at_once(moments) -> None:
    live = LivePerson()
    for k, moment in enumerate(moments[:25]):
        before = live.step(moment, k / FPS)
    away = moments[24]
    moved = WatchedPerson(
        [CAMERA], np.add(away.pixels, (150.0, 0.0)), away.visibility, away.shapes, away.sides, away.fps
    )
    after = live.step(moved, 25 / FPS + 2.0)
    stays = live.step(moved, 26 / FPS + 2.0)
    assert before is not None
    assert after is not None
    assert stays is not None
    went = after.pose.root_position - before.pose.root_position
    assert went[0] > 0.8
    assert np.linalg.norm(stays.pose.root_position - after.pose.root_position) < 0.05


def test_a_machine_that_sees_one_picture_a_second_still_finds_a_body(walk, moments) -> None:
    live = LivePerson(height=walk.skeleton.height)
    poses = [live.step(moment, float(k)) for k, moment in enumerate(moments[:15])]
    assert sum(pose is not None for pose in poses) == 15 - FEWEST
