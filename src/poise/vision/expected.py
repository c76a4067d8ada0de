"""Expected marker positions given the seen ones, from the poses of a library: a Gaussian, and label likelihoods.

Every pose is rotated about the vertical and shifted to the seen markers, as far as they are known: one camera
determines a position only across its ray. Closer poses get more weight. Given all others, a marker is predicted within
a centimetre or two, even in one picture: that distinguishes a finger from a wrist, which the nearest pose alone
cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from poise.geometry.alignment import rigid_fits, shifts_across
from poise.types import Array

UNLIKE = 0.015  # metres: typical deviation of a marker from the Gaussian
STRANGE = 25.0  # squared deviations from its prediction at which a marker may be another


@dataclass(frozen=True, eq=False)
class Expected:
    """A Gaussian of the positions of all markers.

    `across` projects a gap to its known part: all of it if two cameras see a marker, across the ray if one does,
    nothing if none does.
    """

    mean: Float[Array, "markers 3"]
    covariance: Float[Array, "coordinates coordinates"]

    @classmethod
    def near(
        cls,
        shapes: Float[Array, "poses markers 3"],
        places: Float[Array, "markers 3"],
        across: Float[Array, "markers 3 3"],
        sure: Bool[Array, "markers"],
    ) -> Expected:
        """Create it from poses, rotated and shifted to the markers with certain labels."""
        turns, shifts, _ = rigid_fits(shapes[:, sure], places[sure], upright=True)
        placed = shapes @ turns.transpose(0, 2, 1) + shifts[:, None]
        shifts, squares = shifts_across((placed[:, sure] - places[sure]).swapaxes(0, 1), across[sure])
        shares = 1.0 / (squares + 0.1 * squares.mean() + 1e-9)
        shares /= shares.sum()
        flat = (placed - shifts[:, None]).reshape(len(placed), -1)
        mean = shares @ flat
        spread = np.sqrt(shares)[:, None] * (flat - mean)
        return cls(mean.reshape(-1, 3), spread.T @ spread)

    def given(
        self,
        places: Float[Array, "markers 3"],
        across: Float[Array, "markers 3 3"],
        seen: Bool[Array, "markers"],
    ) -> Expected:
        """The Gaussian conditioned on some marker positions."""
        markers = np.flatnonzero(seen)
        gaps, spread, known = self._seen(markers, places[seen], across[seen])
        carried = self.covariance[:, _coordinates(markers)] @ known.T
        gain = np.linalg.solve(spread, carried.T).T
        return Expected(self.mean + (gain @ gaps).reshape(-1, 3), self.covariance - gain @ carried.T)

    def exchange_gain(
        self,
        places: Float[Array, "markers 3"],
        across: Float[Array, "markers 3 3"],
        others: Bool[Array, "markers"],
        pair: list[int],
    ) -> float:
        """Log-likelihood gain of exchanging two labels, given the other markers."""
        left, markers = self.given(places, across, others), np.array(pair)
        exchanged = markers[::-1]
        as_they_are = sum(left._off(markers, places[markers], across[markers]))
        return 0.5 * (as_they_are - sum(left._off(markers, places[exchanged], across[exchanged])))

    def exchange_gains(
        self,
        places: Float[Array, "markers 3"],
        across: Float[Array, "markers 3 3"],
        seen: Bool[Array, "markers"],
        pairs: Sequence[tuple[int, int]],
    ) -> list[float]:
        """The same for many pairs of seen markers, each given all other markers, at the cost of one."""
        markers, found = np.flatnonzero(seen), []
        gaps, spread, _ = self._seen(markers, places[seen], across[seen])
        precision = np.linalg.inv(spread)
        for pair in pairs:
            swapped = list(pair[::-1])
            rows = _coordinates(np.searchsorted(markers, pair))
            own = precision[np.ix_(rows, rows)]
            off = np.linalg.solve(own, precision[rows] @ gaps)  # the error of the two, given the others
            there = np.einsum("mab,mb->ma", across[swapped], places[swapped] - self.mean[list(pair)]).ravel()
            exchanged = off + there - gaps[rows]
            found.append(0.5 * float(off @ own @ off - exchanged @ own @ exchanged))
        return found

    def other_gain(self, marker: int, place: Float[Array, "3"], across: Float[Array, "3 3"]) -> float:
        """Log-likelihood gain if a marker's observation belongs to another one; negative if it fits none."""
        own = sum(self._off(np.array([marker]), place[None], across[None]))
        offs = [self._off(np.array([k]), place[None], across[None]) for k in range(len(self.mean))]
        others = [sum(off) for k, off in enumerate(offs) if k != marker and off[0] < STRANGE]
        return 0.5 * (own - min(others, default=np.inf))

    def surprises(
        self,
        places: Float[Array, "markers 3"],
        across: Float[Array, "markers 3 3"],
        seen: Bool[Array, "markers"],
    ) -> Float[Array, "markers"]:
        """Squared deviation of each marker from its prediction by all others; 0 for unseen ones."""
        markers, found = np.flatnonzero(seen), np.zeros(len(seen))
        gaps, spread, _ = self._seen(markers, places[seen], across[seen])
        precision = np.linalg.inv(spread)
        pulls = (precision @ gaps).reshape(-1, 3)
        for row, marker in enumerate(markers):
            own = precision[3 * row : 3 * row + 3, 3 * row : 3 * row + 3]
            found[marker] = pulls[row] @ np.linalg.solve(own, pulls[row])
        return found

    def _off(self, markers: Array, places: Array, across: Array) -> tuple[float, float]:
        """Squared deviations of the seen markers, and the log-determinant of their covariance."""
        seen = np.any(across, axis=(1, 2))
        gaps, spread, _ = self._seen(markers[seen], places[seen], across[seen])
        return float(gaps @ np.linalg.solve(spread, gaps)), float(np.linalg.slogdet(spread)[1])

    def _seen(self, markers: Array, places: Array, across: Array) -> tuple[Array, Array, Array]:
        """Errors of markers, their covariance, and the projection to the known parts."""
        blocks = np.zeros((len(markers), 3, len(markers), 3))
        blocks[np.arange(len(markers)), :, np.arange(len(markers))] = across
        known = blocks.reshape(3 * len(markers), -1)
        rows = _coordinates(markers)
        spread = known @ self.covariance[np.ix_(rows, rows)] @ known.T
        spread[np.diag_indices_from(spread)] += UNLIKE**2
        return known @ (places - self.mean[markers]).ravel(), spread, known


def _coordinates(markers: Array) -> Array:
    return np.asarray((3 * markers[:, None] + np.arange(3)).ravel())
