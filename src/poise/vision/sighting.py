"""The observations of markers at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.types import Array
from poise.vision.blobs import Blobs
from poise.vision.rig import Rig
from poise.vision.triangulate import Meeting


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
