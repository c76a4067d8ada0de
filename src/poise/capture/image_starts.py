"""Starting poses for explaining a photo: the prior's known poses, and limbs flipped in depth."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.geometry.cameras import Camera
from poise.priors.poses import upright
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import Position
from poise.solvers.solve import Model, Solver, prior_of, space_of
from poise.types import Array

Poses = tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]

LIMBS = tuple(
    (f"{side}_{upper}", f"{side}_{lower}", f"{side}_{end}")
    for side in ("left", "right")
    for upper, lower, end in (("upper_arm", "forearm", "hand"), ("thigh", "shin", "foot"))
)
_FLAT = 0.1  # metres of depth along a limb: below this a flip changes nothing


def known_poses(model: Model) -> Poses:
    """Exponential maps of a model's known poses, and the up direction of each in its root's frame."""
    prior = prior_of(model)
    return upright(np.zeros((1, space_of(model).size - ROOT_SIZE))) if prior is None else prior.known_poses()


def flipped(
    space: PoseSpace, q: Float[Array, "size"], camera: Camera, limb: tuple[str, str, str]
) -> Float[Array, "size"] | None:
    """The pose with one limb flipped in depth; None if the limb is parallel to the image or unknown."""
    if not all(role in space.skeleton.roles for role in limb):
        return None
    upper, lower, end = (space.forward(q)[0][space.skeleton.index(role)] for role in limb)
    ray = upper - camera.centre
    ray /= np.linalg.norm(ray)
    if max(abs((lower - upper) @ ray), abs((end - lower) @ ray)) < _FLAT:
        return None
    targets = [
        Position(role, point - 2.0 * ((point - upper) @ ray) * ray)
        for role, point in zip(limb[1:], (lower, end), strict=True)
    ]
    return Solver(space, targets, root="given").solve(q).q
