"""Calibration of a tracker's uncertainty, from markers that are hidden where they were seen.

A prior learned from a short recording is overconfident about other movements, the more so the less is seen. This is
measured: markers of frames that the prior has not learned are hidden, predicted by the tracker, and compared. The
standard deviations at each share of hidden markers are then widened accordingly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.types import Array

SHARES = (0.3, 0.5, 0.7, 0.9)  # shares of the markers that are hidden for the measurement
DRAWS = 2  # random choices of hidden markers per share


@dataclass(frozen=True)
class Confidence:
    """The factor on a tracker's standard deviations, by the share of hidden markers."""

    shares: tuple[float, ...]
    factors: tuple[float, ...]

    def factor(self, hidden: float) -> float:
        """The factor at this share of hidden markers."""
        return float(np.interp(hidden, self.shares, self.factors))


ASIS = Confidence((0.0,), (1.0,))
"""No widening."""
USUAL = Confidence((0.0, 0.5, 0.7, 0.9), (1.0, 1.1, 1.5, 2.5))
"""The average, for takes without data for the measurement."""


def confidence_from(errors: dict[float, list[Float[Array, "_"]]]) -> Confidence:
    """The factors from ratios of errors to claimed deviations (lengths in three dimensions), by hidden share.

    Factors are at least one, and do not decrease as less is seen.
    """
    wrong = [float(np.sqrt(np.mean(np.concatenate(errors[share]) ** 2) / 3.0)) for share in sorted(errors)]
    factors = np.maximum.accumulate([1.0, *wrong])
    return Confidence((0.0, *sorted(errors)), tuple(factors.tolist()))
