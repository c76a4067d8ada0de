"""Where the place of a new pose is searched from."""

import numpy as np

from poise.gp import latent
from poise.gp.covariance import Kernel
from poise.gp.latent import PlacingLoss
from poise.gp.process import Posterior


def test_a_search_starts_where_the_pose_is_expected_whatever_active_poses_were_told() -> None:
    latents = np.linspace(-2.0, 2.0, 21)[:, None]
    smooth = np.hstack([np.sin(latents), latents])
    told = smooth + 4.0 * (-1.0) ** np.arange(21)[:, None]
    loss = PlacingLoss(Posterior.given(Kernel.of("rbf", np.log([1.0, 0.5, 1.0])), latents, told), np.ones(2))
    expected = -loss.misfit(latents, np.zeros_like(told))[0]
    np.testing.assert_array_equal(latent._nearest(loss, expected)[0], latents)
