"""Features of poses: what they are, at any frame rate and at a clip's start, and their gradient."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise import performer
from poise.errors import InvalidValueError
from poise.motion import Motion
from poise.priors.latent.model import Features
from poise.skeleton.pose_space import PoseSpace

FPS = 60.0


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=1.0, fps=FPS, seed=1)


@pytest.fixture(scope="module")
def space(walk: Motion) -> PoseSpace:
    return PoseSpace.of_rotations(walk.skeleton, walk.rotations)


@pytest.fixture(scope="module")
def q(space: PoseSpace, walk: Motion) -> np.ndarray:
    return space.q_from_frames(walk.root_positions, walk.rotations)


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("velocity", [True, False])
@pytest.mark.parametrize("acceleration", [True, False])
def test_each_part_can_be_left_out(
    space: PoseSpace, q: np.ndarray, up: bool, velocity: bool, acceleration: bool
) -> None:
    features = Features(space, up=up, velocity=velocity, acceleration=acceleration)
    y = features.of_frames(q, FPS)
    assert y.shape == (len(q), features.dimension)
    assert features.groups.shape == (features.dimension,)
    assert features.dimension == (space.size - 7 + 3 * up) * (1 + velocity + acceleration)


def test_up_is_the_height_of_the_roots_axes(space: PoseSpace, q: np.ndarray) -> None:
    features = Features(space, velocity=False)
    _, matrices = space.forward(q)
    np.testing.assert_allclose(features.of_frames(q, FPS)[:, -3:], matrices[:, 0, 1, :], atol=1e-12)


def test_position_and_heading_make_no_difference(space: PoseSpace, walk: Motion) -> None:
    from poise.geometry import rotations

    features = Features(space, acceleration=True)
    turn = rotations.quaternion_from_expmap(np.array([0.0, 1.1, 0.0]))
    turned = walk.rotations.copy()
    turned[:, 0] = rotations.multiply(turn, turned[:, 0])
    there = space.q_from_frames(walk.root_positions + 5.0, turned)
    here = space.q_from_frames(walk.root_positions, walk.rotations)
    np.testing.assert_allclose(features.of_frames(there, FPS), features.of_frames(here, FPS), atol=1e-9)


def test_a_clip_starts_at_its_first_known_velocity_and_acceleration(space: PoseSpace, q: np.ndarray) -> None:
    features = Features(space, acceleration=True)
    y = features.of_frames(q, FPS)
    count = features.pose_count
    velocity, acceleration = y[:, count : 2 * count], y[:, 2 * count :]
    np.testing.assert_array_equal(velocity[0], velocity[1])
    np.testing.assert_array_equal(acceleration[0], acceleration[2])
    np.testing.assert_array_equal(acceleration[1], acceleration[2])


@pytest.mark.parametrize("frames", [1, 2, 3])
def test_the_shortest_clips_have_features(space: PoseSpace, q: np.ndarray, frames: int) -> None:
    y = Features(space, acceleration=True).of_frames(q[:frames], FPS)
    assert np.all(np.isfinite(y))


@given(rate=st.floats(5.0, 500.0))
def test_steady_motion_has_the_same_features_at_any_frame_rate(space: PoseSpace, rate: float) -> None:
    features = Features(space, up=False, acceleration=True)
    q = np.zeros((6, space.size))
    q[:, 3] = 1.0
    q[:, 7:] = (np.arange(6) / rate)[:, None] * np.linspace(-1.0, 1.0, space.size - 7)
    count = features.pose_count
    y = features.of_frames(q, rate)
    expected = np.tile(np.linspace(-1.0, 1.0, count) / 30.0, (6, 1))
    np.testing.assert_allclose(y[:, count : 2 * count], expected, atol=1e-9)
    np.testing.assert_allclose(y[:, 2 * count :], 0.0, atol=1e-7)


def test_one_pose_has_the_features_it_has_in_its_clip(space: PoseSpace, q: np.ndarray) -> None:
    features = Features(space, acceleration=True)
    alone = features.of_pose(q[7], q[6], q[5], fps=FPS)
    np.testing.assert_allclose(alone, features.of_frames(q, FPS)[7], atol=1e-12)


@pytest.mark.parametrize("known", [0, 1, 2])
def test_the_jacobian_is_that_of_finite_differences(space: PoseSpace, q: np.ndarray, known: int) -> None:
    features = Features(space, acceleration=True)
    before = (q[6], q[5])[:known]
    step, columns = 1e-6, []
    for axis in np.eye(space.freedoms):
        ahead, behind = (
            features.of_pose(space.integrate(q[7], way * step * axis), *before, fps=FPS) for way in (1, -1)
        )
        columns.append((ahead - behind) / (2 * step))
    jacobian = features.jacobian(q[7], *before, fps=FPS)
    np.testing.assert_allclose(jacobian, np.array(columns).T, atol=1e-7)


def test_a_frame_rate_must_be_positive(space: PoseSpace, q: np.ndarray) -> None:
    with pytest.raises(InvalidValueError, match="positive frame rate"):
        Features(space).of_frames(q, 0.0)


def test_pose_vectors_of_another_body_are_refused(space: PoseSpace, q: np.ndarray) -> None:
    with pytest.raises(InvalidValueError, match="pose vectors must have"):
        Features(space).of_frames(q[:, :-3], FPS)
