"""From pictures to labelled markers, frame after frame: background, blobs, correspondence and labels in one call."""

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
from poise.vision.labeller import Labeller, Wearer
from poise.vision.rig import Rig
from poise.vision.sighting import Sighting

Picture = UInt8[Array, "height width 3"]

WHITE = Colours()  # markers that reflect light


@dataclass(frozen=True, eq=False)
class Moment:
    """What one moment gave, stage by stage: for the pose, and for pictures of the way to it."""

    blobs: tuple[Blobs, ...]
    foregrounds: tuple[UInt8[Array, "height width"] | None, ...]
    sighting: Sighting
    exchanged: tuple[Pair, ...] = ()  # markers that had each other's label until now


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
        """Who is going to wear the markers."""
        self._labeller = Labeller(self.rig, wearer, tints=self._tints)

    def blobs(self, pictures: Sequence[Picture | None]) -> tuple[tuple[Blobs, ...], tuple[Array | None, ...]]:
        """What each camera sees; a camera that is lost gives None and sees nothing."""
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
        """A first frame, labelled by the layout that fits it best, wherever the performer stands and faces.

        The layout is the calibration pose, or poses that the performer may be in. What fits none is not labelled.
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
        """A further frame, some seconds after the last, labelled with the body expected to have its markers there."""
        blobs, masks = self.blobs(pictures)
        sighting, exchanged = self._labeller.step(blobs, body, seconds or self._frame_time)
        return Moment(blobs, masks, sighting, tuple(exchanged))
