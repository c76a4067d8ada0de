"""Labels of markers over time: blobs of all cameras in, positions and pixels of each marker out.

A first frame is labelled by possible layouts of the performer; then tracks, the body, colours and each camera's
previous observations decide together (`explain`), and label swaps are undone (`label_swaps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.types import Array
from poise.vision.blobs import Blobs
from poise.vision.correspond import Candidate, Matcher, exclusive
from poise.vision.explain import explain
from poise.vision.first_labels import STRAY, find_in_picture, fit_layout
from poise.vision.label_swaps import LabelSwaps, Pair
from poise.vision.rig import Rig
from poise.vision.tracks import Tracks
from poise.vision.triangulate import Meeting, projections, triangulate_all

# --- the observations of markers at one moment -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sighting:
    """One moment: marker positions (NaN: not seen by two cameras), covariances, pixels per camera (NaN: hidden)."""

    points: Float[Array, "markers 3"]
    covariances: Float[Array, "markers 3 3"]
    pixels: Float[Array, "cameras markers 2"]

    @classmethod
    def nothing(cls, cameras: int, markers: int) -> Sighting:
        """A sighting of nothing."""
        return cls(
            np.full((markers, 3), np.nan),
            np.full((markers, 3, 3), np.nan),
            np.full((cameras, markers, 2), np.nan),
        )

    def note(
        self, marker: int, meeting: Meeting, blobs: Sequence[tuple[int, int]], seen: Sequence[Blobs]
    ) -> None:
        """Place a marker where the rays through these blobs meet."""
        self.points[marker], self.covariances[marker] = meeting.point, meeting.covariance
        for camera, blob in blobs:
            self.pixels[camera, marker] = seen[camera].centres[blob]

    def exchange(self, first: int, second: int) -> None:
        """Exchange two markers with swapped labels."""
        for values in (self.points, self.covariances, self.pixels.swapaxes(0, 1)):
            values[[first, second]] = values[[second, first]]

    def forget(self, marker: int) -> None:
        """Remove a marker: the observation was not this one."""
        self.points[marker] = self.covariances[marker] = self.pixels[:, marker] = np.nan

    def known_across(self, rig: Rig, places: Float[Array, "markers 3"]) -> Float[Array, "markers 3 3"]:
        """Projections to the known part of markers near these positions: all, across a camera's ray, or nothing."""
        found = np.zeros((len(places), 3, 3))
        for number, camera in enumerate(rig.cameras):
            for marker in np.flatnonzero(np.isfinite(self.pixels[number, :, 0])):
                ray = places[marker] - camera.pinhole.centre
                found[marker] = np.eye(3) - np.outer(ray, ray) / (ray @ ray)
        found[self.is_placed] = np.eye(3)
        return found

    @property
    def is_placed(self) -> Array:
        """Mask of the markers with a position."""
        return np.asarray(np.isfinite(self.points[:, 0]))

    @property
    def is_seen(self) -> Array:
        """Mask of the markers that at least one camera sees."""
        return np.asarray(np.isfinite(self.pixels[..., 0]).any(axis=0))


FIRST_FIT = 0.12  # metres per marker: largest deviation of the first frame from the calibrated layout
STAYS, COMES_BACK = 0.95, 0.3  # probabilities to see a marker again, and one that was not seen
OTHER_COLOUR = 0.4  # difference of tints that cannot belong to one marker
TINT_MEMORY = 0.1  # update rate of a marker's tint


@dataclass(frozen=True, eq=False)
class Wearer:
    """The wearer of the markers: their positions in typical poses, and the liveliness of each (1: like hands)."""

    shapes: Float[Array, "poses markers 3"]
    liveliness: Float[Array, "markers"]

    @classmethod
    def unknown(cls, markers: int) -> Wearer:
        """An unknown wearer."""
        return cls(np.zeros((0, markers, 3)), np.ones(markers))


class Labeller:
    """Labels the markers of one performer in the blobs of a rig."""

    def __init__(self, rig: Rig, wearer: Wearer, *, tints: Float[Array, "markers 3"] | None = None) -> None:
        """`tints` are the known colours of markers, NaN for those to be learned."""
        self.rig, self._wearer = rig, wearer
        self._worn = np.full((len(wearer.liveliness), 3), np.nan) if tints is None else tints
        self._matcher, self._matrices = Matcher(rig), projections(rig.cameras)
        self._centres = np.stack([camera.pinhole.centre for camera in rig.cameras])
        self._tracks: Tracks | None = None
        self._was_seen = np.ones((len(rig), len(wearer.liveliness)), dtype=np.bool_)
        self._tints = self._worn.copy()
        self._alone = len(rig) == 1
        self._swaps = LabelSwaps(wearer.shapes, alone=self._alone)

    def begin(self, blobs: Sequence[Blobs], layouts: Float[Array, "layouts markers 3"]) -> Sighting:
        """Label a first frame by the layout that fits best, at any position and heading; else nothing."""
        self._tracks, self._was_seen = None, np.ones_like(self._was_seen)
        self._tints = self._worn.copy()
        self._swaps = LabelSwaps(self._wearer.shapes, alone=self._alone)
        sighting = Sighting.nothing(len(self.rig), layouts.shape[1])
        candidates = self._matcher.candidates(blobs)
        if (
            len(self.rig) > 2
        ):  # points on which three cameras agree are real, and take their blobs from spurious ones
            candidates = exclusive(candidates)
        if len(candidates) > layouts.shape[1] // 2 + 1:
            points = np.stack([candidate.meeting.point for candidate in candidates])
            fit = fit_layout(points, layouts, unlike=self._unlike(candidates, blobs))
            if fit.cost <= FIRST_FIT:
                sighting, _ = self.step(blobs, fit.met, 0.0)
        else:
            self._begin_in_one(blobs, layouts, sighting)
            self._was_seen = np.isfinite(sighting.pixels[..., 0])
        return sighting

    def step(
        self, blobs: Sequence[Blobs], body: Float[Array, "markers 3"], seconds: float
    ) -> tuple[Sighting, list[Pair]]:
        """Label a further frame, `seconds` later, with these predicted marker positions.

        Also returns the pairs whose labels were swapped until now.
        """
        if self._tracks is None:
            self._tracks = Tracks(body, liveliness=self._wearer.liveliness, alone=self._alone)
        else:
            self._tracks.carry_on(seconds, body)
        straight = [
            camera.straightened(own.centres) for camera, own in zip(self.rig.cameras, blobs, strict=True)
        ]
        chances = np.where(self._was_seen, STAYS, COMES_BACK)
        chosen, bursts = explain(
            self._matrices, straight, blobs, self._tracks, chances=chances, tints=self._tints
        )
        self._swaps.note(self._tracks, self._centres, alike=_alike(self._tints))
        sighting = self._noted(chosen, bursts, blobs, straight)
        across = sighting.known_across(self.rig, self._tracks.places)
        exchanged = self._swaps.judged(self._tracks.places, across, seconds)
        for pair in exchanged:
            self._tracks.exchange(*pair)
            sighting.exchange(*pair)
            self._was_seen[:, pair] = self._was_seen[:, pair[::-1]]
        self._dismiss(self._swaps.strangers(self._tracks.places, across), body, sighting)
        return sighting, exchanged

    def _dismiss(self, strangers: Sequence[int], body: Array, sighting: Sighting) -> None:
        """Withdraw labels: these markers are searched where the body has them."""
        assert self._tracks is not None
        for marker in strangers:
            sighting.forget(marker)
            self._tracks.forget(marker, body[marker])
            self._was_seen[:, marker] = False

    def _noted(
        self,
        chosen: Int[Array, "markers cameras"],
        bursts: Array,
        blobs: Sequence[Blobs],
        straight: Sequence[Array],
    ) -> Sighting:
        """The chosen assignment as a sighting; tracks are updated."""
        assert self._tracks is not None
        sighting = Sighting.nothing(len(self.rig), len(chosen))
        flat = np.full_like(sighting.pixels, np.nan)
        for camera, numbers in enumerate(chosen.T):
            markers = np.flatnonzero(numbers >= 0)
            own = numbers[markers]
            sighting.pixels[camera, markers], flat[camera, markers] = (
                blobs[camera].centres[own],
                straight[camera][own],
            )
            self._remember(markers, blobs[camera].tints[own])
        self._was_seen = chosen.T >= 0
        self._tracks.correct(self._matrices, flat, bursts=bursts)
        placed = np.flatnonzero(self._was_seen.sum(axis=0) >= 2)
        meetings = triangulate_all(self._matrices, flat[:, placed].swapaxes(0, 1))
        for marker, meeting in zip(placed, meetings, strict=True):
            sighting.points[marker], sighting.covariances[marker] = meeting.point, meeting.covariance
        return sighting

    def _unlike(
        self, candidates: Sequence[Candidate], blobs: Sequence[Blobs]
    ) -> Float[Array, "markers points"]:
        """Metres added to each point's distance for its colour."""
        seen = [np.mean([blobs[k].tints[number] for k, number in one.blobs], axis=0) for one in candidates]
        off = np.abs(self._worn[:, None] - np.stack(seen)[None]).max(axis=-1)
        return np.nan_to_num(STRAY * np.minimum(off / OTHER_COLOUR, 1.0))

    def _remember(self, markers: Array, tints: Array) -> None:
        known = self._tints[markers]
        renewed = known + TINT_MEMORY * (tints - known)
        self._tints[markers] = np.where(np.isfinite(known), renewed, tints)

    def _begin_in_one(
        self, blobs: Sequence[Blobs], layouts: Float[Array, "layouts markers 3"], sighting: Sighting
    ) -> None:
        """Label a first frame of a single camera: positions are those of a layout, as a fallback."""
        seeing = [number for number, own in enumerate(blobs) if len(own)]
        if len(seeing) != 1 or len(blobs[seeing[0]]) <= layouts.shape[1] // 2 + 1:
            return
        number = seeing[0]
        found = find_in_picture(self.rig.cameras[number], blobs[number].centres, layouts)
        if found.distance <= FIRST_FIT:
            has = found.numbers >= 0
            sighting.points[has] = found.points[has]
            sighting.pixels[number, has] = blobs[number].centres[found.numbers[has]]


def _alike(tints: Float[Array, "markers 3"]) -> Bool[Array, "markers markers"]:
    """Mask of the pairs of markers that may be confused by colour."""
    return ~(np.abs(tints[:, None] - tints[None]).max(axis=-1) > OTHER_COLOUR)
