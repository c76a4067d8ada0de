"""Rigid alignment finds the motion that was applied."""

import numpy as np
import pytest

from poise.geometry import rotations
from poise.geometry.alignment import closest_root, rigid_fit, rigid_fits, shifts_across


def test_rigid_fit_finds_the_motion_that_was_applied() -> None:
    rng = np.random.default_rng(4)
    source = rng.normal(size=(6, 3))
    turn = rotations.matrix_from_expmap(np.array([0.4, -1.1, 0.6]))
    found, shift, distance = rigid_fit(source, source @ turn.T + (1.0, 2.0, 3.0))
    np.testing.assert_allclose(found, turn, atol=1e-12)
    np.testing.assert_allclose(shift, (1.0, 2.0, 3.0), atol=1e-12)
    assert distance < 1e-12
    upright, _, _ = rigid_fit(
        source[:2], source[:2] @ rotations.matrix_from_expmap(np.array([0.0, 0.7, 0.0])).T
    )
    np.testing.assert_allclose(upright, rotations.matrix_from_expmap(np.array([0.0, 0.7, 0.0])), atol=1e-9)


def test_points_on_rays_tell_how_far_they_are_off_together():
    rng = np.random.default_rng(0)
    rays = rng.normal(size=(6, 3))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    across = np.eye(3) - rays[:, :, None] * rays[:, None]
    shift, depths = np.array([[0.1, -0.2, 0.3], [0.0, 0.5, 0.0]]), rng.normal(size=(6, 2, 1))
    shifts, left = shifts_across(
        shift + depths * rays[:, None], across
    )  # depths along the rays are not known
    assert np.allclose(shifts, shift, atol=1e-5)
    assert np.allclose(left, 0.0, atol=1e-9)
    assert shifts_across(shift + rng.normal(size=(6, 2, 3)), across)[1].min() > 0.1


@pytest.mark.parametrize("points", [1, 2, 3, 5])
@pytest.mark.parametrize("upright", [False, True])
def test_the_closest_root_is_that_of_the_set_that_fits_best(points: int, upright: bool) -> None:
    rng = np.random.default_rng(points)
    for _ in range(20):
        sources = rng.normal(size=(12, points, 3))
        turn = rotations.matrix_from_expmap(rng.normal(size=3))
        target = sources[rng.integers(12)] @ turn.T + rng.normal(size=3) + 0.1 * rng.normal(size=(points, 3))
        root = np.empty(7)
        best = closest_root(sources, target, root, upright)
        found = sources[best] @ rotations.matrix_from_quaternion(root[3:]).T + root[:3]
        *_, distances = rigid_fits(sources, target, upright=upright)
        assert np.linalg.norm(found - target) == pytest.approx(distances.min(), abs=1e-7)
