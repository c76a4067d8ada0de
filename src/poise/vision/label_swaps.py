"""Detect and undo label swaps between markers.

Two markers so close that either track could continue in the other's blob are in doubt from then on. Meanwhile the
poses of the library, aligned to all other markers, are compared at every moment with the labels as they are and
exchanged. Once the evidence is clear, the labels are exchanged, or the doubt is dropped.

In one picture the nearest pose proves little, because depths come from the body itself: there, all poses together
predict a marker given the others (`expected`), and markers that took another one's blob are found too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from poise.geometry.alignment import rigid_fits, shifts_across
from poise.types import Array
from poise.vision.tracks import Tracks

# --- expected positions given the seen ones, from the poses of a library: a Gaussian, and label likelihoods ----------
#
# Every pose is rotated about the vertical and shifted to the seen markers, as far as they are known: one camera
# determines a position only across its ray. Closer poses get more weight. Given all others, a marker is predicted
# within a centimetre or two, even in one picture: that distinguishes a finger from a wrist, which the nearest pose
# alone cannot.


SCATTER = 0.015  # metres: typical deviation of a marker from the Gaussian
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

    def given(self, places: Array, across: Array, seen: Bool[Array, "markers"]) -> Expected:
        """The Gaussian conditioned on some marker positions."""
        markers = np.flatnonzero(seen)
        gaps, spread, known = self._seen(markers, places[seen], across[seen])
        carried = self.covariance[:, _coordinates(markers)] @ known.T
        gain = np.linalg.solve(spread, carried.T).T
        return Expected(self.mean + (gain @ gaps).reshape(-1, 3), self.covariance - gain @ carried.T)

    def exchange_gain(
        self, places: Array, across: Array, others: Bool[Array, "markers"], pair: list[int]
    ) -> float:
        """Log-likelihood gain of exchanging two labels, given the other markers."""
        left, markers = self.given(places, across, others), np.array(pair)
        exchanged = markers[::-1]
        as_they_are = sum(left._off(markers, places[markers], across[markers]))
        return 0.5 * (as_they_are - sum(left._off(markers, places[exchanged], across[exchanged])))

    def exchange_gains(
        self, places: Array, across: Array, seen: Bool[Array, "markers"], pairs: Sequence[tuple[int, int]]
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
        self, places: Array, across: Array, seen: Bool[Array, "markers"]
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
        spread[np.diag_indices_from(spread)] += SCATTER**2
        return known @ (places - self.mean[markers]).ravel(), spread, known


def _coordinates(markers: Array) -> Array:
    return np.asarray((3 * markers[:, None] + np.arange(3)).ravel())


Pair = tuple[int, int]

NEAR = 9.0  # squared deviations between two tracks below which they may be confused
REACH = 0.05  # metres: largest distance of a marker's blob from its track, besides the track's own deviation
DEEP = 0.5  # metres: depth by which markers in one picture may be behind each other
UNLIKE = 0.08  # metres: typical distance of a marker from the nearest pose of the library
MEMORY = 0.1  # seconds in which poses are so similar that they count as one proof
PROOF = 5.0  # log-likelihood ratio above which labels are exchanged
TRUST = -10.0  # below which the labels are trusted again
MOST_PAIRS = 4  # pairs examined per moment
FEWEST = 6  # smallest number of markers with certain labels for a prediction of others
MOST_STRANGERS = 6  # per moment


class LabelSwaps:
    """Pairs of markers in doubt, and the evidence so far."""

    def __init__(self, shapes: Float[Array, "poses markers 3"], *, alone: bool = False) -> None:
        """`alone`: there is only one camera."""
        self._shapes, self._alone, count = np.ascontiguousarray(shapes), alone, shapes.shape[1]
        self._open, self._evidence = np.zeros((count, count), dtype=np.bool_), np.zeros((count, count))

    def note(
        self,
        tracks: Tracks,
        centres: Float[Array, "cameras 3"],
        *,
        alike: Bool[Array, "markers markers"] | None = None,
    ) -> None:
        """Record pairs with nearby tracks; in one picture, if not both are seen by two cameras.

        Only markers that are `alike` in colour can be confused.
        """
        if not len(self._shapes):
            return
        first, second = np.triu_indices(len(tracks.places), 1)
        gaps = tracks.places[first] - tracks.places[second]
        both = tracks.spreads[first] + tracks.spreads[second] + REACH**2 * np.eye(3)
        near = _squared_deviations(gaps, both) < NEAR
        unsure = (tracks.unseen[first] > 0) | (tracks.unseen[second] > 0)
        for centre in centres:
            rays = tracks.places[first] - centre
            along = DEEP**2 * rays[:, :, None] * rays[:, None] / np.sum(rays**2, axis=1)[:, None, None]
            near |= unsure & (_squared_deviations(gaps, both + along) < NEAR)
        near &= True if alike is None else alike[first, second]
        self._open[first[near], second[near]] = True

    def judged(
        self, places: Float[Array, "markers 3"], across: Float[Array, "markers 3 3"], seconds: float
    ) -> list[Pair]:
        """Pairs with swapped labels by the evidence of all moments so far, including this one.

        `across` projects a gap to its known part: all of it if two cameras see a marker, across the ray if one does,
        nothing if none does.
        """
        seen, wrong = np.any(across, axis=(1, 2)), []
        gains = self._gains_in_picture if self._alone else self._gains_by_nearest
        for pair, likelier in gains(places, across, seen).items():
            self._evidence[pair] += likelier * min(seconds / MEMORY, 1.0)
            if self._evidence[pair] >= PROOF:
                wrong.append(pair)
            if not TRUST < self._evidence[pair] < PROOF:
                self._open[pair], self._evidence[pair] = False, 0.0
        return wrong

    def strangers(self, places: Float[Array, "markers 3"], across: Float[Array, "markers 3 3"]) -> list[int]:
        """Markers of one picture that are where no pose has them, but has another: their blobs belong to others.

        The most unlikely first, each evaluated by all that are not.
        """
        kept, found, expected = np.any(across, axis=(1, 2)), list[int](), None
        while self._alone and len(self._shapes) and np.sum(kept) > FEWEST and len(found) < MOST_STRANGERS:
            expected = Expected.near(self._shapes, places, across, kept)
            surprises = expected.surprises(places, across, kept)
            worst = int(np.argmax(surprises))
            if surprises[worst] < STRANGE:
                break
            kept[worst] = False
            found.append(worst)
        if expected is None or not found:
            return []
        left = expected.given(places, across, kept)
        return [k for k in found if left.other_gain(k, places[k], across[k]) > PROOF]

    def _gains_in_picture(self, places: Array, across: Array, seen: Array) -> dict[Pair, float]:
        """Log-likelihood gain of this moment if two labels are exchanged, by all poses and all other markers."""
        if np.sum(seen) < FEWEST or not np.any(self._open):
            return {}
        expected = Expected.near(self._shapes, places, across, seen)
        both = self._most_doubtful(seen[:, None] & seen[None], len(seen) ** 2)
        gains = dict(zip(both, expected.exchange_gains(places, across, seen, both), strict=True))
        for first, second in self._most_doubtful(seen[:, None] ^ seen[None], MOST_PAIRS):
            others = seen.copy()
            others[[first, second]] = False
            gains[first, second] = expected.exchange_gain(places, across, others, [first, second])
        return gains

    def _gains_by_nearest(self, places: Array, across: Array, seen: Array) -> dict[Pair, float]:
        """The same by the nearest poses, with labels as they are and exchanged."""
        gains = {}
        for first, second in self._most_doubtful(seen[:, None] | seen[None], MOST_PAIRS):
            pair, others = [first, second], seen.copy()
            others[pair] = False
            if np.sum(others) < 3:
                continue
            turns, shifts, left = rigid_fits(self._shapes[:, others], places[others], upright=True)
            expected = self._shapes[:, pair] @ turns.transpose(0, 2, 1) + shifts[:, None]
            swapped = pair[::-1]
            as_they_are = left**2 + _squared_gaps(expected, places[pair], across[pair])
            exchanged = left**2 + _squared_gaps(expected, places[swapped], across[swapped])
            gains[first, second] = float(as_they_are.min() - exchanged.min()) / (2.0 * UNLIKE**2)
        return gains

    def _most_doubtful(self, among: Array, most: int) -> list[Pair]:
        doubtful = self._open & among
        order = np.argsort(-self._evidence[doubtful], kind="stable")[:most]
        return [(int(first), int(second)) for first, second in np.argwhere(doubtful)[order]]


def _squared_deviations(gaps: Float[Array, "pairs 3"], spreads: Float[Array, "pairs 3 3"]) -> Array:
    return np.einsum("pa,pa->p", gaps, np.linalg.solve(spreads, gaps[..., None])[..., 0])


def _squared_gaps(
    expected: Float[Array, "poses 2 3"], places: Float[Array, "2 3"], across: Float[Array, "2 3 3"]
) -> Float[Array, "poses"]:
    gaps = np.einsum("mab,pmb->pma", across, expected - places)
    return np.asarray(np.sum(gaps**2, axis=(1, 2)))
