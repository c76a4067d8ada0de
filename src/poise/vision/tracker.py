"""From pictures to labelled markers, frame after frame: background, blobs, correspondence and labels in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from poise.errors import InvalidValueError
from poise.vision.background import Background
from poise.vision.blobs import Blobs, Look, find_blobs
from poise.vision.correspond import Matcher, exclusive
from poise.vision.label import Sighting, gates, label, label_any_layout
from poise.vision.label_picture import find_in_picture
from poise.vision.rig import Rig

Array = np.ndarray
Picture = UInt8[Array, "height width 3"]

FIRST_FIT = 0.12  # metres per marker that the first frame may differ from the calibrated layout


@dataclass(frozen=True, eq=False)
class Moment:
    """What one moment gave, stage by stage: for the pose, and for pictures of the way to it."""

    blobs: tuple[Blobs, ...]
    foregrounds: tuple[UInt8[Array, "height width"] | None, ...]
    sighting: Sighting


class MarkerTracker:
    """Finds and labels the markers of one performer in the pictures of a rig."""

    def __init__(
        self,
        rig: Rig,
        backgrounds: Sequence[Background],
        labels: Sequence[str],
        *,
        fps: float,
        looks: Sequence[Look] = (Look(),),
    ) -> None:
        if len(backgrounds) != len(rig):
            raise InvalidValueError(f"{len(rig)} cameras need a background each; got {len(backgrounds)}")
        self.rig, self.labels, self.looks = rig, tuple(labels), tuple(looks)
        self._backgrounds, self._matcher = tuple(backgrounds), Matcher(rig)
        self._unseen, self._frame_time = np.zeros(len(self.labels)), 1.0 / fps
        self._predicted: Array | None = None

    def blobs(self, pictures: Sequence[Picture | None]) -> tuple[tuple[Blobs, ...], tuple[Array | None, ...]]:
        """What each camera sees; a camera that is lost gives None and sees nothing."""
        if len(pictures) != len(self.rig):
            raise InvalidValueError(f"{len(self.rig)} cameras give a picture each; got {len(pictures)}")
        found, masks = [], []
        for picture, background in zip(pictures, self._backgrounds, strict=True):
            mask = None if picture is None else background.foreground(picture)
            masks.append(mask)
            found.append(Blobs.none() if picture is None or mask is None else self._marked(picture, mask))
        return tuple(found), tuple(masks)

    def begin(self, pictures: Sequence[Picture | None], layouts: Float[Array, "layouts markers 3"]) -> Moment:
        """A first frame, labelled by the layout that fits it best, wherever the performer stands and faces.

        The layout is the calibration pose, or poses that the performer may be in. What fits none is not labelled.
        """
        blobs, masks = self.blobs(pictures)
        sighting = Sighting.nothing(len(self.rig), len(self.labels))
        candidates = exclusive(self._matcher.candidates(blobs))
        if len(candidates) > len(self.labels) // 2 + 1:
            points = np.stack([candidate.meeting.point for candidate in candidates])
            numbers, distance = label_any_layout(points, layouts)
            for marker, number in enumerate(numbers if distance <= FIRST_FIT else ()):
                if number >= 0:
                    sighting.note(marker, candidates[number].meeting, candidates[number].blobs, blobs)
        else:
            self._begin_in_one(blobs, layouts, sighting)
        self._unseen, self._predicted = np.where(sighting.is_placed, 0.0, self._frame_time), None
        return Moment(blobs, masks, sighting)

    def step(self, pictures: Sequence[Picture | None], predicted: Float[Array, "markers 3"]) -> Moment:
        """A further frame, labelled by where the body is expected to carry its markers."""
        blobs, masks = self.blobs(pictures)
        way = np.linalg.norm(predicted - self._predicted, axis=1) if self._predicted is not None else 0.0
        gate = gates(self._unseen, way)
        sighting = label(self.rig, blobs, self._matcher.candidates(blobs), predicted=predicted, gate=gate)
        self._predicted = predicted
        known = sighting.is_seen if len(self.rig) == 1 else sighting.is_placed
        self._unseen = np.where(known, 0.0, self._unseen + self._frame_time)
        return Moment(blobs, masks, sighting)

    def _begin_in_one(
        self, blobs: Sequence[Blobs], layouts: Float[Array, "layouts markers 3"], sighting: Sighting
    ) -> None:
        """Where one camera alone sees the performer: places are a layout's own, for want of better ones."""
        seeing = [number for number, own in enumerate(blobs) if len(own)]
        if len(seeing) != 1 or len(blobs[seeing[0]]) <= len(self.labels) // 2 + 1:
            return
        number = seeing[0]
        found = find_in_picture(self.rig.cameras[number], blobs[number].centres, layouts)
        if found.distance <= FIRST_FIT:
            has = found.numbers >= 0
            sighting.points[has] = found.points[has]
            sighting.pixels[number, has] = blobs[number].centres[found.numbers[has]]

    def _marked(self, picture: Picture, mask: Array) -> Blobs:
        parts = [find_blobs(picture, mask, look) for look in self.looks]
        return parts[0] if len(parts) == 1 else Blobs.together(parts)
