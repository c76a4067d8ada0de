"""Curves go through their keys, are smooth between them and hold beyond them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise.errors import InvalidValueError
from poise.geometry.splines import curve_through, smoothstep


@given(st.lists(st.floats(0.05, 2.0), min_size=1, max_size=8), st.integers(0, 100))
def test_a_curve_goes_through_its_keys(spans: list[float], seed: int) -> None:
    times = np.cumsum(spans)
    points = np.random.default_rng(seed).normal(size=(len(times), 3))
    np.testing.assert_allclose(curve_through(times, points, times), points, atol=1e-9)


def test_straight_lines_and_parabolas_stay_what_they_are() -> None:
    times, at = np.array([0.0, 0.5, 2.0, 3.0]), np.linspace(0.0, 3.0, 31)
    line = curve_through(times, times[:, None] * [1.0, -2.0], at)
    np.testing.assert_allclose(line, at[:, None] * [1.0, -2.0], atol=1e-12)
    inner = (at >= 0.5) & (at <= 2.0)
    parabola = curve_through(times, times[:, None] ** 2, at)
    np.testing.assert_allclose(parabola[inner, 0], at[inner] ** 2, atol=1e-12)


def test_a_curve_holds_beyond_its_ends_and_has_no_corner() -> None:
    times, points = np.array([0.0, 1.0, 2.0]), np.array([[0.0], [1.0], [0.0]])
    np.testing.assert_allclose(curve_through(times, points, np.array([-1.0, 5.0])), [[0.0], [0.0]])
    at = np.linspace(0.0, 2.0, 2001)
    velocity = np.diff(curve_through(times, points, at)[:, 0])
    assert np.abs(np.diff(velocity)).max() < 1e-5


@pytest.mark.usefixtures("unchecked_shapes")
def test_keys_that_are_no_curve_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="must increase"):
        curve_through(np.array([0.0, 0.0]), np.zeros((2, 3)), np.zeros(1))
    with pytest.raises(InvalidValueError, match="as many times as points"):
        curve_through(np.array([0.0]), np.zeros((2, 3)), np.zeros(1))


def test_smoothstep_is_flat_at_both_ends() -> None:
    np.testing.assert_allclose(smoothstep(np.array([-1.0, 0.0, 0.5, 1.0, 2.0])), [0.0, 0.0, 0.5, 1.0, 1.0])
