"""Prediction of a style's pose from the handles alone: a regression on recorded poses, limb by limb.

A latent space of few dimensions does not represent independent arm motion; the regression does. The mean of a pose is
half the regression's prediction and half the style's at the latent point. The remaining covariance does not grow
outside the style's data, where few poses determine how deviations correlate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from poise.gp import regression
from poise.priors.clusters import BETA, BLOCKS
from poise.priors.limbs import limb_groups, unmoved_apart
from poise.priors.poses import handle_positions
from poise.skeleton.pose_space import Handles
from poise.types import Array

if TYPE_CHECKING:
    from poise.priors.latent.prior import LatentPrior


MOST = 200  # largest number of evenly spaced poses used
SHARE = 0.5  # of the prediction in the mean of a pose
WHOLE_SHARE = 0.1  # of the covariance of all poses in the remaining one


class Answers:
    """Map from handle positions in the root's frame to a pose, and the remaining covariance."""

    def __init__(self, prior: LatentPrior, handles: Handles) -> None:
        model, maps = prior.model, prior.mean.size
        chosen = np.arange(0, len(model.latents), -(-len(model.latents) // MOST))
        poses = model.mean[:maps] + model.recorded[chosen, :maps]
        self._process = regression.fit(
            handle_positions(prior.space, poses, handles).reshape(len(poses), -1),
            poses,
            groups=limb_groups(prior.space, handles),
            blocks=chosen * BLOCKS // len(model.latents),
            centre=poses.mean(axis=0),
        )
        usual, whole = prior.variance(model.latents).mean() * prior.noise, np.cov(model.recorded[:, :maps].T)
        widely = WHOLE_SHARE * unmoved_apart(prior.space, handles, whole)
        self.covariance = usual + widely + BETA * np.eye(maps)

    def __call__(self, points: Float[Array, "handles 3"]) -> Float[Array, "maps"]:
        """The pose for handles at these positions."""
        mean = np.zeros(len(self.covariance))
        self._process.add(points.ravel(), mean)
        return mean
