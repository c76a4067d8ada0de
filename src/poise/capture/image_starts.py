"""Poses from which a photo may be explained: those a prior knows, and limbs turned to or from the camera."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.geometry.cameras import Camera
from poise.priors.blend import BlendPrior
from poise.priors.gaussian import GaussianPrior
from poise.priors.local.prior import LocalPrior
from poise.priors.prior import Prior
from poise.priors.style.prior import StylePrior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import Position
from poise.solvers.solve import Model, Solver, space_of

Array = np.ndarray
Poses = tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]

LIMBS = tuple(
    (f"{side}_{upper}", f"{side}_{lower}", f"{side}_{end}")
    for side in ("left", "right")
    for upper, lower, end in (("upper_arm", "forearm", "hand"), ("thigh", "shin", "foot"))
)
EXAMPLES = 200  # of a local model's, at most, that are starts
_FLAT = 0.1  # metres of depth along a limb, below which a flip changes nothing


def known_poses(model: Model) -> Poses:
    """Exponential maps of poses that a model knows, and how the root of each leans (up in its frame)."""
    if isinstance(model, BlendPrior):
        parts = [(known_poses(part), chart) for part, _, chart in model.parts]
        maps = np.concatenate([[chart.common_maps(pose) for pose in poses] for (poses, _), chart in parts])
        return maps, np.concatenate([ups for (_, ups), _ in parts])
    if isinstance(model, StylePrior):
        latents = model.model.active_latents
        return np.stack([model.pose_at(x) for x in latents]), np.stack([model.up_at(x) for x in latents])
    maps = _middles(model)
    return maps, np.tile([0.0, 1.0, 0.0], (len(maps), 1))


def flipped(
    space: PoseSpace, q: Float[Array, "size"], camera: Camera, limb: tuple[str, str, str]
) -> Float[Array, "size"] | None:
    """The pose with one limb turned the other way in depth; None where the limb is flat to the image or unknown."""
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


def _middles(model: Model) -> Float[Array, "poses maps"]:
    """Means of clusters, examples, else the mean; of a plain body, its references."""
    if isinstance(model, GaussianPrior):
        return np.asarray(model.means)
    if isinstance(model, LocalPrior):
        return np.asarray(model.examples.maps[:: -(-len(model.examples.maps) // EXAMPLES)])
    space = space_of(model)
    mean = model.mean if isinstance(model, Prior) else np.zeros(space.size - ROOT_SIZE)
    return np.asarray(mean)[None]
