"""Kernels: positive definite, with gradients that meet finite differences, and the same compiled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differences import gradient
from poise.errors import InvalidValueError, UnknownNameError
from poise.gp.covariance import (
    KERNELS,
    Curves,
    Kernel,
    KernelMatrix,
    curves_of,
    kernel_curves,
    kernel_self,
    self_bend,
    weighed_bends,
)

every_kind = pytest.mark.parametrize("kind", KERNELS)


def some_kernel(kind: str, seed: int = 0) -> Kernel:
    return Kernel.of(kind, np.random.default_rng(seed).normal(scale=0.5, size=len(KERNELS[kind].names)))


@every_kind
def test_every_gradient_meets_finite_differences(kind: str) -> None:
    """In the parameters and in both sets of points, of a matrix and of its diagonal, slope by slope, and the bends."""
    rng, kernel = np.random.default_rng(1), some_kernel(kind)
    a, b, dK, own = (rng.normal(size=size) for size in ((4, 3), (5, 3), (4, 5), (4, 4)))
    own = own + own.T

    def across(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> float:
        return float(np.vdot(dK, kernel.matrix(a, b)))

    logs, in_a, in_b = KernelMatrix(kernel, a, b).gradients(dK)
    np.testing.assert_allclose(
        logs, gradient(lambda logs: across(Kernel.of(kind, logs), a, b), kernel.logs), atol=1e-7
    )
    np.testing.assert_allclose(in_a, gradient(lambda a: across(kernel, a, b), a), atol=1e-7)
    np.testing.assert_allclose(in_b, gradient(lambda b: across(kernel, a, b), b), atol=1e-7)

    logs, in_x = kernel.at(a).in_logs_and_x(own)
    expected = gradient(lambda logs: np.vdot(own, Kernel.of(kind, logs).noisy(a)), kernel.logs)
    np.testing.assert_allclose(logs, expected, atol=1e-7)
    np.testing.assert_allclose(in_x, gradient(lambda x: np.vdot(own, kernel.noisy(x)), a), atol=1e-7)

    K, slopes = kernel.slopes_in_x(a, b)
    np.testing.assert_allclose(K, kernel.matrix(a, b), atol=1e-12)
    for i, j in np.ndindex(4, 5):
        expected = gradient(lambda x, j=j: kernel.matrix(x[None], b)[0, j], a[i])
        np.testing.assert_allclose(slopes[i, j], expected, atol=1e-8)
    expected = gradient(lambda x: kernel.diagonal(x).sum(), a)
    np.testing.assert_allclose(kernel.diagonal_slopes(a), expected, atol=1e-8)

    found = np.zeros((3, 3))
    weighed_bends(compiled_curves(kernel, a[0], b), dK[0], found)
    for axis, row in enumerate(found):
        expected = gradient(lambda x, axis=axis: dK[0] @ compiled_curves(kernel, x, b).rows[1 + axis], a[0])
        np.testing.assert_allclose(row, expected, atol=1e-7)
    expected = gradient(lambda x: kernel.diagonal_slopes(x[None])[0, 0], a[0])
    np.testing.assert_allclose(self_bend(kernel.number, kernel.parameters), expected[0], atol=1e-8)
    np.testing.assert_allclose(expected[1:], 0.0, atol=1e-8)


def compiled_curves(kernel: Kernel, x: np.ndarray, points: np.ndarray) -> Curves:
    curves = curves_of(points)
    kernel_curves(kernel.number, kernel.parameters, x, points, curves)
    return curves


@every_kind
@given(seed=st.integers(0, 1000))
def test_the_compiled_kernel_is_the_same(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel, x, actives = some_kernel(kind, seed), rng.normal(size=3), rng.normal(size=(7, 3))
    (k, *dk), slope = compiled_curves(kernel, x, actives).rows, np.empty(3)
    own = kernel_self(kernel.number, kernel.parameters, x, slope)
    K, slopes = kernel.slopes_in_x(x[None], actives)
    np.testing.assert_allclose(k, K[0], atol=1e-12)
    np.testing.assert_allclose(np.transpose(dk), slopes[0], atol=1e-12)
    np.testing.assert_allclose(own, kernel.diagonal(x[None])[0])
    np.testing.assert_allclose(slope, kernel.diagonal_slopes(x[None])[0])


@every_kind
def test_at_a_shared_point_gradients_stay_finite(kind: str) -> None:
    kernel, x = some_kernel(kind), np.zeros((3, 2))
    logs, in_x = kernel.at(x).in_logs_and_x(np.ones((3, 3)))
    curves, bends = compiled_curves(kernel, x[0], x), np.zeros((2, 2))
    weighed_bends(curves, np.ones(3), bends)
    slopes = kernel.slopes_in_x(x, x)[1]
    assert all(np.all(np.isfinite(values)) for values in (logs, in_x, curves.rows, slopes, bends))


@every_kind
def test_matrices_of_repeated_points_are_positive_definite(kind: str) -> None:
    x = np.repeat(np.random.default_rng(3).normal(size=(10, 3)), 5, axis=0)
    logs = np.zeros(len(KERNELS[kind].names))
    logs[1] = 13.0
    K = Kernel.of(kind, logs).noisy(x)
    np.linalg.cholesky(K)
    np.testing.assert_allclose(np.diag(K), Kernel.of(kind, logs).diagonal(x), rtol=1e-3, atol=1e-5)


def test_the_rbf_kernel_is_equation_1() -> None:
    kernel = Kernel.of("rbf", np.log([2.0, 5.0, 3.0]))
    a, b = np.array([[0.1, -0.4]]), np.array([[0.5, 0.2]])
    expected = 2.0 * np.exp(-1.5 * np.sum((a - b) ** 2))
    np.testing.assert_allclose(kernel.matrix(a, b), [[expected]])
    np.testing.assert_allclose(kernel.diagonal(a), [2.0 + 1.0 / 5.0])


def test_the_laplacian_kernel_is_equation_8_of_huang() -> None:
    kernel = Kernel.of("laplacian", np.log([2.0, 5.0, 4.0]))
    np.testing.assert_allclose(
        kernel.matrix(np.zeros((1, 2)), np.array([[0.3, 0.4]])), [[2.0 * np.exp(-0.5 / 0.5)]]
    )


def test_rational_quadratic_and_periodic_tend_to_rbf() -> None:
    x = np.random.default_rng(4).normal(size=(5, 2))
    rbf = Kernel.of("rbf", np.zeros(3)).matrix(x, x)
    quadratic = Kernel.of("rational-quadratic", np.array([0.0, 0.0, 0.0, 15.0])).matrix(x, x)
    periodic = Kernel.of("periodic", np.array([0.0, 0.0, 0.0, -8.0])).matrix(x, x)
    np.testing.assert_allclose(quadratic, rbf, atol=1e-5)
    np.testing.assert_allclose(periodic, rbf, atol=1e-5)


def test_the_periodic_kernel_repeats() -> None:
    kernel = Kernel.of("periodic", np.log([1.0, 1.0, 1.0, 2.5]))
    x = np.array([[0.3, 0.1]])
    np.testing.assert_allclose(kernel.matrix(x, x + 2.0 * np.pi / 2.5), [[1.0]])


def test_parameters_interpolate_linearly() -> None:
    fine, smooth = Kernel.of("rbf", np.log([1.0, 100.0, 4.0])), Kernel.of("rbf", np.log([3.0, 20.0, 2.0]))
    np.testing.assert_allclose(np.exp(fine.towards(smooth, 0.25).logs), [1.5, 80.0, 3.5])


def test_mistakes_are_told() -> None:
    with pytest.raises(UnknownNameError, match="did you mean matern32"):
        Kernel.of("matern3")
    with pytest.raises(InvalidValueError, match="3 finite log-parameters"):
        Kernel.of("rbf", np.zeros(2))
    with pytest.raises(InvalidValueError, match="cannot be blended"):
        Kernel.of("rbf").towards(Kernel.of("matern32"), 0.5)
