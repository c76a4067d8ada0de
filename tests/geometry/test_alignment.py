"""Rigid alignment finds the motion that was applied."""

import numpy as np

from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit


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
