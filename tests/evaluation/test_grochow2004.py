"""The paper's own optimisers on a style: gradients, and that all reach the same optimum."""

from dataclasses import replace

import numpy as np
import pytest

from differences import gradient
from made_once import learned
from poise import performer
from poise.errors import InvalidValueError
from poise.evaluation.published.grochow2004 import ReferenceRun
from poise.priors.style.prior import StylePrior
from poise.solvers.constraints import Position
from poise.solvers.problem import Problem
from poise.solvers.solution import Solution
from poise.solvers.solve import solve

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")


@pytest.fixture(scope="module")
def style() -> StylePrior:
    walk = performer.act("walk", seconds=3.0, fps=30, seed=3)
    usual = learned(StylePrior, [walk], dimensions=2, active=40)
    return StylePrior(usual.model, limits=usual.limits)


@pytest.fixture(scope="module")
def truth(style: StylePrior) -> np.ndarray:
    walk = performer.act("walk", seconds=1.5, fps=30, seed=4)
    return style.space.q_from_frames(walk.root_positions, walk.rotations)


def handles_of(style: StylePrior, q: np.ndarray) -> list[Position]:
    points, _ = style.space.handle_positions(q, style.space.handles(HANDLES))
    return [Position(name, point) for name, point in zip(HANDLES, points, strict=True)]


@pytest.mark.parametrize("method", ["lbfgs", "sqp"])
def test_gradients_are_those_of_differences(style: StylePrior, truth: np.ndarray, method: str) -> None:
    problem = Problem(style.space, handles_of(style, truth[10]), root="given", limits=style.limits)
    run = ReferenceRun(style.guide(problem.handles), problem, method)
    unknowns = np.concatenate([style.model.active_latents[3] + 0.1, truth[5, 7:]])
    value, slope = run._loss_and_gradient(unknowns, truth[5])
    assert np.isfinite(value)
    numeric = gradient(lambda one: run._loss_and_gradient(one, truth[5])[0], unknowns)
    np.testing.assert_allclose(slope, numeric, rtol=1e-3, atol=1e-3 * np.abs(numeric).max())


def test_with_hard_constraints_sqp_and_the_solver_reach_the_same_optimum(
    style: StylePrior, truth: np.ndarray
) -> None:
    for q in truth[::15]:
        ours, theirs = (solved(style, handles_of(style, q), q, method) for method in ("map", "sqp"))
        assert ours.reached
        assert theirs.reached
        assert style.place(ours.q)[1] == pytest.approx(style.place(theirs.q)[1], abs=0.5)


def test_a_lone_start_goes_through_the_finer_stages_too(
    style: StylePrior, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("poise.priors.latent.guide.STARTS", 1)
    for q in truth[::15]:
        ours, theirs = (solved(style, handles_of(style, q), q, method) for method in ("map", "sqp"))
        assert style.place(ours.q)[1] == pytest.approx(style.place(theirs.q)[1], abs=0.5)


def test_with_soft_constraints_lbfgs_and_the_solver_reach_the_same_optimum(
    style: StylePrior, truth: np.ndarray
) -> None:
    for q in truth[::15]:
        soft = [replace(handle, tolerance=0.005) for handle in handles_of(style, q)]
        problem = Problem(style.space, soft, root="given", limits=style.limits)
        ours, theirs = (
            style.place(found)[1] + problem.soft_loss(problem.errors(found)[0])
            for found in (solved(style, soft, q, method).q for method in ("map", "lbfgs"))
        )
        assert theirs - 5.0 < ours < theirs + 0.5  # L-BFGS sometimes stops short


def solved(style: StylePrior, handles: list[Position], q: np.ndarray, method: str) -> Solution:
    return solve(style, handles, start=np.concatenate([q[:7], style.mean]), root="given", method=method)


def test_references_say_what_they_need(style: StylePrior, truth: np.ndarray) -> None:
    with pytest.raises(InvalidValueError, match="needs a style"):
        solve(style.space, handles_of(style, truth[0]), method="sqp")
    with pytest.raises(InvalidValueError, match="needs a given root"):
        solve(style, handles_of(style, truth[0]), method="lbfgs")
