"""Poses sampled from the latent space of a style, and the standing bodies at latent points."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.priors.latent.model import LatentSpace
from poise.priors.latent.prior import LatentPrior
from poise.skeleton.skeleton import Pose
from poise.types import Array

NEAREST_STEP, FARTHEST_STEP = 0.05, 1.0  # of the latent points' deviation: steps from active points
ROUNDS = 100  # largest number of draws per sample, before the likeliest rejected ones are taken


def sample_latents(
    space: LatentSpace, count: int, rng: np.random.Generator
) -> Float[Array, "samples latent"]:
    """Latent points as likely as the training poses' own, each a random step from an active one.

    Active poses cover all of a style, whereas most frames of a clip may show one pose.
    """
    if count < 1:
        raise InvalidValueError(f"ask for at least one sample; got {count}")
    least = space.likelihood_map(space.latents).min()
    kept, refused = np.empty((0, space.latents.shape[1])), np.empty((0, space.latents.shape[1]))
    for _ in range(ROUNDS):
        drawn = _steps_from_active(space, 2 * count, rng)
        likely = space.likelihood_map(drawn) >= least
        kept, refused = np.concatenate([kept, drawn[likely]]), np.concatenate([refused, drawn[~likely]])
        if len(kept) >= count:
            return kept[:count]
    likeliest = np.argsort(-space.likelihood_map(refused), kind="stable")[: count - len(kept)]
    return np.concatenate([kept, refused[likeliest]])


def novel_latents(space: LatentSpace, count: int, rng: np.random.Generator) -> Float[Array, "samples latent"]:
    """Likely latent points far from the training poses and from each other: novel poses of a style."""
    pool = sample_latents(space, 60 * count, rng)
    known = space.latents
    chosen: list[int] = []
    for _ in range(count):
        gaps = np.linalg.norm(pool[:, None] - known[None], axis=2).min(axis=1)
        chosen.append(int(np.argmax(gaps)))
        known = np.concatenate([known, pool[chosen[-1]][None]])
    return pool[chosen]


def spread_latents(space: LatentSpace, count: int) -> Float[Array, "chosen latent"]:
    """Representative training points: the most central one, then always the one farthest from those chosen."""
    points = space.latents
    gaps = np.linalg.norm(points - points.mean(axis=0), axis=1)
    chosen = [int(np.argmin(gaps))]
    gaps = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < min(count, len(points)):
        chosen.append(int(np.argmax(gaps)))
        gaps = np.minimum(gaps, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return points[chosen]


def standing_pose(prior: LatentPrior, x: Float[Array, "latent"]) -> Pose:
    """The pose at a latent point, with its expected tilt, its lowest joint at height 0."""
    return prior.space.pose_from_q(prior.space.standing(prior.pose_at(x), prior.up_at(x)))


def _steps_from_active(
    space: LatentSpace, count: int, rng: np.random.Generator
) -> Float[Array, "samples latent"]:
    """Random steps, short and long, from random active points."""
    origins = space.latents[space.active][rng.integers(len(space.active), size=count)]
    lengths = np.exp(rng.uniform(np.log(NEAREST_STEP), np.log(FARTHEST_STEP), size=(count, 1)))
    return np.asarray(origins + lengths * space.latents.std() * rng.normal(size=origins.shape))
