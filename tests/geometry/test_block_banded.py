"""Banded systems: the same answers as dense ones, in time linear in the number of blocks."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise.errors import InvalidValueError
from poise.geometry.block_banded import BlockBanded


def _random(count: int, size: int, reach: int, seed: int) -> BlockBanded:
    rng = np.random.default_rng(seed)
    matrix = BlockBanded(count, size, reach=reach)
    for k, band in enumerate(matrix.bands):
        band += rng.normal(size=band.shape)
        if k == 0:
            band[:] = band + band.transpose(0, 2, 1) + 8.0 * size * (reach + 1) * np.eye(size)
    return matrix


@given(count=st.integers(1, 9), size=st.integers(1, 4), reach=st.integers(0, 3), seed=st.integers(0, 99))
def test_it_solves_as_a_dense_matrix_does(count: int, size: int, reach: int, seed: int) -> None:
    matrix = _random(count, size, reach, seed)
    right = np.random.default_rng(seed).normal(size=(count, size))
    factor = matrix.factored()
    np.testing.assert_allclose(
        factor.solve(right).ravel(), np.linalg.solve(matrix.dense(), right.ravel()), atol=1e-10
    )
    np.testing.assert_allclose(matrix.times(right).ravel(), matrix.dense() @ right.ravel(), atol=1e-9)
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(matrix.dense())[1])


@given(count=st.integers(1, 8), seed=st.integers(0, 99))
def test_differences_add_their_squares(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(count, 2)), rng.uniform(0.5, 2.0, size=2)
    matrix = BlockBanded(count, 2)
    matrix.add_differences((1.0, -2.0, 1.0), weights)
    energy = (weights * np.diff(x, n=2, axis=0) ** 2).sum()
    assert (x * matrix.times(x)).sum() == pytest.approx(energy, abs=1e-9)


def test_time_grows_with_the_frames_and_no_faster() -> None:
    def seconds(count: int) -> float:
        matrix, right = _random(count, 30, 2, 0), np.ones((count, 30))
        tries = []
        for _ in range(3):
            begun = time.process_time()
            matrix.factored().solve(right)
            tries.append(time.process_time() - begun)
        return min(tries)

    assert seconds(800) < 3.0 * 4 * seconds(200)  # a dense solve would take 64 times as long


def test_what_is_not_positive_definite_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="not positive definite at block 0"):
        BlockBanded(3, 2).factored()
    with pytest.raises(InvalidValueError, match="`count` >= 1"):
        BlockBanded(0, 2)
