"""Inputs of performances: the most recent observations, and estimates of missing signals."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.priors.local.examples import LAG
from poise.types import Array

FILLED_FROM = 400  # examples from which missing signals are predicted
CAUTION = 1.0  # ridge of that prediction, of the examples' mean spread


class Recent:
    """The most recent observations with their times, from which velocities follow."""

    def __init__(self) -> None:
        self.clock, self.step = 0.0, 0.0  # seconds: time of the last frame, and since the one before
        self._seen: list[tuple[float, Array]] = []

    def forget(self) -> None:
        """Forget the observations; the clock keeps running."""
        self._seen = []

    def note(self, values: Array, *, step: float, at: float | None) -> None:
        """Store a frame, `step` seconds after the last unless its time `at` is given."""
        earlier, self.clock = self.clock, at if at is not None else self.clock + step
        self.step = max(self.clock - earlier, 0.0)
        lately = [entry for entry in self._seen if 0.0 <= self.clock - entry[0] < 1.5 * LAG]
        self._seen = [*lately, (self.clock, values)]

    def exchange(self, first: int, second: int) -> None:
        """Swap two rows in all stored observations."""
        for _, values in self._seen:
            values[[first, second]] = values[[second, first]]

    def before(self) -> tuple[float, Array] | None:
        """The stored frame nearest to the examples' lag before the last: its age in seconds, and the observation."""
        earlier = self._seen[:-1]
        if not earlier:
            return None
        when, then = min(earlier, key=lambda entry: abs(entry[0] - (self.clock - LAG)))
        return max(self.clock - when, 1e-6), then


class Filler:
    """Fills in missing control signals by a linear model through the examples that agree with the others."""

    def __init__(self, inputs: Float[Array, "examples columns"], scales: Float[Array, "columns"]) -> None:
        self._scales = scales
        self._inputs = np.asarray(inputs * scales, dtype=np.float32)
        self._squares = self._inputs**2

    def __call__(self, x: Float[Array, "columns"]) -> Float[Array, "columns"]:
        known = np.isfinite(x)
        if np.all(known):
            return x
        values = np.where(known, x * self._scales, 0.0).astype(np.float32)
        near, shares = self._agreeing(values, known)
        typical = shares @ near
        spread = np.sqrt(shares)[:, None] * (near - typical)
        seen = spread[:, known]
        gram = seen.T @ seen
        gram[np.diag_indices_from(gram)] += CAUTION * np.trace(gram) / len(seen) + 1e-12
        weights = np.linalg.solve(gram, (values - typical)[known])
        return np.where(known, x, (typical + (seen @ weights) @ spread) / self._scales)

    def _agreeing(self, values: Array, known: Array) -> tuple[Array, Array]:
        """The examples nearest to the known signals, and their weights."""
        distances = self._squares @ known.astype(np.float32) - 2.0 * self._inputs @ values
        near = np.argpartition(distances, min(FILLED_FROM, len(distances) - 1))[:FILLED_FROM]
        apart = np.maximum(distances[near] + values @ values, 0.0).astype(np.float64)
        shares = 1.0 / (apart + apart.mean() * 0.1 + 1e-9)
        return self._inputs[near].astype(np.float64), shares / shares.sum()
