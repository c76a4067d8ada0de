"""Bodies, motions and learned priors that the tests of photos share."""

import pytest

from poise import performer
from poise.motion import Motion
from poise.priors.gaussian import GaussianPrior
from poise.skeleton.pose_space import PoseSpace


@pytest.fixture(scope="session")
def walk() -> Motion:
    return performer.act("walk", seconds=4.0, fps=30, seed=1)


@pytest.fixture(scope="session")
def other_walk() -> Motion:
    return performer.act("walk", seconds=2.0, fps=30, seed=2)


@pytest.fixture(scope="session")
def space(walk: Motion) -> PoseSpace:
    return PoseSpace.of_rotations(walk.skeleton, walk.rotations)


@pytest.fixture(scope="session")
def prior(walk: Motion) -> GaussianPrior:
    return GaussianPrior.learn([walk], clusters=20)
