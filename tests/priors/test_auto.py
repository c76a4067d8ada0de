"""The auto prior: what the clips show by the expert, the rest by people in general."""

from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.errors import PoiseError
from poise.motion import Motion
from poise.priors import registry
from poise.priors.auto import HANDLES, AutoPrior
from poise.priors.model_file import load, save
from poise.priors.universal.prior import UniversalPrior


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=3.0, fps=30)


@pytest.fixture(scope="module")
def auto(walk: Motion) -> AutoPrior:
    return AutoPrior.learn([walk], clusters=20)


def left_of_the_expert(prior: AutoPrior, clip: Motion) -> list[float]:
    """How much of the expert every tenth frame keeps."""
    handles, space = prior.space.handles(HANDLES), prior.space
    guide, frames = prior.guide(handles), clip[::10]
    poses = space.q_from_frames(frames.root_positions, frames.rotations)
    shown = space.points(poses, handles)
    return [guide.resumed(q, targets)[-1] for q, targets in zip(poses, shown, strict=True)]


def test_the_expert_keeps_its_weight_on_its_clip_and_fades_away_from_it(
    auto: AutoPrior, walk: Motion
) -> None:
    assert np.median(left_of_the_expert(auto, walk)) > 0.95
    reaching = performer.act("reach", seconds=2.0, fps=30)
    assert min(left_of_the_expert(auto, reaching)) < 0.05


def test_an_expert_that_is_off_by_a_centimetre_keeps_its_weight(auto: AutoPrior) -> None:
    again = performer.act("walk", seconds=1.0, fps=30, seed=5)
    assert auto.reach == pytest.approx(
        0.025
    )  # it was off by less on the frames held out of so regular a clip
    assert np.median(left_of_the_expert(auto, again)) > 0.95


def test_far_from_the_clip_it_expects_what_people_in_general_do(auto: AutoPrior, walk: Motion) -> None:
    space = auto.space
    handles = space.handles(HANDLES)
    q = space.q_from_frames(walk.root_positions[:1], walk.rotations[:1])[0]
    targets = space.points(q[None], handles)[0]
    targets[1:3] += [0.0, 1.0, 0.2]  # both hands above the head
    people = UniversalPrior.learn([walk]).guide(handles)
    expected = people.expectation(q, people.resumed(q, targets))[0]
    guide = auto.guide(handles)
    maps = guide.expectation(q, guide.resumed(q, targets))[0]
    found, wanted = (
        own.frames_from_q(np.concatenate([q[:7], pose]))[1]
        for own, pose in ((space, maps), (people.space, expected))
    )
    assert np.abs(np.sum(found * wanted, axis=-1)).min() > np.cos(np.radians(5.0) / 2)


def test_a_file_keeps_where_the_expert_fades(auto: AutoPrior, tmp_path: Path) -> None:
    save(auto, tmp_path / "mine.poise")
    again = load(tmp_path / "mine.poise")
    assert isinstance(again, AutoPrior)
    assert again.reach == pytest.approx(auto.reach)


def test_clusters_are_of_a_gaussian(walk: Motion) -> None:
    with pytest.raises(PoiseError, match="clusters"):
        registry.learn([walk], "auto", registry.options_for("auto", {"expert": "local", "clusters": 5}))
