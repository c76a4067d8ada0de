"""What every registered kind of prior promises: learning, scoring, solving, files, other bodies, determinism."""

from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError, PoiseError, SkeletonError, UnknownNameError
from poise.motion import Motion
from poise.priors import model_file, registry
from poise.priors.prior import Prior
from poise.priors.registry import Storable
from poise.skeleton import Skeleton
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.solvers.constraints import Position
from poise.solvers.solve import solve

QUICK = {"gaussian": {"clusters": 8}, "style": {"dimensions": 2, "active": 20}, "dynamics": {"active": 12}}
HANDS = ("left_hand", "right_hand", "left_foot")


PUBLISHED = ("local chai2005", "gaussian huang2017", "style grochow2004")


def learned(kind: str, clips: list[Motion]) -> Storable:
    kind, _, method = kind.partition(" ")
    options = {**QUICK.get(kind, {}), **({"method": method} if method else {})}
    return registry.learn(clips, kind, registry.options_for(kind, options))


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=2.0, fps=30, seed=3)


@pytest.fixture(scope="module", params=[*registry.learnable(), *PUBLISHED])
def prior(request: pytest.FixtureRequest, walk: Motion) -> Storable:
    return learned(request.param, [walk])


@pytest.fixture
def q(prior: Storable, walk: Motion) -> np.ndarray:
    return prior.space.q_from_frames(walk.root_positions, walk.rotations)[17]


def test_it_is_a_prior_that_says_what_it_is(prior: Storable) -> None:
    assert isinstance(prior, Prior)
    assert isinstance(prior, Storable)
    assert registry.PRIORS[prior.kind] is type(prior)
    assert prior.summary
    assert prior.mean.shape == (prior.space.size - ROOT_SIZE,)


def test_recorded_poses_are_likelier_than_twisted_ones(prior: Storable, q: np.ndarray) -> None:
    twisted = q.copy()
    twisted[ROOT_SIZE:] += 0.8
    assert prior.log_likelihood(q) > prior.log_likelihood(twisted)
    assert 0.0 <= prior.percentile(twisted) <= prior.percentile(q) <= 100.0


def test_a_pose_of_the_data_is_found_from_its_handles(prior: Storable, q: np.ndarray) -> None:
    handles = prior.space.handles(HANDS)
    targets, _ = prior.space.handle_positions(q, handles)
    solution = solve(prior, [Position(*pair) for pair in zip(HANDS, targets, strict=True)])
    assert solution.reached
    found, true = (prior.space.forward(pose)[0] for pose in (solution.q, q))
    assert np.linalg.norm(found - true, axis=1).mean() < 0.15


def test_a_guide_says_the_same_by_its_covariance(prior: Storable, q: np.ndarray) -> None:
    guide = prior.guide(prior.space.handles(HANDS))
    targets, _ = prior.space.handle_positions(q, prior.space.handles(HANDS))
    if not (starts := guide.starts(q, targets, free_root=False)):
        pytest.skip("it offers no start")
    around = guide.gaussian(q, starts[0].state)
    gap, covariance, _ = around
    pull, precision = around.information()
    maps = slice(ROOT_FREEDOMS, None)
    np.testing.assert_allclose(
        precision[maps, maps] @ gap[maps], pull[maps], rtol=0.02, atol=0.02 * abs(pull).max()
    )
    assert np.linalg.eigvalsh(covariance).min() > 0.0


def test_a_file_gives_it_back_as_it_was(prior: Storable, q: np.ndarray, tmp_path: Path) -> None:
    model_file.save(prior, tmp_path / "kept.poise")
    again = model_file.load(tmp_path / "kept.poise")
    assert type(again) is type(prior)
    assert again.summary == prior.summary
    assert again.log_likelihood(q) == pytest.approx(prior.log_likelihood(q), rel=1e-5)
    np.testing.assert_allclose(again.mean, prior.mean, atol=1e-6)


def test_learning_twice_gives_the_same(request: pytest.FixtureRequest, prior: Storable, walk: Motion) -> None:
    again = learned(request.node.callspec.params["prior"], [walk]).arrays()
    for name, array in prior.arrays().items():
        np.testing.assert_array_equal(again[name], array)


def test_it_goes_on_other_limbs_and_not_on_other_skeletons(prior: Storable, q: np.ndarray) -> None:
    larger = prior.on_body(prior.space.skeleton.scaled(1.2))
    assert larger.space.skeleton.height == pytest.approx(1.2 * prior.space.skeleton.height)
    assert larger.log_likelihood(q) == pytest.approx(prior.log_likelihood(q), abs=1.0)
    chain = Skeleton(("a", "b"), np.array([-1, 0]), np.array([[0.0, 0, 0], [0, 1, 0]]))
    with pytest.raises(SkeletonError):
        prior.on_body(chain)


@pytest.mark.parametrize("kind", registry.learnable())
def test_learning_refuses_nothing_and_mixed_skeletons(kind: str, walk: Motion) -> None:
    with pytest.raises(PoiseError):
        learned(kind, [])
    chain = Skeleton(("a", "b"), np.array([-1, 0]), np.array([[0.0, 0, 0], [0, 1, 0]]))
    turns = np.tile([1.0, 0.0, 0.0, 0.0], (30, 2, 1))
    with pytest.raises(PoiseError, match="another skeleton"):
        learned(kind, [walk, Motion(chain, 30.0, np.zeros((30, 3)), turns)])


def test_options_are_checked_before_anything_is_learned() -> None:
    with pytest.raises(UnknownNameError, match="no kind of model 'gausian'; did you mean gaussian"):
        registry.options_for("gausian", {})
    with pytest.raises(InvalidValueError, match="clusters must be a number of at least 1; got 0"):
        registry.options_for("gaussian", {"clusters": 0})
    with pytest.raises(UnknownNameError, match=r"transitions of a dynamics model, 'feet'; valid: auto, none"):
        registry.options_for("dynamics", {"transitions": "feet"})
    with pytest.raises(InvalidValueError, match="a blend is made from learned models"):
        registry.options_for("blend", {})
    with pytest.raises(
        InvalidValueError, match="Motion is not a complete kind of prior; it lacks kind, about"
    ):
        registry.register_prior(Motion)
