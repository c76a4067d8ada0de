"""Latent variable models of several libraries in one form, for a common evaluation; not a benchmark by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poise.gp.covariance import Kernel
from poise.gp.latent import PlacingLoss, place_new
from poise.gp.process import Posterior

STALL_STEPS = 100  # optimiser steps over which
STALL_GAIN = 0.1  # nats per frame must be gained to continue

Array = np.ndarray


@dataclass(frozen=True)
class LatentModel:
    """A learned RBF process over latent points of unit width that predicts features of unit variance."""

    latents: Array  # of the training frames
    active: Array  # points of the process: those, or inducing ones
    outputs: Array  # such that f(x) = k(x) (K + noise)^-1 outputs over the active points
    variance: float
    noise: float
    steps: int

    @cached_property
    def loss(self) -> PlacingLoss:
        """What poses are placed by."""
        logs = np.log([self.variance, 1.0 / self.noise, 1.0])
        return PlacingLoss(
            Posterior.given(Kernel.of("rbf", logs), self.active, self.outputs), np.ones(self.outputs.shape[1])
        )

    def learned_error(self, scaled: Array) -> float:
        """Error on the training frames, rms over frames and features."""
        return self._error(self.latents, scaled)

    def unseen_error(self, scaled: Array) -> float:
        """Error on unseen frames, each placed in the latent space by the same search."""
        return self._error(place_new(self.loss, scaled)[0], scaled)

    def _error(self, latents: Array, scaled: Array) -> float:
        left, _ = self.loss.misfit(latents, scaled)
        return float(np.sqrt(np.mean(left**2)))


def stalled(curve: Sequence[float]) -> bool:
    """Whether an objective in nats per frame, one value per step, has stalled."""
    return len(curve) > STALL_STEPS and min(curve[:-STALL_STEPS]) - min(curve[-STALL_STEPS:]) < STALL_GAIN
