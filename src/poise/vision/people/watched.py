"""Observations of one person by cameras, and rough landmark positions from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry.cameras import Camera
from poise.types import Array
from poise.vision.people.person import LOWER, OTHER_SIDE, UPPER, VISIBLE

LEAST_SEEN = 0.1  # visibility below which a landmark is ignored
EXCHANGE = 1e-3  # sides of the person's square: cost of a frame with exchanged sides
DEPTH = 0.8  # share of the depths in the detector's shapes that is true
_OFF = 0.05  # metres at which a ray that misses the others has half weight
_ROUNDS = 5


@dataclass(frozen=True, eq=False)
class WatchedPerson:
    """Landmarks of one person in the pictures of one camera or several, frame by frame.

    Pixels are undistorted, and NaN if the camera did not see the person. `shapes` are the detector's estimates in
    metres, relative to the middle of the hips, in each camera's axes. `sides` are the detection squares.
    """

    cameras: Sequence[Camera]
    pixels: Float[Array, "frames cameras 33 2"]
    visibility: Float[Array, "frames cameras 33"]
    shapes: Float[Array, "frames cameras 33 3"]
    sides: Float[Array, "frames cameras"]
    fps: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.pixels).any():
            raise InvalidValueError("no camera sees the person in any frame")

    def __len__(self) -> int:
        return len(self.pixels)

    def frames(self, chosen: slice) -> WatchedPerson:
        """A range of frames."""
        return WatchedPerson(
            self.cameras, self.pixels[chosen], self.visibility[chosen], self.shapes[chosen], self.sides[chosen],
            self.fps,
        )  # fmt: skip

    def of_cameras(self, chosen: Sequence[int]) -> WatchedPerson:
        """The observations of some cameras."""
        own = list(chosen)
        return WatchedPerson(
            [self.cameras[k] for k in own], self.pixels[:, own], self.visibility[:, own], self.shapes[:, own],
            self.sides[:, own], self.fps,
        )  # fmt: skip

    @property
    def weights(self) -> Float[Array, "frames cameras 33"]:
        """The weight of each pixel: its visibility, and zero if it is not seen."""
        seen = np.isfinite(self.pixels).all(axis=-1) & (self.visibility > LEAST_SEEN)
        return np.where(seen, self.visibility, 0.0)


def with_sides(person: WatchedPerson) -> WatchedPerson:
    """The same with consistent left and right over time: detectors exchange them for a while.

    Upper and lower body separately: the assignment along which pixels move least and, among equal ones, with the
    fewest exchanged frames (Viterbi's recursion).
    """
    pixels, visibility, shapes = person.pixels.copy(), person.visibility.copy(), person.shapes.copy()
    for camera in range(len(person.cameras)):
        seen = np.flatnonzero(np.isfinite(pixels[:, camera]).all(axis=(1, 2)))
        for part in (UPPER, LOWER):
            scaled = pixels[seen, camera] / person.sides[seen, camera, None, None]
            wrong = seen[_exchanged(scaled[:, list(part)], scaled[:, [OTHER_SIDE[k] for k in part]])]
            others = np.ix_(wrong, [camera], [OTHER_SIDE[k] for k in part])
            for values in (pixels, visibility, shapes):
                values[np.ix_(wrong, [camera], part)] = values[others]
    return replace(person, pixels=pixels, visibility=visibility, shapes=shapes)


def _exchanged(own: Float[Array, "frames points 2"], other: Float[Array, "frames points 2"]) -> Array:
    """Mask of the frames with exchanged sides."""
    stays = np.linalg.norm(np.diff(own, axis=0), axis=2).mean(axis=1)
    turns = np.linalg.norm(own[1:] - other[:-1], axis=2).mean(axis=1)
    costs, came = np.array([0.0, EXCHANGE]), np.zeros((len(own), 2), dtype=np.int64)
    for frame, (stay, turn) in enumerate(zip(stays, turns, strict=True), start=1):
        ways = costs[None, :] + np.array([[stay, turn], [turn, stay]]) + np.array([[0.0], [EXCHANGE]])
        came[frame], costs = ways.argmin(axis=1), ways.min(axis=1)
    state, states = int(costs.argmin()), np.zeros(len(own), dtype=np.bool_)
    for frame in reversed(range(len(own))):
        states[frame], state = bool(state), int(came[frame, state])
    return np.flatnonzero(states)


def rough_places(person: WatchedPerson) -> Float[Array, "frames 33 3"]:
    """Rough landmark positions: where rays meet, or the detector's shape placed by its pixels."""
    if len(person.cameras) > 1:
        met = meeting_places(person)
        return np.where(np.isfinite(met), met, np.nan)
    weights, shapes = person.weights[:, 0], person.shapes[:, 0]
    return placed_shapes(person.cameras[0], person.pixels[:, 0], weights, shapes)


def placed_shapes(
    camera: Camera, pixels: Float[Array, "frames 33 2"], weights: Float[Array, "frames 33"], shapes: Array
) -> Float[Array, "frames 33 3"]:
    """The detector's shapes in the world, each placed to fit its pixels best.

    A shape is as seen in the middle of a picture: it is rotated to the ray on which the person stands.
    """
    found = np.full(shapes.shape, np.nan)
    for frame in np.flatnonzero((weights > VISIBLE).sum(axis=1) >= 4).tolist():
        rays = rays_of(camera, np.nan_to_num(pixels[frame]))
        along = np.average(rays, axis=0, weights=weights[frame]) @ camera.rotation.T
        x, y, z = along / np.linalg.norm(along)
        cross = np.array([[0.0, 0.0, x], [0.0, 0.0, y], [-x, -y, 0.0]])
        turn = np.eye(3) + cross + cross @ cross / (1.0 + z)  # the shortest, from the optical axis
        turned = shapes[frame] @ turn.T @ camera.rotation
        # The shift that brings the points as close as possible to their rays.
        across = weights[frame, :, None, None] * (np.eye(3) - rays[:, :, None] * rays[:, None, :])
        right = np.einsum("nab,nb->a", across, camera.centre - turned)
        found[frame] = turned + np.linalg.solve(across.sum(axis=0), right)
    return found


def flattened(camera: Camera, places: Float[Array, "frames 33 3"]) -> Float[Array, "frames 33 3"]:
    """Positions with depths reduced to their true share, around their centre."""
    middle = places.mean(axis=1, keepdims=True)
    along = middle - camera.centre
    along = along / np.linalg.norm(along, axis=-1, keepdims=True)
    depths = np.sum((places - middle) * along, axis=-1, keepdims=True)
    return np.asarray(places - (1.0 - DEPTH) * depths * along)


def rays_of(camera: Camera, pixels: Float[Array, "*n 2"]) -> Float[Array, "*n 3"]:
    """Unit directions in the world from the camera's centre through pixels."""
    plane = np.concatenate([pixels, np.ones((*pixels.shape[:-1], 1))], axis=-1)
    directions = plane @ np.linalg.inv(camera.intrinsics).T @ camera.rotation
    return np.asarray(directions / np.linalg.norm(directions, axis=-1, keepdims=True))


def ray_gaps(
    first: Camera, pixels: Float[Array, "*n 2"], second: Camera, others: Float[Array, "*n 2"]
) -> Float[Array, "*n"]:
    """The distance between the rays of two cameras, in metres; large if they meet behind a camera."""
    a, b, apart = rays_of(first, pixels), rays_of(second, others), second.centre - first.centre
    across = np.cross(a, b)
    size = np.maximum(np.linalg.norm(across, axis=-1), 1e-9)
    along = np.sum(np.cross(apart, b) * across, axis=-1)
    return np.where(along > 0, np.abs(across @ apart) / size, np.inf)


def meeting_places(person: WatchedPerson) -> Float[Array, "frames 33 3"]:
    """The meeting point of each landmark's rays, with outlier rays weighted less; NaN with fewer than two cameras."""
    rays = np.stack(
        [rays_of(camera, np.nan_to_num(person.pixels[:, k])) for k, camera in enumerate(person.cameras)],
        axis=1,
    )
    centres = np.stack([camera.centre for camera in person.cameras])[None, :, None]
    across = np.eye(3) - rays[..., :, None] * rays[..., None, :]
    start = person.weights
    weights, points = start, np.zeros((len(person), rays.shape[2], 3))
    for _ in range(_ROUNDS):
        matrix = (weights[..., None, None] * across).sum(axis=1)
        right = np.einsum("fcl,fclab,fclb->fla", weights, across, np.broadcast_to(centres, rays.shape))
        points = np.linalg.solve(matrix + 1e-9 * np.eye(3), right[..., None])[..., 0]
        off = np.linalg.norm(np.einsum("fclab,fclb->fcla", across, points[:, None] - centres), axis=-1)
        weights = start / (1.0 + (off / _OFF) ** 2)
    known = (weights > 0.2).sum(axis=1) >= 2
    return np.where(known[..., None], points, np.nan)
