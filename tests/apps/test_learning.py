"""What latent space a motion model has."""

import pytest

from poise import performer
from poise.motion import Motion
from poise.motion.retarget import retarget
from poise.priors.dynamics.options import CYLINDER, DynamicsOptions
from poise.priors.dynamics.structure import ADDED, MODELS, MULTIPLIED


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=0.5, fps=30)


def test_clips_of_several_bodies_have_an_axis_more_unless_the_space_is_described(walk: Motion) -> None:
    both = [walk, retarget(walk, walk.skeleton.scaled(1.1))]
    assert DynamicsOptions().structure([walk, walk]) == MODELS[CYLINDER]
    assert DynamicsOptions().structure(both) == MODELS[CYLINDER].with_another_axis()
    assert DynamicsOptions(topology="hybrid").structure(both) == MODELS["hybrid"]


@pytest.mark.parametrize(
    ("described", "transitions", "joined"),
    [
        ("cylinder + added transitions", "auto", ADDED),
        ("cylinder", "auto", MULTIPLIED),
        ("cylinder + transitions", "none", ""),
    ],
)
def test_transitions_stay_as_described_come_by_themselves_or_are_left_out(
    walk: Motion, described: str, transitions: str, joined: str
) -> None:
    structure = DynamicsOptions(topology=described, transitions=transitions).structure([walk])
    assert structure.dimensions[-1].transitions == joined
