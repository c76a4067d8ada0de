"""Rigid alignment finds the motion that was applied."""

import numpy as np

from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit, shifts_across


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
