"""Curves go through their keys, are smooth between them and hold beyond them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.geometry.splines import EASES, KINDS, curve_through, smoothstep, turns_through


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


def test_given_tangents_are_the_velocities_at_the_keys() -> None:
    times, points = np.array([0.0, 1.0, 3.0]), np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    tangents = np.array([[np.nan, np.nan], [0.5, -2.0], [0.0, 0.0]])
    at = np.array([1.0 - 1e-6, 1.0, 1.0 + 1e-6, 3.0 - 1e-6, 3.0])
    curve = curve_through(times, points, at, tangents=tangents)
    np.testing.assert_allclose(np.diff(curve[:3], axis=0) / 1e-6, [[0.5, -2.0]] * 2, atol=1e-4)
    np.testing.assert_allclose((curve[4] - curve[3]) / 1e-6, [0.0, 0.0], atol=1e-4)


@given(
    st.lists(st.floats(0.05, 2.0), min_size=2, max_size=6), st.sampled_from(KINDS), st.sampled_from([*EASES])
)
def test_every_kind_goes_through_its_keys_however_it_is_paced(
    spans: list[float], kind: str, ease: str
) -> None:
    times = np.cumsum(spans)
    points = np.random.default_rng(len(spans)).normal(size=(len(times), 3))
    curve = curve_through(times, points, times, kind=kind, ease=ease, even_pace=True)
    np.testing.assert_allclose(curve, points, atol=1e-9)


def test_an_even_pace_covers_equal_lengths_in_equal_times() -> None:
    times, points = np.array([0.0, 1.0, 2.0]), np.array([[0.0, 0.0], [1.0, 2.0], [4.0, 0.0]])
    at = np.linspace(0.0, 1.0, 21)
    steps = np.linalg.norm(np.diff(curve_through(times, points, at, even_pace=True), axis=0), axis=1)
    assert np.ptp(steps) < 0.02 * steps.mean()
    uneven = np.linalg.norm(
        np.diff(curve_through(times, points, at, even_pace=True, ease="in"), axis=0), axis=1
    )
    assert uneven[0] < 0.1 * uneven[-1]


def test_a_monotone_curve_stays_between_its_keys_and_stands_where_they_stand() -> None:
    times, at = np.array([0.0, 0.3, 1.0, 1.2, 2.0]), np.linspace(0.0, 2.0, 201)
    points = np.array([[0.0, 1.0], [0.8, 0.2], [0.9, 0.2], [0.9, 0.6], [2.0, 0.1]])
    curve = curve_through(times, points, at, kind="monotone")
    assert np.all(np.diff(curve[:, 0]) >= -1e-12)
    low, high = curve[(at > 0.3) & (at < 1.0)].min(axis=0), curve[(at > 0.3) & (at < 1.0)].max(axis=0)
    np.testing.assert_allclose([low[1], high[1]], 0.2, atol=1e-12)
    assert curve[:, 1].max() <= 1.0
    assert curve[:, 1].min() >= 0.1


def test_a_centripetal_curve_does_not_loop_where_keys_are_close() -> None:
    times = np.array([0.0, 1.0, 2.0, 3.0])
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.01, 0.05], [0.0, 1.0]])
    at = np.linspace(1.0, 2.0, 200)
    reach = {kind: np.ptp(curve_through(times, points, at, kind=kind), axis=0).max() for kind in KINDS}
    assert reach["centripetal"] < 0.06 < reach["hermite"]


def test_unknown_kinds_and_eases_are_refused() -> None:
    keys = np.array([0.0, 1.0]), np.zeros((2, 3)), np.zeros(1)
    with pytest.raises(UnknownNameError, match="kind of curve 'bezier'"):
        curve_through(*keys, kind="bezier")
    with pytest.raises(UnknownNameError, match=r"ease 'inout'; did you mean in-out"):
        curve_through(*keys, ease="inout")
    with pytest.raises(InvalidValueError, match="1 segments need one ease"):
        curve_through(*keys, ease=["in", "out"])


@given(st.lists(st.floats(0.05, 2.0), min_size=1, max_size=8), st.sampled_from(KINDS), st.integers(0, 100))
def test_turns_go_through_their_keys(spans: list[float], kind: str, seed: int) -> None:
    times = np.cumsum(spans)
    turns = rotations.normalize(np.random.default_rng(seed).normal(size=(len(times), 4)))
    found = turns_through(times, turns, times, kind=kind)
    np.testing.assert_allclose(rotations.geodesic_distance(found, turns), 0.0, atol=1e-7)


def test_turning_about_one_axis_is_the_curve_of_its_angle() -> None:
    times, angles = np.array([0.0, 0.5, 2.0, 3.0]), np.array([[0.2], [1.0], [-0.4], [0.5]])
    axis, at = np.array([0.6, 0.0, 0.8]), np.linspace(0.0, 3.0, 31)
    turns = rotations.quaternion_from_expmap(angles * axis)
    turns[2] *= -1.0  # the same rotation: no long way round
    expected = rotations.quaternion_from_expmap(curve_through(times, angles, at) * axis)
    found = turns_through(times, turns, at)
    np.testing.assert_allclose(rotations.geodesic_distance(found, expected), 0.0, atol=1e-7)


def test_turns_pass_their_keys_at_the_velocities_given() -> None:
    times, moment = np.array([0.0, 1.0, 2.0]), 1e-5
    turns = rotations.quaternion_from_expmap(np.array([[0.0, 0.0, 0.0], [0.4, 1.2, 0.3], [0.9, 0.4, 0.0]]))
    wanted, free = np.array([0.5, -2.0, 1.0]), np.full(3, np.nan)  # about the world's axes
    spins = np.stack([free, wanted, free])
    for ahead in (-moment, moment):
        found = turns_through(times, turns, np.array([1.0 + ahead]), spins=spins)
        step = rotations.multiply(found, rotations.conjugate(turns[1:2]))
        np.testing.assert_allclose(rotations.expmap_from_quaternion(step)[0] / ahead, wanted, atol=1e-3)
    chosen = turns_through(times, turns, times, spins=np.full((3, 3), np.nan))
    np.testing.assert_array_equal(chosen, turns_through(times, turns, times))


def test_turns_have_no_corner_and_hold_beyond_their_ends() -> None:
    times = np.array([0.0, 1.0, 2.0])
    turns = rotations.quaternion_from_expmap(np.array([[0.0, 0.0, 0.0], [0.0, 1.2, 0.3], [0.9, 0.4, 0.0]]))
    at = np.linspace(0.0, 2.0, 2001)
    found = turns_through(times, turns, at)
    steps = rotations.expmap_from_quaternion(rotations.multiply(rotations.conjugate(found[:-1]), found[1:]))
    assert np.linalg.norm(np.diff(steps, axis=0), axis=1).max() < 1e-5
    np.testing.assert_allclose(turns_through(times, turns, np.array([-1.0, 9.0])), turns[[0, 2]], atol=1e-9)
