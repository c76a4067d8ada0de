"""Second derivatives of the compiled kernels meet differences of their first."""

import numpy as np
import pytest

from poise.priors.style.compiled_covariance import kernel_self, kernel_vector, self_bend, weighed_bends
from poise.priors.style.covariance import PARAMETER_NAMES, Kernel

STEP = 1e-5


@pytest.mark.parametrize("kind", PARAMETER_NAMES)
def test_bends_meet_finite_differences(kind: str) -> None:
    rng = np.random.default_rng(3)
    kernel = Kernel(kind, rng.normal(scale=0.5, size=len(PARAMETER_NAMES[kind])))
    x, actives, weights = rng.normal(size=3), rng.normal(size=(7, 3)), rng.normal(size=7)

    def slope(x: np.ndarray) -> np.ndarray:
        k, dk = np.empty(7), np.empty((7, 3))
        kernel_vector(kernel.number, kernel.parameters, x, actives, k, dk)
        return weights @ dk

    found, expected = np.zeros((3, 3)), np.empty((3, 3))
    weighed_bends(kernel.number, kernel.parameters, x, actives, weights, found)
    for a, way in enumerate(np.eye(3)):
        expected[a] = (slope(x + STEP * way) - slope(x - STEP * way)) / (2 * STEP)
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("kind", PARAMETER_NAMES)
def test_the_bend_of_a_point_with_itself(kind: str) -> None:
    kernel = Kernel(kind, np.random.default_rng(3).normal(size=len(PARAMETER_NAMES[kind])))
    low, high = np.empty(2), np.empty(2)
    kernel_self(kernel.number, kernel.parameters, np.array([0.0, 0.7]), low)
    kernel_self(kernel.number, kernel.parameters, np.array([1.0, 0.7]), high)
    assert high[0] - low[0] == pytest.approx(self_bend(kernel.number, kernel.parameters))
    assert high[1] == low[1]


@pytest.mark.parametrize("kind", PARAMETER_NAMES)
def test_bends_are_finite_at_an_active_point(kind: str) -> None:
    kernel, points = Kernel.start(kind), np.zeros((1, 2))
    found = np.zeros((2, 2))
    weighed_bends(kernel.number, kernel.parameters, np.zeros(2), points, np.ones(1), found)
    assert np.all(np.isfinite(found))
