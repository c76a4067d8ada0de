"""The mixture of Gaussians on principal components, with which Fig. 2 compares the style."""

import numpy as np
import pytest

from poise.errors import InvalidValueError
from poise.priors.style.prior import Mixture, TrainingPoses


def test_em_never_loses_and_finds_separate_groups(rng: np.random.Generator) -> None:
    groups = np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
    y = np.concatenate([centre + rng.normal(scale=0.3, size=(60, 2)) for centre in groups])
    mixture = Mixture.fit(y, gaussians=3)
    assert np.all(np.diff(mixture.learning_curve) > -1e-3)
    np.testing.assert_allclose(mixture.shares, 1.0 / 3.0, atol=0.02)
    nearest = np.abs(mixture.points[[0, 60, 120]][:, None] - mixture.means).sum(axis=2).argmin(axis=1)
    assert len(set(nearest)) == 3


def test_its_density_integrates_to_one(poses: TrainingPoses) -> None:
    mixture = Mixture.fit(poses.y, gaussians=6)
    axis = np.linspace(-6.0, 6.0, 600)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = np.exp(mixture.log_likelihood(grid)).sum() * (axis[1] - axis[0]) ** 2
    np.testing.assert_allclose(total, 1.0, atol=0.01)


def test_repeated_poses_do_not_break_it(poses: TrainingPoses) -> None:
    mixture = Mixture.fit(np.repeat(poses.y[:6], 10, axis=0), gaussians=6)
    assert np.all(np.isfinite(mixture.log_likelihood(mixture.points)))


def test_there_are_no_more_gaussians_than_poses(poses: TrainingPoses) -> None:
    with pytest.raises(InvalidValueError, match="allow 1 to 3 Gaussians; got 4"):
        Mixture.fit(poses.y[:3], gaussians=4)
