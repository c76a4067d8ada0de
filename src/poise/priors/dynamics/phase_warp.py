"""A phase that is learned along with the model, as proposed in the paper's fourth footnote.

In every sequence the detected phase is changed smoothly, phi = phi_0 + H w: H are cubic B-splines with a knot about
every quarter of a second, and w has a prior around zero. A back-constrained circle follows: its kernel is relative to
the detected phases, B(phi) = k(c(phi), c(phi_0)) M with c the cosine or the sine, so that
d x / d phi = -+ B'(c) b sin or cos of phi.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline

from poise.priors.dynamics import measures
from poise.types import Array

KNOT_FRAMES = 8  # at 30 Hz, between knots
DEVIATION = 0.3  # radians: prior standard deviation of a phase change


def warp_design(lengths: tuple[int, ...]) -> Float[Array, "frames weights"]:
    """H: the splines of every sequence, in its own frames."""
    parts = [_splines(length) for length in lengths]
    design = np.zeros((sum(lengths), sum(part.shape[1] for part in parts)))
    row = column = 0
    for part in parts:
        design[row : row + len(part), column : column + part.shape[1]] = part
        row, column = row + len(part), column + part.shape[1]
    return design


def warp_loss(weights: Float[Array, "weights"]) -> tuple[float, Float[Array, "weights"]]:
    """-ln p(w), and its gradient."""
    return 0.5 * float(weights @ weights) / DEVIATION**2, weights / DEVIATION**2


@dataclass(frozen=True, eq=False)
class CircleBasis:
    """The basis of a back-constrained cosine or sine, at phases other than the detected ones."""

    centres: Float[Array, "centres"]
    mixing: Float[Array, "centres directions"]

    def at(self, coordinate: Float[Array, "frames"]) -> Float[Array, "frames directions_and_constant"]:
        """B at these cosines or sines; its last direction is constant."""
        kernel = self._kernel(coordinate)
        return np.column_stack([kernel @ self.mixing, np.ones(len(coordinate))])

    def slope(self, coordinate: Float[Array, "frames"]) -> Float[Array, "frames directions_and_constant"]:
        """B', the derivative by the coordinate."""
        apart = (coordinate[:, None] - self.centres) / measures.CIRCLE_WIDTH**2
        return np.column_stack([-(apart * self._kernel(coordinate)) @ self.mixing, np.zeros(len(coordinate))])

    def _kernel(self, coordinate: Float[Array, "frames"]) -> Float[Array, "frames centres"]:
        squared = measures.circle_distances(coordinate, self.centres)
        return measures.similarity(squared, measures.CIRCLE_WIDTH)


def _splines(length: int) -> Float[Array, "length splines"]:
    spans = max(1, round((length - 1) / KNOT_FRAMES))
    inner = np.linspace(0.0, length - 1.0, spans + 1)
    knots = np.concatenate([[inner[0]] * 3, inner, [inner[-1]] * 3])
    return np.asarray(BSpline.design_matrix(np.arange(length, dtype=np.float64), knots, 3).todense())
