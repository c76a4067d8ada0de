"""The local prior in the solver's contract, and the regression behind it."""

from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion import Motion
from poise.priors.local import regression
from poise.priors.local.examples import Examples
from poise.priors.local.prior import LocalPrior
from poise.priors.local.regression import Data, Signal
from poise.priors.model_file import load, save
from poise.priors.poses import Limb
from poise.priors.prior import Prior
from poise.skeleton.kernels import ROOT_SIZE
from poise.solvers.constraints import Position
from poise.solvers.solve import solve

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")


@pytest.fixture(scope="module")
def walks() -> list[Motion]:
    return [
        performer.act("walk", seconds=3.0, fps=60, seed=seed, speed=1.1 + 0.2 * seed) for seed in range(2)
    ]


@pytest.fixture(scope="module")
def prior(walks: list[Motion]) -> LocalPrior:
    return LocalPrior.learn(walks)


def test_it_is_a_prior(prior: LocalPrior) -> None:
    assert isinstance(prior, Prior)


def test_examples_know_the_moment_before(walks: list[Motion]) -> None:
    examples = Examples.of_motions(walks)
    again = examples.space.q_from_frames(walks[0].root_positions, walks[0].rotations)
    np.testing.assert_allclose(examples.q[3], again[8], atol=1e-6)
    np.testing.assert_allclose(examples.before[3], again[6], atol=1e-6)


def test_predictions_at_examples_are_near_them_and_covariances_are_positive(prior: LocalPrior) -> None:
    handles = prior.space.handles(HANDLES)
    predict = prior.guide(handles)
    maps = prior.examples.maps[10]
    mean, covariance = predict(prior.space.points_in_root_frame(maps[None], handles)[0])
    assert np.abs(mean - maps).max() < 0.1
    assert np.linalg.eigvalsh(covariance).min() > 0
    far, spread = predict(np.full((5, 3), 40.0))
    assert np.all(np.isfinite(far))
    assert np.linalg.eigvalsh(spread).min() > 0


def test_the_solver_meets_handles_with_it(prior: LocalPrior, walks: list[Motion]) -> None:
    handles = prior.space.handles(HANDLES)
    q = prior.examples.q[25]
    targets = prior.space.points(q[None], handles)[0] + 0.02
    solution = solve(prior, [Position(name, target) for name, target in zip(HANDLES, targets, strict=True)])
    assert solution.reached
    assert solution.percentile is not None
    del walks


def test_likelihood_tells_walks_from_contortions(prior: LocalPrior) -> None:
    q = prior.examples.q[30].copy()
    usual = prior.log_likelihood(q)
    q[7:] += np.random.default_rng(0).normal(0, 0.6, len(q) - 7)
    assert prior.log_likelihood(q) < usual
    assert prior.percentile(q) == 0.0


@pytest.fixture(scope="module")
def two_performers(walks: list[Motion]) -> list[Motion]:
    """The same walk by two bodies; the head of the taller one was calibrated 0.4 radians off."""
    walk = walks[0]
    tall = walk.skeleton.scaled(1.1)
    turned, head = walk.rotations.copy(), walk.skeleton.index("head")
    turned[:, head] = rotations.multiply(
        turned[:, head], rotations.quaternion_from_expmap(np.array([0.0, 0.4, 0.0]))
    )
    return [walk, Motion(tall, walk.fps, 1.1 * walk.root_positions, turned, name="tall")]


@pytest.mark.parametrize("kept", [False, True])
def test_performers_are_told_apart_by_their_bones(
    two_performers: list[Motion], kept: bool, tmp_path: Path
) -> None:
    prior: Prior = LocalPrior.learn(two_performers)
    if kept:
        save(prior, tmp_path / "two.poise")
        prior = load(tmp_path / "two.poise")
    found = []
    for motion in two_performers:
        body = prior.on_body(motion.skeleton)
        q = body.space.q_from_frames(motion.root_positions[20:21], motion.rotations[20:21])
        handles = body.space.handles(HANDLES)
        targets = body.space.points_in_root_frame(q[:, ROOT_SIZE:], handles)[0]
        mean, _ = body.guide(handles)(targets)
        joint = body.space.moving.tolist().index(motion.skeleton.index("head"))
        found.append((mean - q[0, ROOT_SIZE:])[3 * joint : 3 * joint + 3])
    assert np.abs(found).max() < 0.1  # where nobody is told apart, both are 0.2 off


def test_it_is_kept_in_a_file(prior: LocalPrior, tmp_path: Path) -> None:
    save(prior, tmp_path / "walk.poise")
    again = load(tmp_path / "walk.poise")
    handles = prior.space.handles(HANDLES)
    targets = prior.space.points_in_root_frame(prior.examples.maps[5:6], handles)[0]
    np.testing.assert_allclose(again.guide(handles)(targets)[0], prior.guide(handles)(targets)[0], atol=1e-3)


def test_two_examples_are_the_least(walks: list[Motion]) -> None:
    with pytest.raises(InvalidValueError, match="at least two"):
        LocalPrior(Examples.of_motions([walks[0][:3]]))


def test_neighbourhoods_take_over_from_each_other_without_a_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = _around_a_circle(monkeypatch)
    assert len(fitted.cover) == 10
    assert fitted.fitted == 0
    fine = np.linspace(0.2, 5.8, 2000)
    found = np.stack([fitted(np.array([np.cos(t), np.sin(t)]))[0] for t in fine])
    np.testing.assert_allclose(found[:, 0], np.sin(3 * fine), atol=0.1)
    assert np.abs(np.diff(found, axis=0)).max() < 0.03
    assert fitted.fitted == 10


def test_fitting_everywhere_ahead_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy, eager = _around_a_circle(monkeypatch), _around_a_circle(monkeypatch)
    told: list[float] = []
    eager.fit_everywhere(told.append)
    assert eager.fitted == len(told) == 10
    assert told[-1] == 1.0
    for t in np.linspace(0.0, 6.0, 50):
        x = np.array([np.cos(t), np.sin(t)])
        np.testing.assert_array_equal(lazy(x)[0], eager(x)[0])
        np.testing.assert_array_equal(lazy(x)[1], eager(x)[1])
    assert eager.fitted == 10


def _around_a_circle(monkeypatch: pytest.MonkeyPatch) -> regression.LocalRegression:
    """Ten neighbourhoods along a circle."""
    for name, value in {"WHOLE": 90, "MEMBERS": 60, "SPACING": 30, "ANCHORS": 10}.items():
        monkeypatch.setattr(regression, name, value)
    x = np.linspace(0.0, 6.0, 300)
    return regression.fit(
        Data(
            np.stack([np.cos(x), np.sin(x)], axis=1),
            np.stack([np.sin(3 * x), np.cos(2 * x)], axis=1),
            np.arange(300) // 30,
        ),
        signal=Signal(np.array([0, 0]), np.array([0]), np.array([0])),
        limbs=[Limb(np.arange(2), np.array([True]))],
        touched=np.array([True, True]),
    )
