"""Kernels: positive definite, with gradients that meet finite differences, and the same compiled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differences import gradient
from poise.errors import InvalidValueError, UnknownNameError
from poise.priors.style.compiled_covariance import kernel_self, kernel_vector
from poise.priors.style.covariance import PARAMETER_NAMES, Kernel

every_kind = pytest.mark.parametrize("kind", PARAMETER_NAMES)


def some_kernel(kind: str, seed: int = 0) -> Kernel:
    return Kernel(kind, np.random.default_rng(seed).normal(scale=0.5, size=len(PARAMETER_NAMES[kind])))


@every_kind
def test_gradients_meet_finite_differences(kind: str) -> None:
    rng = np.random.default_rng(1)
    kernel, x, dK = some_kernel(kind), rng.normal(size=(6, 3)), rng.normal(size=(6, 6))
    dK = dK + dK.T
    logs, in_x = kernel.at(x).gradients(dK)
    expected = gradient(lambda logs: np.vdot(dK, Kernel(kind, logs).noisy(x)), kernel.logs)
    np.testing.assert_allclose(logs, expected, atol=1e-7)
    np.testing.assert_allclose(in_x, gradient(lambda x: np.vdot(dK, kernel.noisy(x)), x), atol=1e-7)


@every_kind
def test_slopes_meet_finite_differences(kind: str) -> None:
    rng = np.random.default_rng(2)
    kernel, a, b = some_kernel(kind), rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    K, slopes = kernel.slopes_in_x(a, b)
    np.testing.assert_allclose(K, kernel.matrix(a, b), atol=1e-12)
    for i, j in np.ndindex(4, 5):
        expected = gradient(lambda x, j=j: kernel.matrix(x[None], b)[0, j], a[i])
        np.testing.assert_allclose(slopes[i, j], expected, atol=1e-8)
    expected = gradient(lambda x: kernel.diagonal(x).sum(), a)
    np.testing.assert_allclose(kernel.diagonal_slopes(a), expected, atol=1e-8)


@every_kind
@given(seed=st.integers(0, 1000))
def test_the_compiled_kernel_is_the_same(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel, x, actives = some_kernel(kind, seed), rng.normal(size=3), rng.normal(size=(7, 3))
    k, dk, slope = np.empty(7), np.empty((7, 3)), np.empty(3)
    kernel_vector(kernel.number, kernel.parameters, x, actives, k, dk)
    own = kernel_self(kernel.number, kernel.parameters, x, slope)
    K, slopes = kernel.slopes_in_x(x[None], actives)
    np.testing.assert_allclose(k, K[0], atol=1e-12)
    np.testing.assert_allclose(dk, slopes[0], atol=1e-12)
    np.testing.assert_allclose(own, kernel.diagonal(x[None])[0])
    np.testing.assert_allclose(slope, kernel.diagonal_slopes(x[None])[0])


@every_kind
def test_at_a_shared_point_gradients_stay_finite(kind: str) -> None:
    kernel, x = some_kernel(kind), np.zeros((3, 2))
    logs, in_x = kernel.at(x).gradients(np.ones((3, 3)))
    k, dk = np.empty(3), np.empty((3, 2))
    kernel_vector(kernel.number, kernel.parameters, x[0], x, k, dk)
    assert all(np.all(np.isfinite(values)) for values in (logs, in_x, k, dk, kernel.slopes_in_x(x, x)[1]))


@every_kind
def test_matrices_of_repeated_points_are_positive_definite(kind: str) -> None:
    x = np.repeat(np.random.default_rng(3).normal(size=(10, 3)), 5, axis=0)
    logs = np.zeros(len(PARAMETER_NAMES[kind]))
    logs[1] = 13.0
    K = Kernel(kind, logs).noisy(x)
    np.linalg.cholesky(K)
    np.testing.assert_allclose(np.diag(K), Kernel(kind, logs).diagonal(x), rtol=1e-3, atol=1e-5)


def test_the_rbf_kernel_is_equation_1() -> None:
    kernel = Kernel("rbf", np.log([2.0, 5.0, 3.0]))
    a, b = np.array([[0.1, -0.4]]), np.array([[0.5, 0.2]])
    expected = 2.0 * np.exp(-1.5 * np.sum((a - b) ** 2))
    np.testing.assert_allclose(kernel.matrix(a, b), [[expected]])
    np.testing.assert_allclose(kernel.diagonal(a), [2.0 + 1.0 / 5.0])


def test_rational_quadratic_and_periodic_tend_to_rbf() -> None:
    x = np.random.default_rng(4).normal(size=(5, 2))
    rbf = Kernel("rbf", np.zeros(3)).matrix(x, x)
    quadratic = Kernel("rational-quadratic", np.array([0.0, 0.0, 0.0, 15.0])).matrix(x, x)
    periodic = Kernel("periodic", np.array([0.0, 0.0, 0.0, -8.0])).matrix(x, x)
    np.testing.assert_allclose(quadratic, rbf, atol=1e-5)
    np.testing.assert_allclose(periodic, rbf, atol=1e-5)


def test_the_periodic_kernel_repeats() -> None:
    kernel = Kernel("periodic", np.log([1.0, 1.0, 1.0, 2.5]))
    x = np.array([[0.3, 0.1]])
    np.testing.assert_allclose(kernel.matrix(x, x + 2.0 * np.pi / 2.5), [[1.0]])


def test_parameters_interpolate_linearly() -> None:
    fine, smooth = Kernel("rbf", np.log([1.0, 100.0, 4.0])), Kernel("rbf", np.log([3.0, 20.0, 2.0]))
    np.testing.assert_allclose(np.exp(fine.towards(smooth, 0.25).logs), [1.5, 80.0, 3.5])


def test_mistakes_are_told() -> None:
    with pytest.raises(UnknownNameError, match="did you mean matern32"):
        Kernel.start("matern3")
    with pytest.raises(InvalidValueError, match="3 finite log-parameters"):
        Kernel("rbf", np.zeros(2))
    with pytest.raises(InvalidValueError, match="does not blend"):
        Kernel.start("rbf").towards(Kernel.start("matern32"), 0.5)
