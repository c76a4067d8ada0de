"""A latent space from outside: the studio shows it, and its map and samples are drawn."""

from pathlib import Path

import numpy as np
import pytest

import poise
from poise import performer
from poise.apps.learning import draw_latent, save_samples
from poise.errors import InvalidValueError
from poise.priors.abilities import latent_of
from poise.priors.gaussian import GaussianPrior
from poise.studio.latent import view_of


class Components(GaussianPrior):
    """Two principal components of the poses as a latent space."""

    def _components(self) -> tuple[np.ndarray, np.ndarray]:
        poses = self.known_poses()[0]
        _, sizes, ways = np.linalg.svd(poses - self.mean, full_matrices=False)
        return poses - self.mean, ways[:2] * sizes[:2, None] / np.sqrt(len(poses))

    @property
    def latents(self) -> np.ndarray:
        gaps, ways = self._components()
        return gaps @ np.linalg.pinv(ways)

    @property
    def active(self) -> np.ndarray:
        return np.arange(len(self.latents))

    def likelihood_map(self, x: np.ndarray) -> np.ndarray:
        return -0.5 * (np.asarray(x) ** 2).sum(axis=1)

    def pose_at(self, x: np.ndarray) -> np.ndarray:
        return self.mean + x @ self._components()[1]

    def up_at(self, x: np.ndarray) -> np.ndarray:
        del x
        return self.known_poses()[1][0]


def test_a_latent_space_from_outside_is_shown_and_sampled(tmp_path: Path) -> None:
    walk = performer.act("walk", seconds=1.0, fps=30)
    assert latent_of(GaussianPrior.learn([walk], clusters=8)) is None
    prior = Components.learn([walk], clusters=8)
    space = latent_of(prior)
    assert space is prior
    view = view_of(space)
    q = view.pose_at((0.0, 0.0), prior.space.q_from_pose(walk[0]))
    np.testing.assert_allclose(q[7:], prior.pose_at(view.latent((0.0, 0.0))))
    assert view.likelihoods()[0].size > 100
    assert draw_latent(space).size[0] > 500
    with pytest.raises(InvalidValueError, match="keeps nothing of its learning"):
        draw_latent(space, view="curve")
    save_samples(space, tmp_path / "samples.bvh", count=3)
    assert len(poise.read(tmp_path / "samples.bvh", keep_first=True)) == 3
