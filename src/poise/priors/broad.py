"""The broad prior: nothing learned, joints stay within reach of a mean pose. For bodies with many markers."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.priors.poses import upright
from poise.priors.predicting import MeanPoseGuide
from poise.priors.prior import ALL
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array, MapsGaussian, Points, PoseVector


class BroadPrior:
    """Independent normal distributions of all degrees of freedom about a mean pose, with one standard deviation.

    A frame that follows another starts from its pose; if solved `afresh`, from the mean.
    """

    kind = "broad"
    limits: JointLimits | None = None

    def __init__(
        self,
        space: PoseSpace,
        *,
        mean: Float[Array, "maps"] | None = None,
        sigma: float = 1.0,
        afresh: bool = False,
    ) -> None:
        self.space, self.sigma, self.afresh = space, sigma, afresh
        # Writable, like the means of other priors: for another array type the solver would be compiled again.
        self.mean = np.zeros(space.size - ROOT_SIZE) if mean is None else np.array(mean, dtype=np.float64)

    def on_body(self, skeleton: Skeleton) -> BroadPrior:
        """The same prior on a skeleton of the same topology and other limb lengths."""
        prior = copy.copy(self)
        prior.space = self.space.on_body(skeleton)
        return prior

    def guide(self, handles: Handles, *, fps: float | None = None) -> BroadGuide:
        """Return the guide for these handles."""
        del fps
        return BroadGuide(self, handles)

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """The mean pose, upright."""
        return upright(self.mean[None])

    def log_likelihood(self, q: PoseVector) -> float:
        """The log density of a pose."""
        gap = (self.space.checked(q)[ROOT_SIZE:] - self.mean) / self.sigma
        return float(-0.5 * gap @ gap - len(gap) * np.log(self.sigma * np.sqrt(2.0 * np.pi)))

    def percentile(self, q: PoseVector) -> float:
        """The percentage of poses of this distribution that are less likely than this one."""
        from scipy.special import chdtrc  # the tail of chi-squared; importing scipy.stats takes a second

        gap = (self.space.checked(q)[ROOT_SIZE:] - self.mean) / self.sigma
        return float(100.0 * chdtrc(len(gap), gap @ gap))


class BroadGuide(MeanPoseGuide):
    """The same mean and covariance for all targets."""

    def __init__(self, prior: BroadPrior, handles: Handles) -> None:
        super().__init__(prior, handles)
        if not prior.afresh:
            self.plan = replace(self.plan, tracked=((ALL,),))
        self._mean, self._covariance = prior.mean, prior.sigma**2 * np.eye(len(prior.mean))

    def __call__(self, targets: Points) -> MapsGaussian:
        """Mean and covariance of the pose."""
        del targets
        return self._mean, self._covariance
