"""L_GP and L_IK: their values as the paper writes them, and their gradients."""

import numpy as np
import pytest

from differences import gradient
from poise.priors.style.covariance import PARAMETER_NAMES, Kernel
from poise.priors.style.objective import PoseLoss, best_scales, inverse_of, profiled_loss, training_loss

every_kind = pytest.mark.parametrize("kind", PARAMETER_NAMES)

RNG = np.random.default_rng(0)
LATENTS, CENTRED = RNG.normal(size=(8, 2)), RNG.normal(size=(8, 5))
SCALES = np.exp(RNG.normal(scale=0.3, size=5))


def some_kernel(kind: str) -> Kernel:
    return Kernel(kind, np.random.default_rng(1).normal(scale=0.5, size=len(PARAMETER_NAMES[kind])))


def test_the_training_loss_is_equation_2() -> None:
    kernel = Kernel("rbf", np.log([1.3, 20.0, 0.7]))
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
        return training_loss(CENTRED, latents, kernel=Kernel(kind, logs), scales=np.exp(log_scales)).value

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
    loss, scales = profiled_loss(CENTRED, LATENTS, kernel)
    np.testing.assert_allclose(loss.in_log_scales, 0.0, atol=1e-9)
    inverse, _ = inverse_of(kernel.noisy(LATENTS))
    np.testing.assert_allclose(scales, best_scales(CENTRED, inverse @ CENTRED))
    in_logs = gradient(lambda logs: profiled_loss(CENTRED, LATENTS, Kernel(kind, logs))[0].value, kernel.logs)
    np.testing.assert_allclose(loss.in_logs, in_logs, atol=1e-6)


def test_the_loss_does_not_know_the_unit_of_scales() -> None:
    kernel = some_kernel("rbf+linear")
    one = training_loss(CENTRED, LATENTS, kernel=kernel, scales=SCALES)
    other = training_loss(CENTRED, LATENTS, kernel=kernel.rescaled(4.0), scales=2.0 * SCALES)
    extra = np.log(4.0)  # of the linear part's own prior
    np.testing.assert_allclose(other.value, one.value + extra)


def test_the_pose_loss_is_equation_3() -> None:
    kernel = Kernel("rbf", np.log([1.3, 20.0, 0.7]))
    loss = PoseLoss(kernel, LATENTS, CENTRED, SCALES)
    x, y = np.array([0.2, -0.5]), CENTRED[3] + 0.1
    K, k = kernel.noisy(LATENTS), kernel.matrix(x[None], LATENTS)[0]
    predicted, variance = CENTRED.T @ np.linalg.solve(K, k), 1.3 + 1 / 20.0 - k @ np.linalg.solve(K, k)
    expected = np.sum((SCALES * (y - predicted)) ** 2) / (2 * variance) + 5 / 2 * np.log(variance) + x @ x / 2
    np.testing.assert_allclose(loss.value(x[None], y[None]), [expected])


@every_kind
def test_gradients_of_the_pose_loss_meet_finite_differences(kind: str) -> None:
    loss = PoseLoss(some_kernel(kind), LATENTS, CENTRED, SCALES)
    x, y = RNG.normal(size=(4, 2)), RNG.normal(size=(4, 5))
    value, in_x, hessian = loss.shape(x, y)
    np.testing.assert_allclose(value, loss.value(x, y))
    np.testing.assert_allclose(in_x, gradient(lambda x: loss.value(x, y).sum(), x), atol=1e-6)
    assert np.linalg.eigvalsh(hessian).min() > 0


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        inverse_of(-np.eye(3))
