"""What handles alone say of a style's pose: a regression on recorded poses, limb by limb.

A latent space of few dimensions does not hold how each arm moves by itself. The regression does: half of the mean of a
pose is what it answers, half what the style expects at the latent point. What both leave open does not grow where the
style has seen nothing: few poses say little of how deviations go together there.
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


MOST = 200  # poses, evenly spaced, that it goes by
SHARE = 0.5  # of the answer in the mean of a pose
WHOLE_SHARE = 0.1  # of the covariance of all poses in what is left open


class Answers:
    """From where handles are in the root's frame to a pose, and the covariance of what is left open."""

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
        """The pose for handles at these points."""
        mean = np.zeros(len(self.covariance))
        self._process.add(points.ravel(), mean)
        return mean
