"""A walk and a run of the performer, shared by the tests of the motion models."""

import numpy as np
import pytest

from poise import performer
from poise.motion import Motion
from poise.priors.dynamics.sequences import Sequences, sequences_of


@pytest.fixture(scope="session")
def motions() -> list[Motion]:
    return [
        performer.act("walk", speed=1.3, seconds=2.4, fps=30.0, seed=1),
        performer.act("run", speed=3.0, seconds=1.6, fps=30.0, seed=2),
    ]


@pytest.fixture(scope="session")
def sequences(motions: list[Motion]) -> Sequences:
    return sequences_of(motions)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
