"""From pictures to labelled markers, frame by frame: background, blobs, correspondence and labels in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float, UInt8

from poise.errors import InvalidValueError
from poise.types import Array
from poise.vision.background import Background
from poise.vision.blobs import Blobs, find_blobs
from poise.vision.colours import Colours
from poise.vision.label_swaps import Pair
from poise.vision.labeller import Labeller, Sighting, Wearer
from poise.vision.rig import Rig

Picture = UInt8[Array, "height width 3"]

WHITE = Colours()  # reflective markers


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
        found, masks = [], []
        for picture, background in zip(pictures, self._backgrounds, strict=True):
            mask = None if picture is None else background.foreground(picture)
            masks.append(mask)
            found.append(
                Blobs.none()
                if picture is None or mask is None
                else find_blobs(picture, mask, self.looks, room=background.room)
            )
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
