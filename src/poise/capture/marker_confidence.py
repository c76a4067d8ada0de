"""How far claims of uncertainty may be trusted, from markers hidden where they were seen.

A prior learned from a short recording is too sure of what else the performer does, the more so the less is seen. How
much too sure is measured: markers of frames that the prior has not learned are hidden, found by the tracker, and
compared. The claims of a share of hidden markers are then wider by as much as they were wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.types import Array

SHARES = (0.3, 0.5, 0.7, 0.9)  # of the markers that are hidden to see
DRAWS = 2  # of markers to hide, for every share


@dataclass(frozen=True)
class Confidence:
    """How much wider deviations are than a tracker claims, by the share of markers that are hidden."""

    shares: tuple[float, ...]
    factors: tuple[float, ...]

    def factor(self, hidden: float) -> float:
        """At this share of hidden markers."""
        return float(np.interp(hidden, self.shares, self.factors))


ASIS = Confidence((0.0,), (1.0,))
"""Claims as they are."""
USUAL = Confidence((0.0, 0.5, 0.7, 0.9), (1.0, 1.1, 1.5, 2.5))
"""What was found on average, for when there is nothing to measure it on."""


def confidence_from(errors: dict[float, list[Float[Array, "_"]]]) -> Confidence:
    """From errors over claimed deviations (lengths in three dimensions), by the share that was hidden.

    Nothing becomes surer than claimed, or surer where less is seen.
    """
    wrong = [float(np.sqrt(np.mean(np.concatenate(errors[share]) ** 2) / 3.0)) for share in sorted(errors)]
    factors = np.maximum.accumulate([1.0, *wrong])
    return Confidence((0.0, *sorted(errors)), tuple(factors.tolist()))
