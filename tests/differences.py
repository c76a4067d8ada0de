"""Central finite differences, against which tests hold analytic gradients."""

from collections.abc import Callable

import numpy as np


def gradient(function: Callable[[np.ndarray], float], at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of a scalar function of an array."""
    slopes = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        change = np.zeros_like(at)
        change[place] = step
        slopes[place] = (function(at + change) - function(at - change)) / (2.0 * step)
    return slopes
