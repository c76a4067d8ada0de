"""From pictures to labelled markers, frame by frame: background, blobs, correspondence and labels in one call.

A first frame is labelled by possible layouts of the performer; then tracks, the body, colours and each camera's
previous observations decide together (`explain`), and label swaps are undone (`label_swaps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from poise.errors import InvalidValueError
from poise.types import Array
from poise.vision.blobs import Background, Blobs, find_blobs
from poise.vision.colours import Colours
from poise.vision.explain import explain
from poise.vision.first_labels import STRAY, find_in_picture, fit_layout
from poise.vision.label_swaps import LabelSwaps, Pair
from poise.vision.rig import Rig
from poise.vision.tracks import Tracks
from poise.vision.triangulate import Matcher, exclusive, projections, triangulate_all

Picture = UInt8[Array, "height width 3"]

WHITE = Colours()  # reflective markers


@dataclass(frozen=True, eq=False)
class Sighting:
    """One moment: marker positions (NaN: not seen by two cameras), covariances, pixels per camera (NaN: hidden)."""

    points: Float[Array, "markers 3"]
    covariances: Float[Array, "markers 3 3"]
    pixels: Float[Array, "cameras markers 2"]

    @classmethod
    def nothing(cls, cameras: int, markers: int) -> Sighting:
        """A sighting of nothing."""
        points, covariances = np.full((markers, 3), np.nan), np.full((markers, 3, 3), np.nan)
        return cls(points, covariances, np.full((cameras, markers, 2), np.nan))

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
        """Label a first frame by the layout that fits best, at any position and heading; else nothing.

        Positions seen by a single camera are those of a layout, as a fallback.
        """
        self._tracks, self._was_seen = None, np.ones_like(self._was_seen)
        self._tints = self._worn.copy()
        self._swaps = LabelSwaps(self._wearer.shapes, alone=self._alone)
        sighting, fewest = Sighting.nothing(len(self.rig), layouts.shape[1]), layouts.shape[1] // 2 + 1
        candidates = self._matcher.candidates(blobs)
        if (
            len(self.rig) > 2
        ):  # points on which three cameras agree are real, and take their blobs from spurious ones
            candidates = exclusive(candidates)
        if len(candidates) > fewest:
            points = np.stack([candidate.meeting.point for candidate in candidates])
            tints = ([blobs[k].tints[number] for k, number in one.blobs] for one in candidates)
            seen = np.stack([np.mean(own, axis=0) for own in tints])
            off = np.abs(self._worn[:, None] - seen[None]).max(axis=-1)
            # Metres added to each point's distance for its colour.
            unlike = np.nan_to_num(STRAY * np.minimum(off / OTHER_COLOUR, 1.0))
            fit = fit_layout(points, layouts, unlike=unlike)
            if fit.cost <= FIRST_FIT:
                sighting, _ = self.step(blobs, fit.met, 0.0)
            return sighting
        seeing = [number for number, own in enumerate(blobs) if len(own)]
        if len(seeing) == 1 and len(blobs[seeing[0]]) > fewest:
            own = blobs[seeing[0]].centres
            found = find_in_picture(self.rig.cameras[seeing[0]], own, layouts)
            if found.distance <= FIRST_FIT:
                has = found.numbers >= 0
                sighting.points[has] = found.points[has]
                sighting.pixels[seeing[0], has] = own[found.numbers[has]]
        self._was_seen = np.isfinite(sighting.pixels[..., 0])
        return sighting

    def step(
        self, blobs: Sequence[Blobs], body: Float[Array, "markers 3"], seconds: float
    ) -> tuple[Sighting, list[Pair]]:
        """Label a further frame, `seconds` later, with these predicted marker positions.

        Also returns the pairs whose labels were swapped until now.
        """
        if (tracks := self._tracks) is None:
            tracks = self._tracks = Tracks(body, liveliness=self._wearer.liveliness, alone=self._alone)
        else:
            tracks.carry_on(seconds, body)
        cameras, matrices = self.rig.cameras, self._matrices
        straight = [camera.straightened(own.centres) for camera, own in zip(cameras, blobs, strict=True)]
        chances = np.where(self._was_seen, STAYS, COMES_BACK)
        chosen, bursts = explain(matrices, straight, blobs, tracks, chances=chances, tints=self._tints)
        # Markers that may be confused by colour.
        alike = ~(np.abs(self._tints[:, None] - self._tints[None]).max(axis=-1) > OTHER_COLOUR)
        self._swaps.note(tracks, self._centres, alike=alike)
        sighting = Sighting.nothing(len(self.rig), len(chosen))
        flat = np.full_like(sighting.pixels, np.nan)
        for camera, numbers in enumerate(chosen.T):
            markers = np.flatnonzero(numbers >= 0)
            own = numbers[markers]
            sighting.pixels[camera, markers] = blobs[camera].centres[own]
            flat[camera, markers] = straight[camera][own]
            known, tints = self._tints[markers], blobs[camera].tints[own]
            renewed = known + TINT_MEMORY * (tints - known)
            self._tints[markers] = np.where(np.isfinite(known), renewed, tints)
        self._was_seen = chosen.T >= 0
        tracks.correct(matrices, flat, bursts=bursts)
        placed = np.flatnonzero(self._was_seen.sum(axis=0) >= 2)
        meetings = triangulate_all(matrices, flat[:, placed].swapaxes(0, 1))
        for marker, meeting in zip(placed.tolist(), meetings, strict=True):
            sighting.points[marker], sighting.covariances[marker] = meeting.point, meeting.covariance
        across = sighting.known_across(self.rig, tracks.places)
        exchanged = self._swaps.judged(tracks.places, across, seconds)
        for pair in exchanged:
            tracks.exchange(*pair)
            sighting.exchange(*pair)
            self._was_seen[:, pair] = self._was_seen[:, pair[::-1]]
        for marker in self._swaps.strangers(
            tracks.places, across
        ):  # they are searched where the body has them
            sighting.forget(marker)
            tracks.forget(marker, body[marker])
            self._was_seen[:, marker] = False
        return sighting, exchanged


@dataclass(frozen=True, eq=False)
class Moment:
    """The results of one moment, stage by stage: for the pose, and for pictures of the stages."""

    blobs: tuple[Blobs, ...]
    foregrounds: tuple[UInt8[Array, "height width"] | None, ...]
    sighting: Sighting
    exchanged: tuple[Pair, ...] = ()  # markers whose labels were swapped until now


class MarkerFinder:
    """Finds and labels the markers of one performer in the pictures of a rig."""

    def __init__(
        self,
        rig: Rig,
        backgrounds: Sequence[Background],
        labels: Sequence[str],
        *,
        fps: float,
        colours: Colours = WHITE,
    ) -> None:
        if len(backgrounds) != len(rig):
            raise InvalidValueError(f"{len(rig)} cameras need a background each; got {len(backgrounds)}")
        self.rig, self.labels = rig, tuple(labels)
        self.looks, self._tints = colours.looks(labels), colours.tints(labels)
        self._backgrounds, self._frame_time = tuple(backgrounds), 1.0 / fps
        self._labeller = Labeller(rig, Wearer.unknown(len(self.labels)), tints=self._tints)

    def get_to_know(self, wearer: Wearer) -> None:
        """Set the wearer of the markers."""
        self._labeller = Labeller(self.rig, wearer, tints=self._tints)

    def blobs(self, pictures: Sequence[Picture | None]) -> tuple[tuple[Blobs, ...], tuple[Array | None, ...]]:
        """The blobs of each camera; a lost camera gives None and sees nothing."""
        if len(pictures) != len(self.rig):
            raise InvalidValueError(f"{len(self.rig)} cameras give a picture each; got {len(pictures)}")
        found, masks = [Blobs.none() for _ in pictures], list[Array | None]()
        for number, (picture, background) in enumerate(zip(pictures, self._backgrounds, strict=True)):
            masks.append(None)
            if picture is not None:
                masks[number] = mask = background.foreground(picture)
                found[number] = find_blobs(picture, mask, self.looks, room=background.room)
        return tuple(found), tuple(masks)

    def begin(self, pictures: Sequence[Picture | None], layouts: Float[Array, "layouts markers 3"]) -> Moment:
        """Label a first frame by the layout that fits it best, at any position and heading.

        The layout is the calibration pose, or possible poses of the performer. Points that fit none are not labelled.
        """
        blobs, masks = self.blobs(pictures)
        return Moment(blobs, masks, self._labeller.begin(blobs, layouts))

    def step(
        self,
        pictures: Sequence[Picture | None],
        body: Float[Array, "markers 3"],
        *,
        seconds: float | None = None,
    ) -> Moment:
        """Label a further frame, some seconds after the last, with these predicted marker positions."""
        blobs, masks = self.blobs(pictures)
        sighting, exchanged = self._labeller.step(blobs, body, seconds or self._frame_time)
        return Moment(blobs, masks, sighting, tuple(exchanged))
