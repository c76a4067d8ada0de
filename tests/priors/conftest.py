"""A small walk and the style learned from it, shared by the tests of the style prior."""

import numpy as np
import pytest

from poise import performer
from poise.motion import Motion
from poise.priors.latent.model import Features, LatentModel
from poise.priors.poses import pose_space_of
from poise.priors.style.prior import TrainingPoses, learn_model, training_poses


@pytest.fixture(scope="session")
def walk() -> Motion:
    return performer.act("walk", seconds=4.0, fps=30.0, seed=1)


@pytest.fixture(scope="session")
def poses(walk: Motion) -> TrainingPoses:
    return training_poses(space := pose_space_of([walk]), [walk], Features(space))[0]


@pytest.fixture(scope="session")
def model(poses: TrainingPoses) -> LatentModel:
    return learn_model(poses, dimensions=2, active=40)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
