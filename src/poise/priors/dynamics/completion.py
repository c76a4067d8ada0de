"""Latent points of unseen poses with missing features, and completion of those features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.gp.placing import PlacingLoss, place_new
from poise.priors.dynamics.prior import DynamicsPrior
from poise.types import Array


def place_features(prior: DynamicsPrior, y: Float[Array, "poses features"]) -> Float[Array, "poses latent"]:
    """Return the latent point of each pose, from its known features (missing ones are NaN)."""
    process, mean = prior.process, prior.all_mean
    if y.shape[1] != len(mean):
        raise InvalidValueError(
            f"poses must have {len(mean)} features, with NaN for missing ones; got {y.shape[1]}"
        )
    known = ~np.isnan(y)
    if not known.any(axis=1).all():
        raise InvalidValueError("every feature of a pose is missing; at least one must be known")
    latents = np.empty((len(y), prior.model.dimensions))
    for pattern in np.unique(known, axis=0):
        alike = np.all(known == pattern, axis=1)
        seen = replace(process, weights=np.ascontiguousarray(process.weights[:, pattern]))
        loss = PlacingLoss(seen, prior.all_scales[pattern])
        latents[alike] = place_new(loss, (y[alike] - mean)[:, pattern])[0]
    return latents


def complete(prior: DynamicsPrior, y: Float[Array, "poses features"]) -> Float[Array, "poses features"]:
    """Fill in missing features with the model's prediction at the latent point of the known ones."""
    expected = prior.predict_all(place_features(prior, y))
    return np.where(np.isnan(y), expected, y)
