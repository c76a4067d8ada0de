"""Place bodies of given poses, at all headings, so that their handles project to given pixels.

For a pose and a heading the rays through the pixels give equations linear in the root's position, with the same matrix
for all poses and headings, so that thousands are placed at once. Every view adds its rays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.priors.poses import handle_positions
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import Projection
from poise.types import Array

HEADINGS = 24
NEAREST = 0.3  # metres: smallest distance of a person from a camera


@dataclass(frozen=True, eq=False)
class View:
    """One photo: its camera, and the pixels of handles (joints or roles) in it."""

    camera: Camera
    points: Mapping[str, Float[Array, "2"]]

    def constraints(self) -> list[Projection]:
        """Constraints of the handles to the rays through their pixels."""
        return [
            Projection(name, self.camera, pixel, name=f"point of {name}")
            for name, pixel in self.points.items()
        ]


def placed(
    space: PoseSpace,
    maps: Float[Array, "poses maps"],
    ups: Float[Array, "poses 3"],
    views: Sequence[View],
) -> tuple[Float[Array, "starts size"], Float[Array, "starts"]]:
    """Every pose at every heading, at its best position; and its reprojection error in radians.

    `ups` are the directions of the world's up in the root's frame. Starts behind a camera come last.
    """
    turns = _turns(ups)
    rows, offsets, points = [], [], []
    for view in views:
        handles = space.handles(list(view.points))
        local = handle_positions(space, maps, handles)
        turned = np.einsum("phab,pnb->phna", rotations.matrix_from_quaternion(turns), local)
        across = _across(view)
        rows.append(across.reshape(-1, 3))
        offsets.append(
            np.einsum("nra,phna->phnr", across, turned - view.camera.centre).reshape(*turns.shape[:2], -1)
        )
        points.append((turned, view.camera))
    matrix, gaps = np.concatenate(rows), np.concatenate(offsets, axis=-1)
    if np.linalg.matrix_rank(matrix) < 3:
        raise InvalidValueError("the image points do not fix the position of the body; give two or more")
    positions = -gaps @ np.linalg.pinv(matrix).T
    left = gaps + positions @ matrix.T
    q = np.zeros((maps.shape[0], HEADINGS, space.size))
    q[..., :3], q[..., 3:ROOT_SIZE], q[..., ROOT_SIZE:] = positions, turns, maps[:, None]
    off = _seen_off(left, positions, points)
    return q.reshape(-1, space.size), off.ravel()


def _turns(ups: Float[Array, "poses 3"]) -> Float[Array, "poses headings 4"]:
    """Root rotations with each pose's tilt, at evenly spaced headings."""
    tilts = rotations.quaternion_between(ups, np.broadcast_to([0.0, 1.0, 0.0], ups.shape))
    angles = np.arange(HEADINGS) * (2.0 * np.pi / HEADINGS)
    about = np.stack([np.cos(angles / 2), 0.0 * angles, np.sin(angles / 2), 0.0 * angles], axis=-1)
    return np.asarray(rotations.multiply(about[None], tilts[:, None]))


def _across(view: View) -> Float[Array, "points 2 3"]:
    """Two unit vectors perpendicular to each pixel's ray, in the world."""
    rays = np.stack([view.camera.ray(np.asarray(pixel)) for pixel in view.points.values()])
    right = np.cross(rays, view.camera.rotation[1])
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    return np.stack([right, np.cross(rays, right)], axis=1)


def _seen_off(
    left: Float[Array, "poses headings rows"],
    positions: Float[Array, "poses headings 3"],
    points: Sequence[tuple[Array, Camera]],
) -> Float[Array, "poses headings"]:
    """The angle between handles and their rays, root mean square; infinite behind a camera."""
    angles, start = np.zeros(left.shape[:2]), 0
    for turned, camera in points:
        depth = (turned + positions[:, :, None] - camera.centre) @ camera.rotation[2]
        ahead = depth.min(axis=-1) > NEAREST
        width = 2 * turned.shape[2]
        missed = (
            left[..., start : start + width].reshape(*depth.shape, 2) / np.maximum(depth, NEAREST)[..., None]
        )
        angles += np.where(ahead, np.square(missed).sum(axis=(-1, -2)), np.inf)
        start += width
    return np.sqrt(angles / (left.shape[-1] / 2))
