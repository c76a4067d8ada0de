"""Poses from image points: placing bodies on rays, depth flips, several views, every prior."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_once import learned
from poise.capture.photos import LIMBS, View, explain, flipped, known_poses, placed
from poise.errors import InvalidValueError
from poise.geometry.cameras import Camera
from poise.motion import Motion
from poise.performer import PERFORMERS
from poise.priors.blend import BlendPrior
from poise.priors.gaussian import GaussianPrior
from poise.priors.style.prior import StylePrior
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Skeleton

ROLES = ("head", "pelvis", "left_hand", "right_hand", "left_foot", "right_foot")


@pytest.fixture(scope="module")
def style(walk: Motion) -> StylePrior:
    return learned(StylePrior, [walk], dimensions=3, active=40)


def _camera(turn: float, middle: np.ndarray) -> Camera:
    eye = (middle[0] + 4.0 * np.sin(turn), 1.4, middle[2] + 4.0 * np.cos(turn))
    return Camera.looking_at((middle[0], 0.9, middle[2]), eye=eye, size=(960, 720), field_of_view=0.7)


def _view(body: np.ndarray, space: PoseSpace, *, turn: float = 0.5, roles: tuple[str, ...] = ROLES) -> View:
    camera = _camera(turn, body[0])
    return View(camera, {role: camera.project(body[space.skeleton.index(role)]) for role in roles})


def _body(space: PoseSpace, clip: Motion, frame: int) -> np.ndarray:
    return space.forward(space.q_from_frames(clip.root_positions, clip.rotations)[frame])[0]


@given(heading=st.integers(0, 23), pose=st.integers(0, 4), seed=st.integers(0, 20))
@settings(max_examples=25)
def test_a_body_is_placed_where_it_stood(heading: int, pose: int, seed: int) -> None:
    body = PoseSpace(_person())
    rng = np.random.default_rng(seed)
    maps = rng.normal(scale=0.2, size=(5, body.size - 7))
    ups = np.tile([0.0, 1.0, 0.0], (5, 1))
    q = np.concatenate([rng.normal(scale=0.3, size=3), np.zeros(4), maps[pose]])
    q[1] += 1.0
    q[3], q[5] = np.cos(np.pi * heading / 24), np.sin(np.pi * heading / 24)
    points = body.forward(q)[0]
    starts, off = placed(body, maps, ups, [_view(points, body)])
    best = int(off.argmin())
    assert off[best] < 1e-9
    np.testing.assert_allclose(body.forward(starts[best])[0], points, atol=1e-6)


def _person() -> Skeleton:
    return next(iter(PERFORMERS.values())).skeleton


@pytest.mark.parametrize("kind", ["style", "gaussian", "blend"])
def test_the_pose_of_an_unseen_frame_comes_out(
    kind: str, style: StylePrior, prior: GaussianPrior, other_walk: Motion
) -> None:
    model = {"style": style, "gaussian": prior, "blend": BlendPrior([style, prior], [0.5, 0.5])}[kind]
    body = _body(model.space, other_walk, 20)
    found = explain(model, [_view(body, model.space)])
    errors = [np.linalg.norm(one.space.forward(one.q)[0] - body, axis=1).mean() for one in found]
    assert min(errors[:3]) < 0.09
    assert found[0].distances.max() < 1.0
    assert [one.posterior for one in found] == sorted((one.posterior for one in found), reverse=True)


def test_a_plain_body_meets_the_points_too(space: PoseSpace, other_walk: Motion) -> None:
    best = explain(space, [_view(_body(space, other_walk, 20), space)])[0]
    assert best.distances.max() < 1.0
    assert best.log_likelihood is None
    assert best.percentile is None


def test_a_second_view_takes_doubt_away(style: StylePrior, other_walk: Motion) -> None:
    body = _body(style.space, other_walk, 33)
    roles = ("left_hand", "right_hand", "left_foot", "right_foot")
    views = [_view(body, style.space, turn=turn, roles=roles) for turn in (0.3, 1.7)]
    errors = [
        np.linalg.norm(best.space.forward(best.q)[0] - body, axis=1).mean()
        for best in (explain(style, views[:1])[0], explain(style, views)[0])
    ]
    assert errors[1] < 0.04
    assert errors[1] <= errors[0]


def test_a_flipped_limb_is_seen_at_the_same_pixels(space: PoseSpace, other_walk: Motion) -> None:
    q = space.q_from_frames(other_walk.root_positions, other_walk.rotations)[12]
    body = space.forward(q)[0]
    camera = _camera(0.0, body[0])
    flips = {limb: flipped(space, q, camera, limb) for limb in LIMBS}
    turned = {limb: pose for limb, pose in flips.items() if pose is not None}
    assert turned
    for limb, pose in turned.items():
        joint = space.skeleton.index(limb[-1])
        other = space.forward(pose)[0]
        depth = (other[joint] - body[joint]) @ camera.rotation[2]
        assert abs(depth) > 0.05
        assert np.linalg.norm(camera.project(other[joint]) - camera.project(body[joint])) < 40.0


def test_starts_are_what_a_model_knows(style: StylePrior, prior: GaussianPrior, space: PoseSpace) -> None:
    assert known_poses(style)[0].shape == (40, style.space.size - 7)
    assert known_poses(prior)[0].shape == prior.means.shape
    assert known_poses(space)[0].shape == (1, space.size - 7)


def test_one_point_says_too_little(style: StylePrior, other_walk: Motion) -> None:
    body = _body(style.space, other_walk, 20)
    with pytest.raises(InvalidValueError, match="at least two joints"):
        explain(style, [_view(body, style.space, roles=("head",))])
