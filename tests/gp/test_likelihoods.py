"""Likelihoods, exact and sparse, L_GP and L_IK: their values as papers write them, and their gradients."""

import numpy as np
import pytest

from differences import gradient
from poise.gp.covariance import KERNELS, Kernel
from poise.gp.latent import PlacingLoss, training_loss
from poise.gp.process import Bound, Posterior, Scaling, best_scales, inverse_of, sparse_loss

every_kind = pytest.mark.parametrize("kind", KERNELS)

RNG = np.random.default_rng(0)
LATENTS, CENTRED = RNG.normal(size=(8, 2)), RNG.normal(size=(8, 5))
SCALES = np.exp(RNG.normal(scale=0.3, size=5))


def some_kernel(kind: str) -> Kernel:
    return Kernel.of(kind, np.random.default_rng(1).normal(scale=0.5, size=len(KERNELS[kind].names)))


def test_the_training_loss_is_equation_2() -> None:
    kernel = Kernel.of("rbf", np.log([1.3, 20.0, 0.7]))
    K = kernel.noisy(LATENTS)
    fits = [w**2 * y @ np.linalg.solve(K, y) for w, y in zip(SCALES, CENTRED.T, strict=True)]
    expected = (
        5 / 2 * np.log(np.linalg.det(K))
        + 0.5 * sum(fits)
        + 0.5 * np.sum(LATENTS**2)
        + np.log(1.3 * 20.0 * 0.7 / np.prod(SCALES**8))
    )
    np.testing.assert_allclose(training_loss(CENTRED, LATENTS, kernel=kernel, scales=SCALES).value, expected)


@every_kind
def test_gradients_of_the_training_loss_meet_finite_differences(kind: str) -> None:
    kernel = some_kernel(kind)
    loss = training_loss(CENTRED, LATENTS, kernel=kernel, scales=SCALES)

    def value(latents: np.ndarray, logs: np.ndarray, log_scales: np.ndarray) -> float:
        return training_loss(CENTRED, latents, kernel=Kernel.of(kind, logs), scales=np.exp(log_scales)).value

    logs, log_scales = kernel.logs, np.log(SCALES)
    in_x = gradient(lambda x: value(x, logs, log_scales), LATENTS)
    np.testing.assert_allclose(loss.in_latents, in_x, atol=1e-6)
    np.testing.assert_allclose(
        loss.in_logs, gradient(lambda p: value(LATENTS, p, log_scales), logs), atol=1e-6
    )
    in_scales = gradient(lambda w: value(LATENTS, logs, w), log_scales)
    np.testing.assert_allclose(loss.in_log_scales, in_scales, atol=1e-6)


@every_kind
def test_scales_in_closed_form_are_the_best(kind: str) -> None:
    kernel = some_kernel(kind)
    loss = training_loss(CENTRED, LATENTS, kernel)
    np.testing.assert_allclose(loss.in_log_scales, 0.0, atol=1e-9)
    inverse, _ = inverse_of(kernel.noisy(LATENTS))
    fits = np.einsum("nk,nk->k", CENTRED, inverse @ CENTRED)
    np.testing.assert_allclose(loss.scales, best_scales(fits, len(CENTRED), "each"))
    in_logs = gradient(lambda logs: training_loss(CENTRED, LATENTS, Kernel.of(kind, logs)).value, kernel.logs)
    np.testing.assert_allclose(loss.in_logs, in_logs, atol=1e-6)


def test_the_loss_does_not_know_the_unit_of_scales() -> None:
    kernel = some_kernel("rbf+linear")
    one = training_loss(CENTRED, LATENTS, kernel=kernel, scales=SCALES)
    other = training_loss(CENTRED, LATENTS, kernel=kernel.rescaled(4.0), scales=2.0 * SCALES)
    extra = np.log(4.0)  # of the linear part's own prior
    np.testing.assert_allclose(other.value, one.value + extra)


def test_the_pose_loss_is_equation_3() -> None:
    kernel = Kernel.of("rbf", np.log([1.3, 20.0, 0.7]))
    loss = PlacingLoss(Posterior.given(kernel, LATENTS, CENTRED), SCALES)
    x, y = np.array([0.2, -0.5]), CENTRED[3] + 0.1
    K, k = kernel.noisy(LATENTS), kernel.matrix(x[None], LATENTS)[0]
    predicted, variance = CENTRED.T @ np.linalg.solve(K, k), 1.3 + 1 / 20.0 - k @ np.linalg.solve(K, k)
    expected = np.sum((SCALES * (y - predicted)) ** 2) / (2 * variance) + 5 / 2 * np.log(variance) + x @ x / 2
    np.testing.assert_allclose(loss.value(x[None], y[None]), [expected])


@every_kind
def test_gradients_of_the_pose_loss_meet_finite_differences(kind: str) -> None:
    loss = PlacingLoss(Posterior.given(some_kernel(kind), LATENTS, CENTRED), SCALES)
    x, y = RNG.normal(size=(4, 2)), RNG.normal(size=(4, 5))
    value, in_x, hessian = loss.shape(x, y)
    np.testing.assert_allclose(value, loss.value(x, y))
    np.testing.assert_allclose(in_x, gradient(lambda x: loss.value(x, y).sum(), x), atol=1e-6)
    assert np.linalg.eigvalsh(hessian).min() > 0


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        inverse_of(-np.eye(3))


@pytest.mark.parametrize("kind", [kind for kind in KERNELS if "linear" not in kind])
@pytest.mark.parametrize("scaling", ["none", "one", "each"])
def test_the_reverse_pass_of_the_sparse_process(
    kind: str, scaling: Scaling, rng: np.random.Generator
) -> None:
    inputs, inducing, outputs = rng.normal(size=(20, 3)), rng.normal(size=(6, 3)), rng.normal(size=(20, 4))
    logs = np.array([0.2, 2.0, -0.3, 0.4][: len(KERNELS[kind].names)])
    loss = sparse_loss(outputs, inputs, inducing, Kernel.of(kind, logs), scaling=scaling)

    def value(**changed: np.ndarray) -> float:
        given = {"outputs": outputs, "inputs": inputs, "inducing": inducing, "logs": logs, **changed}
        kernel = Kernel.of(kind, given.pop("logs"))
        return sparse_loss(**given, kernel=kernel, scaling=scaling).value

    for name, found in {
        "logs": loss.in_logs,
        "inputs": loss.in_inputs,
        "inducing": loss.in_inducing,
        "outputs": loss.in_outputs,
    }.items():
        at = {"logs": logs, "inputs": inputs, "inducing": inducing, "outputs": outputs}[name]
        slopes = gradient(lambda changed, name=name: value(**{name: changed}), at)
        np.testing.assert_allclose(found, slopes, rtol=1e-4, atol=1e-4, err_msg=name)


def test_inducing_points_that_lie_close_do_not_drown_the_bound_in_rounding(rng: np.random.Generator) -> None:
    turns = np.linspace(0.0, 16.0 * np.pi, 600)
    inputs = np.column_stack([np.cos(turns), np.sin(turns), 0.3 * np.sin(turns / 9.0)])
    inputs += 0.01 * rng.normal(size=inputs.shape)
    outputs = np.sin(2.0 * inputs @ rng.normal(size=(3, 40))) + 0.01 * rng.normal(size=(600, 40))
    kernel = Kernel.of("rbf", np.array([0.0, np.log(70.0), 0.0]))

    def bound(x: np.ndarray) -> Bound:
        return sparse_loss(outputs, x.reshape(inputs.shape), inputs[::3], kernel, scaling="each")

    at, slope = inputs.ravel(), bound(inputs).in_inputs.ravel()
    towards = slope / np.linalg.norm(slope)
    for step in (1e-4, 1e-5):
        found = (bound(at + step * towards).value - bound(at - step * towards).value) / (2.0 * step)
        assert found == pytest.approx(np.linalg.norm(slope), rel=1e-4)
