"""Test points and missing dimensions: where poses never seen lie in the latent space, given what is known of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.gp.placing import PlacingLoss, place_new
from poise.priors.dynamics.prior import DynamicsPrior
from poise.types import Array


def place_features(prior: DynamicsPrior, y: Float[Array, "poses features"]) -> Float[Array, "poses latent"]:
    """Where poses lie, each placed by its features that are not missing (NaN)."""
    process, mean = prior.process, prior.all_mean
    if y.shape[1] != len(mean):
        raise InvalidValueError(
            f"poses here have {len(mean)} features, missing ones as NaN; got {y.shape[1]}"
        )
    known = ~np.isnan(y)
    if not known.any(axis=1).all():
        raise InvalidValueError(
            "a pose of which every feature is missing lies anywhere; at least one is needed"
        )
    latents = np.empty((len(y), prior.model.dimensions))
    for pattern in np.unique(known, axis=0):
        alike = np.all(known == pattern, axis=1)
        seen = replace(process, weights=np.ascontiguousarray(process.weights[:, pattern]))
        loss = PlacingLoss(seen, prior.all_scales[pattern])
        latents[alike] = place_new(loss, (y[alike] - mean)[:, pattern])[0]
    return latents


def complete(prior: DynamicsPrior, y: Float[Array, "poses features"]) -> Float[Array, "poses features"]:
    """Poses with their missing features as the model expects them where the known ones put the pose."""
    expected = prior.predict_all(place_features(prior, y))
    return np.where(np.isnan(y), expected, y)
