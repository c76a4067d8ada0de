"""The paper's own optimisers on a style: gradients, and that all reach the same optimum."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from differences import gradient
from made_once import learned
from poise import performer
from poise.errors import InvalidValueError
from poise.evaluation.published.grochow2004 import ReferenceRun
from poise.geometry import rotations
from poise.gp.covariance import Kernel
from poise.priors.blend import BlendPrior
from poise.priors.gaussian import GaussianPrior
from poise.priors.style.prior import StylePrior
from poise.solvers.constraints import Position
from poise.solvers.problem import Problem
from poise.solvers.solution import Solution
from poise.solvers.solve import Solver, solve

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
    gaussian = learned(GaussianPrior, [performer.act("walk", seconds=3.0, fps=30, seed=3)], clusters=4)
    with pytest.raises(InvalidValueError, match="no latent point"):
        solve(gaussian, handles_of(style, truth[0]), method="lbfgs")


# --- a style learned as published ----------------------------------------------------------------------------------

FPS = 30.0
STEPS = (60, 60, 500)
SOFT = 0.5e-3  # metres: the deviation of a handle


@pytest.fixture(scope="module")
def published() -> StylePrior:
    walk = performer.act("walk", seconds=3.0, fps=FPS, seed=3)
    return learned(StylePrior, [walk], method="grochow2004", active=40)


def annealed_lbfgs(
    style: StylePrior, points: np.ndarray, q: np.ndarray, x: np.ndarray, before: list[np.ndarray]
) -> tuple[float, np.ndarray]:
    """L_IK and soft handles (Eqs. 1, 3 to 6, 16 to 20) for a given root, in the three stages of section 6.2."""
    model, maps = style.model, style.mean.size
    latents, outputs, w, size = model.active_latents, model.outputs, model.scales, model.scales.size // 3
    one, two = (np.concatenate([p[7:], rotations.matrix_from_quaternion(p[3:7])[1]]) for p in before)
    handles = style.space.handles(HANDLES)

    def parameters(kernel: Kernel) -> np.ndarray:
        return np.array([kernel.signal_variance, 1 / kernel.noise_variance, kernel.inverse_width])

    def loss(unknowns: np.ndarray, a: float, b: float, c: float) -> tuple[float, np.ndarray]:
        x, pose = unknowns[:3], np.concatenate([q[:7], unknowns[3:]])
        gaps = latents[:, None] - latents
        inverse = np.linalg.inv(a * np.exp(-0.5 * c * np.sum(gaps**2, axis=-1)) + np.eye(len(latents)) / b)
        k = a * np.exp(-0.5 * c * np.sum((x - latents) ** 2, axis=1))
        dk = -c * (x - latents) * k[:, None]
        now = np.concatenate([pose[7:], rotations.matrix_from_quaternion(pose[3:7])[1]])
        y = np.concatenate([now, now - one, now - 2 * one + two])
        left = w * (y - model.mean - outputs.T @ inverse @ k)
        variance = a + 1 / b - k @ inverse @ k
        value = left @ left / (2 * variance) + len(y) / 2 * np.log(variance) + x @ x / 2
        in_y = w * left / variance
        in_x = x - (outputs.T @ inverse @ dk).T @ in_y
        in_x = in_x + (len(y) - left @ left / variance) / (2 * variance) * (-2 * k @ inverse @ dk)
        found, jacobian = style.space.handle_positions(pose, handles)
        missed = (found - points).ravel() / SOFT
        in_maps = in_y.reshape(3, size)[:, :maps].sum(axis=0) + missed @ jacobian[:, 6:] / SOFT
        return float(value + missed @ missed / 2), np.concatenate([in_x, in_maps])

    fine, smooth = parameters(model.kernel), parameters(model.annealed)
    between = fine / np.sqrt(2) + (1 - 1 / np.sqrt(2)) * smooth
    unknowns = np.concatenate([x, q[7:]])
    limits = list(zip(*Problem(style.space, [], limits=style.limits).limits[:, 6:], strict=True))
    _, jacobian = style.space.handle_positions(q, handles)
    curved = (w.reshape(3, size)[:, :maps] ** 2).sum(axis=0) / style.model.variance(x)
    scale = np.concatenate(
        [np.full(3, 0.02), 1 / np.sqrt(curved + (jacobian[:, 6:] ** 2).sum(axis=0) / SOFT**2)]
    )
    bounds = [
        (low / one, high / one)
        for (low, high), one in zip([(-np.inf, np.inf)] * 3 + limits, scale, strict=True)
    ]

    def scaled(unknowns: np.ndarray, *stage: float) -> tuple[float, np.ndarray]:
        value, slope = loss(scale * unknowns, *stage)
        return value, scale * slope

    for stage, steps in zip((smooth, between, fine), STEPS, strict=True):
        found = minimize(
            scaled, unknowns / scale, args=tuple(stage), jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": steps, "maxcor": 60},
        )  # fmt: skip
        unknowns = scale * found.x
    return float(found.fun), np.concatenate([q[:7], unknowns[3:]])


def test_it_solves_as_an_independent_annealed_lbfgs_does(published: StylePrior) -> None:
    """Tracked with previous frames: the loss and the error of the joints, each within 2 % over the frames."""
    unseen = performer.act("walk", seconds=2.0, fps=FPS, seed=4)
    truth = published.space.q_from_frames(unseen.root_positions, unseen.rotations)
    solver = Solver(published, handles_of(published, truth[0]), root="given", fps=FPS)
    assert solver.method == "lbfgs"
    ours, theirs, errors, their_errors = [], [], [], []
    for frame in range(2, len(truth), 8):
        before = [truth[frame - 1], truth[frame - 2]]
        start = np.concatenate([truth[frame, :7], before[0][7:]])
        points, _ = published.space.handle_positions(truth[frame], published.space.handles(HANDLES))
        solution = solver.solve(start, targets=points, before=before)
        run = solver._run
        missed = solver.problem.errors(solution.q)[0] / SOFT
        ours.append(run.loss + missed @ missed / 2)
        loss, q = annealed_lbfgs(published, points, start, published.place(before[0])[0], before)
        theirs.append(loss)
        for found, kept in ((solution.q, errors), (q, their_errors)):
            kept.append(np.abs(found[7:] - truth[frame, 7:]).mean())
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.02)
    assert np.mean(errors) == pytest.approx(np.mean(their_errors), rel=0.02)


def test_a_free_root_and_previous_frames_have_the_gradients_of_differences(published: StylePrior) -> None:
    walk = performer.act("walk", seconds=1.0, fps=FPS, seed=4)
    q = published.space.q_from_frames(walk.root_positions, walk.rotations)
    problem = Problem(published.space, handles_of(published, q[12]), root="solved", limits=published.limits)
    run = ReferenceRun(published.guide(problem.handles, fps=FPS), problem, "lbfgs")
    run._parts[0][1].follow([q[9], q[8]])
    moved = np.array([0.1, -0.05, 0.2, 0.3, -0.4, 0.2])
    unknowns = np.concatenate([published.model.active_latents[3] + 0.1, moved, q[10, 7:]])
    for stage in range(3):
        _, slope = run._loss_and_gradient(unknowns, q[10], stage)
        numeric = gradient(lambda one, at=stage: run._loss_and_gradient(one, q[10], at)[0], unknowns)
        np.testing.assert_allclose(slope, numeric, rtol=1e-3, atol=1e-3 * np.abs(numeric).max())


def test_a_free_root_is_solved_by_its_own_optimiser(published: StylePrior) -> None:
    walk = performer.act("walk", seconds=1.0, fps=FPS, seed=4)
    (q,) = published.space.q_from_frames(walk.root_positions, walk.rotations)[[10]]
    names = (*HANDLES, "pelvis")
    points, _ = published.space.handle_positions(q, published.space.handles(names))
    solver = Solver(published, [Position(*pair) for pair in zip(names, points, strict=True)])
    solution = solver.solve()
    assert solver.method == "lbfgs"
    assert solution.reached
    found, true = (published.space.forward(pose)[0] for pose in (solution.q, q))
    assert np.linalg.norm(found - true, axis=1).mean() < 0.05


def test_blends_minimise_the_weighted_sum_as_written(published: StylePrior) -> None:
    """Eq. 9: (1 - s) L_0 + s L_1, with a latent point for each style."""
    other = learned(
        StylePrior, [performer.act("run", seconds=2.0, fps=FPS, seed=3)], method="grochow2004", active=40
    )
    blend = BlendPrior([published, other], [0.7, 0.3])
    walk = performer.act("walk", seconds=1.0, fps=FPS, seed=4)
    (q,) = blend.space.q_from_frames(walk.root_positions, walk.rotations)[[10]]
    points, _ = blend.space.handle_positions(q, blend.space.handles(HANDLES))
    handles = [Position(*pair) for pair in zip(HANDLES, points, strict=True)]
    problem = Problem(blend.space, handles, root="given", limits=blend.limits)
    run = ReferenceRun(blend.guide(problem.handles), problem, "lbfgs")
    unknowns = np.concatenate([published.latents[5] + 0.1, other.latents[5] - 0.1, q[7:] + 0.01])
    value, slope = run._loss_and_gradient(unknowns, q)
    numeric = gradient(lambda one: run._loss_and_gradient(one, q)[0], unknowns)
    np.testing.assert_allclose(slope, numeric, rtol=1e-3, atol=1e-3 * np.abs(numeric).max())
    solution = solve(blend, handles, start=q, root="given", method="lbfgs")
    assert solution.reached
    both = [weight * part.place(chart.own(solution.q))[1] for part, weight, chart in blend.parts]
    start = [weight * part.place(chart.own(q))[1] for part, weight, chart in blend.parts]
    assert sum(both) < sum(start)
    assert value > sum(both)
