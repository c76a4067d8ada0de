"""Rotations: the group laws, every conversion there and back, 0 and pi, gimbal lock; SciPy as an independent check."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from poise.errors import InvalidValueError
from poise.geometry import rotations

TWELVE_ORDERS = [
    "".join(order) for order in itertools.product("XYZ", repeat=3) if order[0] != order[1] != order[2]
]
AXES = np.eye(3)

components = st.floats(-1.0, 1.0, allow_nan=False)
vectors = arrays(np.float64, 3, elements=st.floats(-10.0, 10.0))
angles = st.floats(-7.0, 7.0)
directions = arrays(np.float64, 3, elements=components).filter(lambda v: np.linalg.norm(v) > 1e-3)
quaternions = (
    arrays(np.float64, 4, elements=components)
    .filter(lambda q: np.linalg.norm(q) > 1e-3)
    .map(rotations.normalize)
)


def scipy_from(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.roll(q, -1, axis=-1))


def assert_same_rotation(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-9) -> None:
    assert np.max(rotations.geodesic_distance(a, b)) < tolerance


def random_quaternions(count: int, seed: int = 0) -> np.ndarray:
    return rotations.normalize(np.random.default_rng(seed).normal(size=(count, 4)))


# --- the group -----------------------------------------------------------------------------------------------------


@given(quaternions, quaternions, quaternions)
def test_product_is_associative(a, b, c):
    left, right = (
        rotations.multiply(rotations.multiply(a, b), c),
        rotations.multiply(a, rotations.multiply(b, c)),
    )
    np.testing.assert_allclose(left, right, atol=1e-12)


@given(quaternions)
def test_identity_and_inverse(q):
    np.testing.assert_allclose(rotations.multiply(rotations.IDENTITY, q), q)
    np.testing.assert_allclose(rotations.multiply(q, rotations.conjugate(q)), rotations.IDENTITY, atol=1e-12)


@given(quaternions, quaternions, vectors)
def test_product_turns_by_the_second_first(a, b, v):
    both = rotations.rotate(rotations.multiply(a, b), v)
    np.testing.assert_allclose(both, rotations.rotate(a, rotations.rotate(b, v)), atol=1e-10)


@given(quaternions, quaternions)
def test_matrices_multiply_as_quaternions_do(a, b):
    product = rotations.matrix_from_quaternion(rotations.multiply(a, b))
    np.testing.assert_allclose(
        product, rotations.matrix_from_quaternion(a) @ rotations.matrix_from_quaternion(b), atol=1e-12
    )


@given(quaternions, vectors)
def test_rotation_and_matrix_agree_with_scipy(q, v):
    np.testing.assert_allclose(rotations.rotate(q, v), scipy_from(q).apply(v), atol=1e-10)
    np.testing.assert_allclose(rotations.matrix_from_quaternion(q), scipy_from(q).as_matrix(), atol=1e-12)


# --- conversions ---------------------------------------------------------------------------------------------------


@given(quaternions)
def test_matrix_there_and_back(q):
    assert_same_rotation(rotations.quaternion_from_matrix(rotations.matrix_from_quaternion(q)), q)


@given(quaternions)
def test_quaternion_from_matrix_has_positive_w(q):
    assert rotations.quaternion_from_matrix(rotations.matrix_from_quaternion(q))[0] >= 0


@given(quaternions)
def test_expmap_there_and_back_and_against_scipy(q):
    expmap = rotations.expmap_from_quaternion(q)
    assert np.linalg.norm(expmap) <= np.pi + 1e-12
    assert_same_rotation(rotations.quaternion_from_expmap(expmap), q)
    assume(abs(q[0]) > 1e-6)  # at half a turn both signs of the axis are right
    np.testing.assert_allclose(expmap, scipy_from(q).as_rotvec(), atol=1e-9)


@given(directions, st.floats(1e-12, 20.0))
def test_expmap_of_any_length_agrees_with_scipy(direction, angle):
    expmap = angle * direction / np.linalg.norm(direction)
    np.testing.assert_allclose(
        rotations.matrix_from_expmap(expmap), Rotation.from_rotvec(expmap).as_matrix(), atol=1e-9
    )


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-16, 1e-9, 9.9e-5, 1.01e-4, 1e-3])
def test_small_expmaps_keep_their_precision(angle):
    expmap = angle * AXES
    back = rotations.expmap_from_quaternion(rotations.quaternion_from_expmap(expmap))
    np.testing.assert_allclose(back, expmap, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("short_of_pi", [0.0, 1e-12, 1e-9, 1e-6, 1e-3])
def test_expmaps_near_half_a_turn(short_of_pi):
    axes = np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.6, 0.0, 0.8], [1.0, 1.0, 1.0] / np.sqrt(3.0)])
    expmap = (np.pi - short_of_pi) * axes
    for back in (
        rotations.expmap_from_quaternion(rotations.quaternion_from_expmap(expmap)),
        rotations.expmap_from_matrix(rotations.matrix_from_expmap(expmap)),
    ):
        turns = [rotations.quaternion_from_expmap(e) for e in (back, expmap)]
        assert_same_rotation(*turns, tolerance=1e-7)
        assert np.all(np.linalg.norm(back, axis=-1) <= np.pi + 1e-12)


def test_no_conversion_makes_nan_at_zero_or_pi():
    turns = np.concatenate([[rotations.IDENTITY, -rotations.IDENTITY], np.eye(4)[1:], -np.eye(4)[1:]])
    for values in (
        rotations.expmap_from_quaternion(turns),
        rotations.quaternion_from_matrix(rotations.matrix_from_quaternion(turns)),
        rotations.slerp(turns, turns[::-1].copy(), 0.3),
        rotations.right_jacobian(rotations.expmap_from_quaternion(turns)),
    ):
        assert np.all(np.isfinite(values))


@given(directions, st.floats(0.0, 3.0), directions)
def test_right_jacobian_against_finite_differences(axis, angle, change):
    expmap, step = angle * axis / np.linalg.norm(axis), 1e-6 * change
    after = rotations.quaternion_from_expmap(expmap + step)
    turn = rotations.multiply(rotations.conjugate(rotations.quaternion_from_expmap(expmap)), after)
    predicted = rotations.right_jacobian(expmap) @ step
    np.testing.assert_allclose(rotations.expmap_from_quaternion(turn), predicted, atol=1e-11)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 9.99e-5, 1.001e-4, 1e-2])
def test_right_jacobian_is_smooth_where_the_series_takes_over(angle):
    expmap = angle * np.array([0.6, 0.0, 0.8])
    k = rotations.skew(expmap)
    series = np.eye(3) - k / 2 + k @ k / 6 - k @ k @ k / 24
    np.testing.assert_allclose(
        rotations.right_jacobian(expmap), series, atol=1e-8 if angle == 1e-2 else 1e-12
    )


@given(vectors, vectors)
def test_skew_is_the_cross_product(u, v):
    np.testing.assert_allclose(rotations.skew(u) @ v, np.cross(u, v), atol=1e-9)


# --- Euler angles --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", TWELVE_ORDERS)
def test_euler_agrees_with_scipy(order):
    angles = np.random.default_rng(1).uniform(-np.pi, np.pi, size=(200, 3))
    expected = Rotation.from_euler(order, angles).as_matrix()
    np.testing.assert_allclose(rotations.matrix_from_euler(angles, order), expected, atol=1e-12)


@pytest.mark.parametrize("order", TWELVE_ORDERS)
def test_euler_there_and_back(order):
    q = random_quaternions(500)
    assert_same_rotation(
        rotations.quaternion_from_euler(rotations.euler_from_quaternion(q, order), order), q, 1e-7
    )


@pytest.mark.parametrize("order", TWELVE_ORDERS)
@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-9, 2e-8, 1e-6, 1e-4])
def test_euler_in_and_near_gimbal_lock(order, off):
    locked = [0.0, np.pi] if order[0] == order[2] else [np.pi / 2, -np.pi / 2]
    grid = np.linspace(-3.0, 3.0, 7)
    angles = np.array(
        [[a, middle + sign * off, b] for a in grid for b in grid for middle in locked for sign in (1, -1)]
    )
    q = rotations.quaternion_from_euler(angles, order)
    back = rotations.euler_from_quaternion(q, order)
    assert np.all(np.isfinite(back))
    assert_same_rotation(rotations.quaternion_from_euler(back, order), q, 1e-7)


@pytest.mark.parametrize("order", ["X", "Y", "ZX", "YZ"])
def test_fewer_than_three_euler_angles(order):
    angles = np.random.default_rng(2).uniform(-3.0, 3.0, size=(20, len(order)))
    turns = [Rotation.from_euler(axis, angle[:, None]) for axis, angle in zip(order, angles.T, strict=True)]
    expected = (turns[0] * turns[1] if len(turns) == 2 else turns[0]).as_matrix()
    np.testing.assert_allclose(rotations.matrix_from_euler(angles, order), expected, atol=1e-12)


def test_lower_case_orders_are_intrinsic_too():
    angles = np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(
        rotations.matrix_from_euler(angles, "zyx"), rotations.matrix_from_euler(angles, "ZYX")
    )


@pytest.mark.parametrize("order", ["", "XYZX", "ABC", "X1Z"])
def test_impossible_orders_are_refused(order):
    with pytest.raises(InvalidValueError, match="rotation order"):
        rotations.quaternion_from_euler(np.zeros(max(len(order), 1)), order)


@pytest.mark.parametrize("order", ["XXY", "XYY", "XY", "Z"])
def test_orders_that_cannot_express_every_rotation_are_refused(order):
    with pytest.raises(InvalidValueError, match="neighbours different"):
        rotations.euler_from_quaternion(rotations.IDENTITY, order)


def test_wrong_number_of_angles_says_both_numbers():
    with pytest.raises(InvalidValueError, match="'ZYX' needs 3 angles, got 2"):
        rotations.quaternion_from_euler(np.zeros(2), "ZYX")


# --- distance, slerp, mean -----------------------------------------------------------------------------------------


@given(quaternions, quaternions)
def test_distance_is_a_metric_and_agrees_with_scipy(a, b):
    distance = float(rotations.geodesic_distance(a, b))
    assert 0.0 <= distance <= np.pi + 1e-12
    assert distance == pytest.approx(float(rotations.geodesic_distance(b, a)), abs=1e-12)
    assert distance == pytest.approx(float(rotations.geodesic_distance(-a, b)), abs=1e-12)
    assert distance == pytest.approx((scipy_from(a).inv() * scipy_from(b)).magnitude(), abs=1e-7)


@given(quaternions, quaternions, quaternions)
def test_distance_keeps_the_triangle_inequality_and_is_unchanged_by_turning_both(a, b, c):
    direct = rotations.geodesic_distance(a, c)
    assert direct <= rotations.geodesic_distance(a, b) + rotations.geodesic_distance(b, c) + 1e-9
    turned = rotations.geodesic_distance(rotations.multiply(b, a), rotations.multiply(b, c))
    assert turned == pytest.approx(float(direct), abs=1e-7)


@pytest.mark.parametrize("angle", [1e-15, 1e-9, 1e-3, 3.0, np.pi - 1e-9, np.pi])
def test_distance_of_known_angles_is_exact(angle):
    q = rotations.quaternion_from_expmap(np.array([0.0, angle, 0.0]))
    assert rotations.geodesic_distance(rotations.IDENTITY, q) == pytest.approx(angle, rel=1e-9)


@given(quaternions, quaternions, st.floats(0.0, 1.0))
def test_slerp_goes_the_shorter_way_at_constant_speed(a, b, t):
    whole = rotations.geodesic_distance(a, b)
    assume(whole < np.pi - 1e-6)
    between = rotations.slerp(a, b, t)
    assert rotations.geodesic_distance(a, between) == pytest.approx(t * float(whole), abs=1e-7)
    assert rotations.geodesic_distance(between, b) == pytest.approx((1.0 - t) * float(whole), abs=1e-7)


@given(quaternions, quaternions)
def test_slerp_ends_at_both_ends(a, b):
    assert_same_rotation(rotations.slerp(a, b, 0.0), a, 1e-7)
    assert_same_rotation(rotations.slerp(a, b, 1.0), b, 1e-7)


@given(quaternions)
def test_mean_of_one_rotation_is_itself_whatever_the_signs(q):
    assert_same_rotation(rotations.mean(np.stack([q, -q, q])), q, 1e-7)


@given(quaternions, directions, st.floats(0.01, 1.5))
def test_mean_of_two_rotations_is_halfway(q, axis, angle):
    turn = rotations.quaternion_from_expmap(angle * axis / np.linalg.norm(axis))
    pair = np.stack([rotations.multiply(q, turn), rotations.multiply(q, rotations.conjugate(turn))])
    assert_same_rotation(rotations.mean(pair), q, 1e-6)


def test_mean_agrees_with_scipy_and_is_batched():
    spread = rotations.quaternion_from_expmap(np.random.default_rng(3).normal(scale=0.4, size=(50, 6, 3)))
    q, weights = rotations.multiply(random_quaternions(6), spread), np.random.default_rng(4).uniform(size=50)
    means = rotations.mean(q, weights)
    for joint in range(6):
        expected = np.roll(scipy_from(q[:, joint]).mean(weights).as_quat(), 1)
        assert_same_rotation(means[joint], expected, 1e-7)


@given(arrays(np.float64, (8, 2, 4), elements=components))
def test_continuous_keeps_rotations_and_never_jumps(q):
    assume(np.all(np.linalg.norm(q, axis=-1) > 1e-3))
    q = rotations.normalize(q)
    smooth = rotations.continuous(q)
    assert_same_rotation(smooth, q)
    assert np.all(np.sum(smooth[1:] * smooth[:-1], axis=-1) >= 0)


@given(directions, directions)
def test_quaternion_between_turns_one_direction_into_the_other(a, b):
    turned = rotations.rotate(rotations.quaternion_between(a, b), a / np.linalg.norm(a))
    np.testing.assert_allclose(turned, b / np.linalg.norm(b), atol=1e-7)


@pytest.mark.parametrize("axis", range(3))
def test_quaternion_between_opposite_directions_is_half_a_turn(axis):
    q = rotations.quaternion_between(AXES[axis], -AXES[axis])
    np.testing.assert_allclose(rotations.rotate(q, AXES[axis]), -AXES[axis], atol=1e-12)
    assert rotations.geodesic_distance(rotations.IDENTITY, q) == pytest.approx(np.pi)


@pytest.mark.parametrize("broken", [[0.0, 0.0, 0.0, 0.0], [np.nan, 0.0, 0.0, 1.0]])
def test_quaternions_that_are_no_rotation_are_refused(broken):
    with pytest.raises(InvalidValueError, match="not a rotation"):
        rotations.normalize(np.array(broken))


def test_everything_is_batched_over_leading_axes():
    q = random_quaternions(12).reshape(3, 4, 4)
    assert rotations.matrix_from_quaternion(q).shape == (3, 4, 3, 3)
    assert rotations.expmap_from_quaternion(q).shape == (3, 4, 3)
    assert rotations.euler_from_quaternion(q, "XYZ").shape == (3, 4, 3)
    assert rotations.slerp(q, q, np.full((3, 4), 0.5)).shape == (3, 4, 4)
    assert rotations.geodesic_distance(q, q).shape == (3, 4)
    assert rotations.mean(q).shape == (4, 4)
    one = rotations.matrix_from_quaternion(q[1, 2])
    np.testing.assert_array_equal(rotations.matrix_from_quaternion(q)[1, 2], one)
