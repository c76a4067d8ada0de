"""Add poses to a learned style without learning it from scratch (a wish in section 7.3 of Grochow et al. 2004).

New poses start at the latent points given by a linear regression of x on features, learned from the old ones: L_IK
alone would crowd very different poses at the edge of the known region. The active set is chosen again once. Then L_GP
of it (Eq. 2) is minimised over the kernel and the x of its new poses, L_IK (Eq. 3) over the x of all inactive poses,
and the scales follow in closed form: one round instead of the ten of learning.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.gp.latent import Fit, annealed_kernel, descended, others_placed, rescaled
from poise.priors.latent.model import LatentModel
from poise.priors.style import choice
from poise.priors.style.data import TrainingPoses
from poise.priors.style.learning import WORKING_POSES, model_of
from poise.types import Array

DESCENT_STEPS = 10  # L-BFGS steps over the kernel and the x of new active poses
ANNEALING_STEPS = 8  # L-BFGS steps over the annealed kernel, from the previous one
RIDGE = 0.1  # ridge of the regression of x on features, of the mean variance of a feature


def add_poses(model: LatentModel, y: Float[Array, "new features"], *, seed: int = 0) -> LatentModel:
    """The style with more poses learned, from its current state."""
    _check_features(model, y)
    poses = TrainingPoses(model.features, np.concatenate([model.recorded + model.mean, y]))
    latents = np.concatenate([model.latents, laid_out(model.latents, poses.centred)])
    working = np.arange(0, len(latents), -(-len(latents) // WORKING_POSES["heuristic"]))
    is_new = working >= len(model.latents)
    fit = Fit(
        model.kernel, model.scales[poses.varying], latents[working], np.empty(0, int), model.learning_curve
    )
    fit = _taken_in(poses.centred[working], fit.reselected(_active_count(model, len(latents))), is_new)
    latents[working] = fit.latents
    fit = replace(fit, latents=latents, active=working[fit.active])
    rng = np.random.default_rng(seed)
    annealed = annealed_kernel(poses.centred, fit, rng=rng, start=model.annealed, steps=ANNEALING_STEPS)
    return model_of(poses, fit, annealed, speakers=model.speakers)


def laid_out(
    latents: Float[Array, "old latent"], centred: Float[Array, "poses features"]
) -> Float[Array, "new latent"]:
    """Initial latent points of the new poses, by ridge regression of x on features."""
    scaled = centred / centred.std(axis=0)
    old, new = scaled[: len(latents)], scaled[len(latents) :]
    middle, average = old.mean(axis=0), latents.mean(axis=0)
    gram = (old - middle).T @ (old - middle)
    np.einsum("kk->k", gram)[:] += RIDGE * np.trace(gram) / len(gram)
    slopes = np.linalg.solve(gram, (old - middle).T @ (latents - average))
    return np.asarray(average + (new - middle) @ slopes)


def _taken_in(centred: Float[Array, "poses features"], fit: Fit, is_new: Array) -> Fit:
    """The fit with the new poses placed, and its kernel and scales updated."""
    own = replace(fit, latents=fit.latents[fit.active])
    own = descended(centred[fit.active], own, moving=is_new[fit.active], steps=DESCENT_STEPS)
    latents = fit.latents.copy()
    latents[fit.active] = own.latents
    fit = replace(fit, kernel=own.kernel, scales=own.scales, latents=latents)
    return rescaled(centred, others_placed(centred, fit))


def _active_count(model: LatentModel, pose_count: int) -> int:
    """The previous number; if all poses were active, the largest number that the choice by data may give."""
    own = len(model.active)
    return own if own < len(model.latents) else min(pose_count, max(own, choice.ACTIVE_COUNTS[-1]))


def _check_features(model: LatentModel, y: Float[Array, "new features"]) -> None:
    if y.shape[-1] != model.features.dimension or not np.all(np.isfinite(y)):
        raise InvalidValueError(
            f"poses added to this style need {model.features.dimension} finite features; got {y.shape[-1]}"
        )
