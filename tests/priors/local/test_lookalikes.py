"""Examples that look like what is seen: rays and places in, poses out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poise import performer
from poise.geometry import rotations
from poise.priors.local.control_guide import Lookalikes, Seen
from poise.priors.local.examples import Examples
from poise.skeleton.pose_space import Handles

NAMES = ("left_hand", "right_hand", "left_foot", "right_foot", "head", "pelvis")
EYE = np.array([0.5, 1.5, 4.0])


@pytest.fixture(scope="module")
def walk() -> tuple[Examples, Handles]:
    examples = Examples.of_motions([performer.act("walk", seconds=2.0, fps=60, seed=3)])
    return examples, examples.space.handles(list(NAMES))


def rays_to(points: np.ndarray) -> Seen:
    rays = (points - EYE) / np.linalg.norm(points - EYE, axis=1, keepdims=True)
    across = np.eye(3) - rays[:, :, None] * rays[:, None]
    return Seen(np.arange(len(points)), np.tile(EYE, (len(points), 1)), across)


@given(
    number=st.integers(0, 55),
    shift=st.tuples(*3 * [st.floats(-0.4, 0.4)]),
    heading=st.floats(-3.0, 3.0),
)
@settings(max_examples=40, deadline=None)
def test_an_example_looks_like_itself_wherever_it_stands(walk, number, shift, heading):
    examples, handles = walk
    q = examples.q[number].copy()
    q[:3], q[3:7] = (0.0, 0.9, 0.0), rotations.quaternion_from_expmap(np.array([0.0, heading, 0.0]))
    seen = rays_to(examples.space.points(q[None], handles)[0])
    q[:3] += shift  # the root is not known exactly
    squares = Lookalikes(examples, handles).squared_gaps(q[:7], seen)
    assert squares[number] < 1e-6
    assert np.argmin(squares) == number


def test_the_pose_is_told_from_rays_and_from_places(walk):
    examples, handles = walk
    looks = Lookalikes(examples, handles)
    q = examples.q[20]
    points = examples.space.points(q[None], handles)[0]
    places = Seen(np.arange(len(NAMES)), points, np.tile(np.eye(3), (len(NAMES), 1, 1)))
    for seen in (rays_to(points), places):
        mean, covariance = looks(q[:7], seen)
        assert np.linalg.norm(mean - q[7:]) < 0.6 * np.linalg.norm(examples.mean - q[7:])
        assert np.all(np.linalg.eigvalsh(covariance) > 0)
