"""Markers that may have been taken for each other, and the proof that they were: a swap is found and undone.

Two markers that come so close that either track could go on in the other's blob are in doubt from then on. As long as
they are, the poses of the library are asked moment by moment, turned to fit all the other markers: how near do they
come with these two labels, and how near with the two exchanged? Once the evidence is clear, the labels are exchanged,
or the doubt is dropped.

In one picture the nearest pose proves little, as depths are the body's own: there, all poses together tell where a
marker is expected given the others (`expected`), and markers that took what is likelier another's are found too.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from poise.geometry.alignment import rigid_fits
from poise.types import Array
from poise.vision.expected import STRANGE, Expected
from poise.vision.tracks import Tracks

Pair = tuple[int, int]

NEAR = 9.0  # squared deviations that two tracks are apart where they may be taken for each other
REACH = 0.05  # metres: a marker's blob may be as far from its track, on top of the track's own deviation
DEEP = 0.5  # metres that markers may be behind each other in one picture
UNLIKE = 0.08  # metres by which the nearest pose of the library typically differs at a marker
MEMORY = 0.1  # seconds in which poses are so alike that they prove a thing once
PROOF = 5.0  # log-likelihood ratio from which labels are exchanged
TRUST = -10.0  # from which the labels are trusted again
MOST_PAIRS = 4  # that are judged at one moment
FEWEST = 6  # markers with sure labels by which others are expected
MOST_STRANGERS = 6  # at one moment


class LabelSwaps:
    """Pairs of markers in doubt, and the evidence so far."""

    def __init__(self, shapes: Float[Array, "poses markers 3"], *, alone: bool = False) -> None:
        """`alone`: there is one camera only."""
        self._alone = alone
        self._shapes = np.ascontiguousarray(shapes)
        count = shapes.shape[1]
        self._open = np.zeros((count, count), dtype=np.bool_)
        self._evidence = np.zeros((count, count))

    def note(
        self,
        tracks: Tracks,
        centres: Float[Array, "cameras 3"],
        *,
        alike: Bool[Array, "markers markers"] | None = None,
    ) -> None:
        """Pairs whose tracks are near each other; in one picture, where not both are followed by two cameras.

        Only those that are `alike` in colour can be taken for each other.
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
        """Pairs whose labels are wrong by the evidence of all moments so far, this one included.

        `across` takes from a gap what is known of it: all of it where two cameras see a marker, what is across the ray
        where one does, nothing where none does.
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
        """Markers of one picture that are where no pose has them, but has another: what they took is not theirs.

        The strangest first, each judged by all that are not.
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
        """How much likelier this moment is with two labels exchanged (log), by all poses and all other markers."""
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
        """The same, by the poses that come nearest, once as labels are and once with the two exchanged."""
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
