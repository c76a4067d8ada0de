"""What latent space a motion model has."""

from pathlib import Path

import pytest

import poise
from poise import performer
from poise.capture.matching import WITH_HEAD, marker_layout
from poise.motion import Motion
from poise.motion.edit import retarget
from poise.motion.virtual_markers import virtual_markers
from poise.priors.blend import BlendPrior
from poise.priors.dynamics.prior import CYLINDER, DynamicsOptions
from poise.priors.dynamics.structure import ADDED, MODELS, MULTIPLIED


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=0.5, fps=30)


def test_clips_of_several_bodies_have_an_axis_more_unless_the_space_is_described(walk: Motion) -> None:
    both = [walk, retarget(walk, walk.skeleton.scaled(1.1))]
    assert DynamicsOptions().structure([walk, walk]) == MODELS[CYLINDER]
    assert DynamicsOptions().structure(both) == MODELS[CYLINDER].with_another_axis()
    assert DynamicsOptions(topology="hybrid").structure(both) == MODELS["hybrid"]


def test_exports_name_the_licences_of_what_a_model_was_learned_from(walk: Motion, tmp_path: Path) -> None:
    model = poise.learn([walk], kind="gaussian", licence="CC BY 4.0, by a dancer")
    handles = {"left_hand": (0.3, 1.2, 0.3)}
    both = BlendPrior([model, poise.UniversalPrior(walk.skeleton)], [0.5, 0.5])
    for prior, named in ((model, "dancer"), (both, "CMU"), (both, "dancer")):
        found = poise.read(poise.solve(prior, handles).save(tmp_path / "pose.glb"))
        assert any(named in credit for credit in found.origin.credits)
    take = virtual_markers(walk[:3], marker_layout(walk.skeleton, WITH_HEAD))
    assert poise.perform(model, take).motion.origin.credits == ("CC BY 4.0, by a dancer",)


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
