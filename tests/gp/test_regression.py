"""Regression: held-out blocks, what is chosen by them, and predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise.gp import regression
from poise.gp.covariance import KERNELS, LAPLACIAN
from poise.gp.regression import Groups


def alike(units: int, outputs: int) -> Groups:
    """One Laplacian kernel for all outputs, in which all units count the same."""
    return Groups.of(
        LAPLACIAN, np.repeat(np.arange(units), 3), [np.arange(outputs)], weights=np.ones((1, units))
    )


@given(st.integers(2, 5), st.integers(0, 1000))
def test_held_out_errors_are_those_of_a_process_without_the_block(parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs, outputs = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    blocks = np.arange(12) % parts
    apart = np.linalg.norm(inputs[:, None] - inputs, axis=-1)
    kernel = np.exp(-apart) + 0.1 * np.eye(12)
    errors = regression.held_out_errors(kernel, outputs, blocks)
    for block in range(parts):
        out, rest = blocks == block, blocks != block
        predicted = np.exp(-apart[np.ix_(out, rest)]) @ np.linalg.solve(
            kernel[np.ix_(rest, rest)], outputs[rest]
        )
        np.testing.assert_allclose(errors[out], outputs[out] - predicted, atol=1e-9)


def test_what_repeats_inside_blocks_only_is_taken_for_noise() -> None:
    """Each block has an offset of its own: neighbours predict each other, blocks do not."""
    rng = np.random.default_rng(0)
    places = np.repeat(rng.normal(size=(8, 3)), 8, axis=0) + 0.01 * rng.normal(size=(64, 3))
    offsets = np.repeat(rng.normal(size=(8, 3)), 8, axis=0) + 0.01 * rng.normal(size=(64, 3))
    groups, centre = alike(1, 3), np.zeros(3)
    alone = regression.fit(places, offsets, groups=groups, blocks=np.arange(64), centre=centre)
    together = regression.fit(
        places, offsets, groups=groups, blocks=np.repeat(np.arange(8), 8), centre=centre
    )
    assert together.groups.noise[0] > alone.groups.noise[0]


def test_one_sample_and_samples_at_one_place_are_harmless() -> None:
    groups, centre = alike(1, 3), np.zeros(3)
    for count in (1, 4):
        inputs, outputs = np.ones((count, 3)), np.ones((count, 3))
        fitted = regression.fit(
            inputs, outputs, groups=groups, blocks=np.zeros(count, dtype=np.int64), centre=centre
        )
        assert np.all(np.isfinite(fitted.coefficients))
        assert regression.spacing(inputs) > 0


def test_a_matrix_is_solved_also_where_it_is_not_positive() -> None:
    spread = np.random.default_rng(0).normal(size=(6, 6))
    for matrix in (spread @ spread.T + np.eye(6), spread + spread.T):
        np.testing.assert_allclose(regression.solved(matrix, np.eye(6)) @ matrix, np.eye(6), atol=1e-9)
        errors = regression.held_out_errors(matrix, np.eye(6), np.arange(6))
        inverse = np.linalg.inv(matrix)
        np.testing.assert_allclose(errors, inverse / np.diag(inverse)[:, None], atol=1e-9)


@pytest.mark.parametrize("kind", ["laplacian", "matern32", "rbf"])
def test_a_prediction_is_that_of_each_groups_own_kernel(kind: str) -> None:
    rng = np.random.default_rng(0)
    inputs, outputs, x = rng.normal(size=(9, 6)), rng.normal(size=(9, 3)), rng.normal(size=6)
    unit, weights, noise = np.repeat([0, 1], 3), np.array([[0.7, 0.1], [0.2, 0.9]]), np.array([0.1, 0.3])
    own = [np.array([2, 0]), np.array([1])]
    groups = Groups.of(KERNELS[kind].number, unit, own, weights=weights, noise=noise)
    mean = np.ones(3)
    distances = groups.through(inputs, outputs, centre=outputs[0]).add(x, mean, share=0.5)
    np.testing.assert_allclose(distances, np.linalg.norm(inputs - x, axis=1))
    for members, weight, variance in zip(own, weights, noise, strict=True):
        kernel = KERNELS[kind](np.array([0.0, -np.log(variance), 0.0]))
        scaled, at = (points * np.sqrt(weight[unit]) for points in (inputs, x[None]))
        K = kernel.matrix(scaled, scaled) + variance * np.eye(9)
        expected = outputs[0, members] + kernel.matrix(at, scaled)[0] @ np.linalg.solve(
            K, outputs[:, members] - outputs[0, members]
        )
        np.testing.assert_allclose(mean[members], 1.0 + 0.5 * expected, atol=1e-9)
