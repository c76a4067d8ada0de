"""The log density of a Gaussian over a pose's exponential maps, and its gradient."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.types import Array, MapsGaussian


def log_density(gaussian: MapsGaussian, maps: Float[Array, "maps"]) -> float:
    """The log density at some maps."""
    mean, covariance = gaussian
    gap = maps - mean
    _, volume = np.linalg.slogdet(covariance)
    return float(-0.5 * (gap @ np.linalg.solve(covariance, gap) + volume + len(gap) * np.log(2 * np.pi)))


def log_density_gradient(gaussian: MapsGaussian, maps: Float[Array, "maps"]) -> Float[Array, "maps"]:
    """The gradient of the log density by the maps: from a pose towards likelier ones."""
    mean, covariance = gaussian
    return np.asarray(np.linalg.solve(covariance, mean - maps))
