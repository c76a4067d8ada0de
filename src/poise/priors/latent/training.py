"""Training features of a latent space, and which of them vary."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from poise.priors.latent.features import Features
from poise.types import Array

STILL_SHARE = 0.01  # of the typical deviation of its kind: a feature that varies less counts as still
STILL_DEVIATION = 1e-4  # the same threshold in the feature's own unit


class TrainingFeatures:
    """Features y of frames: those of the pose, and possibly others."""

    features: Features
    y: Float[Array, "frames features"]

    @cached_property
    def mean(self) -> Float[Array, "features"]:
        """The mean of every feature (mu of Grochow et al. 2004, Eq. 2)."""
        return np.asarray(self.y.mean(axis=0))

    @cached_property
    def floors(self) -> Float[Array, "features"]:
        """The deviation below which a feature counts as still: a share of the typical one of its kind."""
        deviations, groups = self.y.std(axis=0), self.features.groups
        squares = np.bincount(groups, deviations[: len(groups)] ** 2) / np.maximum(np.bincount(groups), 1)
        floors = np.full(len(deviations), STILL_DEVIATION)
        floors[: len(groups)] = np.maximum(STILL_SHARE * np.sqrt(squares[groups]), STILL_DEVIATION)
        return floors

    @cached_property
    def varying(self) -> Bool[Array, "features"]:
        """Mask of the features that vary; only these are learned."""
        return np.asarray(self.y.std(axis=0) > self.floors)

    @cached_property
    def centred(self) -> Float[Array, "frames varying"]:
        """The varying features minus their mean."""
        return np.ascontiguousarray((self.y - self.mean)[:, self.varying])

    def all_scales(self, scales: Float[Array, "varying"]) -> Float[Array, "features"]:
        """Scales of all features; a still one counts as if it varied by its floor, so that it is stiff but finite."""
        every = 1.0 / self.floors
        every[self.varying] = scales
        return every
