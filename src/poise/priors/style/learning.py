"""Learn a style from clips (Grochow et al. 2004, section 5 and appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.gp import latent
from poise.gp.covariance import KERNELS, Kernel
from poise.gp.latent import Fit
from poise.gp.placing import PlacingLoss, place_new
from poise.motion.motion import Motion
from poise.priors.latent.features import Features
from poise.priors.latent.model import ALL, LatentModel
from poise.priors.poses import pose_space_of
from poise.priors.style import choice
from poise.priors.style.data import TrainingPoses, thinned, training_poses
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array, ShareProgress

ALGORITHMS = ("heuristic", "full")
WORKING_POSES = {"heuristic": 2500, "full": 1000}  # evenly spaced training poses; others are only placed


def learn_style(
    motions: Sequence[Motion],
    *,
    dimensions: int | None = None,
    active: int | None = None,
    kernel: str = "rbf",
    algorithm: str = "heuristic",
    up: bool = True,
    velocity: bool = True,
    acceleration: bool = False,
    speakers: str = ALL,
    active_scales: bool = False,
    seed: int = 0,
    progress: ShareProgress = lambda _: None,
) -> tuple[PoseSpace, LatentModel, Float[Array, "poses maps"]]:
    """Return a style, its pose space and the exponential maps of its training frames.

    By default, the data determine the latent dimension, the size of the active set and (for "auto") the kernel. All
    poses enter predictions, or, as in the paper, the active ones alone: `speakers="active"`. Scales are also of all
    poses, or of the active ones alone: `active_scales`.
    """
    space = pose_space_of(motions)
    features = Features(space, up=up, velocity=velocity, acceleration=acceleration)
    poses, maps = training_poses(space, thinned(motions), features)
    model = learn_model(
        poses,
        dimensions=dimensions,
        active=active,
        kernel=kernel,
        algorithm=algorithm,
        speakers=speakers,
        active_scales=active_scales,
        seed=seed,
        progress=progress,
    )
    return space, model, maps


def learn_model(
    poses: TrainingPoses,
    *,
    dimensions: int | None = None,
    active: int | None = None,
    kernel: str = "rbf",
    algorithm: str = "heuristic",
    speakers: str = ALL,
    active_scales: bool = False,
    seed: int = 0,
    progress: ShareProgress = lambda _: None,
) -> LatentModel:
    """Learn a style of these poses; see `learn_style`."""
    _check(poses, dimensions=dimensions, active=active, kernel=kernel, algorithm=algorithm)
    working = np.arange(0, len(poses.y), -(-len(poses.y) // WORKING_POSES[algorithm]))
    centred = poses.centred[working]
    is_open = dimensions is None or active is None or kernel == "auto"
    share = 0.6 if is_open else 0.0  # share of the progress for choosing settings
    chosen = choice.choose(
        centred,
        dimensions=dimensions,
        active=active,
        kernel=kernel,
        progress=lambda done: progress(share * done),
    )
    fit = latent.start(centred, dimensions=chosen.dimensions, kind=chosen.kernel, active=chosen.active)
    heuristic = partial(latent.heuristic, active_scales=active_scales)
    learn = heuristic if algorithm == "heuristic" else latent.full
    fit = learn(
        centred,
        fit,
        active=chosen.active,
        progress=lambda done: progress(share + (0.95 - share) * done),
    )
    placed = _all_placed(poses.centred, fit, working)
    annealed = latent.annealed_kernel(poses.centred, placed, rng=np.random.default_rng(seed))
    model = model_of(poses, placed, annealed, speakers=speakers)
    progress(1.0)
    return model


def model_of(poses: TrainingPoses, fit: Fit, annealed: Kernel, *, speakers: str) -> LatentModel:
    """The model of a fit, with scales for still features too."""
    return LatentModel(
        features=poses.features,
        kernel=fit.kernel,
        mean=poses.mean,
        scales=poses.all_scales(fit.scales),
        latents=fit.latents,
        active=fit.active,
        recorded=poses.y - poses.mean,
        annealed=annealed,
        learning_curve=fit.curve,
        speakers=speakers,
    )


def placing_loss_of(model: LatentModel, varying: Bool[Array, "features"]) -> PlacingLoss:
    """L_IK of a model over some of its features."""
    process = replace(model.posterior, weights=np.ascontiguousarray(model.weights[:, varying]))
    return PlacingLoss(process, model.scales[varying])


def _all_placed(centred: Float[Array, "poses features"], fit: Fit, working: Array) -> Fit:
    """A fit of some poses, with all others placed by L_IK."""
    latents = np.empty((len(centred), fit.latents.shape[1]))
    others = np.ones(len(centred), dtype=np.bool_)
    others[working] = False
    latents[working] = fit.latents
    if np.any(others):
        latents[others] = place_new(fit.placing_loss(centred[working]), centred[others])[0]
    return replace(fit, latents=latents, active=working[fit.active])


def _check(
    poses: TrainingPoses, *, dimensions: int | None, active: int | None, kernel: str, algorithm: str
) -> None:
    if algorithm not in ALGORITHMS:
        raise UnknownNameError("learning algorithm", algorithm, ALGORITHMS)
    if kernel != "auto" and kernel not in KERNELS:
        raise UnknownNameError("kernel", kernel, ("auto", *KERNELS))
    if dimensions is not None and not 1 <= dimensions <= poses.centred.shape[1]:
        raise InvalidValueError(
            f"the latent space must have 1 to {poses.centred.shape[1]} dimensions; got {dimensions}"
        )
    if active is not None and active < 2:
        raise InvalidValueError(f"an active set needs at least two poses; got {active}")
