"""The auto prior: what the clips show by the expert, the rest by people in general."""

from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.errors import PoiseError
from poise.motion import Motion
from poise.priors import registry
from poise.priors.auto import HANDLES, AutoPrior, bagged
from poise.priors.model_file import load, save
from poise.priors.universal.prior import UniversalPrior
from poise.solvers.solution import Status
from poise.solvers.solve import solve


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


def test_experts_take_part_as_held_out_frames_decide(auto: AutoPrior, walk: Motion, tmp_path: Path) -> None:
    kinds = [part.kind for part in auto.components]
    assert kinds[:2] == ["universal", "gaussian"]
    assert set(kinds[2:]) <= {"style", "local"}
    assert min(auto.weights) > 0.0
    save(auto, tmp_path / "mine.poise")
    q = auto.space.q_from_frames(walk.root_positions[:1], walk.rotations[:1])[0]
    hand = np.asarray(auto.space.pose_from_q(q).positions["left_hand"])
    found = [
        solve(model, {"left_hand": hand}, start=q, root="given")
        for model in (auto, load(tmp_path / "mine.poise"))
    ]
    assert all(solution.status is Status.REACHED for solution in found)
    np.testing.assert_allclose(found[1].q, found[0].q, atol=1e-5)


def test_one_expert_is_the_only_one(walk: Motion) -> None:
    prior = AutoPrior.learn([walk], expert="local")
    assert [part.kind for part in prior.components] == ["universal", "local"]


def test_of_a_few_frames_a_gaussian_is_learned(walk: Motion) -> None:
    assert [part.kind for part in AutoPrior.learn([walk[:3]]).components] == ["universal", "gaussian"]


def test_clear_evidence_chooses_one_blend_and_weak_evidence_a_mean() -> None:
    candidates = np.array([[0.1, 0.9, 0.0], [0.1, 0.45, 0.45], [0.98, 0.01, 0.01]])
    clear = np.tile([2.0, 1.0, 3.0], (60, 1))
    np.testing.assert_allclose(bagged(candidates, clear), candidates[1])
    weak = np.where(np.arange(60)[:, None] < 30, [2.0, 1.0, 3.0], [1.0, 2.0, 3.0])
    people, first, second = bagged(candidates, weak)
    assert people == pytest.approx(0.1)
    assert 0.1 < second < 0.35
    assert first + second == pytest.approx(0.9)


def test_an_expert_with_little_weight_does_not_take_part() -> None:
    candidates = np.array([[0.02, 0.94, 0.04]])
    np.testing.assert_allclose(bagged(candidates, np.ones((10, 1))), [0.02 / 0.96, 0.94 / 0.96, 0.0])
